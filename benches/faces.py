#!/usr/bin/env python3
"""How fast the page and the terminal of `tow` are on this machine.

`tow ui` is shown by Chromium without a window, `tow top` in a terminal of 120 by
40. The page stands beside those of MLflow, Aim and TensorBoard where these are
installed. Those that are compared take turns, and medians are compared. The result
is a Markdown table on standard output; progress goes to standard error.

Nothing is installed and nothing outside a temporary folder is touched: it lies
under `$TMPDIR`, else `/var/tmp`, and is removed at the end.

    benches/faces.py                    all figures, twelve minutes
    benches/faces.py --quick            the same, shorter and rougher
    benches/faces.py load scroll        some of them
    benches/faces.py --before PATH      also beside an older binary
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

from figures.faces import beside, commands, first_load, followed_log, scrolling, terminal, watchers
from figures.faces.faces_bench import FacesBench
from figures.faces.sizes import FULL, QUICK
from figures.home import workplace
from figures.machine import machine_facts, weather
from figures.outcome import tell
from figures.progress import say
from figures.spawn import BenchError, on_alarm, on_terminate
from figures.table import Row

DEFAULT_TOW = Path(__file__).resolve().parent.parent / "target/x86_64-unknown-linux-gnu/release/tow"
FIGURES: dict[str, Callable[[FacesBench], list[Row]]] = {
    "load": first_load.measure,
    "follow": followed_log.measure,
    "scroll": scrolling.measure,
    "beside": beside.measure,
    "top": terminal.measure,
    "watchers": watchers.measure,
    "commands": commands.measure,
}


def measured(bench: FacesBench, names: Sequence[str]) -> list[Row]:
    """All figures asked for; one that breaks is a row that says so, and the others go on."""
    rows: list[Row] = []
    for name in names:
        say(f"{name} …")
        try:
            rows += FIGURES[name](bench)
        except (BenchError, OSError, subprocess.SubprocessError) as error:
            say(f"  {error}")
            rows.append(Row(figure=name, tow=f"broke: {error}".replace("|", "\\|").replace("\n", " "), held=False))
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures the page and the terminal of tow on this machine.")
    parser.add_argument("figures", nargs="*", metavar="NAME", help=f"some of: {' '.join(FIGURES)} [default: all]")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller sizes")
    parser.add_argument("--tow", type=Path, default=DEFAULT_TOW, metavar="PATH", help="the binary to measure [default: the release build]")
    parser.add_argument("--before", type=Path, metavar="PATH", help="an older binary, to compare the start-up of commands with")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also store every sample here")
    options = parser.parse_args()
    unknown = [name for name in options.figures if name not in FIGURES]
    if unknown:
        parser.error(f"no figure is called {unknown[0]}; there are {', '.join(FIGURES)}")
    return options


def main() -> int:
    options = arguments()
    tow, store = options.tow.resolve(), options.json.resolve() if options.json else None
    before = options.before.resolve() if options.before else None
    for binary in filter(None, (tow, before)):
        if not os.access(binary, os.X_OK):
            say(f"no binary at {binary}; build one with `cargo build --release`, or say --tow PATH")
            return 2
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGTERM, on_terminate)
    with workplace() as root:
        earlier = weather(root)
        # Copies, so that a build in the meantime does not change what is measured.
        ours = str(shutil.copy2(tow, root / "tow"))
        theirs = str(shutil.copy2(before, root / "before")) if before else None
        bench = FacesBench(ours, QUICK if options.quick else FULL, root, theirs)
        rows = measured(bench, options.figures or list(FIGURES))
        facts = machine_facts(root, earlier)
    tell(rows, facts, options.quick, store)
    return 0


if __name__ == "__main__":
    sys.exit(main())
