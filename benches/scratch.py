#!/usr/bin/env python3
"""How fast `tow scratch` backs a workspace up and brings it back, beside its peers.

Every figure is measured beside others in the same minutes on the same machine: tar
with lz4 and with zstd, restic, borg, rustic, a bare walk and `cp -a`. Those that are
compared take turns, and medians are compared. The result is a Markdown table on
standard output; progress goes to standard error.

Nothing outside a temporary folder is touched. It lies under `$TMPDIR`, else
`/var/tmp`, and should be on a real disk with 40 GB to spare.

    benches/scratch.py                  trees of 5,000 and of 20,000 files
    benches/scratch.py --files 5000     one of them
    benches/scratch.py --quick          smaller and rougher
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

from figures import backups
from figures.home import workplace
from figures.machine import machine_facts, weather
from figures.outcome import tell
from figures.progress import say
from figures.spawn import BenchError, on_terminate
from figures.table import Row

DEFAULT_TOW = Path(__file__).resolve().parent.parent / "target/x86_64-unknown-linux-gnu/release/tow"


def measured(tow: str, files: int, rounds: int, root: Path) -> list[Row]:
    """One tree; a figure that breaks is a row that says so."""
    say(f"{files} files …")
    try:
        return backups.measure(backups.BackupBench(tow, files, rounds, root))
    except (BenchError, OSError, subprocess.SubprocessError) as error:
        say(f"  {error}")
        return [Row(figure=f"{files} files", tow=f"broke: {error}".replace("|", "\\|").replace("\n", " "), held=False)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures how tow backs a workspace up beside its peers.")
    parser.add_argument("--files", type=int, action="append", metavar="N", help="files of the tree [default: 5000 and 20000]")
    parser.add_argument("--rounds", type=int, metavar="N", help="turns of each [default: 5]")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and a smaller tree")
    parser.add_argument("--tow", type=Path, default=DEFAULT_TOW, metavar="PATH", help="the binary to measure [default: the release build]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also store every sample here")
    options = parser.parse_args()
    tow, store = options.tow.resolve(), options.json.resolve() if options.json else None
    if not os.access(tow, os.X_OK):
        say(f"no binary at {tow}; build one with `cargo build --release`, or say --tow PATH")
        return 2
    signal.signal(signal.SIGTERM, on_terminate)
    rounds = options.rounds or (2 if options.quick else 5)
    rows: list[Row] = []
    with workplace() as root:
        before = weather(root)
        # A copy, so that a build in the meantime does not change what is measured.
        binary = str(shutil.copy2(tow, root / "tow"))
        for files in options.files or ([500] if options.quick else [5000, 20000]):
            rows += measured(binary, files, rounds, root)
        facts = machine_facts(root, before)
    tell(rows, facts, options.quick, store)
    return 0


if __name__ == "__main__":
    sys.exit(main())
