"""How busy a page's main thread is in each frame, from a trace of Chromium."""

from __future__ import annotations

import bisect
import collections
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..spawn import BenchError
from .chrome import Tab

Event = dict[str, Any]
CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline", "disabled-by-default-devtools.timeline.frame"]
TRACE_TIMEOUT_S = 60


@dataclasses.dataclass
class Frames:
    """Seconds for each frame that the main thread was in a task, by the clock and of a CPU; and the renderer."""

    busy_s: list[float]
    cpu_s: list[float]
    pid: int
    # Seconds of a CPU by the name of what was done, without what was done within it.
    parts_s: dict[str, float]


class Trace:
    """What happened while it was recorded."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def frames(self) -> Frames:
        pid, thread = self._main_thread()
        here = [event for event in self.events if (event["pid"], event["tid"]) == (pid, thread)]
        begins = sorted(event["ts"] for event in here if event["name"] == "BeginMainThreadFrame")
        if len(begins) < 10:
            raise BenchError(f"only {len(begins)} frames were drawn")
        busy, cpu = [0.0] * (len(begins) - 1), [0.0] * (len(begins) - 1)
        for event in here:
            if event["name"] != "RunTask" or event["ph"] != "X":
                continue
            # A frame begins within a task: the task belongs to the frame in which it ends.
            frame = bisect.bisect_right(begins, event["ts"] + event["dur"]) - 1
            if 0 <= frame < len(busy):
                busy[frame] += event["dur"] / 1e6
                cpu[frame] += event.get("tdur", 0) / 1e6
        return Frames(busy, cpu, pid, own_seconds(here))

    def _main_thread(self) -> tuple[int, int]:
        names = {(event["pid"], event["tid"]): event["args"].get("name") for event in self.events if event["name"] == "thread_name"}
        drawn = collections.Counter((event["pid"], event["tid"]) for event in self.events if event["name"] == "BeginMainThreadFrame")
        for thread, _ in drawn.most_common():
            if names.get(thread) == "CrRendererMain":
                return thread
        raise BenchError("the trace shows no page that is drawn")


def own_seconds(events: list[Event]) -> dict[str, float]:
    own: collections.Counter[str] = collections.Counter()
    around: list[Event] = []
    for event in sorted((event for event in events if event["ph"] == "X"), key=lambda event: (event["ts"], -event["dur"])):
        while around and around[-1]["ts"] + around[-1]["dur"] <= event["ts"]:
            around.pop()
        taken = event.get("tdur", 0) / 1e6
        if around:
            own[around[-1]["name"]] -= taken
        own[event["name"]] += taken
        around.append(event)
    return dict(own.most_common(12))


@contextmanager
def traced(tab: Tab) -> Iterator[Trace]:
    trace = Trace()
    ended: list[bool] = []
    devtools = tab.devtools
    devtools.listen("Tracing.dataCollected", lambda told: trace.events.extend(told["value"]))
    devtools.listen("Tracing.tracingComplete", lambda _told: ended.append(True))
    devtools.call("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": {"includedCategories": CATEGORIES}})
    try:
        yield trace
    finally:
        devtools.call("Tracing.end")
        if not devtools.pump(lambda: bool(ended), TRACE_TIMEOUT_S):
            raise BenchError("Chromium did not end its trace")
