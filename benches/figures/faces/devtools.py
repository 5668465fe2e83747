"""A conversation with Chromium over two pipes, in its debugging protocol."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable
from typing import Any

from ..spawn import BenchError

Message = dict[str, Any]
ANSWER_TIMEOUT_S = 120


class DevTools:
    """Commands with their answers, and events in between, which go to who listens."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._rest = b""
        self._messages: list[Message] = []
        self._number = 0
        self._listeners: dict[tuple[str, str], Callable[[Message], None]] = {}

    def listen(self, method: str, handler: Callable[[Message], None], session: str = "") -> None:
        self._listeners[(session, method)] = handler

    def send(self, method: str, parameters: Message | None = None, session: str = "") -> int:
        """Says something without waiting for the answer; its number."""
        self._number += 1
        message: Message = {"id": self._number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._writing, data) :]
        return self._number

    def call(self, method: str, parameters: Message | None = None, session: str = "", timeout_s: float = ANSWER_TIMEOUT_S) -> Message:
        """Says something and waits for the answer; events that come before it are handed out."""
        number = self.send(method, parameters, session)
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            message = self._next(end)
            if message is None:
                break
            if message.get("id") != number:
                self._hand_out(message)
            elif "error" in message:
                raise BenchError(f"Chromium refuses {method}: {message['error'].get('message')}")
            else:
                return message["result"]
        raise BenchError(f"Chromium did not answer {method} within {timeout_s:.0f} s")

    def pump(self, until: Callable[[], bool], timeout_s: float) -> bool:
        """Hands events out until something has come true, or not within this time."""
        end = time.monotonic() + timeout_s
        while not until():
            left = end - time.monotonic()
            if left <= 0:
                return False
            message = self._next(time.monotonic() + min(left, 0.05))
            if message is not None:
                self._hand_out(message)
        return True

    def _hand_out(self, message: Message) -> None:
        handler = self._listeners.get((message.get("sessionId", ""), message.get("method", "")))
        if handler:
            handler(message["params"])

    def _next(self, end: float) -> Message | None:
        while not self._messages:
            ready, _, _ = select.select([self._reading], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return None
            chunk = os.read(self._reading, 1 << 20)
            if not chunk:
                raise BenchError("Chromium has ended")
            *whole, self._rest = (self._rest + chunk).split(b"\0")
            self._messages += [json.loads(message) for message in whole]
        return self._messages.pop(0)
