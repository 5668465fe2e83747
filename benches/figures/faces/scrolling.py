"""What scrolling very long lists costs the page: a log, and the table of runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

from ..ratio import percentile
from ..rounds import rotated
from ..spawn import BenchError
from ..table import Row, count, mb, ms
from .chrome import Chrome, Tab, chrome
from .faces_bench import FacesBench
from .first_load import RUN_ROW
from .frames import Frames, traced
from .page import served
from .sizes import FacesSizes

BUSY_LIMIT_S = 0.008
MEMORY_LIMIT = 200e6
# A hundred pixels a frame: one notch of a wheel.
WHEEL_SPEED = 6000
LINES_AT_ONCE = 100_000
FRAME_S = 1 / 60

# Draws a few frames, which tell which process the tab is.
BLANK = """new Promise((done) => {
  let frame = 0;
  const step = () => {
    frame += 1;
    document.body.style.opacity = 1 - frame / 100;
    if (frame < 20) requestAnimationFrame(step);
    else done(true);
  };
  requestAnimationFrame(step);
})"""


def measure(bench: FacesBench) -> list[Row]:
    return [*log_rows(bench), *table_rows(bench)]


def log_rows(bench: FacesBench) -> list[Row]:
    lines = bench.sizes.log_lines
    with bench.bench.started_tow() as tow:
        shown = tow.json("show", "@")
        write_log(Path(shown["logs"][0]), lines)
        with chrome(bench.folder()) as browser, served(tow) as page, browser.tab() as tab:
            tab.go(page.at(f"/run/{shown['id']}/logs?line={lines // 2}"))
            tab.wait_for("document.querySelectorAll('.log-lines .text')[9]?.textContent.includes('step')", "the log is there")
            return rows(browser, tab, f"a log of {count(lines)} lines", bench.sizes)


def table_rows(bench: FacesBench) -> list[Row]:
    runs = bench.sizes.table_runs
    tow = bench.tow_with(runs)
    with chrome(bench.folder()) as browser, served(tow) as page, browser.tab() as tab:
        tab.go(page.at("/runs?fold=no"))
        tab.wait_for(f"document.querySelector('{RUN_ROW}')", "the table is there")
        return rows(browser, tab, f"a table of {count(runs)} runs", bench.sizes)


def write_log(path: Path, lines: int) -> None:
    """The log of a run that has ended, as if its job had written so much."""
    with path.open("w") as log:
        for first in range(0, lines, LINES_AT_ONCE):
            log.write("".join(f"step {number} loss {1 / (number + 1):.4f} lr 0.001\n" for number in range(first, min(lines, first + LINES_AT_ONCE))))


def rows(browser: Chrome, tab: Tab, what: str, sizes: FacesSizes) -> list[Row]:
    ways: dict[str, Callable[[], None]] = {"by the wheel": lambda: wheel(tab, sizes.scrolled_s), "by the bar": lambda: drag(tab, sizes.scrolled_s)}
    frames: dict[str, list[Frames]] = {how: [] for how in ways}
    for number in range(sizes.scroll_rounds):
        for how in rotated(ways, number):
            frames[how].append(scrolled(tab, ways[how]))
    pid = frames["by the wheel"][0].pid
    return [*(busy_row(f"scrolling {what} {how}", many) for how, many in frames.items()), memory_row(browser, tab, what, pid)]


def scrolled(tab: Tab, scroll: Callable[[], None]) -> Frames:
    tab.evaluate("{ const list = document.querySelector('.scroller'); list.scrollTop = 0.4 * list.scrollHeight; }")
    tab.evaluate("new Promise((done) => setTimeout(done, 1000))")
    before = top_line(tab)
    with traced(tab) as trace:
        scroll()
    if top_line(tab) == before:
        raise BenchError("the list did not scroll")
    return trace.frames()


def top_line(tab: Tab) -> str:
    """What is in view, and where the bar is."""
    return tab.evaluate("document.querySelector('.scroller').scrollTop + document.querySelector('.scroller .rows').textContent")


def wheel(tab: Tab, seconds: float) -> None:
    gesture(tab, WHEEL_SPEED * seconds, WHEEL_SPEED)


def gesture(tab: Tab, distance: float, speed: float) -> None:
    tab.call("Input.synthesizeScrollGesture", x=640, y=500, yDistance=-round(distance), speed=round(speed), gestureSourceType="mouse")


def drag(tab: Tab, seconds: float) -> None:
    """As far as a hand moves the bar: half of the list in this time, by a gesture, because a script that scrolls forces layouts."""
    distance = tab.evaluate("document.querySelector('.scroller').scrollHeight") / 2
    gesture(tab, distance, distance / seconds)


def busy_row(figure: str, rounds: list[Frames]) -> Row:
    """Medians over the rounds of what each says of its frames."""
    late = statistics.median(percentile(frames.busy_s, 0.95) for frames in rounds)
    middle = statistics.median(statistics.median(frames.busy_s) for frames in rounds)
    cpu = statistics.median(percentile(frames.cpu_s, 0.95) for frames in rounds)
    all_s = [busy for frames in rounds for busy in frames.busy_s]
    return Row(
        figure=figure,
        tow=f"main thread p95 {ms(late)} per frame (median {ms(middle)}, of a CPU p95 {ms(cpu)})",
        peers=f"{sum(busy > FRAME_S for busy in all_s)} of {count(len(all_s))} frames took longer than 1/60 s",
        bar=f"p95 ≤ {BUSY_LIMIT_S * 1e3:.0f} ms",
        held=late <= BUSY_LIMIT_S,
        raw={"rounds": [vars(frames) for frames in rounds]},
    )


def memory_row(browser: Chrome, tab: Tab, what: str, pid: int) -> Row:
    """Its own memory is what Chromium's task manager shows: without files that all tabs share."""
    tab.call("Performance.enable")
    metrics = {metric["name"]: metric["value"] for metric in tab.call("Performance.getMetrics")["metrics"]}
    heap, ours = metrics["JSHeapUsedSize"], memory_of(pid)
    with browser.tab() as empty:
        with traced(empty) as trace:
            empty.evaluate(BLANK)
        blank = memory_of(trace.frames().pid)
    tab.call("HeapProfiler.collectGarbage")
    tab.evaluate("new Promise((done) => setTimeout(done, 3000))")
    kept = memory_of(pid)
    return Row(
        figure=f"the tab's memory after scrolling {what}",
        tow=f"own {mb(ours['RssAnon'])} (heap of JavaScript {mb(heap)}), resident {mb(ours['VmRSS'])}; after a collection own {mb(kept['RssAnon'])}",
        peers=f"an empty tab: own {mb(blank['RssAnon'])}, resident {mb(blank['VmRSS'])}",
        bar=f"own ≤ {MEMORY_LIMIT / 1e6:.0f} MB",
        held=ours["RssAnon"] <= MEMORY_LIMIT,
        raw={"heap_bytes": heap, "tow_bytes": ours, "collected_bytes": kept, "empty_bytes": blank},
    )


def memory_of(pid: int) -> dict[str, int]:
    """Resident bytes of a process, and which of them are its own and which belong to files."""
    lines = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {words[0][:-1]: int(words[1]) * 1024 for words in lines if words[0] in ("VmRSS:", "RssAnon:", "RssFile:", "RssShmem:")}
