"""A thousand short jobs."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack

from .bench import Bench
from .launcher import AT_ONCE, Launcher, started
from .peers import MISSING, PARALLEL, PUEUE, SPOOLER, Parallel
from .progress import say
from .ratio import against
from .rounds import rotated
from .spawn import BenchError, need_program
from .table import Row, count, ratio_cell, sec
from .tow import Tow


def measure(bench: Bench) -> list[Row]:
    """Many times `true`, two at a time, with history, logs and exit codes kept."""
    with ExitStack() as stack:
        tow = stack.enter_context(bench.started_tow())
        peers = bench.peers()
        for peer in peers.values():
            if peer:
                stack.enter_context(started(peer))
        samples = throughput_samples(bench, tow, peers)
    return throughput_rows(bench, samples, peers)


def throughput_samples(bench: Bench, tow: Tow, peers: dict[str, Launcher | None]) -> dict[str, list[float]]:
    jobs = bench.sizes.jobs
    numbers = bench.folder() / "numbers"
    numbers.write_text("".join(f"{number}\n" for number in range(1, jobs + 1)))
    xargs = [need_program("xargs"), f"-P{AT_ONCE}", "-n1", "true"]
    ways: dict[str, Callable[[], float]] = {
        "xargs": lambda: tow.shop.run(xargs, stdin=str(numbers)),
        "sweep": lambda: time_sweep(tow, jobs),
        "singles": lambda: time_singles(tow, jobs),
    }
    spooler, parallel, pueue = peers[SPOOLER], peers[PARALLEL], peers[PUEUE]
    if spooler:
        ways[SPOOLER] = lambda: time_singles(spooler, jobs)
    if isinstance(parallel, Parallel):
        ways[PARALLEL] = lambda: parallel.shop.run(parallel.batch(), stdin=str(numbers))
    samples = {name: [] for name in ways}
    ways["xargs"]()
    for number in range(bench.sizes.job_rounds):
        for name in rotated(ways, number):
            settle(peers)
            samples[name].append(ways[name]())
            say(f"  {name}: {samples[name][-1]:.2f} s")
        check_all_succeeded(tow, 1 + (number + 1) * 2 * jobs)
    if pueue:
        part = time_singles(pueue, bench.sizes.pueue_jobs)
        samples[PUEUE] = [part * jobs / bench.sizes.pueue_jobs]
    return samples


def settle(peers: dict[str, Launcher | None]) -> None:
    """Leaves nothing of the turn before, lest who writes through pay for the files of others."""
    for peer in peers.values():
        if peer:
            peer.reset()
    os.sync()


def time_sweep(tow: Tow, jobs: int) -> float:
    begin = time.perf_counter_ns()
    tow.run("submit", "--sweep", f"i=1-{jobs}", "true")
    tow.run("wait", "@")
    return (time.perf_counter_ns() - begin) / 1e9


def time_singles(launcher: Launcher, jobs: int) -> float:
    argv = launcher.submit(["true"])
    begin = time.perf_counter_ns()
    for _ in range(jobs):
        launcher.shop.run(argv)
    launcher.drain()
    return (time.perf_counter_ns() - begin) / 1e9


def check_all_succeeded(tow: Tow, expected: int) -> None:
    """That everything asked for is in the history with its exit code, and has its log."""
    runs = tow.json("ps", "--all")["runs"]
    good = sum(1 for run in runs if run["state"] == "succeeded" and run["exit_code"] == 0)
    logs = sum(1 for _ in tow.state_folder().glob("runs/*/attempt-1.rank-0.log"))
    if good != expected or logs != expected:
        raise BenchError(f"of {expected} runs {good} are in the history as succeeded and {logs} have a log")


def throughput_rows(bench: Bench, samples: dict[str, list[float]], peers: dict[str, Launcher | None]) -> list[Row]:
    cells = [f"xargs {sec(statistics.median(samples['xargs']))}"]
    for name, peer in peers.items():
        note = f" (scaled from {bench.sizes.pueue_jobs} jobs)" if name == PUEUE else ""
        cells.append(f"{name} {sec(statistics.median(samples[name])) + note if peer else MISSING}")
    rows = []
    for way, what, limit, aim in (("sweep", "as one sweep", 2.1, 1.6), ("singles", "one call each", 4.0, 2.2)):
        ours = samples[way]
        ratios = {name: against(ours, samples[name]) for name in samples if name not in ("sweep", "singles")}
        rows.append(
            Row(
                figure=f"{count(bench.sizes.jobs)} × `true`, two at a time, {what}",
                tow=sec(statistics.median(ours)),
                peers=", ".join(cells),
                ratio=ratio_cell(ratios),
                bar=f"≤ {limit}× xargs (aim {aim}×)",
                held=ratios["xargs"] <= limit,
                raw={"samples_s": samples, "ratios": ratios},
            )
        )
    return rows
