"""How fast the disk of a folder is, and of what kind."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path


def fdatasync_seconds(folder: Path) -> list[float]:
    """How long 4 KiB take to be on the disk of the temporary folder."""
    path = folder / "fdatasync"
    samples = []
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for _ in range(100):
            os.write(handle, b"x" * 4096)
            begin = time.perf_counter_ns()
            os.fdatasync(handle)
            samples.append((time.perf_counter_ns() - begin) / 1e9)
    finally:
        os.close(handle)
        path.unlink()
    return samples


def creation_seconds(folder: Path) -> list[float]:
    """How long a new folder with an empty file in it takes, which every run of `tow` needs.

    ext4 without a journal passes over inodes that were freed in the last minutes, one by one, so
    that making files is slow for a while after many were removed, by whomever.
    """
    samples = []
    base = Path(tempfile.mkdtemp(dir=folder))
    for number in range(200):
        begin = time.perf_counter_ns()
        os.mkdir(base / str(number))
        os.close(os.open(base / str(number) / "log", os.O_WRONLY | os.O_CREAT, 0o600))
        samples.append((time.perf_counter_ns() - begin) / 1e9)
    return samples


def filesystem_of(folder: Path) -> str:
    """The kind of file system a folder lies on."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, this = line.split()[:3]
        inside = mount == "/" or str(folder) == mount or str(folder).startswith(mount + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, this
    return kind
