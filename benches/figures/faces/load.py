"""Opening a page for the first time: when its list is there, and what came over the network."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

from ..spawn import BenchError
from .chrome import Chrome, Tab

# The network is quiet when nothing has come for so long.
QUIET_S = 1.0
QUIET_TIMEOUT_S = 15.0
LIST_TIMEOUT_S = 60.0
# A new tab is left alone for a moment, so that its own start is over.
REST_S = 0.3

# Runs before anything of the page. A row is there when an element that the selector finds holds the
# text; it is seen after the next frame; the page takes input when its main thread has nothing to do.
WATCH = """(() => {
  const seen = {};
  const text = new RegExp(TEXT);
  const look = () => {
    if (seen.row) return;
    for (const row of document.querySelectorAll(SELECTOR)) {
      if (!text.test(row.textContent)) continue;
      seen.row = performance.now();
      observer.disconnect();
      requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => {
          seen.painted = performance.now();
          tell();
        };
        channel.port2.postMessage(0);
      });
      requestIdleCallback(() => {
        seen.idle = performance.now();
        tell();
      });
      return;
    }
  };
  const tell = () => {
    if (seen.painted && seen.idle) facesSeen(JSON.stringify(seen));
  };
  const observer = new MutationObserver(look);
  observer.observe(document, { childList: true, subtree: true, characterData: true, attributes: true });
})()"""


@dataclasses.dataclass
class Load:
    """Seconds since the begin of the navigation, and bytes as they came over the network."""

    row_s: float
    painted_s: float
    idle_s: float
    bytes: int
    requests: int


class Visitor:
    """A tab that opens addresses; the first one with an empty cache."""

    def __init__(self, tab: Tab, selector: str, text: str) -> None:
        self._tab = tab
        self._seen: dict[str, float] = {}
        self._traffic = Traffic(tab)
        tab.devtools.listen("Runtime.bindingCalled", lambda told: self._seen.update(json.loads(told["payload"])), tab.session)
        for domain in ("Page", "Runtime", "Network"):
            tab.call(f"{domain}.enable")
        tab.call("Runtime.addBinding", name="facesSeen")
        script = WATCH.replace("SELECTOR", json.dumps(selector)).replace("TEXT", json.dumps(text))
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def open(self, address: str) -> Load:
        """From a blank page, as when an address is typed."""
        devtools = self._tab.devtools
        self._tab.go("about:blank")
        devtools.pump(lambda: False, REST_S)
        self._seen.clear()
        self._traffic.forget()
        self._tab.go(address)
        if not devtools.pump(lambda: bool(self._seen), LIST_TIMEOUT_S):
            raise BenchError(f"no list at {address.split('#')[0]} within {LIST_TIMEOUT_S:.0f} s")
        devtools.pump(self._traffic.is_quiet, QUIET_TIMEOUT_S)
        row, painted, idle = (self._seen[name] / 1e3 for name in ("row", "painted", "idle"))
        return Load(row, painted, idle, self._traffic.bytes(), self._traffic.requests())


def load(chrome: Chrome, address: str, selector: str, text: str) -> Load:
    """Opens an address in a new tab whose cache is empty."""
    with chrome.tab() as tab:
        return Visitor(tab, selector, text).open(address)


def load_twice(chrome: Chrome, address: str, selector: str, text: str) -> tuple[Load, Load]:
    """The same, and once more in the same tab."""
    with chrome.tab() as tab:
        visitor = Visitor(tab, selector, text)
        return visitor.open(address), visitor.open(address)


class Traffic:
    """What comes over the network for one tab, as many bytes as come: packed, with their heads."""

    def __init__(self, tab: Tab) -> None:
        self.forget()
        for name, handler in (("responseReceived", self._head), ("dataReceived", self._body), ("loadingFinished", self._finished)):
            tab.devtools.listen(f"Network.{name}", handler, tab.session)

    def forget(self) -> None:
        self._heads: dict[str, int] = {}
        self._bodies: dict[str, int] = {}
        self._whole: dict[str, int] = {}
        self._last = time.monotonic()

    def _head(self, told: dict[str, Any]) -> None:
        self._last = time.monotonic()
        if not told["response"]["url"].startswith(("data:", "blob:")):
            self._heads[told["requestId"]] = int(told["response"].get("encodedDataLength", 0))

    def _body(self, told: dict[str, Any]) -> None:
        self._last = time.monotonic()
        name = told["requestId"]
        self._bodies[name] = self._bodies.get(name, 0) + int(told.get("encodedDataLength", 0))

    def _finished(self, told: dict[str, Any]) -> None:
        self._last = time.monotonic()
        self._whole[told["requestId"]] = int(told.get("encodedDataLength", 0))

    def is_quiet(self) -> bool:
        return time.monotonic() - self._last > QUIET_S

    def bytes(self) -> int:
        """A stream that goes on has no whole yet: what has come of it counts."""
        return sum(self._whole.get(name, head + self._bodies.get(name, 0)) for name, head in self._heads.items())

    def requests(self) -> int:
        return len(self._heads)
