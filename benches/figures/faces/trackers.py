"""Other pages that list runs: MLflow, Aim and TensorBoard, each with its own server."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..home import isolated_environment
from ..spawn import BenchError, find_program

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
FILL_TIMEOUT_S = 600
START_TIMEOUT_S = 90
# What a row of each of them shows; the scripts that make the runs name them so.
RUN_NAME = r"bench-\d{4}"


@dataclasses.dataclass(frozen=True)
class Tracker:
    """How one of them is filled and started, where its list is, and which element of it names a run."""

    name: str
    program: str
    fill: str
    words: tuple[str, ...]
    place: str
    selector: str
    # Answers with all runs once the server has read them.
    ready: str = ""


TRACKERS = [
    Tracker(
        name="MLflow",
        program="mlflow",
        fill="fill_mlflow.py",
        words=("server", "--backend-store-uri", "sqlite:///{folder}/runs.db", "--workers", "1", "--port", "{port}"),
        place="/#/experiments/1/runs",
        selector="[role=gridcell]",
    ),
    Tracker(
        name="Aim",
        program="aim",
        fill="fill_aim.py",
        words=("up", "--repo", "{folder}", "--port", "{port}", "--yes"),
        place="/runs",
        selector=".RunNameColumn",
    ),
    Tracker(
        name="TensorBoard",
        program="tensorboard",
        fill="fill_tensorboard.py",
        words=("--logdir", "{folder}/runs", "--port", "{port}"),
        place="/",
        selector="tb-data-table-content-cell",
        ready="/data/runs",
    ),
]


@contextmanager
def serving(tracker: Tracker, folder: Path, runs: int) -> Iterator[str | None]:
    """The address of its list of so many runs; None if it is not installed."""
    program = find_program(tracker.program)
    if program is None:
        yield None
        return
    env = quiet_environment(folder, program)
    fill(tracker, program, env, folder, runs)
    port = free_port()
    words = [word.format(folder=folder, port=port) for word in tracker.words]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen([program, *words], env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            wait_ready(tracker, process, f"http://127.0.0.1:{port}", runs, folder / "server.log")
            yield f"http://127.0.0.1:{port}{tracker.place}"
        finally:
            stop(process)


def quiet_environment(folder: Path, program: str) -> dict[str, str]:
    """Its own home, its own programs first, and nothing told to anybody."""
    env = isolated_environment(folder)
    env["PATH"] = f"{os.path.dirname(program)}:{env['PATH']}"
    return env | {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "AIM_UI_TELEMETRY_ENABLED": "0", "PYTHONWARNINGS": "ignore"}


def fill(tracker: Tracker, program: str, env: dict[str, str], folder: Path, runs: int) -> None:
    """Its runs are made with its own library, by the Python that it is installed for."""
    python = os.path.join(os.path.dirname(program), "python3")
    argv = [python, str(PROGRAMS / tracker.fill), str(folder), str(runs)]
    done = subprocess.run(argv, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FILL_TIMEOUT_S)
    if done.returncode != 0:
        raise BenchError(f"{tracker.name} cannot be filled: {done.stderr[-300:].strip()}")


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def wait_ready(tracker: Tracker, process: subprocess.Popen[bytes], address: str, runs: int, log: Path) -> None:
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise BenchError(f"{tracker.name} has ended: {log.read_text(errors='replace')[-300:].strip()}")
        try:
            with urllib.request.urlopen(address + (tracker.ready or "/"), timeout=10) as answer:
                body = answer.read()
            if not tracker.ready or body.count(b'"bench-') == runs:
                return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.3)
    raise BenchError(f"{tracker.name} did not serve its runs within {START_TIMEOUT_S} s")


def stop(process: subprocess.Popen[bytes]) -> None:
    """It and what it started, which is one group of processes."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(timeout=10)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
