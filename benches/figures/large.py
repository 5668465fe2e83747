"""One large file up and down."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable
from pathlib import Path

from .cost import Cost
from .data_bench import DataBench, Way, take_turns
from .data_rows import cpu_row, memory_row, time_row
from .movers import AZCOPY, RAW, RCLONE, SDK, TOW
from .spawn import BenchError, need_program
from .table import Row
from .tree import make_random_file

SYNCED = "raw, then synced"


def measure(bench: DataBench) -> list[Row]:
    """Every turn on a service that is new and warm, up and then down; what came back is compared."""
    source = bench.folder() / "large.bin"
    make_random_file(source, bench.sizes.large)
    down: dict[str, list[Cost]] = {}

    def turn(name: str, up: Callable[[], Cost], back: Callable[[Path], Cost]) -> Way:
        def run() -> Cost:
            bench.service.start()
            warm(bench, source)
            cost = up()
            if bench.sizes.large not in bench.service.listing("").values():
                raise BenchError(f"{name} left no blob of that size")
            os.sync()
            target = bench.folder() / "large.bin"
            taken = back(target)
            if name == RAW:
                # As `tow` does: what a download reported is on disk.
                synced = taken.plus(bench.cost([need_program("sync"), "--data", str(target)]))
                down.setdefault(SYNCED, []).append(synced)
            if not filecmp.cmp(source, target, shallow=False):
                raise BenchError(f"{name} brought back other bytes")
            target.unlink()
            down.setdefault(name, []).append(taken)
            return cost

        return Way(run)

    ways = {TOW: turn(TOW, *tow_ways(bench, source)), RAW: turn(RAW, *raw_ways(bench, source)), SDK: turn(SDK, *sdk_ways(bench, source))}
    if bench.rclone:
        ways[RCLONE] = turn(RCLONE, *rclone_ways(bench, source))
    if bench.azcopy:
        ways[AZCOPY] = turn(AZCOPY, *azcopy_ways(bench, source))
    try:
        up = take_turns(ways, bench.sizes.rounds)
    finally:
        bench.service.stop()
        source.unlink()
    # The warm-up went down too.
    back = {name: costs[1:] for name, costs in down.items()}
    rows = []
    for way, costs, peer, limit in (("up", up, SDK, 1.0), ("down", back, SYNCED, 1.3)):
        figure = f"{bench.sizes.large >> 20} MiB {way}"
        rows.append(time_row(figure, costs, bench.missing(), peer, limit))
        rows.append(memory_row(figure, costs, bench.missing(), 64))
        rows.append(cpu_row(figure, costs, bench.missing(), RCLONE, 0.5))
    return rows


def warm(bench: DataBench, source: Path) -> None:
    """The service compiles itself while it is used."""
    part = min(32 << 20, bench.sizes.large)
    lines = [f"PUT\t{bench.service.target(f'warm-{first}')}\t{source}\t{first}\t{1 << 20}" for first in range(0, part, 1 << 20)]
    bench.cost(bench.raw.argv([*lines, "-", *(f"GET\t{line.split(chr(9))[1]}\t/dev/null\t0\t{1 << 20}" for line in lines)]))


def tow_ways(bench: DataBench, source: Path) -> tuple[Callable[[], Cost], Callable[[Path], Cost]]:
    """In a new project each time, so that nothing is known of the file; back into another project of the same home."""
    movers = []

    def up() -> Cost:
        movers.append(bench.mover())
        project = bench.folder()
        (project / "data").mkdir()
        os.link(source, project / "data/large.bin")
        return bench.tow_cost(movers[-1], movers[-1].up("data/large.bin"), project)

    def down(target: Path) -> Cost:
        project = bench.folder()
        cost = bench.tow_cost(movers[-1], movers[-1].down("data/large.bin"), project)
        os.rename(project / "data/large.bin", target)
        return cost

    return up, down


def raw_ways(bench: DataBench, source: Path) -> tuple[Callable[[], Cost], Callable[[Path], Cost]]:
    return (
        lambda: bench.cost(bench.raw.up([(source, "raw/large.bin")])),
        lambda target: bench.cost(bench.raw.down([(target, "raw/large.bin", bench.sizes.large)])),
    )


def sdk_ways(bench: DataBench, source: Path) -> tuple[Callable[[], Cost], Callable[[Path], Cost]]:
    return lambda: bench.cost(bench.sdk.argv("up", "sdk/large.bin", source)), lambda target: bench.cost(bench.sdk.argv("down", "sdk/large.bin", target))


def rclone_ways(bench: DataBench, source: Path) -> tuple[Callable[[], Cost], Callable[[Path], Cost]]:
    peer = bench.rclone
    assert peer
    remote = peer.remote("rclone/large.bin")
    return lambda: bench.cost(peer.argv("copyto", str(source), remote)), lambda target: bench.cost(peer.argv("copyto", remote, str(target)))


def azcopy_ways(bench: DataBench, source: Path) -> tuple[Callable[[], Cost], Callable[[Path], Cost]]:
    peer = bench.azcopy
    assert peer
    return (
        lambda: bench.cost(peer.argv("copy", "LocalBlob", str(source), bench.service.url("azcopy/large.bin"))),
        lambda target: bench.cost(peer.argv("copy", "BlobLocal", bench.service.url("azcopy/large.bin"), str(target))),
    )
