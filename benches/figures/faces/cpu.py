"""How much of a CPU a process uses."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def used_s(pid: int) -> float:
    """Seconds of CPU that a process has used, all its threads together, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def percent(part: float) -> str:
    return f"{part * 100:.2f} %"
