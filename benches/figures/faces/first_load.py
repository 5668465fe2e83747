"""How soon the page takes input when it is opened with very many runs in the history."""

from __future__ import annotations

import http.server
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..ratio import paired_ratio, percentile
from ..rounds import rotated
from ..table import Row, count, ms, times
from .chrome import chrome
from .faces_bench import FacesBench
from .load import Load, load_twice
from .page import served

RUN_ROW = "[role=table] .line .name a"
LIMIT_S = 0.200
FLOOR = b"<!doctype html><title>floor</title><p class=row>a line</p>"
TOW, AGAIN, PLAIN = "tow", "again", "plain"


def measure(bench: FacesBench) -> list[Row]:
    """The page, in turns with a page of one line that needs no script."""
    runs, rounds = bench.sizes.listed_runs, bench.sizes.loads
    tow = bench.tow_with(runs)
    loads: dict[str, list[Load]] = {TOW: [], AGAIN: [], PLAIN: []}
    with chrome(bench.folder()) as browser, served(tow) as page, plain_page() as plain:
        ways = {TOW: (page.at("/runs"), RUN_ROW, r"\S"), PLAIN: (plain, ".row", "a line")}
        for number in range(-2, rounds):
            for name in rotated(ways, number):
                first, second = load_twice(browser, *ways[name])
                if number >= 0:
                    loads[name].append(first)
                if number >= 0 and name == TOW:
                    loads[AGAIN].append(second)
    return [load_row(runs, loads)]


@contextmanager
def plain_page() -> Iterator[str]:
    """Served by Python: what opening any page costs here."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(FLOOR)))
            self.end_headers()
            self.wfile.write(FLOOR)

        def log_message(self, *_words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def load_row(runs: int, loads: dict[str, list[Load]]) -> Row:
    idle = {name: [one.idle_s for one in many] for name, many in loads.items()}
    rows = statistics.median(one.row_s for one in loads[TOW])
    median = statistics.median(idle[TOW])
    return Row(
        figure=f"the page takes input, {count(runs)} runs in the history",
        tow=f"{ms(median)} (first row {ms(rows)}, p95 {ms(percentile(idle[TOW], 0.95))}), opened again {ms(statistics.median(idle[AGAIN]))}",
        peers=f"a page of one line {ms(statistics.median(idle[PLAIN]))}",
        ratio=times(paired_ratio(idle[TOW], idle[PLAIN])),
        bar=f"≤ {LIMIT_S * 1e3:.0f} ms",
        held=median <= LIMIT_S,
        raw={name: [vars(one) for one in many] for name, many in loads.items()},
    )
