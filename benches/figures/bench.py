"""What is handed to every figure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .launcher import Launcher, started
from .peers import installed_peers
from .sizes import Sizes
from .tow import Tow


class Bench:
    """What every figure needs: sizes, the binary, a folder, and launchers that are taken down."""

    def __init__(self, tow: str, sizes: Sizes, root: Path) -> None:
        self.tow = tow
        self.sizes = sizes
        self.root = root
        self.numbers = iter(range(10_000))

    def folder(self) -> Path:
        """A new folder with a short name: paths of sockets may only be about a hundred bytes."""
        path = self.root / str(next(self.numbers))
        path.mkdir()
        return path

    @contextmanager
    def started_tow(self) -> Iterator[Tow]:
        with started(Tow(self.tow, self.folder())) as launcher:
            yield launcher

    def peers(self) -> dict[str, Launcher | None]:
        """The peers by name; None for one that is not installed."""
        return installed_peers(self.folder)
