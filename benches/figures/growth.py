"""How the cost of a snapshot grows with the number of files."""

from __future__ import annotations

import os

from .cost import Cost, median
from .data_bench import DataBench, Way, take_turns
from .data_rows import span
from .movers import TOW
from .progress import say
from .ratio import against
from .spawn import BenchError
from .table import Row, count, times
from .tree import make_small_files

WALK = "stat walk"


def measure(bench: DataBench) -> list[Row]:
    """A first snapshot on this machine and one of the unchanged tree, for ever more files of a kilobyte."""
    rows: list[Row] = []
    smallest: dict[str, list[float]] = {}
    for files in bench.sizes.growth:
        say(f"  {files} files …")
        try:
            first, again = one_size(bench, files)
        except BenchError as error:
            rows.append(Row(figure=f"{count(files)} files of 1 KB", tow=f"broke: {error}".replace("|", "\\|").replace("\n", " "), held=False))
            continue
        for what, costs in (("first snapshot", first), ("unchanged", again)):
            ours = [cost.seconds for cost in costs[TOW]]
            smallest.setdefault(what, ours)
            grown = against(ours, smallest[what])
            rows.append(
                Row(
                    figure=f"{count(files)} files of 1 KB, {what}",
                    tow=f"{span(median(costs[TOW]).seconds)}, {median(costs[TOW]).memory / 2**20:.0f} MiB",
                    peers=f"{WALK} {span(median(costs[WALK]).seconds)}",
                    ratio=f"{times(grown)} {count(bench.sizes.growth[0])} files, {times(against(ours, [cost.seconds for cost in costs[WALK]]))} {WALK}",
                    raw={"values": {name: [cost.seconds for cost in found] for name, found in costs.items()}},
                )
            )
    return rows


def one_size(bench: DataBench, files: int) -> tuple[dict[str, list[Cost]], dict[str, list[Cost]]]:
    project = bench.folder()
    make_small_files(project, files)
    os.sync()
    walk = Way(lambda: bench.cost([bench.programs.walk, str(project)]))

    def fresh() -> Cost:
        mover = bench.mover()
        return bench.tow_cost(mover, mover.init(), project)

    first = take_turns({TOW: Way(fresh), WALK: walk}, bench.sizes.rounds)
    mover = bench.mover()
    bench.tow_cost(mover, mover.init(), project)
    again = take_turns({TOW: Way(lambda: bench.tow_cost(mover, mover.init(), project)), WALK: walk}, bench.sizes.rounds)
    return first, again
