"""What `tow` and its peers have in common: a command is submitted and started when there is room."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from .spawn import Shop

AT_ONCE = 2


class Launcher:
    """Something that takes a command and starts it when there is room."""

    name = ""

    def __init__(self, root: Path) -> None:
        self.shop = Shop(root)

    def start(self) -> None:
        """Brings its daemon up, two jobs at a time."""

    def submit(self, job: Sequence[str]) -> list[str]:
        """The command line that submits a job."""
        raise NotImplementedError

    def drain(self) -> None:
        """Waits until everything submitted has ended."""

    def reset(self) -> None:
        """Puts ended jobs out of the way where they would slow the next round."""

    def stop(self) -> None:
        """Takes its daemon down."""


AnyLauncher = TypeVar("AnyLauncher", bound=Launcher)


@contextmanager
def started(launcher: AnyLauncher) -> Iterator[AnyLauncher]:
    try:
        launcher.start()
        yield launcher
    finally:
        signal.alarm(0)
        launcher.stop()
