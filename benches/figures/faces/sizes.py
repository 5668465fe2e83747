"""How much of everything is measured of the page and of the terminal."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class FacesSizes:
    listed_runs: int
    loads: int
    followed_lines: int
    log_lines: int
    table_runs: int
    scrolled_s: float
    scroll_rounds: int
    tracked_runs: int
    tracker_loads: int
    top_runs: int
    watched_s: float
    watched_rounds: int
    spawns: int


FULL = FacesSizes(
    listed_runs=10_000,
    loads=20,
    followed_lines=600,
    log_lines=10_000_000,
    table_runs=100_000,
    scrolled_s=5.0,
    scroll_rounds=5,
    tracked_runs=1_000,
    tracker_loads=5,
    top_runs=200,
    watched_s=30.0,
    watched_rounds=2,
    spawns=200,
)
QUICK = FacesSizes(
    listed_runs=10_000,
    loads=5,
    followed_lines=150,
    log_lines=1_000_000,
    table_runs=10_000,
    scrolled_s=2.0,
    scroll_rounds=2,
    tracked_runs=200,
    tracker_loads=2,
    top_runs=200,
    watched_s=8.0,
    watched_rounds=1,
    spawns=40,
)
