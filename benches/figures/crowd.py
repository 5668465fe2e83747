"""Thousands of other jobs in the scheduler's queue, and whether anybody notices."""

from __future__ import annotations

import itertools
import json
import random
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from .data_rows import span
from .far import FarCluster
from .progress import say
from .rounds import interleave
from .spawn import BenchError, Shop, wait_until
from .table import Row, count, ms, ratio_cell

EMPTY, OTHERS, OWN = "an empty queue", "of somebody else", "of the same user"
LIMIT = 1.2
# How long the processes are watched for the CPU that they use.
WATCHED_S = 60

FILL = """printf '#!/bin/sh\\n' > /tmp/job
i=0
while [ $i -lt $1 ]; do sbatch -Q --hold -o /dev/null -J other-$i /tmp/job || exit 1; i=$((i + 1)); done
"""


class Crowd:
    """A cluster, a user of `tow`, and held jobs of one of its users, each submitted by itself."""

    def __init__(self, tow: str, root: Path, jobs: int, user: str) -> None:
        root.mkdir()
        self.tow, self.numbers = tow, itertools.count()
        self.project = root / "project"
        self.project.mkdir()
        self.shop = Shop(root)
        self.cluster = FarCluster(root / "cluster")
        config = root / "config/towline"
        config.mkdir(parents=True, exist_ok=True)
        lab = f"{{kind: slurm, host: login, ssh_config: '{self.cluster.config}'}}"
        (config / "config.yaml").write_text(f"default_cluster: lab\nclusters:\n  lab: {lab}\n")
        self.job = self.project / "held.yaml"
        self.job.write_text("resources: {native: [--hold]}\ncommand: 'true'\n")
        (self.project / "end.sh").write_text('sleep "$2"; date +%s%N > "$HOME/end-$1"\n')
        if jobs:
            self.on("login", "-u", user, "--", "sh", "-c", FILL, "sh", str(jobs))
            waiting = self.on("login", "--", "squeue", "-h", "-t", "PD", "-u", user).count("\n")
            if waiting != jobs:
                raise BenchError(f"{jobs} jobs should wait, and {waiting} do")

    def on(self, host: str, *words: str) -> str:
        return self.cluster.run("exec", str(self.cluster.folder), host, *words)

    def ask(self, *words: str) -> str:
        done = subprocess.run([self.tow, *words], env=self.shop.env, cwd=self.project, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise BenchError(f"tow {' '.join(words)}: {done.stderr[-300:]}")
        return done.stdout.strip()

    def time(self, *words: str) -> float:
        begin = time.perf_counter()
        self.ask(*words)
        return time.perf_counter() - begin

    def news(self) -> float:
        """From the last act of a run until `tow wait` has told its end."""
        name = str(next(self.numbers))
        # The end falls anywhere between two looks.
        run = self.ask("submit", "sh", "end.sh", name, f"{random.uniform(1, 2):.3f}")
        self.ask("wait", run)
        return time.time() - int((self.cluster.home / f"end-{name}").read_text()) / 1e9

    def cpu(self) -> dict[str, float]:
        """Seconds of CPU so far, with those of children that ended: the daemon, the site, and the controller."""
        daemon = json.loads(self.ask("daemon", "status", "--json"))["status"]["pid"]
        told = "cat /proc/$(pgrep -o -u alice -f '^[.]towline/bin/tow-.* __sit[e]')/stat"
        return {
            "daemon": used(Path(f"/proc/{daemon}/stat").read_text()),
            "site": used(self.on("login", "--", "sh", "-c", told)),
            "slurmctld": used(self.on("ctl", "--", "sh", "-c", "cat /proc/$(pgrep -o -x slurmctld)/stat")),
        }

    def stop(self) -> None:
        subprocess.run([self.tow, "daemon", "stop"], env=self.shop.env, capture_output=True)
        self.cluster.stop()


def used(stat: str) -> float:
    """Of `/proc/PID/stat`: its own time and that of its children, in seconds."""
    return sum(int(field) for field in stat.rsplit(")", 1)[1].split()[11:15]) / 100


def measure(tow: str, root: Path, jobs: int, rounds: int) -> list[Row]:
    """Three clusters that take turns: one with nothing else in its queue, and two with very much."""
    crowds: dict[str, Crowd] = {}
    try:
        for name, folder, many, user in ((EMPTY, "empty", 0, "bob"), (OTHERS, "others", jobs, "bob"), (OWN, "own", jobs, "alice")):
            say(f"  a cluster with {many} waiting jobs")
            crowds[name] = Crowd(tow, root / folder, many, user)
        return rows(crowds, jobs, rounds)
    finally:
        for crowd in crowds.values():
            crowd.stop()


def rows(crowds: dict[str, Crowd], jobs: int, rounds: int) -> list[Row]:
    runs = {}
    for name, crowd in crowds.items():
        crowd.ask("clusters")
        runs[name] = crowd.ask("submit", "-f", str(crowd.job))
        wait_until(lambda crowd=crowd, run=runs[name]: "JobHeld" in crowd.ask("why", run), "the job is held")
    figures: list[tuple[str, int, Callable[[str, Crowd], float]]] = [
        ("`tow ps`", 10 * rounds, lambda _, crowd: crowd.time("ps")),
        ("`tow submit`, tree unchanged", 3 * rounds, lambda _, crowd: crowd.time("submit", "-f", str(crowd.job))),
        ("end of a run → `tow wait` tells it", 3 * rounds, lambda _, crowd: crowd.news()),
        ("`tow why` of a waiting run", 2 * rounds, lambda name, crowd: crowd.time("why", runs[name])),
        ("`tow nodes`", 2 * rounds, lambda _, crowd: crowd.time("nodes")),
        ("`tow abort --wait` of a waiting run", rounds, lambda _, crowd: abort(crowd)),
    ]
    made = []
    for title, many, act in figures:
        say(f"  {title}")
        samples = interleave({name: (lambda name=name, crowd=crowd: act(name, crowd)) for name, crowd in crowds.items()}, many)
        made.append(row(f"{title}; {count(jobs)} other jobs wait", samples, span))
    return [*made, *cpu_rows(crowds, runs, jobs)]


def abort(crowd: Crowd) -> float:
    run = crowd.ask("submit", "-f", str(crowd.job))
    # Long enough after its submission that nothing else is due.
    time.sleep(1.5)
    return crowd.time("abort", "--wait", run)


def cpu_rows(crowds: dict[str, Crowd], runs: dict[str, str], jobs: int) -> list[Row]:
    """What is used while one run is followed and nothing happens."""
    say(f"  CPU in {WATCHED_S} s")
    watchers = [subprocess.Popen([crowd.tow, "wait", runs[name]], env=crowd.shop.env, stdout=subprocess.DEVNULL) for name, crowd in crowds.items()]
    try:
        # Until the scheduler is asked no more often than it will be.
        time.sleep(WATCHED_S)
        before = {name: crowd.cpu() for name, crowd in crowds.items()}
        time.sleep(WATCHED_S)
        after = {name: crowd.cpu() for name, crowd in crowds.items()}
    finally:
        for watcher in watchers:
            watcher.terminate()
            watcher.wait()
    made = []
    for process in before[EMPTY]:
        samples = {name: [after[name][process] - before[name][process]] for name in crowds}
        made.append(row(f"CPU of the {process} in {WATCHED_S} s, one run followed; {count(jobs)} other jobs wait", samples, ms, limit=None))
    return made


def row(figure: str, samples: dict[str, list[float]], cell: Callable[[float], str], limit: float | None = LIMIT) -> Row:
    middle = {name: statistics.median(values) for name, values in samples.items()}
    # Of the medians: where news falls between two looks differs more from round to round than rounds do.
    ratios = {name: middle[name] / middle[EMPTY] if middle[EMPTY] else 1.0 for name in (OTHERS, OWN)}
    return Row(
        figure=figure,
        tow=", ".join(f"{name} {cell(middle[name])}" for name in (OTHERS, OWN)),
        peers=f"{EMPTY} {cell(middle[EMPTY])}",
        ratio=ratio_cell(ratios),
        bar=f"≤ {limit}×" if limit is not None else "—",
        held=all(ratio <= limit for ratio in ratios.values()) if limit is not None else None,
        raw={"values": samples, "ratios": ratios},
    )
