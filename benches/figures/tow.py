"""The binary that is measured."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .launcher import AT_ONCE, Launcher
from .spawn import TRUE, BenchError, wait_until


class Tow(Launcher):
    """One `tow` with a state folder of its own."""

    name = "tow"

    def __init__(self, binary: str, root: Path) -> None:
        super().__init__(root)
        self.binary = binary
        write_config(root / "config")

    def argv(self, *words: str) -> list[str]:
        return [self.binary, *words]

    def run(self, *words: str) -> float:
        return self.shop.run(self.argv(*words))

    def json(self, *words: str) -> Any:
        return json.loads(self.shop.ask(self.argv(*words, "--json")))

    def start(self) -> None:
        self.run("submit", TRUE)
        self.run("wait", "@")

    def submit(self, job: Sequence[str]) -> list[str]:
        return self.argv("submit", *job)

    def drain(self) -> None:
        self.run("wait")

    def daemon_pid(self) -> int | None:
        answer = self.json("daemon", "status")
        return answer["status"]["pid"] if answer["running"] else None

    def state_folder(self) -> Path:
        """The folder of this machine in the state folder."""
        found = [path.parent for path in (self.shop.root / "state/towline").glob("*/history.db")]
        if len(found) != 1:
            raise BenchError("no history.db in tow's state folder")
        return found[0]

    def active(self) -> list[str]:
        return [run["id"] for run in self.json("ps", "--state", "active", "--all")["runs"]]

    def abort_all(self) -> float:
        """Ends what is queued or running, by its ids; the seconds `tow abort --wait` took."""
        runs = self.active()
        return sum(self.run("abort", "--wait", *runs[first : first + 2000]) for first in range(0, len(runs), 2000))

    def stop(self) -> None:
        try:
            self.abort_all()
        finally:
            self.stop_daemon()

    def stop_daemon(self) -> None:
        pid = self.daemon_pid()
        if pid is not None:
            self.shop.ask(self.argv("daemon", "stop"))
            wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the daemon of tow leaves")


def write_config(folder: Path) -> None:
    """Two at a time, whatever this machine has."""
    if os.cpu_count() == AT_ONCE:
        return
    (folder / "towline").mkdir(parents=True, exist_ok=True)
    (folder / "towline/config.yaml").write_text(f"clusters:\n  local:\n    kind: local\n    cpus: {AT_ONCE}\n")
