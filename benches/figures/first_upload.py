"""A tree that the store has never seen."""

from __future__ import annotations

from .cost import Cost
from .data_bench import DataBench, Way, take_turns
from .data_rows import time_row
from .movers import AZCOPY, BLOCK, RCLONE, TOW
from .spawn import BenchError
from .table import Row, count, mb
from .tree import make_random_file

SAME, WHOLE = "raw, the bytes tow stored", "raw, the tree's bytes"


def measure(bench: DataBench) -> list[Row]:
    """The snapshot with its upload, beside raw requests of as many bytes: those that `tow` stored, and the tree's."""
    project, size = bench.code()
    stored: list[int] = []

    def tow() -> Cost:
        bench.service.start()
        mover = bench.mover()
        cost = bench.tow_cost(mover, mover.init("--to", "blob"), project)
        stored.append(sum(bench.service.listing(f"{mover.below}/").values()))
        return cost

    def raw(many: int) -> Cost:
        bench.service.start()
        # Whole blobs of a block each: as few requests as the bytes allow.
        lines = [f"PUT\t{bench.service.target(f'raw-{first}')}\t{source}\t0\t{min(BLOCK, many - first)}" for first in range(0, many, BLOCK)]
        return bench.cost(bench.raw.argv(lines))

    def peer(argv: list[str]) -> Cost:
        bench.service.start()
        return bench.cost(argv)

    source = bench.folder() / "bytes"
    make_random_file(source, BLOCK)
    ways = {TOW: Way(tow), SAME: Way(lambda: raw(stored[0])), WHOLE: Way(lambda: raw(size))}
    if bench.rclone:
        ways[RCLONE] = Way(lambda: peer(bench.rclone.sync(project, "peers")), bench.sizes.slow_rounds)
    if bench.azcopy:
        ways[AZCOPY] = Way(lambda: peer(bench.azcopy.sync(project, "peers")), bench.sizes.slow_rounds)
    try:
        costs = take_turns(ways, bench.sizes.rounds)
    finally:
        bench.service.stop()
        source.unlink()
    if not stored[0]:
        raise BenchError("`tow init --to blob` left nothing in the store")
    figure = f"{count(bench.sizes.files)} files ({mb(size)}, stored as {mb(stored[0])}) to a blob store for the first time"
    return [time_row(figure, costs, bench.missing(), SAME, 1.5)]
