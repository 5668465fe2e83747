#!/usr/bin/env python3
"""How quick `tow` is with Azure ML, beside Microsoft's own clients, on the emulator of the tests.

Every figure is measured beside the others in the same minutes on the same machine:
Microsoft's client azure-ai-ml and `az`, each in a process of its own for each act, as
a user has them. They take turns, and medians of the ratios of each turn are compared.
The result is a Markdown table on standard output; progress goes to standard error.

Needs what `cargo xtask install` installs, and two programs:

    cargo build --release -p towline
    cargo build --release -p towline-testkit --example aml
    benches/azureml.py                  about five minutes
    benches/azureml.py --quick          fewer turns
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

from figures import azureml
from figures.home import workplace
from figures.machine import machine_facts, weather
from figures.outcome import tell
from figures.progress import say
from figures.spawn import BenchError, on_terminate

BUILT = Path(__file__).resolve().parent.parent / "target/x86_64-unknown-linux-gnu/release"


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures tow with Azure ML beside Microsoft's clients.")
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--tow", type=Path, default=BUILT / "tow", metavar="PATH", help="the binary to measure [default: the release build]")
    parser.add_argument("--emulator", type=Path, default=BUILT / "examples/aml", metavar="PATH", help="the emulator [default: the release build]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also store every sample here")
    options = parser.parse_args()
    programs = [options.tow.resolve(), options.emulator.resolve()]
    store = options.json.resolve() if options.json else None
    for program in programs:
        if not os.access(program, os.X_OK):
            say(f"no program at {program}; see the first lines of this file")
            return 2
    signal.signal(signal.SIGTERM, on_terminate)
    with workplace() as root:
        before = weather(root)
        # Copies, so that a build in the meantime does not change what is measured.
        tow, emulator = (Path(shutil.copy2(program, root / program.name)) for program in programs)
        bench = None
        try:
            bench = azureml.AzureBench(str(tow), emulator, 3 if options.quick else 9, root)
            rows = azureml.measure(bench)
        except (BenchError, OSError, subprocess.SubprocessError) as error:
            say(str(error))
            return 1
        finally:
            if bench:
                bench.stop()
        facts = machine_facts(root, before)
    tell(rows, facts, options.quick, store)
    return 0


if __name__ == "__main__":
    sys.exit(main())
