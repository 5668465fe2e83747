"""Those that keep a folder: `tow scratch`, archives, restic, borg and rustic.

Each has a store of its own in a new folder, and gives the command for a job; nothing is run here but
what makes the store.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from .movers import TOW
from .spawn import Shop, find_program, need_program

LZ4, ZSTD, RESTIC, BORG, RUSTIC = "tar, lz4", "tar, zstd", "restic", "borg", "rustic"


class Keeper:
    """One way to keep a folder."""

    name = ""
    # Only what changed is stored.
    has_history = True

    def __init__(self, root: Path, tree: Path) -> None:
        self.root, self.tree = root, tree
        self.shop = Shop(root)
        self.store = root / "store"
        self.number = 0

    def begin(self) -> None:
        """Makes the store."""

    def back_up(self) -> list[str]:
        raise NotImplementedError

    def restore(self, target: Path) -> list[str]:
        """Into a folder that is not there."""
        raise NotImplementedError

    def stored(self) -> int:
        """Bytes of all files of the store."""
        return sum(path.lstat().st_size for path in self.store.rglob("*") if path.is_file())


class TowKeeper(Keeper):
    name = TOW

    def __init__(self, tow: str, root: Path, tree: Path) -> None:
        super().__init__(root, tree)
        self.tow = tow

    def begin(self) -> None:
        config = self.root / "config/towline"
        config.mkdir(parents=True, exist_ok=True)
        (config / "config.yaml").write_text(f"workspaces:\n  work: {{path: '{self.tree}', to: '{self.store}'}}\n")

    def back_up(self) -> list[str]:
        return [self.tow, "scratch", "backup", "work"]

    def restore(self, target: Path) -> list[str]:
        return [self.tow, "scratch", "restore", "work", "--path", str(target)]


class Archive(Keeper):
    """`tar` through a compressor, as the scripts of old do it."""

    has_history = False

    def __init__(self, name: str, program: str, root: Path, tree: Path) -> None:
        super().__init__(root, tree)
        self.name, self.program = name, program
        self.file = self.store / "tree.tar"

    def begin(self) -> None:
        self.store.mkdir()

    def back_up(self) -> list[str]:
        line = f"{shlex.join([need_program('tar'), '-c', '-C', str(self.tree), '.'])} | {shlex.join([self.program, '-q', '-f', '-', '-o', str(self.file)])}"
        if self.name == LZ4:
            line = line.replace(" -o ", " ")
        return [need_program("sh"), "-c", line]

    def restore(self, target: Path) -> list[str]:
        line = f"mkdir {shlex.quote(str(target))} && {shlex.join([self.program, '-q', '-d', '-c', str(self.file)])} | tar -x -C {shlex.quote(str(target))}"
        return [need_program("sh"), "-c", line]


class Restic(Keeper):
    name = RESTIC

    def __init__(self, program: str, root: Path, tree: Path) -> None:
        super().__init__(root, tree)
        self.program = program
        self.shop.env |= {"RESTIC_PASSWORD": "x", "RESTIC_REPOSITORY": str(self.store), "RESTIC_PROGRESS_FPS": "0.1"}

    def begin(self) -> None:
        self.shop.ask([self.program, "init"])

    def back_up(self) -> list[str]:
        return [self.program, "-q", "backup", str(self.tree)]

    def restore(self, target: Path) -> list[str]:
        return [self.program, "-q", "restore", "latest", "--target", str(target)]


class Borg(Keeper):
    name = BORG

    def __init__(self, program: str, root: Path, tree: Path) -> None:
        super().__init__(root, tree)
        self.program = program
        self.shop.env |= {"BORG_REPO": str(self.store), "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes", "BORG_RELOCATED_REPO_ACCESS_IS_OK": "yes"}

    def begin(self) -> None:
        self.shop.ask([self.program, "init", "--encryption", "none"])

    def back_up(self) -> list[str]:
        self.number += 1
        return [self.program, "create", "--compression", "zstd,3", f"::{self.number}", str(self.tree)]

    def restore(self, target: Path) -> list[str]:
        line = f"mkdir {shlex.quote(str(target))} && cd {shlex.quote(str(target))} && {shlex.quote(self.program)} extract ::{self.number}"
        return [need_program("sh"), "-c", line]


class Rustic(Keeper):
    name = RUSTIC

    def __init__(self, program: str, root: Path, tree: Path) -> None:
        super().__init__(root, tree)
        self.program = program
        self.shop.env |= {"RUSTIC_PASSWORD": "x", "RUSTIC_REPOSITORY": str(self.store), "RUSTIC_NO_PROGRESS": "true"}

    def begin(self) -> None:
        self.shop.ask([self.program, "init"])

    def back_up(self) -> list[str]:
        return [self.program, "--log-level", "error", "backup", str(self.tree)]

    def restore(self, target: Path) -> list[str]:
        return [self.program, "--log-level", "error", "restore", "latest", str(target)]


Maker = Callable[[Path, Path], Keeper]


def keepers(tow: str) -> tuple[dict[str, Maker], list[str]]:
    """How each is made in a new folder for a tree, and the names of those that are not installed."""
    makers: dict[str, Maker] = {TOW: lambda root, tree: TowKeeper(tow, root, tree)}
    missing = []
    for name, program, make in (
        (LZ4, "lz4", lambda found: lambda root, tree: Archive(LZ4, found, root, tree)),
        (ZSTD, "zstd", lambda found: lambda root, tree: Archive(ZSTD, found, root, tree)),
        (RESTIC, "restic", lambda found: lambda root, tree: Restic(found, root, tree)),
        (BORG, "borg", lambda found: lambda root, tree: Borg(found, root, tree)),
        (RUSTIC, "rustic", lambda found: lambda root, tree: Rustic(found, root, tree)),
    ):
        found = find_program(program)
        if found:
            makers[name] = make(os.path.realpath(found))
        else:
            missing.append(name)
    return makers, missing
