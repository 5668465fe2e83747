"""A tree packed on this machine."""

from __future__ import annotations

import shlex

from .cost import Cost
from .data_bench import DataBench, Way, take_turns
from .data_rows import time_row
from .movers import TOW
from .spawn import find_program
from .table import Row, count, mb
from .tree import IGNORED

ZIP, TAR = "zip -r", "tar, lz4"


def measure(bench: DataBench) -> list[Row]:
    """A first snapshot into the local store, beside an archive of the same files."""
    project, size = bench.code()
    out = bench.folder()

    def tow() -> Cost:
        mover = bench.mover()
        return bench.tow_cost(mover, mover.init(), project)

    # Folders of a turn stay until the end: see `disk.creation_seconds`.
    ways = {TOW: Way(tow)}
    missing = []
    zip_program, tar, lz4, shell = (find_program(name) for name in ("zip", "tar", "lz4", "sh"))
    if zip_program:
        passed_over = [f"{prefix}{name}/*" for name in IGNORED for prefix in ("", "*/")]

        def zipped() -> Cost:
            (out / "tree.zip").unlink(missing_ok=True)
            return bench.cost([zip_program, "-r", "-q", str(out / "tree.zip"), ".", "-x", *passed_over], project)

        ways[ZIP] = Way(zipped)
    else:
        missing.append(ZIP)
    if tar and lz4 and shell:
        words = [tar, "-c", *(f"--exclude={name}" for name in IGNORED), "."]
        line = f"{shlex.join(words)} | {shlex.join([lz4, '-q', '-f', '-', str(out / 'tree.tar.lz4')])}"
        ways[TAR] = Way(lambda: bench.cost([shell, "-c", line], project))
    else:
        missing.append(TAR)
    costs = take_turns(ways, bench.sizes.rounds)
    return [time_row(f"{count(bench.sizes.files)} files ({mb(size)}) packed on this machine", costs, missing, ZIP, 0.15)]
