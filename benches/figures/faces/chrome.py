"""Chromium without a window, with a profile of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..spawn import BenchError, find_program
from .devtools import DevTools, Message

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--remote-debugging-pipe",
    "--window-size=1280,800",
]


class Tab:
    """One page in a window of its own, because a tab behind another one is not drawn. Its context has nothing in its cache."""

    def __init__(self, devtools: DevTools, context: str) -> None:
        self.devtools = devtools
        self._context = context
        asked = {"url": "about:blank", "browserContextId": context, "newWindow": True, "width": 1280, "height": 800}
        self._target = devtools.call("Target.createTarget", asked)["targetId"]
        self.session = devtools.call("Target.attachToTarget", {"targetId": self._target, "flatten": True})["sessionId"]

    def call(self, method: str, **parameters: Any) -> Message:
        return self.devtools.call(method, parameters, self.session)

    def evaluate(self, script: str) -> Any:
        """What a script says, or what it promises."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            told = answer["exceptionDetails"].get("exception", {}).get("description", "")
            raise BenchError(f"the page: {told[:300]}")
        return answer["result"].get("value")

    def go(self, address: str) -> None:
        answer = self.call("Page.navigate", url=address)
        if answer.get("errorText"):
            raise BenchError(f"{address}: {answer['errorText']}")

    def wait_for(self, condition: str, what: str, timeout_s: float = 60) -> None:
        """Waits until an expression is true in the page, which looks once a frame."""
        script = f"""new Promise((done) => {{
            const end = Date.now() + {timeout_s * 1000:.0f};
            const look = () => (({condition}) ? done(true) : Date.now() > end ? done(false) : requestAnimationFrame(look));
            look();
        }})"""
        if not self.evaluate(script):
            raise BenchError(f"gave up waiting until {what}")

    def close(self) -> None:
        self.devtools.call("Target.closeTarget", {"targetId": self._target})
        self.devtools.call("Target.disposeBrowserContext", {"browserContextId": self._context})


class Chrome:
    """One browser, which opens tabs."""

    def __init__(self, devtools: DevTools) -> None:
        self.devtools = devtools

    @contextmanager
    def tab(self) -> Iterator[Tab]:
        context = self.devtools.call("Target.createBrowserContext")["browserContextId"]
        tab = Tab(self.devtools, context)
        try:
            yield tab
        finally:
            tab.close()


@contextmanager
def chrome(folder: Path) -> Iterator[Chrome]:
    """A browser whose files lie in this folder; it is gone at the end."""
    program = os.environ.get("CHROMIUM") or find_program("chromium") or find_program("google-chrome")
    if program is None:
        raise BenchError("Chromium is needed and not installed")
    (folder / "home").mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "HOME": str(folder / "home"), "TMPDIR": str(folder)}
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()

    def pipes_in_place() -> None:
        # Chromium reads from 3 and writes to 4; neither may overwrite the other.
        reading, writing = os.dup2(theirs_in, 20), os.dup2(theirs_out, 21)
        os.dup2(reading, 3)
        os.dup2(writing, 4)

    argv = [program, *ARGUMENTS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(argv, env=env, pass_fds=(3, 4), preexec_fn=pipes_in_place, start_new_session=True, **quiet)
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Chrome(DevTools(ours_in, ours_out))
    finally:
        os.close(ours_out)
        os.close(ours_in)
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """It ends by itself when its pipe is closed; else it is ended."""
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
