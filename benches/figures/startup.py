"""Start-up: how long a command of `tow` takes that has hardly anything to do."""

from __future__ import annotations

import statistics

from .bench import Bench
from .ratio import paired_ratio
from .rounds import interleave
from .spawn import TRUE
from .table import Row, ms, times


def measure(bench: Bench) -> list[Row]:
    """`tow --version` and `tow ps` beside `/bin/true`."""
    with bench.started_tow() as tow:
        tow.run("submit", "--sweep", "i=1-50", "true")
        tow.run("wait", "@")
        ways = {"true": lambda: tow.shop.run([TRUE]), "--version": lambda: tow.run("--version"), "ps": lambda: tow.run("ps")}
        samples = interleave(ways, bench.sizes.spawns)
    return [
        startup_row("`tow --version`", samples["--version"], samples["true"], 1.5),
        startup_row("`tow ps`, 50 runs in the history", samples["ps"], samples["true"], 4.0),
    ]


def startup_row(what: str, ours: list[float], theirs: list[float], limit: float) -> Row:
    ratio = paired_ratio(ours, theirs)
    return Row(
        figure=f"start-up: {what}",
        tow=ms(statistics.median(ours)),
        peers=f"`/bin/true` {ms(statistics.median(theirs))}",
        ratio=times(ratio),
        bar=f"≤ {limit}×",
        held=ratio <= limit,
        raw={"tow_s": ours, "true_s": theirs, "ratio": ratio},
    )
