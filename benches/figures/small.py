"""Many small files by path, up and down."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable
from pathlib import Path

from .cost import Cost
from .data_bench import DataBench, Way, take_turns
from .data_rows import time_row
from .movers import AZCOPY, RAW, RCLONE, TOW
from .spawn import BenchError
from .table import Row, count
from .tree import make_random_file

SIZE = 64 << 10


def measure(bench: DataBench) -> list[Row]:
    """Every turn to names of its own on one service, up and then down; what came back is compared."""
    source = bench.folder() / "source"
    names = [f"folder_{number % 10}/file_{number}" for number in range(bench.sizes.small_files)]
    for name in names:
        make_random_file(source / name, SIZE)
    turns = iter(range(1_000_000))
    down: dict[str, list[Cost]] = {}

    def turn(name: str, up: Callable[[str], Cost], back: Callable[[str, Path], Cost]) -> Way:
        def run() -> Cost:
            place = f"{name}-{next(turns)}"
            cost = up(place)
            os.sync()
            target = bench.folder()
            taken = back(place, target)
            wrong = filecmp.cmpfiles(source, target, names, shallow=False)[1:]
            if any(wrong):
                raise BenchError(f"{name} brought back other files: {wrong[0][:1] + wrong[1][:1]}")
            down.setdefault(name, []).append(taken)
            return cost

        return Way(run)

    ways = {TOW: turn(TOW, *tow_ways(bench, source)), RAW: turn(RAW, *raw_ways(bench, source, names))}
    rclone, azcopy = bench.rclone, bench.azcopy
    if rclone:
        ways[RCLONE] = turn(
            RCLONE,
            lambda place: bench.cost(rclone.argv("copy", str(source), rclone.remote(place))),
            lambda place, target: bench.cost(rclone.argv("copy", rclone.remote(place), str(target))),
        )
    if azcopy:
        ways[AZCOPY] = turn(
            AZCOPY,
            lambda place: bench.cost([*azcopy.argv("copy", "LocalBlob", f"{source}/*", bench.service.url(place)), "--recursive"]),
            lambda place, target: bench.cost([*azcopy.argv("copy", "BlobLocal", bench.service.url(f"{place}/*"), str(target)), "--recursive"]),
        )
    bench.service.start()
    try:
        up = take_turns(ways, bench.sizes.rounds)
    finally:
        bench.service.stop()
    back = {name: costs[1:] for name, costs in down.items()}
    figure = f"{count(bench.sizes.small_files)} × 64 KiB"
    return [time_row(f"{figure} {way}", costs, bench.missing(), RAW, 1.2) for way, costs in (("up", up), ("down", back))]


def tow_ways(bench: DataBench, source: Path) -> tuple[Callable[[str], Cost], Callable[[str, Path], Cost]]:
    movers = []

    def up(_place: str) -> Cost:
        movers.append(bench.mover())
        project = bench.folder()
        (project / "data").mkdir()
        # Moved there and back: `tow` is to see plain files that it has never seen.
        os.rename(source, project / "data/many")
        try:
            return bench.tow_cost(movers[-1], movers[-1].up("data/many"), project)
        finally:
            os.rename(project / "data/many", source)

    def down(_place: str, target: Path) -> Cost:
        project = bench.folder()
        cost = bench.tow_cost(movers[-1], movers[-1].down("data/many"), project)
        target.rmdir()
        os.rename(project / "data/many", target)
        return cost

    return up, down


def raw_ways(bench: DataBench, source: Path, names: list[str]) -> tuple[Callable[[str], Cost], Callable[[str, Path], Cost]]:
    def up(place: str) -> Cost:
        return bench.cost(bench.raw.up([(source / name, f"{place}/{name}") for name in names]))

    def down(place: str, target: Path) -> Cost:
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
        return bench.cost(bench.raw.down([(target / name, f"{place}/{name}", SIZE) for name in names]))

    return up, down
