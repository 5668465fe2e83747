"""Rows, how numbers are written in their cells, and the table and JSON file made of them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

NOTHING = "—"


@dataclasses.dataclass
class Row:
    """One line of the table; `raw` goes to the JSON file only."""

    figure: str
    tow: str
    peers: str = NOTHING
    ratio: str = NOTHING
    bar: str = NOTHING
    held: bool | None = None
    raw: dict[str, Any] = dataclasses.field(default_factory=dict)

    def cells(self) -> list[str]:
        held = NOTHING if self.held is None else ("yes" if self.held else "**no**")
        return [self.figure, self.tow, self.peers, self.ratio, self.bar, held]


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def sec(seconds: float) -> str:
    return f"{seconds:.2f} s"


def mb(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


def times(ratio: float) -> str:
    return f"{ratio:.2f}×"


def count(number: int) -> str:
    return f"{number:,}"


def ratio_cell(ratios: dict[str, float]) -> str:
    return ", ".join(f"{times(ratio)} {name}" for name, ratio in ratios.items()) or NOTHING


def markdown(rows: Iterable[Row]) -> str:
    """The table."""
    lines = ["| figure | tow | peer(s) | ratio | bar | held? |", "| --- | --- | --- | --- | --- | --- |"]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join(lines)


def store_json(path: Path, quick: bool, facts: dict[str, Any], rows: Iterable[Row]) -> None:
    """Stores every sample, beside what the machine was like."""
    path.write_text(json.dumps({"quick": quick, "machine": facts, "rows": [dataclasses.asdict(row) for row in rows]}, indent=1) + "\n")
