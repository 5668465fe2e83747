"""What is handed to every figure of the page and of the terminal."""

from __future__ import annotations

from pathlib import Path

from .. import sizes as local_sizes
from ..bench import Bench
from ..many_runs import fill_history, seed_history
from ..tow import Tow
from .sizes import FacesSizes


class FacesBench:
    """The sizes, the binary, and histories that are made of one seed."""

    def __init__(self, tow: str, sizes: FacesSizes, root: Path, before: str | None) -> None:
        self.sizes = sizes
        self.before = before
        self.bench = Bench(tow, local_sizes.FULL, root)
        self._seed: Path | None = None

    def folder(self) -> Path:
        return self.bench.folder()

    def tow_with(self, runs: int) -> Tow:
        """A `tow` without a daemon that has so many runs in its history."""
        if self._seed is None:
            with self.bench.started_tow() as tow:
                seed_history(tow)
            self._seed = tow.state_folder()
        tow = Tow(self.bench.tow, self.folder())
        fill_history(self._seed, tow, runs)
        return tow
