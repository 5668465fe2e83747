"""A long queue: the daemon's memory, and its answers meanwhile."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .bench import Bench
from .launcher import AT_ONCE
from .ratio import paired_ratio
from .rounds import WARM_UPS, interleave
from .spawn import BenchError
from .table import Row, count, mb, ms, ratio_cell, sec
from .tow import Tow


def measure(bench: Bench) -> list[Row]:
    """The daemon's memory and its answers while very much is queued."""
    sizes = bench.sizes
    return [
        *queue_rows(bench, "one sweep", sizes.sweep_queued, lambda tow: tow.run("submit", "--sweep", f"i=1-{sizes.sweep_queued}", "sleep", "1000")),
        *queue_rows(bench, "single submissions", sizes.single_queued, lambda tow: submit_singles(tow, sizes.single_queued)),
    ]


def submit_singles(tow: Tow, jobs: int) -> float:
    return sum(tow.run("submit", "sleep", "1000") for _ in range(jobs))


def queue_rows(bench: Bench, what: str, jobs: int, fill: Callable[[Tow], float]) -> list[Row]:
    with bench.started_tow() as tow, bench.started_tow() as short:
        submit_singles(short, AT_ONCE + 1)
        time.sleep(0.5)
        idle = resident(tow)
        taken = fill(tow)
        newest = tow.json("ps", "--limit", "1")["runs"][0]
        time.sleep(1.0)
        full = resident(tow)
        samples = interleave(answer_ways(tow, short), bench.sizes.queued_samples)
        expected = jobs + WARM_UPS + bench.sizes.queued_samples
        queued = len(tow.active())
        if queued != expected:
            raise BenchError(f"{expected} runs should be queued or running, and {queued} are")
        aborted = tow.run("abort", "--wait", newest["sweep"]) if newest["sweep"] else 0.0
        aborted += tow.abort_all()
    return [memory_row(what, jobs, idle, full, taken), answers_row(what, jobs, samples, aborted)]


def answer_ways(tow: Tow, short: Tow) -> dict[str, Callable[[], float]]:
    """What is asked of the long queue, and of one where hardly anything waits."""
    ways: dict[str, Callable[[], float]] = {}
    for command in ("ps", "submit true"):
        ways[command] = partial(tow.run, *command.split())
        ways[f"short {command}"] = partial(short.run, *command.split())
    return ways


def resident(tow: Tow) -> int:
    """The daemon's resident memory in bytes."""
    for line in Path(f"/proc/{tow.daemon_pid()}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise BenchError("no VmRSS of the daemon")


def memory_row(what: str, jobs: int, idle: int, full: int, taken: float) -> Row:
    target = 10_000
    scaled = idle + (full - idle) * target / jobs
    note = "" if jobs == target else f" ({mb(full)} with {count(jobs)}; the growth scaled)"
    return Row(
        figure=f"daemon's memory, {count(target)} jobs queued as {what}",
        tow=f"{mb(scaled)}{note}",
        peers=f"idle {mb(idle)}; {count(jobs)} submitted in {sec(taken)}",
        bar="< 100 MB",
        held=scaled < 100e6,
        raw={"idle_bytes": idle, "full_bytes": full, "jobs": jobs, "scaled_bytes": scaled, "submitted_s": taken},
    )


def answers_row(what: str, jobs: int, samples: dict[str, list[float]], aborted: float) -> Row:
    median = {name: ms(statistics.median(values)) for name, values in samples.items()}
    ratios = {f"`tow {name}`": paired_ratio(samples[name], samples[f"short {name}"]) for name in ("ps", "submit true")}
    return Row(
        figure=f"answers while {count(jobs)} are queued as {what}",
        tow=f"`tow ps` {median['ps']}, `tow submit true` {median['submit true']}, aborting all {sec(aborted)}",
        peers=f"with hardly any queued {median['short ps']}, {median['short submit true']}",
        ratio=ratio_cell(ratios),
        raw={"samples_s": samples, "ratios": ratios, "aborted_s": aborted},
    )
