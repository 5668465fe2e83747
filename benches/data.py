#!/usr/bin/env python3
"""How fast `tow` moves code and data, side by side with its peers.

Every figure is measured against something that runs in the same minute on the
same machine: a bare walk, raw requests, rclone, azcopy, Microsoft's client,
zip, tar, cp and rsync. The store is Microsoft's blob service on loopback, as
`cargo xtask install` installs it. Those that are compared take turns, and
medians are compared. The result is a Markdown table on standard output;
progress goes to standard error.

Nothing outside a temporary folder is touched. It lies under `$TMPDIR`, else
`/var/tmp`, and should be on a real disk with 10 GB to spare.

    benches/data.py                     all figures
    benches/data.py large small         some of them
    benches/data.py --quick             the same, smaller and rougher
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

# Set before the package is imported: nothing is to be written beside it.
sys.dont_write_bytecode = True

from figures import first_upload, growth, large, layout, packing, small, unchanged
from figures.data_bench import FULL, QUICK, DataBench
from figures.home import workplace
from figures.machine import machine_facts, weather
from figures.outcome import tell
from figures.progress import say
from figures.spawn import BenchError, on_terminate
from figures.table import Row

DEFAULT_TOW = Path(__file__).resolve().parent.parent / "target/x86_64-unknown-linux-gnu/release/tow"
SECTIONS: dict[str, Callable[[DataBench], list[Row]]] = {
    "unchanged": unchanged.measure,
    "first": first_upload.measure,
    "packing": packing.measure,
    "large": large.measure,
    "small": small.measure,
    "layout": layout.measure,
    "growth": growth.measure,
}


def measured(bench: DataBench, names: Sequence[str]) -> list[Row]:
    """All sections asked for; one that breaks is a row that says so, and the others go on."""
    rows: list[Row] = []
    for name in names:
        say(f"{name} …")
        try:
            rows += SECTIONS[name](bench)
        except (BenchError, OSError, subprocess.SubprocessError) as error:
            say(f"  {error}")
            rows.append(Row(figure=name, tow=f"broke: {error}".replace("|", "\\|").replace("\n", " "), held=False))
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures how tow moves code and data beside its peers.")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"which figures [default: all]: {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller sizes")
    parser.add_argument("--tow", type=Path, default=DEFAULT_TOW, metavar="PATH", help="the binary to measure [default: the release build]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also store every sample here")
    parser.add_argument("--parallel", type=int, default=8, metavar="N", help="requests at once of everybody but tow, which decides itself [default: 8]")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    return options


def main() -> int:
    options = arguments()
    tow, store = options.tow.resolve(), options.json.resolve() if options.json else None
    if not os.access(tow, os.X_OK):
        say(f"no binary at {tow}; build one with `cargo build --release`, or say --tow PATH")
        return 2
    signal.signal(signal.SIGTERM, on_terminate)
    with workplace() as root:
        before = weather(root)
        # A copy, so that a build in the meantime does not change what is measured.
        binary = Path(shutil.copy2(tow, root / "tow"))
        try:
            bench = DataBench(str(binary), QUICK if options.quick else FULL, root, options.parallel)
        except BenchError as error:
            say(str(error))
            return 2
        try:
            rows = measured(bench, options.sections or list(SECTIONS))
        finally:
            bench.service.stop()
        facts = machine_facts(root, before)
    tell(rows, facts, options.quick, store)
    return 0


if __name__ == "__main__":
    sys.exit(main())
