"""Comparing the samples of two sides."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median over rounds of ours / theirs: what slows a whole round falls out."""
    return statistics.median(a / b for a, b in zip(ours, theirs))


def against(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Paired where both took part in every round, else of the medians."""
    if len(ours) == len(theirs):
        return paired_ratio(ours, theirs)
    return statistics.median(ours) / statistics.median(theirs)


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
