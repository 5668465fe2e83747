"""A tree that is in the store already: what it takes to see that."""

from __future__ import annotations

from .data_bench import DataBench, Way, take_turns
from .data_rows import time_row
from .movers import AZCOPY, RCLONE, TOW
from .spawn import BenchError
from .table import Row, count
from .tree import IGNORED

WALK = "stat walk"


def measure(bench: DataBench) -> list[Row]:
    """Nothing has changed since the last upload, and one file has."""
    project, _ = bench.code()
    bench.service.start()
    try:
        mover = bench.mover()
        argv = mover.init("--to", "blob")
        bench.tow_cost(mover, argv, project)
        stored = bench.service.listing(f"{mover.below}/")
        if not stored:
            raise BenchError("`tow init --to blob` left nothing in the store")
        ways = {
            TOW: Way(lambda: bench.tow_cost(mover, argv, project)),
            WALK: Way(lambda: bench.cost([bench.programs.walk, str(project), *IGNORED])),
        }
        if bench.rclone:
            rclone = bench.rclone.sync(project, "peers")
            ways[RCLONE] = Way(lambda: bench.cost(rclone))
        if bench.azcopy:
            azcopy = bench.azcopy.sync(project, "peers")
            ways[AZCOPY] = Way(lambda: bench.cost(azcopy))
        if bench.rclone or bench.azcopy:
            # One upload for both: they look for what differs in size or is younger.
            bench.cost(rclone if bench.rclone else azcopy)
        unchanged = take_turns(ways, bench.sizes.quick_rounds)
        after = bench.service.listing(f"{mover.below}/")
        if after != stored:
            raise BenchError(f"an unchanged tree changed the store: {sorted(set(after) ^ set(stored))[:3]}")
        file = next(iter(sorted(project.rglob("module_*.py"))))
        numbers = iter(range(1_000_000))

        def touched(way: Way) -> Way:
            def run():
                with file.open("a") as text:
                    text.write(f"# changed {next(numbers)}\n")
                return way.run()

            return Way(run)

        changed = take_turns({name: touched(way) for name, way in ways.items() if name != WALK}, bench.sizes.rounds)
    finally:
        bench.service.stop()
    files = count(bench.sizes.files)
    return [
        time_row(f"{files} files to a blob store, none changed", unchanged, bench.missing(), WALK, 3.0),
        time_row(f"{files} files to a blob store, one changed", changed, bench.missing()),
    ]
