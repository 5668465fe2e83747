"""Start-up of commands beside that of an older binary."""

from __future__ import annotations

import statistics
from functools import partial

from ..launcher import started
from ..ratio import paired_ratio
from ..rounds import interleave
from ..table import Row, ms, times
from ..tow import Tow
from .faces_bench import FacesBench

LIMIT = 1.1
COMMANDS = ("ps", "submit true")


def measure(bench: FacesBench) -> list[Row]:
    """Each command of both binaries in turns, each binary with its own state and daemon."""
    if bench.before is None:
        return []
    older = Tow(bench.before, bench.folder())
    with bench.bench.started_tow() as tow, started(older):
        for one in (tow, older):
            one.run("submit", "--sweep", "i=1-50", "true")
            one.run("wait", "@")
        samples = {}
        for command in COMMANDS:
            ways = {name: partial(one.run, *command.split()) for name, one in (("now", tow), ("before", older))}
            samples[command] = interleave(ways, bench.sizes.spawns)
        for one in (tow, older):
            one.drain()
    return [command_row(command, samples[command]["now"], samples[command]["before"]) for command in COMMANDS]


def command_row(command: str, ours: list[float], before: list[float]) -> Row:
    ratio = paired_ratio(ours, before)
    return Row(
        figure=f"`tow {command}` beside the older binary",
        tow=ms(statistics.median(ours)),
        peers=f"before {ms(statistics.median(before))}",
        ratio=times(ratio),
        bar=f"≤ {LIMIT}×",
        held=ratio <= LIMIT,
        raw={"tow_s": ours, "before_s": before, "ratio": ratio},
    )
