#!/usr/bin/env python3
"""How fast code reaches a Slurm cluster over ssh, side by side with rsync and tar.

The cluster is real: slurmctld, slurmd, slurmdbd and sshd in network namespaces of
their own, as the tests start it. It needs root and what `cargo xtask install`
installs. Those that are compared take turns, and medians are compared. The result
is a Markdown table on standard output; progress goes to standard error.

    benches/slurm.py              all figures
    benches/slurm.py --quick      the same, smaller and rougher
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

from figures import far
from figures.home import workplace
from figures.machine import machine_facts, machine_line, weather
from figures.progress import say
from figures.spawn import BenchError, on_terminate
from figures.table import markdown

DEFAULT_TOW = Path(__file__).resolve().parent.parent / "target/x86_64-unknown-linux-gnu/release/tow"


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures how code reaches a Slurm cluster beside its peers.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and a smaller tree")
    parser.add_argument("--tow", type=Path, default=DEFAULT_TOW, metavar="PATH", help="the binary to measure [default: the release build]")
    options = parser.parse_args()
    tow = options.tow.resolve()
    if not os.access(tow, os.X_OK):
        say(f"no binary at {tow}; build one with `cargo build --release`, or say --tow PATH")
        return 2
    signal.signal(signal.SIGTERM, on_terminate)
    with workplace() as root:
        before = weather(root)
        # A copy, so that a build in the meantime does not change what is measured.
        binary = str(shutil.copy2(tow, root / "tow"))
        try:
            bench = far.FarBench(binary, 500 if options.quick else 5000, 2 if options.quick else 5, root)
        except BenchError as error:
            say(str(error))
            return 2
        try:
            rows = far.measure(bench)
        except (BenchError, OSError, subprocess.SubprocessError) as error:
            say(str(error))
            return 1
        finally:
            bench.stop()
        facts = machine_facts(root, before)
    print(markdown(rows) + "\n\n" + machine_line(facts, options.quick))
    return 0


if __name__ == "__main__":
    sys.exit(main())
