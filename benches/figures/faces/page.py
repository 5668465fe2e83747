"""`tow ui`, which serves the page."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from ..spawn import BenchError
from ..tow import Tow


class Page:
    """The page of one `tow`, while its program runs."""

    def __init__(self, pid: int, address: str) -> None:
        self.pid = pid
        self._address = address

    def at(self, place: str) -> str:
        """The address of a place such as `/run/ID/logs`, with the token."""
        return f"{self._address}&{place}"


@contextmanager
def served(tow: Tow) -> Iterator[Page]:
    argv = tow.argv("ui", "--no-open", "--json", "--port", "0")
    process = subprocess.Popen(argv, env=tow.shop.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise BenchError("`tow ui` did not say where the page is")
        yield Page(process.pid, json.loads(line)["address"])
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
