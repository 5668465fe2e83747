"""What a bench says in the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .machine import machine_line
from .table import Row, markdown, store_json


def tell(rows: list[Row], facts: dict[str, Any], quick: bool, store: Path | None = None) -> None:
    """Prints the table and where it was measured; keeps every sample as JSON too where that is asked for."""
    print(markdown(rows) + "\n\n" + machine_line(facts, quick))
    if store:
        store_json(store, quick, facts, rows)
