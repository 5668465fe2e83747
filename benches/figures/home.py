"""The temporary folder, and an environment that points into it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def workplace() -> Iterator[Path]:
    """A temporary folder on a disk, and this process in it."""
    root = Path(tempfile.mkdtemp(prefix="towb", dir=os.environ.get("TMPDIR") or "/var/tmp"))
    back = Path.cwd()
    try:
        (root / "w").mkdir()
        os.chdir(root / "w")
        yield root
    finally:
        os.chdir(back)
        shutil.rmtree(root, ignore_errors=True)


def isolated_environment(root: Path) -> dict[str, str]:
    """This process's environment with home, state and configuration below `root`, whose folders are made."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TOW", "TS_", "PUEUE"))}
    folders = {
        "HOME": "home",
        "XDG_STATE_HOME": "state",
        "XDG_CONFIG_HOME": "config",
        "XDG_DATA_HOME": "data",
        "XDG_CACHE_HOME": "cache",
        "XDG_RUNTIME_DIR": "run",
        "TMPDIR": "tmp",
    }
    for name, folder in folders.items():
        (root / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        env[name] = str(root / folder)
    return env
