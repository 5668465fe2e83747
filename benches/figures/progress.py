"""What is told on standard error while figures are measured."""

from __future__ import annotations

import sys


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
