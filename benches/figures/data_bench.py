"""What is handed to every figure about data."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from .blobs import Service
from .cost import Cost, Programs
from .movers import AZCOPY, RCLONE, Azcopy, RawMover, Rclone, Sdk, TowMover, azcopy, rclone
from .peers import MISSING
from .progress import say
from .rounds import rotated
from .spawn import Shop
from .tree import make_tree


@dataclasses.dataclass(frozen=True)
class DataSizes:
    """How much of everything one run does."""

    files: int
    large: int
    small_files: int
    growth: tuple[int, ...]
    quick_rounds: int
    rounds: int
    # Peers that take most of a minute.
    slow_rounds: int


FULL = DataSizes(files=5000, large=1 << 30, small_files=500, growth=(1_000, 10_000, 100_000), quick_rounds=15, rounds=5, slow_rounds=1)
QUICK = DataSizes(files=500, large=64 << 20, small_files=100, growth=(1_000, 5_000), quick_rounds=5, rounds=2, slow_rounds=1)


@dataclasses.dataclass
class Way:
    """One way to do a job. `run` is timed by itself, what it needs before and after is not."""

    run: Callable[[], Cost]
    rounds: int | None = None


class DataBench:
    def __init__(self, tow: str, sizes: DataSizes, root: Path, parallel: int) -> None:
        self.tow, self.sizes, self.root, self.parallel = tow, sizes, root, parallel
        self.numbers = itertools.count()
        self.programs = Programs(self.folder())
        self.shop = Shop(self.folder())
        self.service = Service(self.folder())
        self.raw = RawMover(self.programs.raw, self.service, parallel, self.folder())
        self.sdk = Sdk(self.service, parallel)
        self.rclone: Rclone | None = rclone(self.service, parallel)
        self.azcopy: Azcopy | None = azcopy(self.service, parallel, self.folder())
        self.shop.env |= (self.rclone.env() if self.rclone else {}) | (self.azcopy.env() if self.azcopy else {})
        self.made: tuple[Path, int] | None = None

    def folder(self) -> Path:
        path = self.root / str(next(self.numbers))
        path.mkdir()
        return path

    def code(self) -> tuple[Path, int]:
        """The tree of code, made once, and its bytes."""
        if self.made is None:
            say(f"  a tree of {self.sizes.files} files …")
            folder = self.folder()
            self.made = (folder, make_tree(folder, self.sizes.files))
            os.sync()
        return self.made

    def mover(self) -> TowMover:
        """A `tow` that has never seen anything, with a place of its own in the container."""
        folder = self.folder()
        return TowMover(self.tow, folder, self.service, f"tow-{folder.name}")

    def cost(self, argv: Sequence[str], cwd: Path | None = None) -> Cost:
        """Of anybody but `tow`."""
        return self.programs.cost(argv, self.shop.env, cwd or self.root)

    def tow_cost(self, mover: TowMover, argv: Sequence[str], cwd: Path) -> Cost:
        return self.programs.cost(argv, mover.shop.env, cwd)

    def missing(self) -> list[str]:
        return [name for name, peer in ((RCLONE, self.rclone), (AZCOPY, self.azcopy)) if peer is None]


def take_turns(ways: dict[str, Way], rounds: int, warm_up: bool = True) -> dict[str, list[Cost]]:
    """Every way once a round, another one first each time, with all that was written on disk before each."""
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    if warm_up:
        for way in ways.values():
            if way.rounds is None:
                way.run()
    for number in range(rounds):
        for name in rotated(ways, number):
            way = ways[name]
            if way.rounds is not None and number >= way.rounds:
                continue
            os.sync()
            costs[name].append(way.run())
            cost = costs[name][-1]
            say(f"  {name}: {cost.seconds:.3f} s, CPU {cost.cpu:.3f} s, {cost.memory / 2**20:.0f} MiB")
    return costs


def also(missing: Iterable[str]) -> str:
    """What the cell of the peers says of those that are not there."""
    return "".join(f", {name} {MISSING}" for name in missing)
