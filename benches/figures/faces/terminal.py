"""What `tow top` costs while it shows runs and a log that grows."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ..spawn import BenchError, find_program
from ..table import NOTHING, Row, count
from .chatter import chattering
from .cpu import percent, used_s
from .faces_bench import FacesBench

COLUMNS, LINES = 120, 40
LIMIT = 0.02
RUNNING = 2
# The screen has been drawn and what it shows has been read.
SETTLE_S = 3.0


class Terminal:
    """A program in a terminal, whose output is read and thrown away."""

    def __init__(self, pid: int, master: int) -> None:
        self.pid = pid
        self.master = master
        self.written = 0
        self.beginning = b""

    def read(self) -> None:
        try:
            chunk = os.read(self.master, 65536)
        except OSError:
            chunk = b""
        if not chunk:
            raise BenchError(f"the program in the terminal has ended: {self.beginning[-200:]!r}")
        self.written += len(chunk)
        self.beginning = (self.beginning + chunk)[:100_000]


@contextmanager
def terminal(argv: Sequence[str], env: dict[str, str]) -> Iterator[Terminal]:
    pid, master = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        os.execve(argv[0], list(argv), {**env, "TERM": "xterm-256color", "LANG": "C.UTF-8"})
    try:
        yield Terminal(pid, master)
    finally:
        os.kill(pid, signal.SIGTERM)
        give_up_at = time.monotonic() + 10
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            # What it still writes must find a reader, or it does not end.
            if select.select([master], [], [], 0.05)[0]:
                drain(master)
            if time.monotonic() > give_up_at:
                os.kill(pid, signal.SIGKILL)
        os.close(master)


def drain(master: int) -> None:
    try:
        os.read(master, 65536)
    except OSError:
        time.sleep(0.05)


def measure(bench: FacesBench) -> list[Row]:
    """`tow top` and, in the same seconds, the system's own `top`, drawn once a second."""
    runs, seconds = bench.sizes.top_runs, bench.sizes.watched_s
    tow = bench.tow_with(runs - RUNNING)
    system = find_program("top")
    with chattering(tow, RUNNING) as ids, ExitStack() as stack:
        shown = {"tow": stack.enter_context(terminal(tow.argv("top"), tow.shop.env))}
        if system:
            shown["top"] = stack.enter_context(terminal([system, "-d", "1"], tow.shop.env))
        watch(shown, SETTLE_S)
        if ids[0].split("-")[0].encode() not in shown["tow"].beginning:
            raise BenchError("`tow top` shows no run")
        before = {name: (used_s(one.pid), one.written) for name, one in shown.items()}
        begin = time.monotonic()
        watch(shown, seconds)
        taken = time.monotonic() - begin
        parts = {name: (used_s(one.pid) - before[name][0]) / taken for name, one in shown.items()}
        written = {name: one.written - before[name][1] for name, one in shown.items()}
    return [top_row(runs, seconds, parts, written)]


def watch(shown: dict[str, Terminal], seconds: float) -> None:
    by_file = {one.master: one for one in shown.values()}
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        ready, _, _ = select.select(list(by_file), [], [], left)
        for file in ready:
            by_file[file].read()


def top_row(runs: int, seconds: float, parts: dict[str, float], written: dict[str, int]) -> Row:
    ours = parts["tow"]
    return Row(
        figure=f"`tow top`, {count(runs)} runs, {RUNNING} of them writing a line a second, {seconds:.0f} s",
        tow=f"{percent(ours)} of a core ({written['tow'] / seconds / 1e3:.1f} kB/s to the terminal)",
        peers=f"`top -d 1` {percent(parts['top'])} ({written['top'] / seconds / 1e3:.1f} kB/s)" if "top" in parts else NOTHING,
        bar=f"< {LIMIT * 100:.0f} %",
        held=ours < LIMIT,
        raw={"parts": parts, "written_bytes": written},
    )
