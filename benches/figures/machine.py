"""What the machine was like, for the line under the table."""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from typing import Any

from .disk import creation_seconds, fdatasync_seconds, filesystem_of
from .ratio import percentile
from .table import ms


def machine_facts(root: Path, before: dict[str, Any]) -> dict[str, Any]:
    syncs = fdatasync_seconds(root)
    return {
        "cpus": os.cpu_count(),
        "filesystem": filesystem_of(root),
        "fdatasync_median_s": statistics.median(syncs),
        "fdatasync_p95_s": percentile(syncs, 0.95),
        "before": before,
        "after": weather(root),
    }


def weather(folder: Path) -> dict[str, Any]:
    """What changes from one minute to the next."""
    return {"load": os.getloadavg(), "creation_median_s": statistics.median(creation_seconds(folder))}


def machine_line(facts: dict[str, Any], quick: bool) -> str:
    before, after = facts["before"], facts["after"]
    loads = [" ".join(f"{load:.2f}" for load in moment["load"]) for moment in (before, after)]
    line = (
        f"{facts['cpus']} CPUs; fdatasync of 4 KiB on the temporary folder's disk ({facts['filesystem']}): "
        f"median {ms(facts['fdatasync_median_s'])}, p95 {ms(facts['fdatasync_p95_s'])}; "
        f"a new folder with a file: {ms(before['creation_median_s'])} before, {ms(after['creation_median_s'])} after; "
        f"load average: {loads[0]} before, {loads[1]} after."
    )
    if facts["filesystem"] in ("tmpfs", "ramfs"):
        line += " **The folder is in memory: durability cost nothing here; set TMPDIR to a disk.**"
    if quick:
        line += " A quick run: fewer rounds and smaller sizes, rough figures."
    return line
