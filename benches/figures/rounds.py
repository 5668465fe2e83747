"""Measuring several ways in turns, so that a busy minute slows all alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Name = TypeVar("Name")
WARM_UPS = 3


def interleave(ways: dict[Name, Callable[[], float]], rounds: int) -> dict[Name, list[float]]:
    """Measures every way once a round, beginning with another one each round; seconds by name."""
    samples: dict[Name, list[float]] = {name: [] for name in ways}
    for way in list(ways.values()) * WARM_UPS:
        way()
    for number in range(rounds):
        for name in rotated(ways, number):
            samples[name].append(ways[name]())
    return samples


def rotated(names: Iterable[Name], by: int) -> list[Name]:
    """The same names, beginning with another one each time."""
    order = list(names)
    turn = by % len(order)
    return order[turn:] + order[:turn]
