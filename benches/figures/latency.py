"""From submission to the job's process."""

from __future__ import annotations

import os
import select
import signal
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack

from .bench import Bench
from .launcher import Launcher, started
from .peers import MISSING, PARALLEL, PUEUE, SPOOLER
from .ratio import against, percentile
from .rounds import rotated
from .spawn import COMMAND_TIMEOUT_S, BenchError, Shop, need_program
from .table import Row, ms, ratio_cell


def measure(bench: Bench) -> list[Row]:
    """From just before the submitting command is spawned until the job's own process has acted."""
    with ExitStack() as stack:
        tow = stack.enter_context(bench.started_tow())
        peers = bench.peers()
        launchers: list[Launcher] = [tow, *(stack.enter_context(started(peer)) for peer in peers.values() if peer)]
        samples = latency_samples(bench, {launcher.name: launcher for launcher in launchers}, tow.shop)
    return [latency_row(samples, peers)]


def latency_samples(bench: Bench, launchers: dict[str, Launcher], shop: Shop) -> dict[str, list[float]]:
    fifo = str(bench.folder() / "fifo")
    os.mkfifo(fifo)
    job = [need_program("touch"), fifo]
    commands = {name: launcher.submit(job) for name, launcher in launchers.items()} | {"floor": job}
    shops = {name: launcher.shop for name, launcher in launchers.items()} | {"floor": shop}
    samples: dict[str, list[float]] = {name: [] for name in commands}
    for name in commands:
        time_to_act(shops[name], commands[name], fifo)
    for number in range(bench.sizes.latency_rounds):
        names = [name for name in commands if name not in (PARALLEL, PUEUE) or number % bench.sizes.slow_peer_every == 0]
        for name in rotated(names, number):
            samples[name].append(time_to_act(shops[name], commands[name], fifo))
    return samples


def time_to_act(shop: Shop, argv: Sequence[str], fifo: str) -> float:
    """Seconds until `touch` has opened and closed the FIFO, which this process then hears of.

    A reader that opened a FIFO without blocking is told of a hang-up only once a writer has come
    and gone, and at once: nothing is polled, and the job itself needs no shell.
    """
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        signal.alarm(COMMAND_TIMEOUT_S)
        begin = time.perf_counter_ns()
        pid = shop.start(argv)
        seen = poll.poll(30_000)
        taken = time.perf_counter_ns() - begin
        shop.finish(pid, argv)
        signal.alarm(0)
    finally:
        os.close(reader)
    if not seen:
        raise BenchError(f"`{' '.join(argv)}`: its job did not start within 30 s: {shop.last_error()}")
    time.sleep(0.02)
    return taken / 1e9


def latency_row(samples: dict[str, list[float]], peers: dict[str, Launcher | None]) -> Row:
    ours = samples["tow"]
    cells, ratios = [], {}
    for name, peer in peers.items():
        cells.append(f"{name} {ms(statistics.median(samples[name])) if peer else MISSING}")
        if peer:
            ratios[name] = against(ours, samples[name])
    ratio = ratios.get(SPOOLER)
    return Row(
        figure=f"submit → the job's process (floor, spawned directly: {ms(statistics.median(samples['floor']))})",
        tow=f"{ms(statistics.median(ours))} (p95 {ms(percentile(ours, 0.95))})",
        peers=", ".join(cells),
        ratio=ratio_cell(ratios),
        bar=f"≤ 1.0× {SPOOLER} (aim 0.5×)",
        held=None if ratio is None else ratio <= 1.0,
        raw={"samples_s": samples, "ratios": ratios},
    )
