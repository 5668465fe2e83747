#!/usr/bin/env python3
"""How fast `tow` is on this machine, side by side with its peers.

Every figure is measured against something that runs in the same minute on the
same machine: `/bin/true`, `xargs`, `tail -F`, task-spooler, GNU parallel and
pueue. Rounds are interleaved and medians are compared, so that a busy machine
slows both sides alike. The result is a Markdown table on standard output;
progress goes to standard error.

Nothing is installed and nothing outside a temporary folder is touched: state,
configuration and home of `tow` and of every peer lie in that folder, daemons
are stopped and the folder is removed at the end. The folder lies under
`$TMPDIR`, else `/var/tmp`; it should be on a real disk, because what `tow`
promises to keep is written through to it.

    benches/local.py                    all figures
    benches/local.py --quick            the same, shorter and rougher
    benches/local.py --only latency     one figure; may be repeated
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

from figures import history, latency, logs, memory, startup, throughput
from figures.bench import Bench
from figures.home import workplace
from figures.machine import machine_facts, weather
from figures.outcome import tell
from figures.progress import say
from figures.sizes import FULL, QUICK
from figures.spawn import BenchError, on_alarm, on_terminate
from figures.table import Row

DEFAULT_TOW = Path(__file__).resolve().parent.parent / "target/x86_64-unknown-linux-gnu/release/tow"
FIGURES: dict[str, Callable[[Bench], list[Row]]] = {
    "startup": startup.measure,
    "latency": latency.measure,
    "throughput": throughput.measure,
    "history": history.measure,
    "logs": logs.measure,
    "memory": memory.measure,
}


def measured(bench: Bench, names: Sequence[str]) -> list[Row]:
    """All figures asked for; one that breaks is a row that says so, and the others go on."""
    rows: list[Row] = []
    for name in names:
        say(f"{name} …")
        try:
            rows += FIGURES[name](bench)
        except (BenchError, subprocess.SubprocessError) as error:
            say(f"  {error}")
            rows.append(Row(figure=name, tow=f"broke: {error}".replace("|", "\\|").replace("\n", " "), held=False))
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures tow on this machine beside its peers.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller sizes")
    parser.add_argument("--tow", type=Path, default=DEFAULT_TOW, metavar="PATH", help="the binary to measure [default: the release build]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also store every sample here")
    parser.add_argument("--only", action="append", choices=list(FIGURES), metavar="NAME", help=f"one figure, may be repeated: {', '.join(FIGURES)}")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    tow, store = options.tow.resolve(), options.json.resolve() if options.json else None
    if not os.access(tow, os.X_OK):
        say(f"no binary at {tow}; build one with `cargo build --release`, or say --tow PATH")
        return 2
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGTERM, on_terminate)
    with workplace() as root:
        before = weather(root)
        # A copy, so that a build in the meantime does not change what is measured.
        binary = Path(shutil.copy2(tow, root / "tow"))
        bench = Bench(str(binary), QUICK if options.quick else FULL, root)
        rows = measured(bench, options.only or list(FIGURES))
        facts = machine_facts(root, before)
    tell(rows, facts, options.quick, store)
    return 0


if __name__ == "__main__":
    sys.exit(main())
