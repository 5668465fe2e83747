"""Rows made of costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from .cost import Cost, median
from .data_bench import also
from .movers import TOW
from .ratio import against
from .table import Row, ms, ratio_cell, sec

MIB = 2**20


def span(seconds: float) -> str:
    return ms(seconds) if seconds < 0.2 else sec(seconds)


def time_row(figure: str, costs: dict[str, list[Cost]], missing: list[str], floor: str = "", limit: float | None = None) -> Row:
    """`tow` beside the others in time; the bar is a limit on the ratio to one of them."""
    return row(figure, costs, missing, lambda cost: cost.seconds, span, floor, limit)


def cpu_row(figure: str, costs: dict[str, list[Cost]], missing: list[str], floor: str = "", limit: float | None = None) -> Row:
    return row(f"{figure}: CPU", costs, missing, lambda cost: cost.cpu, span, floor, limit)


def memory_row(figure: str, costs: dict[str, list[Cost]], missing: list[str], limit_mib: int) -> Row:
    """The most in any round, against a fixed limit."""
    found = row(f"{figure}: memory", costs, missing, lambda cost: cost.memory, lambda size: f"{size / MIB:.1f} MiB", "", None)
    most = median(costs[TOW]).memory
    return dataclasses.replace(found, tow=f"{most / MIB:.1f} MiB", bar=f"≤ {limit_mib} MiB", held=most <= limit_mib * MIB)


def row(
    figure: str,
    costs: dict[str, list[Cost]],
    missing: list[str],
    part: Callable[[Cost], float],
    cell: Callable[[float], str],
    floor: str,
    limit: float | None,
) -> Row:
    values = {name: [part(cost) for cost in found] for name, found in costs.items() if found}
    rounds = len(values[TOW])
    ratios = {name: against(values[TOW], values[name]) for name in values if name != TOW}
    cells = [f"{name} {cell(part(median(costs[name])))}{times_measured(len(values[name]), rounds)}" for name in ratios]
    return Row(
        figure=figure,
        tow=cell(part(median(costs[TOW]))),
        peers=", ".join(cells) + also(missing),
        ratio=ratio_cell(ratios),
        bar=f"≤ {limit}× {floor}" if limit is not None else "—",
        held=ratios[floor] <= limit if limit is not None and floor in ratios else None,
        raw={"values": values, "ratios": ratios},
    )


def times_measured(many: int, rounds: int) -> str:
    return "" if many == rounds else f" (of {many})"
