"""What else could do the job: task-spooler, GNU parallel and pueue."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from .launcher import AT_ONCE, Launcher
from .spawn import BenchError, find_program, wait_until

SPOOLER, PARALLEL, PUEUE = "task-spooler", "GNU parallel", "pueue"
MISSING = "not installed"


class Spooler(Launcher):
    """Debian's task-spooler."""

    name = SPOOLER

    def __init__(self, binary: str, root: Path) -> None:
        super().__init__(root)
        self.binary = binary
        self.shop.env |= {"TS_SOCKET": str(root / "run/tsp"), "TS_SLOTS": str(AT_ONCE), "TS_MAXFINISHED": "100000"}

    def start(self) -> None:
        self.shop.ask([self.binary, "-S", str(AT_ONCE)])

    def submit(self, job: Sequence[str]) -> list[str]:
        return [self.binary, *job]

    def drain(self) -> None:
        """Waits for the last one; beside it at most one other `true` may be about to end."""
        self.shop.run([self.binary, "-w"])

    def reset(self) -> None:
        """Keeps its list as short in the last round as in the first."""
        self.shop.ask([self.binary, "-C"])

    def stop(self) -> None:
        self.shop.ask([self.binary, "-K"])


class Parallel(Launcher):
    """GNU parallel, which keeps a job log and the output of each job."""

    name = PARALLEL

    def __init__(self, binary: str, root: Path) -> None:
        super().__init__(root)
        self.binary = binary
        self.results = 0

    def submit(self, job: Sequence[str]) -> list[str]:
        return [self.binary, "--will-cite", "-N0", *job, ":::", "x"]

    def batch(self) -> list[str]:
        kept = self.shop.root / f"kept-{self.results}"
        return [self.binary, "--will-cite", f"-j{AT_ONCE}", "--joblog", f"{kept}.log", "--results", str(kept), "true"]

    def reset(self) -> None:
        """Another folder; the old one stays, see `disk.creation_seconds`."""
        self.results += 1


class Pueue(Launcher):
    """pueue with its daemon."""

    name = PUEUE

    def __init__(self, binary: str, daemon: str, root: Path) -> None:
        super().__init__(root)
        self.binary = binary
        self.daemon = daemon

    def start(self) -> None:
        self.shop.run([self.daemon, "-d"])
        wait_until(self._answers, "the daemon of pueue answers")
        self.shop.ask([self.binary, "parallel", str(AT_ONCE)])

    def _answers(self) -> bool:
        try:
            self.shop.ask([self.binary, "status"])
        except BenchError:
            return False
        return True

    def submit(self, job: Sequence[str]) -> list[str]:
        return [self.binary, "add", "--", *job]

    def drain(self) -> None:
        """Its own `wait` looks every two seconds; asking more often is fairer."""
        wait_until(self._idle, "the queue of pueue is empty", pause=0.05)

    def _idle(self) -> bool:
        tasks = json.loads(self.shop.ask([self.binary, "status", "--json"]))["tasks"].values()
        return all("Done" in task["status"] for task in tasks)

    def stop(self) -> None:
        self.shop.ask([self.binary, "shutdown"])


def installed_peers(folder: Callable[[], Path]) -> dict[str, Launcher | None]:
    """The peers by name, each in a new folder; None for one that is not installed."""
    spooler, parallel = find_program("tsp"), find_program("parallel")
    pueue, pueued = find_program("pueue"), find_program("pueued")
    return {
        SPOOLER: Spooler(spooler, folder()) if spooler else None,
        PARALLEL: Parallel(parallel, folder()) if parallel else None,
        PUEUE: Pueue(pueue, pueued, folder()) if pueue and pueued else None,
    }
