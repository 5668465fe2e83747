#!/usr/bin/env python3
"""How fast code reaches a Slurm cluster over ssh, side by side with rsync and tar, and how much a
long queue disturbs.

The cluster is real: slurmctld, slurmd, slurmdbd and sshd in network namespaces of
their own, as the tests start it. It needs root and what `cargo xtask install`
installs. Those that are compared take turns, and medians are compared. The result
is a Markdown table on standard output; progress goes to standard error.

    benches/slurm.py              all figures
    benches/slurm.py --quick      the same, smaller and rougher
    benches/slurm.py queue        one of: code queue
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

# Set before the package is imported: nothing is to be written beside it.
sys.dont_write_bytecode = True

from figures import crowd, far
from figures.home import workplace
from figures.machine import machine_facts, weather
from figures.outcome import tell
from figures.progress import say
from figures.spawn import BenchError, on_terminate
from figures.table import Row

DEFAULT_TOW = Path(__file__).resolve().parent.parent / "target/x86_64-unknown-linux-gnu/release/tow"
SECTIONS = ("code", "queue")


def code(binary: str, quick: bool, root: Path) -> list[Row]:
    bench = far.FarBench(binary, 500 if quick else 5000, 2 if quick else 5, root)
    try:
        return far.measure(bench)
    finally:
        bench.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures how code reaches a Slurm cluster beside its peers.")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"which figures [default: all]: {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, a smaller tree and a shorter queue")
    parser.add_argument("--tow", type=Path, default=DEFAULT_TOW, metavar="PATH", help="the binary to measure [default: the release build]")
    options = parser.parse_args()
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {unknown[0]}: there are {', '.join(SECTIONS)}")
    tow = options.tow.resolve()
    if not os.access(tow, os.X_OK):
        say(f"no binary at {tow}; build one with `cargo build --release`, or say --tow PATH")
        return 2
    signal.signal(signal.SIGTERM, on_terminate)
    with workplace() as root:
        before = weather(root)
        # A copy, so that a build in the meantime does not change what is measured.
        binary = str(shutil.copy2(tow, root / "tow"))
        chosen = options.sections or SECTIONS
        rows = []
        try:
            if "code" in chosen:
                rows += code(binary, options.quick, root)
            if "queue" in chosen:
                rows += crowd.measure(binary, root, 500 if options.quick else 5000, 2 if options.quick else 10)
        except (BenchError, OSError, subprocess.SubprocessError) as error:
            say(str(error))
            return 1
        facts = machine_facts(root, before)
    tell(rows, facts, options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
