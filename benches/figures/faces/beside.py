"""The list of runs beside those of MLflow, Aim and TensorBoard."""

from __future__ import annotations

import statistics
from contextlib import ExitStack

from ..peers import MISSING
from ..progress import say
from ..ratio import paired_ratio
from ..rounds import rotated
from ..spawn import BenchError
from ..table import Row, count, mb, ratio_cell, sec
from .chrome import Chrome, chrome
from .faces_bench import FacesBench
from .first_load import RUN_ROW
from .load import Load, load
from .page import served
from .trackers import RUN_NAME, TRACKERS, serving

TOW = "tow"
Place = tuple[str, str, str]


def measure(bench: FacesBench) -> list[Row]:
    """Everybody with as many runs, opened in turns with an empty cache."""
    runs = bench.sizes.tracked_runs
    tow = bench.tow_with(runs)
    broken: dict[str, str] = {}
    with ExitStack() as stack:
        browser = stack.enter_context(chrome(bench.folder()))
        page = stack.enter_context(served(tow))
        places: dict[str, Place] = {TOW: (page.at("/runs"), RUN_ROW, r"\S")}
        for tracker in TRACKERS:
            say(f"  {tracker.name} with {count(runs)} runs")
            try:
                address = stack.enter_context(serving(tracker, bench.folder(), runs))
            except (BenchError, OSError) as error:
                broken[tracker.name] = f"broke: {error}"
                continue
            if address is None:
                broken[tracker.name] = MISSING
            else:
                places[tracker.name] = (address, tracker.selector, RUN_NAME)
        loads = opened(browser, places, bench.sizes.tracker_loads, broken)
    return [time_row(runs, loads, broken), bytes_row(runs, loads, broken)]


def opened(browser: Chrome, places: dict[str, Place], rounds: int, broken: dict[str, str]) -> dict[str, list[Load]]:
    """The first time is not counted: servers warm up. One that shows no list takes part no longer."""
    loads: dict[str, list[Load]] = {name: [] for name in places}
    for number in range(-1, rounds):
        for name in rotated(places, number):
            if name not in loads:
                continue
            try:
                one = load(browser, *places[name])
            except BenchError as error:
                if name == TOW:
                    raise
                broken[name] = f"broke: {error}"
                del loads[name]
                continue
            if number >= 0:
                loads[name].append(one)
    return loads


def peers_cell(loads: dict[str, str], broken: dict[str, str]) -> str:
    told = {**loads, **broken}
    cells = [f"{tracker.name} {told[tracker.name]}" for tracker in TRACKERS]
    return ", ".join(cells).replace("|", "\\|").replace("\n", " ")


def time_row(runs: int, loads: dict[str, list[Load]], broken: dict[str, str]) -> Row:
    seen = {name: [one.painted_s for one in many] for name, many in loads.items()}
    ratios = {name: paired_ratio(seen[TOW], values) for name, values in seen.items() if name != TOW}
    return Row(
        figure=f"the list of {count(runs)} runs is seen",
        tow=sec(statistics.median(seen[TOW])),
        peers=peers_cell({name: sec(statistics.median(values)) for name, values in seen.items()}, broken),
        ratio=ratio_cell(ratios),
        bar="less than each",
        held=all(ratio < 1 for ratio in ratios.values()) if ratios else None,
        raw={"loads": {name: [vars(one) for one in many] for name, many in loads.items()}, "ratios": ratios},
    )


def bytes_row(runs: int, loads: dict[str, list[Load]], broken: dict[str, str]) -> Row:
    size = {name: statistics.median(one.bytes for one in many) for name, many in loads.items()}
    asked = {name: round(statistics.median(one.requests for one in many)) for name, many in loads.items()}
    ratios = {name: size[TOW] / value for name, value in size.items() if name != TOW}
    cells = {name: f"{mb(value)} in {asked[name]}" for name, value in size.items()}
    return Row(
        figure=f"what opening the list of {count(runs)} runs loads",
        tow=f"{cells[TOW]} requests",
        peers=peers_cell(cells, broken),
        ratio=ratio_cell(ratios),
        bar="less than each",
        held=all(ratio < 1 for ratio in ratios.values()) if ratios else None,
        raw={"bytes": size, "requests": asked, "ratios": ratios},
    )
