"""How soon a job's line shows."""

from __future__ import annotations

import os
import selectors
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .bench import Bench
from .ratio import paired_ratio, percentile
from .spawn import BenchError, Shop, need_program, wait_until
from .table import Row, ms, times

LOG_JOB = """
import sys, time
time.sleep(1)
for _ in range(int(sys.argv[1])):
    print(time.monotonic_ns(), flush=True)
    time.sleep(0.02)
"""


def measure(bench: Bench) -> list[Row]:
    """A line of a running job in `tow logs -f`, and in `tail -F` of the same file."""
    lines = bench.sizes.log_lines
    with bench.started_tow() as tow:
        script = bench.folder() / "job.py"
        script.write_text(LOG_JOB)
        tow.run("submit", sys.executable, str(script), str(lines))
        wait_until(lambda: len(tow.json("show", "@")["logs"]) == 1, "the run has a log")
        shown = tow.json("show", "@")
        wait_until(lambda: Path(shown["logs"][0]).exists(), "the log is there")
        readers = {"tow": tow.argv("logs", "-f", shown["id"]), "tail": [need_program("tail"), "-n", "+1", "-F", shown["logs"][0]]}
        delays = read_stamps(tow.shop, readers, lines)
        tow.run("wait", shown["id"])
    return [logs_row(delays)]


def read_stamps(shop: Shop, readers: dict[str, list[str]], lines: int) -> dict[str, list[float]]:
    """Reads all readers until each has shown all lines; seconds from stamp to arrival."""
    delays: dict[str, list[float]] = {name: [] for name in readers}
    rest = {name: b"" for name in readers}
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for name, argv in readers.items():
            process = stack.enter_context(reading(shop, argv))
            assert process.stdout is not None
            selector.register(process.stdout.fileno(), selectors.EVENT_READ, name)
        end = time.monotonic() + 30 + lines * 0.1
        while any(len(seen) < lines for seen in delays.values()):
            if time.monotonic() > end:
                raise BenchError("lines did not all show: " + ", ".join(f"{name} {len(seen)} of {lines}" for name, seen in delays.items()))
            for key, _ in selector.select(timeout=1):
                chunk = os.read(key.fd, 65536)
                now = time.monotonic_ns()
                if not chunk:
                    selector.unregister(key.fd)
                *whole, rest[key.data] = (rest[key.data] + chunk).split(b"\n")
                delays[key.data] += [(now - int(line)) / 1e9 for line in whole]
    return delays


@contextmanager
def reading(shop: Shop, argv: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(argv, env=shop.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def logs_row(delays: dict[str, list[float]]) -> Row:
    ours, theirs = delays["tow"], delays["tail"]
    median, ratio = statistics.median(ours), paired_ratio(ours, theirs)
    return Row(
        figure="a job's line in `tow logs -f`",
        tow=f"{ms(median)} (p95 {ms(percentile(ours, 0.95))})",
        peers=f"`tail -F` {ms(statistics.median(theirs))} (p95 {ms(percentile(theirs, 0.95))})",
        ratio=times(ratio),
        bar="≤ 10 ms",
        held=median <= 0.010,
        raw={"tow_s": ours, "tail_s": theirs, "ratio": ratio},
    )
