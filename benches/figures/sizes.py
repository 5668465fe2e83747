"""How much of everything is measured: in full, and in a quick run."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How much of everything one run of this script does."""

    spawns: int
    latency_rounds: int
    slow_peer_every: int
    jobs: int
    job_rounds: int
    pueue_jobs: int
    history: tuple[int, ...]
    history_spawns: int
    log_lines: int
    sweep_queued: int
    single_queued: int
    queued_samples: int


FULL = Sizes(
    spawns=500,
    latency_rounds=200,
    slow_peer_every=10,
    jobs=1000,
    job_rounds=5,
    pueue_jobs=100,
    history=(100, 1_000, 10_000, 100_000),
    history_spawns=100,
    log_lines=200,
    sweep_queued=10_000,
    single_queued=2_000,
    queued_samples=20,
)
QUICK = Sizes(
    spawns=100,
    latency_rounds=30,
    slow_peer_every=10,
    jobs=200,
    job_rounds=3,
    pueue_jobs=20,
    history=(100, 1_000, 10_000),
    history_spawns=30,
    log_lines=60,
    sweep_queued=2_000,
    single_queued=200,
    queued_samples=10,
)
