"""A snapshot that is on this machine, laid out as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .cost import Cost
from .data_bench import DataBench, Way, take_turns
from .data_rows import time_row
from .movers import TOW
from .spawn import BenchError, find_program, need_program
from .table import Row, count, mb
from .tree import IGNORED

COPY, RSYNC = "cp -a", "rsync -a"


def measure(bench: DataBench) -> list[Row]:
    """`tow snapshot get` into a new folder, beside copies of the same tree. What was laid out stays until the end."""
    project, size = bench.code()
    mover = bench.mover()
    snapshot = mover.snapshot(project)

    def into(run: Callable[[Path], Cost]) -> Callable[[], Cost]:
        return lambda: run(bench.folder() / "tree")

    first = bench.folder() / "tree"
    bench.tow_cost(mover, mover.get(snapshot, first), project)
    check(project, first)
    # The tree without what is ignored, for `cp`, which cannot pass over it.
    copy = [need_program("cp"), "-a", "--reflink=auto", str(first)]
    ways = {
        TOW: Way(into(lambda target: bench.tow_cost(mover, mover.get(snapshot, target), project))),
        COPY: Way(into(lambda target: bench.cost([*copy, str(target)]))),
    }
    rsync = find_program("rsync")
    if rsync:
        ways[RSYNC] = Way(into(lambda target: bench.cost([rsync, "-a", f"{first}/", f"{target}/"])))
    costs = take_turns(ways, bench.sizes.rounds)
    figure = f"{count(bench.sizes.files)} files ({mb(size)}) of a cached snapshot laid out"
    return [time_row(figure, costs, [] if rsync else [RSYNC], COPY, 1.5)]


def check(project: Path, laid_out: Path) -> None:
    """That every file is there with its bytes."""
    wanted = {path.relative_to(project) for path in project.rglob("*") if path.is_file() and not set(path.parts) & set(IGNORED)}
    found = {path.relative_to(laid_out) for path in laid_out.rglob("*") if path.is_file()}
    if wanted != found:
        raise BenchError(f"`tow snapshot get` gave other files: {sorted(map(str, wanted ^ found))[:3]}")
    for path in wanted:
        if (project / path).read_bytes() != (laid_out / path).read_bytes():
            raise BenchError(f"`tow snapshot get` gave other bytes: {path}")
