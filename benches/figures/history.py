"""The newest of many runs."""

from __future__ import annotations

import statistics
from functools import partial

from .bench import Bench
from .many_runs import fill_history, seed_history
from .ratio import paired_ratio
from .rounds import interleave
from .table import NOTHING, Row, count, ms, times
from .tow import Tow


SWEEP = 10_000


def measure(bench: Bench) -> list[Row]:
    """`tow ps` with ever more runs in the history, and with a large sweep among them."""
    with bench.started_tow() as tow:
        seed_history(tow)
    source = tow.state_folder()
    states = {}
    for runs, sweep in [*((runs, 0) for runs in bench.sizes.history), (max(bench.sizes.history) + SWEEP, SWEEP)]:
        states[runs] = Tow(bench.tow, bench.folder())
        fill_history(source, states[runs], runs, sweep)
    samples = interleave({runs: partial(tow.run, "ps") for runs, tow in states.items()}, bench.sizes.history_spawns)
    return [history_row(runs, samples) for runs in samples]


def history_row(runs: int, samples: dict[int, list[float]]) -> Row:
    smallest, largest = min(samples), max(samples)
    ours, median = samples[runs], statistics.median(samples[runs])
    ratio = paired_ratio(ours, samples[smallest])
    first = runs == smallest
    among = f", {count(SWEEP)} of them one sweep" if runs == largest else ""
    return Row(
        figure=f"`tow ps`, newest 50 of {count(runs)} runs{among}",
        tow=ms(median),
        peers=NOTHING if first else f"of {count(smallest)} runs {ms(statistics.median(samples[smallest]))}",
        ratio=NOTHING if first else times(ratio),
        bar="≤ 10 ms" if first else f"≤ 10 ms and ≤ 1.5× of {count(smallest)}",
        held=median <= 0.010 and ratio <= 1.5,
        raw={"runs": runs, "tow_s": ours, "ratio": ratio},
    )
