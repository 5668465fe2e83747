"""A workspace backed up and brought back, beside those who do the same."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable
from pathlib import Path

from .cost import Cost, Programs, median
from .data_bench import Way
from .data_rows import MIB, time_row
from .keepers import LZ4, RESTIC, ZSTD, Keeper, keepers
from .movers import TOW
from .progress import say
from .rounds import rotated
from .spawn import BenchError, Shop, need_program
from .table import Row, count, mb, ratio_cell
from .tree import change_some, make_workspace

WALK, COPY = "stat walk", "cp -a"
MOST_MEMORY = 200 * MIB


class BackupBench:
    """One tree, and everybody's store of it."""

    def __init__(self, tow: str, files: int, rounds: int, root: Path) -> None:
        self.files, self.rounds, self.root = files, rounds, root
        self.numbers = itertools.count()
        self.programs = Programs(self.folder())
        self.shop = Shop(self.folder())
        self.makers, self.missing = keepers(tow)
        self.tree = self.folder()
        say(f"  a tree of {files} files …")
        self.size = make_workspace(self.tree, files)
        os.sync()
        self.changes = itertools.count()

    def folder(self) -> Path:
        path = self.root / f"{self.files}-{next(self.numbers)}"
        path.mkdir()
        return path

    def keeper(self, name: str) -> Keeper:
        """One that has never seen anything."""
        keeper = self.makers[name](self.folder(), self.tree)
        keeper.begin()
        return keeper

    def cost(self, keeper: Keeper, argv: list[str]) -> Cost:
        return self.programs.cost(argv, keeper.shop.env, self.root)

    def plain(self, argv: list[str]) -> Cost:
        return self.programs.cost(argv, self.shop.env, self.root)

    def title(self) -> str:
        return f"{count(self.files)} files ({mb(self.size)})"


def in_turns(ways: dict[str, Way], rounds: int, before: Callable[[], object] = lambda: None) -> dict[str, list[Cost]]:
    """Every way once a round, another one first each time; `before` each round, with all that was written on disk."""
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for number in range(rounds):
        before()
        for name in rotated(ways, number):
            os.sync()
            costs[name].append(ways[name].run())
            cost = costs[name][-1]
            say(f"  {name}: {cost.seconds:.3f} s, CPU {cost.cpu:.3f} s, {cost.memory / MIB:.0f} MiB")
    return costs


def hollow(folder: Path) -> None:
    """Gives the disk back and keeps the names, which would be slow to make again: see `disk.creation_seconds`."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o600)
            os.truncate(path, 0)


def measure(bench: BackupBench) -> list[Row]:
    rows: list[Row] = []
    last: dict[str, Keeper] = {}

    def first(name: str) -> Cost:
        if name in last:
            hollow(last[name].root)
        last[name] = bench.keeper(name)
        return bench.cost(last[name], last[name].back_up())

    say("  the first backup")
    costs = in_turns({name: Way(lambda name=name: first(name)) for name in bench.makers}, bench.rounds)
    found = time_row(f"{bench.title()}, first backup", costs, bench.missing)
    rows.append(barred(found, [(LZ4, 1.0)]))
    rows.append(sizes(bench, last))
    memory = {"first backup": median(costs[TOW]).memory}

    say("  nothing changed")
    with_history = {name: keeper for name, keeper in last.items() if keeper.has_history}
    again = {name: Way(lambda keeper=keeper: bench.cost(keeper, keeper.back_up())) for name, keeper in with_history.items()}
    walk = {WALK: Way(lambda: bench.plain([bench.programs.walk, str(bench.tree)]))}
    costs = in_turns(again | walk, 2 * bench.rounds)
    rows.append(barred(time_row(f"{bench.title()}, nothing changed", costs, bench.missing), [(RESTIC, 0.2)], [(WALK, 3.0)]))

    say("  one file in a hundred changed")
    costs = in_turns(again | walk, bench.rounds, lambda: change_some(bench.tree, 100, next(bench.changes)))
    rows.append(barred(time_row(f"{bench.title()}, 1 % changed", costs, bench.missing), [(RESTIC, 0.2)], [(WALK, 3.0)]))
    memory["1 % changed"] = median(costs[TOW]).memory

    say("  brought back")
    for keeper in last.values():
        if not keeper.has_history:
            bench.cost(keeper, keeper.back_up())

    def into(run: Callable[[Path], Cost]) -> Cost:
        target = bench.folder() / "out"
        cost = run(target)
        hollow(target)
        return cost

    ways = {name: Way(lambda keeper=keeper: into(lambda target: bench.cost(keeper, keeper.restore(target)))) for name, keeper in last.items()}
    ways[COPY] = Way(lambda: into(lambda target: bench.plain([need_program("cp"), "-a", str(bench.tree), str(target)])))
    check(bench, last[TOW])
    costs = in_turns(ways, bench.rounds)
    rows.append(barred(time_row(f"{bench.title()}, brought back", costs, bench.missing), [(RESTIC, 0.5), (LZ4, 1.0)], [(COPY, 2.0)]))
    memory["brought back"] = median(costs[TOW]).memory
    rows.append(memory_row(bench, memory))
    return rows


def check(bench: BackupBench, keeper: Keeper) -> None:
    """What comes back is what was there."""
    target = bench.folder() / "out"
    bench.cost(keeper, keeper.restore(target))
    bench.plain([need_program("diff"), "-r", str(bench.tree), str(target)])


def barred(row: Row, bars: list[tuple[str, float]], aims: list[tuple[str, float]] | None = None) -> Row:
    """With several bars, all of which are to be held, and aims beside them."""
    ratios = row.raw["ratios"]
    bars = [(name, limit) for name, limit in bars if name in ratios]
    if not bars:
        raise BenchError("those with whom it is compared are not installed")
    text = ", ".join(f"≤ {limit}× {name}" for name, limit in bars) + "".join(f" (aim {limit}× {name})" for name, limit in aims or [])
    return dataclasses.replace(row, bar=text, held=all(ratios[name] <= limit for name, limit in bars))


def sizes(bench: BackupBench, last: dict[str, Keeper]) -> Row:
    stored = {name: keeper.stored() for name, keeper in last.items()}
    ratios = {name: stored[TOW] / size for name, size in stored.items() if name != TOW}
    peers = ", ".join(f"{name} {mb(size)}" for name, size in stored.items() if name != TOW)
    row = Row(figure=f"{bench.title()}, stored", tow=mb(stored[TOW]), peers=peers, ratio=ratio_cell(ratios), raw={"values": stored, "ratios": ratios})
    row = dataclasses.replace(row, ratio=", ".join(f"{ratio:.4f}× {name}" for name, ratio in ratios.items()))
    return barred(row, [(ZSTD, 1.0)])


def memory_row(bench: BackupBench, memory: dict[str, int]) -> Row:
    most = max(memory.values())
    cells = ", ".join(f"{name} {size / MIB:.0f} MiB" for name, size in memory.items())
    return Row(figure=f"{bench.title()}, most memory", tow=f"{most / MIB:.0f} MiB", peers=cells, bar="< 200 MiB", held=most < MOST_MEMORY)
