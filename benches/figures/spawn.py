"""Processes: finding, starting and timing them, and giving up on them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .home import isolated_environment

COMMAND_TIMEOUT_S = 600
TRUE = "/bin/true"


class BenchError(Exception):
    """A measurement that could not be made."""


def on_alarm(_signal: int, _frame: object) -> None:
    raise BenchError(f"a command took longer than {COMMAND_TIMEOUT_S} s")


def on_terminate(_signal: int, _frame: object) -> None:
    raise SystemExit(143)


def find_program(name: str) -> str | None:
    """A program on PATH or under $TOW_PEERS/bin."""
    found = shutil.which(name)
    peers = os.environ.get("TOW_PEERS")
    if found is None and peers:
        found = shutil.which(name, path=os.path.join(peers, "bin"))
    return os.path.abspath(found) if found else None


def need_program(name: str) -> str:
    found = find_program(name)
    if found is None:
        raise BenchError(f"`{name}` is needed and not installed")
    return found


class Shop:
    """The temporary folder, and processes with an environment that points into it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.errors = root / "stderr"
        self.env = isolated_environment(root)

    def start(self, argv: Sequence[str], stdin: str = os.devnull) -> int:
        """Starts a process the cheapest way there is; its pid."""
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, str(self.errors), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        ]
        return os.posix_spawn(argv[0], list(argv), self.env, file_actions=actions)

    def finish(self, pid: int, argv: Sequence[str]) -> None:
        try:
            _, status = os.waitpid(pid, 0)
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            raise BenchError(f"`{' '.join(argv)[:200]}` left with {code}: {self.last_error()}")

    def last_error(self) -> str:
        if not self.errors.exists():
            return ""
        return self.errors.read_text(errors="replace")[-500:].strip()

    def run(self, argv: Sequence[str], stdin: str = os.devnull) -> float:
        """Runs a command to its end; the seconds it took."""
        signal.alarm(COMMAND_TIMEOUT_S)
        begin = time.perf_counter_ns()
        self.finish(self.start(argv, stdin), argv)
        taken = time.perf_counter_ns() - begin
        signal.alarm(0)
        return taken / 1e9

    def ask(self, argv: Sequence[str]) -> str:
        """Runs a command, untimed; what it wrote."""
        done = subprocess.run(argv, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
        if done.returncode != 0:
            raise BenchError(f"`{' '.join(argv)[:200]}` left with {done.returncode}: {done.stderr[-500:].strip()}")
        return done.stdout


def wait_until(done: Callable[[], bool], what: str, pause: float = 0.01) -> None:
    end = time.monotonic() + COMMAND_TIMEOUT_S
    while not done():
        if time.monotonic() > end:
            raise BenchError(f"gave up waiting until {what}")
        time.sleep(pause)
