"""What open pages cost the daemon."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack

from ..spawn import BenchError
from ..table import Row
from .chatter import chattering
from .chrome import Chrome, Tab, chrome
from .cpu import percent, used_s
from .faces_bench import FacesBench
from .page import Page, served

PAGES = 5
RUNNING = 2
LIMIT = 0.02
SETTLE_S = 3.0
LAST_LINE = "[...document.querySelectorAll('.log-lines .text')].at(-1).textContent"
WITH, WITHOUT = "with", "without"


def measure(bench: FacesBench) -> list[Row]:
    """The daemon and `tow ui` with five windows that follow a log each, in turns with none."""
    seconds = bench.sizes.watched_s
    tow = bench.tow_with(bench.sizes.top_runs - RUNNING)
    with chattering(tow, RUNNING) as ids, chrome(bench.folder()) as browser, served(tow) as page:
        daemon = tow.daemon_pid()
        if daemon is None:
            raise BenchError("no daemon runs")
        processes = {"daemon": daemon, "ui": page.pid}
        parts: dict[str, dict[str, list[float]]] = {state: {name: [] for name in processes} for state in (WITHOUT, WITH)}
        for _ in range(bench.sizes.watched_rounds):
            for state in (WITHOUT, WITH):
                with ExitStack() as stack:
                    tabs = open_pages(stack, browser, page, ids) if state == WITH else []
                    before = [tab.evaluate(LAST_LINE) for tab in tabs]
                    for name, part in watched(processes, seconds).items():
                        parts[state][name].append(part)
                    if any(tab.evaluate(LAST_LINE) == line for tab, line in zip(tabs, before)):
                        raise BenchError("a page did not follow its log")
        if tow.daemon_pid() != daemon:
            raise BenchError("the daemon was replaced meanwhile")
    return [watchers_row(seconds, parts)]


def open_pages(stack: ExitStack, browser: Chrome, page: Page, runs: list[str]) -> list[Tab]:
    tabs = []
    for number in range(PAGES):
        tab = stack.enter_context(browser.tab())
        tab.go(page.at(f"/run/{runs[number % len(runs)]}/logs"))
        tab.wait_for("document.querySelector('.log-lines .text')?.textContent.includes('step')", "the page shows the log")
        tabs.append(tab)
    return tabs


def watched(processes: dict[str, int], seconds: float) -> dict[str, float]:
    time.sleep(SETTLE_S)
    before = {name: used_s(pid) for name, pid in processes.items()}
    begin = time.monotonic()
    time.sleep(seconds)
    taken = time.monotonic() - begin
    return {name: (used_s(pid) - before[name]) / taken for name, pid in processes.items()}


def watchers_row(seconds: float, parts: dict[str, dict[str, list[float]]]) -> Row:
    part = {state: {name: statistics.median(values) for name, values in of.items()} for state, of in parts.items()}
    more = part[WITH]["daemon"] - part[WITHOUT]["daemon"]
    return Row(
        figure=f"{PAGES} open pages that follow a log of a line a second, {seconds:.0f} s",
        tow=f"{percent(more)} of a core more for the daemon; `tow ui` {percent(part[WITH]['ui'])}",
        peers=f"without pages the daemon {percent(part[WITHOUT]['daemon'])}, `tow ui` {percent(part[WITHOUT]['ui'])}",
        bar=f"< {LIMIT * 100:.0f} % more for the daemon",
        held=more < LIMIT,
        raw={"parts": parts},
    )
