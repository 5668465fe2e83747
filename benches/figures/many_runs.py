"""A history of very many runs, made of a hundred real ones."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .spawn import BenchError, wait_until
from .tow import Tow

Record = dict[str, Any]


def seed_history(tow: Tow) -> None:
    """A hundred real runs of several kinds, of which more are made."""
    tow.run("submit", "--sweep", "seed=1-80", "--experiment", "bench", "--tag", "many", "true")
    tow.run("wait", "@")
    for _ in range(15):
        tow.run("submit", "true", "--lr", "0.1")
    for _ in range(4):
        tow.run("submit", "false")
    wait_until(lambda: not tow.active(), "the runs of the seed have ended")


def fill_history(source: Path, target: Tow, runs: int, sweep: int = 0) -> None:
    """Copies a history and multiplies its runs; the newest `sweep` of them are one sweep."""
    folder = target.shop.root / "state/towline" / source.name
    folder.mkdir(mode=0o700, parents=True)
    shutil.copy(source / "history.db", folder / "history.db")
    database = sqlite3.connect(folder / "history.db", isolation_level=None)
    try:
        database.execute("PRAGMA synchronous=OFF")
        database.execute("BEGIN")
        multiply(database, runs - sweep)
        add_sweep(database, sweep)
        database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        database.close()
    listed = len(target.json("ps", "--all")["runs"])
    if listed != runs:
        raise BenchError(f"the history should hold {runs} runs and `tow ps --all` lists {listed}")


def rows_of(database: sqlite3.Connection, table: str) -> list[Record]:
    cursor = database.execute(f"SELECT * FROM {table} ORDER BY 1")
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values)) for values in cursor]


def insert(database: sqlite3.Connection, table: str, rows: Iterable[Record]) -> None:
    for row in rows:
        columns, places = ", ".join(row), ", ".join("?" * len(row))
        database.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", list(row.values()))


def multiply(database: sqlite3.Connection, total: int) -> None:
    """Writes the seed's runs again and again under new ids, a minute apart, the newest last."""
    seed = {table: rows_of(database, table) for table in ("submissions", "runs", "attempts", "events")}
    for table in reversed(seed):
        database.execute(f"DELETE FROM {table}")
    rounds = -(-total // len(seed["runs"]))
    for number in range(rounds):
        kept = {run["sequence"] for run in seed["runs"][: total - number * len(seed["runs"])]}
        age_ms = (rounds - 1 - number) * 60_000
        for table, rows in seed.items():
            chosen = (row for row in rows if table == "submissions" or row["run" if "run" in row else "sequence"] in kept)
            insert(database, table, (moved(table, row, number, len(seed["runs"]), len(seed["events"]), age_ms) for row in chosen))


def add_sweep(database: sqlite3.Connection, runs: int) -> None:
    """One more sweep of so many ended runs, each like the first run of a sweep that is there."""
    if runs == 0:
        return
    name = "large-1700000000-0badcafe"
    submission = next(row for row in rows_of(database, "submissions") if row["is_sweep"])
    first = next(row for row in rows_of(database, "runs") if row["submission"] == submission["id"])
    attempt = next(row for row in rows_of(database, "attempts") if row["run"] == first["sequence"])
    last = database.execute("SELECT max(sequence) FROM runs").fetchone()[0]
    insert(database, "submissions", [dict(submission, id=name, reversed=name[::-1])])
    for number in range(1, runs + 1):
        run = f"{name}-{number}"
        row = dict(first, sequence=last + number, id=run, reversed=run[::-1], submission=name)
        insert(database, "runs", [row])
        insert(database, "attempts", [dict(attempt, run=last + number)])


def moved(table: str, row: Record, number: int, runs: int, events: int, age_ms: int) -> Record:
    """One row of the seed as the row of another round."""
    row = dict(row)
    for column in ("created", "started", "ended", "at"):
        if row.get(column) is not None:
            row[column] -= age_ms
    if table == "events":
        row["sequence"] += number * events
    if table in ("attempts", "events"):
        row["run"] += number * runs
    if table == "runs":
        row["sequence"] += number * runs
        row["submission"] = renamed(row["submission"], number)
    if table == "submissions":
        row["plan"] = row["plan"].replace(row["id"], renamed(row["id"], number))
    if "id" in row:
        row["id"] = renamed(row["id"], number)
        row["reversed"] = row["id"][::-1]
    return row


def renamed(name: str, number: int) -> str:
    """An id is NAME-SECONDS-HEX, with -NUMBER after it within a sweep: only HEX changes."""
    word, seconds, digits, *place = name.split("-")
    mixed = (int(digits, 16) + number * 0x9E3779B1) % 2**32
    return "-".join([word, seconds, f"{mixed:08x}", *place])
