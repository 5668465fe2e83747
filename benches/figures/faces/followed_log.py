"""How soon a line that a rank writes is on the page."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

from ..logs import reading
from ..ratio import paired_ratio, percentile
from ..spawn import BenchError, need_program, wait_until
from ..table import Row, count, ms, times
from ..tow import Tow
from .chrome import Tab, chrome
from .faces_bench import FacesBench
from .page import served

LIMIT_S = 0.060
# Between lines, so that they fall anywhere within a frame and within what is gathered.
LONGEST_PAUSE_S = 0.05

# Waits until somebody looks; then writes the time that all processes share.
LOG_JOB = """
import os, random, sys, time
print("ready", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.02)
time.sleep(1)
for _ in range(int(sys.argv[1])):
    print(f"stamp {time.time() * 1000:.3f}", flush=True)
    time.sleep(random.uniform(0, LONGEST))
time.sleep(2)
""".replace("LONGEST", str(LONGEST_PAUSE_S))

# What is in the document, whenever that changes. Each line counts once.
WATCH = r"""(() => {
  const delays = new Map();
  const look = () => {
    for (const text of document.querySelectorAll('.log-lines .text')) {
      const stamp = /stamp (\d+\.\d+)/.exec(text.textContent)?.[1];
      if (stamp && !delays.has(stamp)) delays.set(stamp, Date.now() - Number(stamp));
    }
  };
  new MutationObserver(look).observe(document.querySelector('.log-lines'), { childList: true, subtree: true, characterData: true });
  globalThis.facesDelays = delays;
})()"""


def measure(bench: FacesBench) -> list[Row]:
    """The page that follows a log, beside `tail -F` of the same file."""
    lines = bench.sizes.followed_lines
    with bench.bench.started_tow() as tow, chrome(bench.folder()) as browser, served(tow) as page, browser.tab() as tab:
        folder = bench.folder()
        (folder / "job.py").write_text(LOG_JOB)
        tow.run("submit", sys.executable, str(folder / "job.py"), str(lines), str(folder / "go"))
        wait_until(lambda: any(Path(log).exists() for log in tow.json("show", "@")["logs"]), "the run has a log")
        shown = tow.json("show", "@")
        tab.go(page.at(f"/run/{shown['id']}/logs"))
        tab.wait_for("document.querySelector('.log-lines .text')?.textContent.includes('ready')", "the page shows the log")
        tab.evaluate(WATCH)
        tail = tail_delays(tow, shown["logs"][0], lines, folder / "go")
        ours = page_delays(tab, lines)
        tow.run("wait", shown["id"])
    return [followed_row(ours, tail)]


def tail_delays(tow: Tow, log: str, lines: int, go: Path) -> list[float]:
    """Has the job begin, and reads until all lines have come; seconds of each."""
    delays: list[float] = []
    rest = b""
    with reading(tow.shop, [need_program("tail"), "-n", "+1", "-F", log]) as process:
        assert process.stdout is not None
        go.touch()
        end = time.monotonic() + 30 + lines * LONGEST_PAUSE_S
        while len(delays) < lines:
            chunk = os.read(process.stdout.fileno(), 65536)
            now = time.time()
            if not chunk or time.monotonic() > end:
                raise BenchError(f"`tail -F` showed {len(delays)} of {lines} lines")
            *whole, rest = (rest + chunk).split(b"\n")
            delays += [now - float(line.split()[1]) / 1e3 for line in whole if line.startswith(b"stamp")]
    return delays


def page_delays(tab: Tab, lines: int) -> list[float]:
    tab.wait_for(f"facesDelays.size >= {lines}", f"the page shows all {lines} lines", timeout_s=10)
    found = json.loads(tab.evaluate("JSON.stringify([...facesDelays.values()])"))
    return [delay / 1e3 for delay in found]


def followed_row(ours: list[float], tail: list[float]) -> Row:
    late = percentile(ours, 0.95)
    return Row(
        figure=f"a rank's line on the page, {count(len(ours))} lines",
        tow=f"p95 {ms(late)} (median {ms(statistics.median(ours))})",
        peers=f"`tail -F` p95 {ms(percentile(tail, 0.95))} (median {ms(statistics.median(tail))})",
        ratio=times(paired_ratio(ours, tail)),
        bar=f"p95 ≤ {LIMIT_S * 1e3:.0f} ms",
        held=late <= LIMIT_S,
        raw={"tow_s": ours, "tail_s": tail},
    )
