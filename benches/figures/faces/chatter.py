"""Runs that go on, each writing a line a second."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..spawn import wait_until
from ..tow import Tow

JOB = """
import itertools, time
for step in itertools.count():
    print(f"step {step} loss {1 / (step + 1):.4f}", flush=True)
    time.sleep(1)
"""


@contextmanager
def chattering(tow: Tow, runs: int) -> Iterator[list[str]]:
    """So many runs, by their ids; at the end they and the daemon are stopped."""
    script = tow.shop.root / "chatter.py"
    script.write_text(JOB)
    try:
        for _ in range(runs):
            tow.run("submit", sys.executable, str(script))
        wait_until(lambda: len(tow.json("ps", "--state", "running", "--all")["runs"]) == runs, f"{runs} runs go on", pause=0.1)
        ids = [run["id"] for run in tow.json("ps", "--state", "running", "--all")["runs"]]
        for run in ids:
            wait_until(lambda run=run: any(Path(log).exists() for log in tow.json("show", run)["logs"]), "the run has a log", pause=0.1)
        yield ids
    finally:
        tow.stop()
