#!/usr/bin/env python3
"""How fast `tow` is on this machine, side by side with its peers.

Every figure is measured against something that runs in the same minute on the
same machine: `/bin/true`, `xargs`, `tail -F`, task-spooler, GNU parallel and
pueue. Rounds are interleaved and medians are compared, so that a busy machine
slows both sides alike. The result is a Markdown table on standard output;
progress goes to standard error.

Nothing is installed and nothing outside a temporary folder is touched: state,
configuration and home of `tow` and of every peer lie in that folder, daemons
are stopped and the folder is removed at the end. The folder lies under
`$TMPDIR`, else `/var/tmp`; it should be on a real disk, because what `tow`
promises to keep is written through to it.

    benches/local.py                    all figures
    benches/local.py --quick            the same, shorter and rougher
    benches/local.py --only latency     one figure; may be repeated
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import select
import selectors
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

DEFAULT_TOW = Path(__file__).resolve().parent.parent / "target/x86_64-unknown-linux-gnu/release/tow"
COMMAND_TIMEOUT_S = 600
Name = TypeVar("Name")
AT_ONCE = 2
WARM_UPS = 3
TRUE = "/bin/true"
SPOOLER, PARALLEL, PUEUE = "task-spooler", "GNU parallel", "pueue"
MISSING = "not installed"
NOTHING = "—"


class BenchError(Exception):
    """A measurement that could not be made."""


# Sizes and results ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How much of everything one run of this script does."""

    spawns: int
    latency_rounds: int
    slow_peer_every: int
    jobs: int
    job_rounds: int
    pueue_jobs: int
    history: tuple[int, ...]
    history_spawns: int
    log_lines: int
    sweep_queued: int
    single_queued: int
    queued_samples: int


FULL = Sizes(
    spawns=500,
    latency_rounds=200,
    slow_peer_every=10,
    jobs=1000,
    job_rounds=5,
    pueue_jobs=100,
    history=(100, 1_000, 10_000, 100_000),
    history_spawns=100,
    log_lines=200,
    sweep_queued=10_000,
    single_queued=2_000,
    queued_samples=20,
)
QUICK = Sizes(
    spawns=100,
    latency_rounds=30,
    slow_peer_every=10,
    jobs=200,
    job_rounds=3,
    pueue_jobs=20,
    history=(100, 1_000, 10_000),
    history_spawns=30,
    log_lines=60,
    sweep_queued=2_000,
    single_queued=200,
    queued_samples=10,
)


@dataclasses.dataclass
class Row:
    """One line of the table; `raw` goes to the JSON file only."""

    figure: str
    tow: str
    peers: str = NOTHING
    ratio: str = NOTHING
    bar: str = NOTHING
    held: bool | None = None
    raw: dict[str, Any] = dataclasses.field(default_factory=dict)

    def cells(self) -> list[str]:
        held = NOTHING if self.held is None else ("yes" if self.held else "**no**")
        return [self.figure, self.tow, self.peers, self.ratio, self.bar, held]


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median over rounds of ours / theirs: what slows a whole round falls out."""
    return statistics.median(a / b for a, b in zip(ours, theirs))


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def sec(seconds: float) -> str:
    return f"{seconds:.2f} s"


def mb(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


def times(ratio: float) -> str:
    return f"{ratio:.2f}×"


def count(number: int) -> str:
    return f"{number:,}"


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


# Processes -----------------------------------------------------------------------------------


def on_alarm(_signal: int, _frame: object) -> None:
    raise BenchError(f"a command took longer than {COMMAND_TIMEOUT_S} s")


def on_terminate(_signal: int, _frame: object) -> None:
    raise SystemExit(143)


def find_program(name: str) -> str | None:
    """A program on PATH or under $TOW_PEERS/bin."""
    found = shutil.which(name)
    peers = os.environ.get("TOW_PEERS")
    if found is None and peers:
        found = shutil.which(name, path=os.path.join(peers, "bin"))
    return os.path.abspath(found) if found else None


def need_program(name: str) -> str:
    found = find_program(name)
    if found is None:
        raise BenchError(f"`{name}` is needed and not installed")
    return found


class Shop:
    """The temporary folder, and processes with an environment that points into it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.errors = root / "stderr"
        self.env = self._environment()

    def _environment(self) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TOW", "TS_", "PUEUE"))}
        folders = {
            "HOME": "home",
            "XDG_STATE_HOME": "state",
            "XDG_CONFIG_HOME": "config",
            "XDG_DATA_HOME": "data",
            "XDG_CACHE_HOME": "cache",
            "XDG_RUNTIME_DIR": "run",
            "TMPDIR": "tmp",
        }
        for name, folder in folders.items():
            (self.root / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            env[name] = str(self.root / folder)
        return env

    def start(self, argv: Sequence[str], stdin: str = os.devnull) -> int:
        """Starts a process the cheapest way there is; its pid."""
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, str(self.errors), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        ]
        return os.posix_spawn(argv[0], list(argv), self.env, file_actions=actions)

    def finish(self, pid: int, argv: Sequence[str]) -> None:
        try:
            _, status = os.waitpid(pid, 0)
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            raise BenchError(f"`{' '.join(argv)[:200]}` left with {code}: {self.last_error()}")

    def last_error(self) -> str:
        if not self.errors.exists():
            return ""
        return self.errors.read_text(errors="replace")[-500:].strip()

    def run(self, argv: Sequence[str], stdin: str = os.devnull) -> float:
        """Runs a command to its end; the seconds it took."""
        signal.alarm(COMMAND_TIMEOUT_S)
        begin = time.perf_counter_ns()
        self.finish(self.start(argv, stdin), argv)
        taken = time.perf_counter_ns() - begin
        signal.alarm(0)
        return taken / 1e9

    def ask(self, argv: Sequence[str]) -> str:
        """Runs a command, untimed; what it wrote."""
        done = subprocess.run(argv, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
        if done.returncode != 0:
            raise BenchError(f"`{' '.join(argv)[:200]}` left with {done.returncode}: {done.stderr[-500:].strip()}")
        return done.stdout


def interleave(ways: dict[Name, Callable[[], float]], rounds: int) -> dict[Name, list[float]]:
    """Measures every way once a round, beginning with another one each round; seconds by name."""
    samples: dict[Name, list[float]] = {name: [] for name in ways}
    for way in list(ways.values()) * WARM_UPS:
        way()
    for number in range(rounds):
        for name in rotated(ways, number):
            samples[name].append(ways[name]())
    return samples


def rotated(names: Iterable[Name], by: int) -> list[Name]:
    """The same names, beginning with another one each time."""
    order = list(names)
    turn = by % len(order)
    return order[turn:] + order[:turn]


# Launchers: tow and its peers ------------------------------------------------------------------


class Launcher:
    """Something that takes a command and starts it when there is room."""

    name = ""

    def __init__(self, root: Path) -> None:
        self.shop = Shop(root)

    def start(self) -> None:
        """Brings its daemon up, two jobs at a time."""

    def submit(self, job: Sequence[str]) -> list[str]:
        """The command line that submits a job."""
        raise NotImplementedError

    def drain(self) -> None:
        """Waits until everything submitted has ended."""

    def reset(self) -> None:
        """Puts ended jobs out of the way where they would slow the next round."""

    def stop(self) -> None:
        """Takes its daemon down."""


class Tow(Launcher):
    """One `tow` with a state folder of its own."""

    name = "tow"

    def __init__(self, binary: str, root: Path) -> None:
        super().__init__(root)
        self.binary = binary
        write_config(root / "config")

    def argv(self, *words: str) -> list[str]:
        return [self.binary, *words]

    def run(self, *words: str) -> float:
        return self.shop.run(self.argv(*words))

    def json(self, *words: str) -> Any:
        return json.loads(self.shop.ask(self.argv(*words, "--json")))

    def start(self) -> None:
        self.run("submit", TRUE)
        self.run("wait", "@")

    def submit(self, job: Sequence[str]) -> list[str]:
        return self.argv("submit", *job)

    def drain(self) -> None:
        self.run("wait")

    def daemon_pid(self) -> int | None:
        answer = self.json("daemon", "status")
        return answer["status"]["pid"] if answer["running"] else None

    def state_folder(self) -> Path:
        """The folder of this machine in the state folder."""
        found = [path.parent for path in (self.shop.root / "state/towline").glob("*/history.db")]
        if len(found) != 1:
            raise BenchError("no history.db in tow's state folder")
        return found[0]

    def active(self) -> list[str]:
        return [run["id"] for run in self.json("ps", "--state", "active", "--all")["runs"]]

    def abort_all(self) -> float:
        """Ends what is queued or running, by its ids; the seconds `tow abort --wait` took."""
        runs = self.active()
        return sum(self.run("abort", "--wait", *runs[first : first + 2000]) for first in range(0, len(runs), 2000))

    def stop(self) -> None:
        try:
            self.abort_all()
        finally:
            self.stop_daemon()

    def stop_daemon(self) -> None:
        pid = self.daemon_pid()
        if pid is not None:
            self.shop.ask(self.argv("daemon", "stop"))
            wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the daemon of tow leaves")


def write_config(folder: Path) -> None:
    """Two at a time, whatever this machine has."""
    if os.cpu_count() == AT_ONCE:
        return
    (folder / "towline").mkdir(parents=True, exist_ok=True)
    (folder / "towline/config.yaml").write_text(f"clusters:\n  local:\n    kind: local\n    cpus: {AT_ONCE}\n")


class Spooler(Launcher):
    """Debian's task-spooler."""

    name = SPOOLER

    def __init__(self, binary: str, root: Path) -> None:
        super().__init__(root)
        self.binary = binary
        self.shop.env |= {"TS_SOCKET": str(root / "run/tsp"), "TS_SLOTS": str(AT_ONCE), "TS_MAXFINISHED": "100000"}

    def start(self) -> None:
        self.shop.ask([self.binary, "-S", str(AT_ONCE)])

    def submit(self, job: Sequence[str]) -> list[str]:
        return [self.binary, *job]

    def drain(self) -> None:
        """Waits for the last one; beside it at most one other `true` may be about to end."""
        self.shop.run([self.binary, "-w"])

    def reset(self) -> None:
        """Keeps its list as short in the last round as in the first."""
        self.shop.ask([self.binary, "-C"])

    def stop(self) -> None:
        self.shop.ask([self.binary, "-K"])


class Parallel(Launcher):
    """GNU parallel, which keeps a job log and the output of each job."""

    name = PARALLEL

    def __init__(self, binary: str, root: Path) -> None:
        super().__init__(root)
        self.binary = binary
        self.results = 0

    def submit(self, job: Sequence[str]) -> list[str]:
        return [self.binary, "--will-cite", "-N0", *job, ":::", "x"]

    def batch(self) -> list[str]:
        kept = self.shop.root / f"kept-{self.results}"
        return [self.binary, "--will-cite", f"-j{AT_ONCE}", "--joblog", f"{kept}.log", "--results", str(kept), "true"]

    def reset(self) -> None:
        """Another folder; the old one stays, see `creation_seconds`."""
        self.results += 1


class Pueue(Launcher):
    """pueue with its daemon."""

    name = PUEUE

    def __init__(self, binary: str, daemon: str, root: Path) -> None:
        super().__init__(root)
        self.binary = binary
        self.daemon = daemon

    def start(self) -> None:
        self.shop.run([self.daemon, "-d"])
        wait_until(self._answers, "the daemon of pueue answers")
        self.shop.ask([self.binary, "parallel", str(AT_ONCE)])

    def _answers(self) -> bool:
        try:
            self.shop.ask([self.binary, "status"])
        except BenchError:
            return False
        return True

    def submit(self, job: Sequence[str]) -> list[str]:
        return [self.binary, "add", "--", *job]

    def drain(self) -> None:
        """Its own `wait` looks every two seconds; asking more often is fairer."""
        wait_until(self._idle, "the queue of pueue is empty", pause=0.05)

    def _idle(self) -> bool:
        tasks = json.loads(self.shop.ask([self.binary, "status", "--json"]))["tasks"].values()
        return all("Done" in task["status"] for task in tasks)

    def stop(self) -> None:
        self.shop.ask([self.binary, "shutdown"])


def wait_until(done: Callable[[], bool], what: str, pause: float = 0.01) -> None:
    end = time.monotonic() + COMMAND_TIMEOUT_S
    while not done():
        if time.monotonic() > end:
            raise BenchError(f"gave up waiting until {what}")
        time.sleep(pause)


class Bench:
    """What every figure needs: sizes, the binary, a folder, and launchers that are taken down."""

    def __init__(self, tow: str, sizes: Sizes, root: Path) -> None:
        self.tow = tow
        self.sizes = sizes
        self.root = root
        self.numbers = iter(range(10_000))

    def folder(self) -> Path:
        """A new folder with a short name: paths of sockets may only be about a hundred bytes."""
        path = self.root / str(next(self.numbers))
        path.mkdir()
        return path

    @contextmanager
    def started_tow(self) -> Iterator[Tow]:
        with started(Tow(self.tow, self.folder())) as launcher:
            yield launcher

    def peers(self) -> dict[str, Launcher | None]:
        """The peers by name; None for one that is not installed."""
        spooler, parallel = find_program("tsp"), find_program("parallel")
        pueue, pueued = find_program("pueue"), find_program("pueued")
        return {
            SPOOLER: Spooler(spooler, self.folder()) if spooler else None,
            PARALLEL: Parallel(parallel, self.folder()) if parallel else None,
            PUEUE: Pueue(pueue, pueued, self.folder()) if pueue and pueued else None,
        }


AnyLauncher = TypeVar("AnyLauncher", bound=Launcher)


@contextmanager
def started(launcher: AnyLauncher) -> Iterator[AnyLauncher]:
    try:
        launcher.start()
        yield launcher
    finally:
        signal.alarm(0)
        launcher.stop()


# 1. Start-up -----------------------------------------------------------------------------------


def startup(bench: Bench) -> list[Row]:
    """`tow --version` and `tow ps` beside `/bin/true`."""
    with bench.started_tow() as tow:
        tow.run("submit", "--sweep", "i=1-50", "true")
        tow.run("wait", "@")
        ways = {"true": lambda: tow.shop.run([TRUE]), "--version": lambda: tow.run("--version"), "ps": lambda: tow.run("ps")}
        samples = interleave(ways, bench.sizes.spawns)
    return [
        startup_row("`tow --version`", samples["--version"], samples["true"], 1.5),
        startup_row("`tow ps`, 50 runs in the history", samples["ps"], samples["true"], 4.0),
    ]


def startup_row(what: str, ours: list[float], theirs: list[float], limit: float) -> Row:
    ratio = paired_ratio(ours, theirs)
    return Row(
        figure=f"start-up: {what}",
        tow=ms(statistics.median(ours)),
        peers=f"`/bin/true` {ms(statistics.median(theirs))}",
        ratio=times(ratio),
        bar=f"≤ {limit}×",
        held=ratio <= limit,
        raw={"tow_s": ours, "true_s": theirs, "ratio": ratio},
    )


# 2. From submission to the job's process ---------------------------------------------------------


def latency(bench: Bench) -> list[Row]:
    """From just before the submitting command is spawned until the job's own process has acted."""
    with ExitStack() as stack:
        tow = stack.enter_context(bench.started_tow())
        peers = bench.peers()
        launchers: list[Launcher] = [tow, *(stack.enter_context(started(peer)) for peer in peers.values() if peer)]
        samples = latency_samples(bench, {launcher.name: launcher for launcher in launchers}, tow.shop)
    return [latency_row(samples, peers)]


def latency_samples(bench: Bench, launchers: dict[str, Launcher], shop: Shop) -> dict[str, list[float]]:
    fifo = str(bench.folder() / "fifo")
    os.mkfifo(fifo)
    job = [need_program("touch"), fifo]
    commands = {name: launcher.submit(job) for name, launcher in launchers.items()} | {"floor": job}
    shops = {name: launcher.shop for name, launcher in launchers.items()} | {"floor": shop}
    samples: dict[str, list[float]] = {name: [] for name in commands}
    for name in commands:
        time_to_act(shops[name], commands[name], fifo)
    for number in range(bench.sizes.latency_rounds):
        names = [name for name in commands if name not in (PARALLEL, PUEUE) or number % bench.sizes.slow_peer_every == 0]
        for name in rotated(names, number):
            samples[name].append(time_to_act(shops[name], commands[name], fifo))
    return samples


def time_to_act(shop: Shop, argv: Sequence[str], fifo: str) -> float:
    """Seconds until `touch` has opened and closed the FIFO, which this process then hears of.

    A reader that opened a FIFO without blocking is told of a hang-up only once a writer has come
    and gone, and at once: nothing is polled, and the job itself needs no shell.
    """
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        signal.alarm(COMMAND_TIMEOUT_S)
        begin = time.perf_counter_ns()
        pid = shop.start(argv)
        seen = poll.poll(30_000)
        taken = time.perf_counter_ns() - begin
        shop.finish(pid, argv)
        signal.alarm(0)
    finally:
        os.close(reader)
    if not seen:
        raise BenchError(f"`{' '.join(argv)}`: its job did not start within 30 s: {shop.last_error()}")
    time.sleep(0.02)
    return taken / 1e9


def latency_row(samples: dict[str, list[float]], peers: dict[str, Launcher | None]) -> Row:
    ours = samples["tow"]
    cells, ratios = [], {}
    for name, peer in peers.items():
        cells.append(f"{name} {ms(statistics.median(samples[name])) if peer else MISSING}")
        if peer:
            ratios[name] = against(ours, samples[name])
    ratio = ratios.get(SPOOLER)
    return Row(
        figure=f"submit → the job's process (floor, spawned directly: {ms(statistics.median(samples['floor']))})",
        tow=f"{ms(statistics.median(ours))} (p95 {ms(percentile(ours, 0.95))})",
        peers=", ".join(cells),
        ratio=ratio_cell(ratios),
        bar=f"≤ 1.0× {SPOOLER} (aim 0.5×)",
        held=None if ratio is None else ratio <= 1.0,
        raw={"samples_s": samples, "ratios": ratios},
    )


def against(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Paired where both took part in every round, else of the medians."""
    if len(ours) == len(theirs):
        return paired_ratio(ours, theirs)
    return statistics.median(ours) / statistics.median(theirs)


def ratio_cell(ratios: dict[str, float]) -> str:
    return ", ".join(f"{times(ratio)} {name}" for name, ratio in ratios.items()) or NOTHING


# 3. A thousand short jobs -----------------------------------------------------------------------


def throughput(bench: Bench) -> list[Row]:
    """Many times `true`, two at a time, with history, logs and exit codes kept."""
    with ExitStack() as stack:
        tow = stack.enter_context(bench.started_tow())
        peers = bench.peers()
        for peer in peers.values():
            if peer:
                stack.enter_context(started(peer))
        samples = throughput_samples(bench, tow, peers)
    return throughput_rows(bench, samples, peers)


def throughput_samples(bench: Bench, tow: Tow, peers: dict[str, Launcher | None]) -> dict[str, list[float]]:
    jobs = bench.sizes.jobs
    numbers = bench.folder() / "numbers"
    numbers.write_text("".join(f"{number}\n" for number in range(1, jobs + 1)))
    xargs = [need_program("xargs"), f"-P{AT_ONCE}", "-n1", "true"]
    ways: dict[str, Callable[[], float]] = {
        "xargs": lambda: tow.shop.run(xargs, stdin=str(numbers)),
        "sweep": lambda: time_sweep(tow, jobs),
        "singles": lambda: time_singles(tow, jobs),
    }
    spooler, parallel, pueue = peers[SPOOLER], peers[PARALLEL], peers[PUEUE]
    if spooler:
        ways[SPOOLER] = lambda: time_singles(spooler, jobs)
    if isinstance(parallel, Parallel):
        ways[PARALLEL] = lambda: parallel.shop.run(parallel.batch(), stdin=str(numbers))
    samples = {name: [] for name in ways}
    ways["xargs"]()
    for number in range(bench.sizes.job_rounds):
        for name in rotated(ways, number):
            settle(peers)
            samples[name].append(ways[name]())
            say(f"  {name}: {samples[name][-1]:.2f} s")
        check_all_succeeded(tow, 1 + (number + 1) * 2 * jobs)
    if pueue:
        part = time_singles(pueue, bench.sizes.pueue_jobs)
        samples[PUEUE] = [part * jobs / bench.sizes.pueue_jobs]
    return samples


def settle(peers: dict[str, Launcher | None]) -> None:
    """Leaves nothing of the turn before, lest who writes through pay for the files of others."""
    for peer in peers.values():
        if peer:
            peer.reset()
    os.sync()


def time_sweep(tow: Tow, jobs: int) -> float:
    begin = time.perf_counter_ns()
    tow.run("submit", "--sweep", f"i=1-{jobs}", "true")
    tow.run("wait", "@")
    return (time.perf_counter_ns() - begin) / 1e9


def time_singles(launcher: Launcher, jobs: int) -> float:
    argv = launcher.submit(["true"])
    begin = time.perf_counter_ns()
    for _ in range(jobs):
        launcher.shop.run(argv)
    launcher.drain()
    return (time.perf_counter_ns() - begin) / 1e9


def check_all_succeeded(tow: Tow, expected: int) -> None:
    """That everything asked for is in the history with its exit code, and has its log."""
    runs = tow.json("ps", "--all")["runs"]
    good = sum(1 for run in runs if run["state"] == "succeeded" and run["exit_code"] == 0)
    logs = sum(1 for _ in tow.state_folder().glob("runs/*/attempt-1.rank-0.log"))
    if good != expected or logs != expected:
        raise BenchError(f"of {expected} runs {good} are in the history as succeeded and {logs} have a log")


def throughput_rows(bench: Bench, samples: dict[str, list[float]], peers: dict[str, Launcher | None]) -> list[Row]:
    cells = [f"xargs {sec(statistics.median(samples['xargs']))}"]
    for name, peer in peers.items():
        note = f" (scaled from {bench.sizes.pueue_jobs} jobs)" if name == PUEUE else ""
        cells.append(f"{name} {sec(statistics.median(samples[name])) + note if peer else MISSING}")
    rows = []
    for way, what, limit, aim in (("sweep", "as one sweep", 2.1, 1.6), ("singles", "one call each", 4.0, 2.2)):
        ours = samples[way]
        ratios = {name: against(ours, samples[name]) for name in samples if name not in ("sweep", "singles")}
        rows.append(
            Row(
                figure=f"{count(bench.sizes.jobs)} × `true`, two at a time, {what}",
                tow=sec(statistics.median(ours)),
                peers=", ".join(cells),
                ratio=ratio_cell(ratios),
                bar=f"≤ {limit}× xargs (aim {aim}×)",
                held=ratios["xargs"] <= limit,
                raw={"samples_s": samples, "ratios": ratios},
            )
        )
    return rows


# 4. The newest of many runs ----------------------------------------------------------------------


def history(bench: Bench) -> list[Row]:
    """`tow ps` with ever more runs in the history."""
    with bench.started_tow() as tow:
        seed_history(tow)
    source = tow.state_folder()
    states = {}
    for runs in bench.sizes.history:
        states[runs] = Tow(bench.tow, bench.folder())
        fill_history(source, states[runs], runs)
    samples = interleave({runs: partial(tow.run, "ps") for runs, tow in states.items()}, bench.sizes.history_spawns)
    return [history_row(runs, samples) for runs in samples]


def seed_history(tow: Tow) -> None:
    """A hundred real runs of several kinds, of which more are made."""
    tow.run("submit", "--sweep", "seed=1-80", "--experiment", "bench", "--tag", "many", "true")
    tow.run("wait", "@")
    for _ in range(15):
        tow.run("submit", "true", "--lr", "0.1")
    for _ in range(4):
        tow.run("submit", "false")
    wait_until(lambda: not tow.active(), "the runs of the seed have ended")


def fill_history(source: Path, target: Tow, runs: int) -> None:
    """Copies a history and multiplies its runs."""
    folder = target.shop.root / "state/towline" / source.name
    folder.mkdir(mode=0o700, parents=True)
    shutil.copy(source / "history.db", folder / "history.db")
    database = sqlite3.connect(folder / "history.db", isolation_level=None)
    try:
        database.execute("PRAGMA synchronous=OFF")
        database.execute("BEGIN")
        multiply(database, runs)
        database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        database.close()
    listed = len(target.json("ps", "--all")["runs"])
    if listed != runs:
        raise BenchError(f"the history should hold {runs} runs and `tow ps --all` lists {listed}")


Record = dict[str, Any]


def rows_of(database: sqlite3.Connection, table: str) -> list[Record]:
    cursor = database.execute(f"SELECT * FROM {table} ORDER BY 1")
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values)) for values in cursor]


def insert(database: sqlite3.Connection, table: str, rows: Iterable[Record]) -> None:
    for row in rows:
        columns, places = ", ".join(row), ", ".join("?" * len(row))
        database.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", list(row.values()))


def multiply(database: sqlite3.Connection, total: int) -> None:
    """Writes the seed's runs again and again under new ids, a minute apart, the newest last."""
    seed = {table: rows_of(database, table) for table in ("submissions", "runs", "attempts", "events")}
    for table in reversed(seed):
        database.execute(f"DELETE FROM {table}")
    rounds = -(-total // len(seed["runs"]))
    for number in range(rounds):
        kept = {run["sequence"] for run in seed["runs"][: total - number * len(seed["runs"])]}
        age_ms = (rounds - 1 - number) * 60_000
        for table, rows in seed.items():
            chosen = (row for row in rows if table == "submissions" or row["run" if "run" in row else "sequence"] in kept)
            insert(database, table, (moved(table, row, number, len(seed["runs"]), len(seed["events"]), age_ms) for row in chosen))


def moved(table: str, row: Record, number: int, runs: int, events: int, age_ms: int) -> Record:
    """One row of the seed as the row of another round."""
    row = dict(row)
    for column in ("created", "started", "ended", "at"):
        if row.get(column) is not None:
            row[column] -= age_ms
    if table == "events":
        row["sequence"] += number * events
    if table in ("attempts", "events"):
        row["run"] += number * runs
    if table == "runs":
        row["sequence"] += number * runs
        row["submission"] = renamed(row["submission"], number)
    if table == "submissions":
        row["plan"] = row["plan"].replace(row["id"], renamed(row["id"], number))
    if "id" in row:
        row["id"] = renamed(row["id"], number)
        row["reversed"] = row["id"][::-1]
    return row


def renamed(name: str, number: int) -> str:
    """An id is NAME-SECONDS-HEX, with -NUMBER after it within a sweep: only HEX changes."""
    word, seconds, digits, *place = name.split("-")
    mixed = (int(digits, 16) + number * 0x9E3779B1) % 2**32
    return "-".join([word, seconds, f"{mixed:08x}", *place])


def history_row(runs: int, samples: dict[int, list[float]]) -> Row:
    smallest = min(samples)
    ours, median = samples[runs], statistics.median(samples[runs])
    ratio = paired_ratio(ours, samples[smallest])
    first = runs == smallest
    return Row(
        figure=f"`tow ps`, newest 50 of {count(runs)} runs",
        tow=ms(median),
        peers=NOTHING if first else f"of {count(smallest)} runs {ms(statistics.median(samples[smallest]))}",
        ratio=NOTHING if first else times(ratio),
        bar="≤ 10 ms" if first else f"≤ 10 ms and ≤ 1.5× of {count(smallest)}",
        held=median <= 0.010 and ratio <= 1.5,
        raw={"runs": runs, "tow_s": ours, "ratio": ratio},
    )


# 5. How soon a line shows ------------------------------------------------------------------------

LOG_JOB = """
import sys, time
time.sleep(1)
for _ in range(int(sys.argv[1])):
    print(time.monotonic_ns(), flush=True)
    time.sleep(0.02)
"""


def logs(bench: Bench) -> list[Row]:
    """A line of a running job in `tow logs -f`, and in `tail -F` of the same file."""
    lines = bench.sizes.log_lines
    with bench.started_tow() as tow:
        script = bench.folder() / "job.py"
        script.write_text(LOG_JOB)
        tow.run("submit", sys.executable, str(script), str(lines))
        wait_until(lambda: len(tow.json("show", "@")["logs"]) == 1, "the run has a log")
        shown = tow.json("show", "@")
        wait_until(lambda: Path(shown["logs"][0]).exists(), "the log is there")
        readers = {"tow": tow.argv("logs", "-f", shown["id"]), "tail": [need_program("tail"), "-n", "+1", "-F", shown["logs"][0]]}
        delays = read_stamps(tow.shop, readers, lines)
        tow.run("wait", shown["id"])
    return [logs_row(delays)]


def read_stamps(shop: Shop, readers: dict[str, list[str]], lines: int) -> dict[str, list[float]]:
    """Reads all readers until each has shown all lines; seconds from stamp to arrival."""
    delays: dict[str, list[float]] = {name: [] for name in readers}
    rest = {name: b"" for name in readers}
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for name, argv in readers.items():
            process = stack.enter_context(reading(shop, argv))
            assert process.stdout is not None
            selector.register(process.stdout.fileno(), selectors.EVENT_READ, name)
        end = time.monotonic() + 30 + lines * 0.1
        while any(len(seen) < lines for seen in delays.values()):
            if time.monotonic() > end:
                raise BenchError("lines did not all show: " + ", ".join(f"{name} {len(seen)} of {lines}" for name, seen in delays.items()))
            for key, _ in selector.select(timeout=1):
                chunk = os.read(key.fd, 65536)
                now = time.monotonic_ns()
                if not chunk:
                    selector.unregister(key.fd)
                *whole, rest[key.data] = (rest[key.data] + chunk).split(b"\n")
                delays[key.data] += [(now - int(line)) / 1e9 for line in whole]
    return delays


@contextmanager
def reading(shop: Shop, argv: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(argv, env=shop.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def logs_row(delays: dict[str, list[float]]) -> Row:
    ours, theirs = delays["tow"], delays["tail"]
    median, ratio = statistics.median(ours), paired_ratio(ours, theirs)
    return Row(
        figure="a job's line in `tow logs -f`",
        tow=f"{ms(median)} (p95 {ms(percentile(ours, 0.95))})",
        peers=f"`tail -F` {ms(statistics.median(theirs))} (p95 {ms(percentile(theirs, 0.95))})",
        ratio=times(ratio),
        bar="≤ 10 ms",
        held=median <= 0.010,
        raw={"tow_s": ours, "tail_s": theirs, "ratio": ratio},
    )


# 6. A long queue ---------------------------------------------------------------------------------


def memory(bench: Bench) -> list[Row]:
    """The daemon's memory and its answers while very much is queued."""
    sizes = bench.sizes
    return [
        *queue_rows(bench, "one sweep", sizes.sweep_queued, lambda tow: tow.run("submit", "--sweep", f"i=1-{sizes.sweep_queued}", "sleep", "1000")),
        *queue_rows(bench, "single submissions", sizes.single_queued, lambda tow: submit_singles(tow, sizes.single_queued)),
    ]


def submit_singles(tow: Tow, jobs: int) -> float:
    return sum(tow.run("submit", "sleep", "1000") for _ in range(jobs))


def queue_rows(bench: Bench, what: str, jobs: int, fill: Callable[[Tow], float]) -> list[Row]:
    with bench.started_tow() as tow, bench.started_tow() as short:
        submit_singles(short, AT_ONCE + 1)
        time.sleep(0.5)
        idle = resident(tow)
        taken = fill(tow)
        newest = tow.json("ps", "--limit", "1")["runs"][0]
        time.sleep(1.0)
        full = resident(tow)
        samples = interleave(answer_ways(tow, short), bench.sizes.queued_samples)
        expected = jobs + WARM_UPS + bench.sizes.queued_samples
        queued = len(tow.active())
        if queued != expected:
            raise BenchError(f"{expected} runs should be queued or running, and {queued} are")
        aborted = tow.run("abort", "--wait", newest["sweep"]) if newest["sweep"] else 0.0
        aborted += tow.abort_all()
    return [memory_row(what, jobs, idle, full, taken), answers_row(what, jobs, samples, aborted)]


def answer_ways(tow: Tow, short: Tow) -> dict[str, Callable[[], float]]:
    """What is asked of the long queue, and of one where hardly anything waits."""
    ways: dict[str, Callable[[], float]] = {}
    for command in ("ps", "submit true"):
        ways[command] = partial(tow.run, *command.split())
        ways[f"short {command}"] = partial(short.run, *command.split())
    return ways


def resident(tow: Tow) -> int:
    """The daemon's resident memory in bytes."""
    for line in Path(f"/proc/{tow.daemon_pid()}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise BenchError("no VmRSS of the daemon")


def memory_row(what: str, jobs: int, idle: int, full: int, taken: float) -> Row:
    target = 10_000
    scaled = idle + (full - idle) * target / jobs
    note = "" if jobs == target else f" ({mb(full)} with {count(jobs)}; the growth scaled)"
    return Row(
        figure=f"daemon's memory, {count(target)} jobs queued as {what}",
        tow=f"{mb(scaled)}{note}",
        peers=f"idle {mb(idle)}; {count(jobs)} submitted in {sec(taken)}",
        bar="< 100 MB",
        held=scaled < 100e6,
        raw={"idle_bytes": idle, "full_bytes": full, "jobs": jobs, "scaled_bytes": scaled, "submitted_s": taken},
    )


def answers_row(what: str, jobs: int, samples: dict[str, list[float]], aborted: float) -> Row:
    median = {name: ms(statistics.median(values)) for name, values in samples.items()}
    ratios = {f"`tow {name}`": paired_ratio(samples[name], samples[f"short {name}"]) for name in ("ps", "submit true")}
    return Row(
        figure=f"answers while {count(jobs)} are queued as {what}",
        tow=f"`tow ps` {median['ps']}, `tow submit true` {median['submit true']}, aborting all {sec(aborted)}",
        peers=f"with hardly any queued {median['short ps']}, {median['short submit true']}",
        ratio=ratio_cell(ratios),
        raw={"samples_s": samples, "ratios": ratios, "aborted_s": aborted},
    )


# 7. What the machine was like ----------------------------------------------------------------------


def fdatasync_seconds(folder: Path) -> list[float]:
    """How long 4 KiB take to be on the disk of the temporary folder."""
    path = folder / "fdatasync"
    samples = []
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for _ in range(100):
            os.write(handle, b"x" * 4096)
            begin = time.perf_counter_ns()
            os.fdatasync(handle)
            samples.append((time.perf_counter_ns() - begin) / 1e9)
    finally:
        os.close(handle)
        path.unlink()
    return samples


def creation_seconds(folder: Path) -> list[float]:
    """How long a new folder with an empty file in it takes, which every run of `tow` needs.

    ext4 without a journal passes over inodes that were freed in the last minutes, one by one, so
    that making files is slow for a while after many were removed, by whomever.
    """
    samples = []
    base = Path(tempfile.mkdtemp(dir=folder))
    for number in range(200):
        begin = time.perf_counter_ns()
        os.mkdir(base / str(number))
        os.close(os.open(base / str(number) / "log", os.O_WRONLY | os.O_CREAT, 0o600))
        samples.append((time.perf_counter_ns() - begin) / 1e9)
    return samples


def filesystem_of(folder: Path) -> str:
    """The kind of file system a folder lies on."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, this = line.split()[:3]
        inside = mount == "/" or str(folder) == mount or str(folder).startswith(mount + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, this
    return kind


def machine(bench: Bench, before: dict[str, Any]) -> dict[str, Any]:
    syncs = fdatasync_seconds(bench.root)
    return {
        "cpus": os.cpu_count(),
        "filesystem": filesystem_of(bench.root),
        "fdatasync_median_s": statistics.median(syncs),
        "fdatasync_p95_s": percentile(syncs, 0.95),
        "before": before,
        "after": weather(bench.root),
    }


def weather(folder: Path) -> dict[str, Any]:
    """What changes from one minute to the next."""
    return {"load": os.getloadavg(), "creation_median_s": statistics.median(creation_seconds(folder))}


def machine_line(facts: dict[str, Any], quick: bool) -> str:
    before, after = facts["before"], facts["after"]
    loads = [" ".join(f"{load:.2f}" for load in moment["load"]) for moment in (before, after)]
    line = (
        f"{facts['cpus']} CPUs; fdatasync of 4 KiB on the temporary folder's disk ({facts['filesystem']}): "
        f"median {ms(facts['fdatasync_median_s'])}, p95 {ms(facts['fdatasync_p95_s'])}; "
        f"a new folder with a file: {ms(before['creation_median_s'])} before, {ms(after['creation_median_s'])} after; "
        f"load average: {loads[0]} before, {loads[1]} after."
    )
    if facts["filesystem"] in ("tmpfs", "ramfs"):
        line += " **The folder is in memory: durability cost nothing here; set TMPDIR to a disk.**"
    if quick:
        line += " A quick run: fewer rounds and smaller sizes, rough figures."
    return line


# The whole ---------------------------------------------------------------------------------------

FIGURES: dict[str, Callable[[Bench], list[Row]]] = {
    "startup": startup,
    "latency": latency,
    "throughput": throughput,
    "history": history,
    "logs": logs,
    "memory": memory,
}


def table(rows: Iterable[Row]) -> str:
    lines = ["| figure | tow | peer(s) | ratio | bar | held? |", "| --- | --- | --- | --- | --- | --- |"]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join(lines)


def measure(bench: Bench, names: Sequence[str]) -> list[Row]:
    """All figures asked for; one that breaks is a row that says so, and the others go on."""
    rows: list[Row] = []
    for name in names:
        say(f"{name} …")
        try:
            rows += FIGURES[name](bench)
        except (BenchError, subprocess.SubprocessError) as error:
            say(f"  {error}")
            rows.append(Row(figure=name, tow=f"broke: {error}".replace("|", "\\|").replace("\n", " "), held=False))
    return rows


@contextmanager
def workplace() -> Iterator[Path]:
    """A temporary folder on a disk, and this process in it."""
    root = Path(tempfile.mkdtemp(prefix="towb", dir=os.environ.get("TMPDIR") or "/var/tmp"))
    back = Path.cwd()
    try:
        (root / "w").mkdir()
        os.chdir(root / "w")
        yield root
    finally:
        os.chdir(back)
        shutil.rmtree(root, ignore_errors=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures tow on this machine beside its peers.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller sizes")
    parser.add_argument("--tow", type=Path, default=DEFAULT_TOW, metavar="PATH", help="the binary to measure [default: the release build]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also store every sample here")
    parser.add_argument("--only", action="append", choices=list(FIGURES), metavar="NAME", help=f"one figure, may be repeated: {', '.join(FIGURES)}")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    tow, store = options.tow.resolve(), options.json.resolve() if options.json else None
    if not os.access(tow, os.X_OK):
        say(f"no binary at {tow}; build one with `cargo build --release`, or say --tow PATH")
        return 2
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGTERM, on_terminate)
    with workplace() as root:
        before = weather(root)
        # A copy, so that a build in the meantime does not change what is measured.
        binary = Path(shutil.copy2(tow, root / "tow"))
        bench = Bench(str(binary), QUICK if options.quick else FULL, root)
        rows = measure(bench, options.only or list(FIGURES))
        facts = machine(bench, before)
    print(table(rows) + "\n\n" + machine_line(facts, options.quick))
    if store:
        store.write_text(json.dumps({"quick": options.quick, "machine": facts, "rows": [dataclasses.asdict(row) for row in rows]}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
