"""What a command took: seconds, seconds of CPU, and its most memory."""

from __future__ import annotations

import dataclasses
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .spawn import COMMAND_TIMEOUT_S, BenchError, need_program

PROGRAMS = Path(__file__).resolve().parent / "programs"


@dataclasses.dataclass(frozen=True)
class Cost:
    seconds: float
    cpu: float
    memory: int

    def plus(self, other: Cost) -> Cost:
        """Of two commands, one after the other."""
        return Cost(self.seconds + other.seconds, self.cpu + other.cpu, max(self.memory, other.memory))


def median(costs: Sequence[Cost]) -> Cost:
    """The median of each part by itself; of memory the most."""
    middle = [statistics.median(getattr(cost, part) for cost in costs) for part in ("seconds", "cpu")]
    return Cost(*middle, max(cost.memory for cost in costs))


class Programs:
    """The small programs in C that are compared with or measure, built here."""

    def __init__(self, folder: Path) -> None:
        compiler = need_program("cc")
        for name in ("raw", "walk", "measure"):
            words = [compiler, "-O2", "-pthread", "-o", str(folder / name), str(PROGRAMS / f"{name}.c")]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode != 0:
                raise BenchError(f"{name}.c does not compile: {done.stderr[-500:]}")
        self.raw, self.walk, self.measure = (str(folder / name) for name in ("raw", "walk", "measure"))
        self.folder = folder

    def cost(self, argv: Sequence[str], env: dict[str, str], cwd: Path) -> Cost:
        """Runs a command to its end in a folder."""
        result, errors = self.folder / "cost", self.folder / "errors"
        with errors.open("wb") as stderr:
            try:
                words = [self.measure, str(result), str(cwd), *argv]
                done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, timeout=COMMAND_TIMEOUT_S)
            except subprocess.TimeoutExpired as error:
                raise BenchError(f"`{shown(argv)}` took longer than {COMMAND_TIMEOUT_S} s") from error
        if done.returncode != 0:
            said = errors.read_text(errors="replace")[-500:].strip()
            raise BenchError(f"`{shown(argv)}` left with {done.returncode}: {said}")
        seconds, cpu, memory = result.read_text().split()
        return Cost(float(seconds), float(cpu), int(memory))


def shown(argv: Sequence[str]) -> str:
    """Less what is signed."""
    return " ".join(word.split("?")[0] for word in argv)[:200]
