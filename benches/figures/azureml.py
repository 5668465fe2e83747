"""A day with Azure ML: starting, submitting, listing, showing, reading logs; beside Microsoft's own clients."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path

from .emulator import Emulator, Peers, parts
from .progress import say
from .ratio import paired_ratio
from .rounds import rotated
from .spawn import BenchError, Shop
from .table import Row, ms, sec

TOW, SDK, AZ = "tow", "azure-ai-ml", "az"
# At least so many times quicker.
WANTED = 20
FILES, LINES, JOBS = 200, 20_000, 50

Ways = dict[str, Callable[[], float]]


class AzureBench:
    def __init__(self, tow: str, emulator: Path, rounds: int, root: Path) -> None:
        self.tow, self.rounds = tow, rounds
        self.shop, self.others = Shop(root / "ours"), Shop(root / "theirs")
        self.emulator = Emulator(emulator, os.environ | {"TOW_TEST_PARTS": str(parts())})
        for shop in (self.shop, self.others):
            shop.env |= self.emulator.environment()
            # The emulator's own authority is the only one that anybody is to look for.
            shop.env.pop("SSL_CERT_DIR", None)
        known = self.emulator.known
        place = f"subscription: {known['subscription']}, resource_group: {known['group']}, workspace: {known['workspace']}, compute: cpu"
        config = self.shop.root / "config/towline"
        config.mkdir(parents=True)
        cluster = f"{{kind: azureml, endpoint: '{known['endpoint']}', credential: managed_identity, {place}}}"
        (config / "config.yaml").write_text(f"default_cluster: aml\nclusters:\n  aml: {cluster}\n")
        self.code = root / "code"
        (self.code / "inner").mkdir(parents=True)
        (self.code / "main.sh").write_text(f"i=0; while [ $i -lt {LINES} ]; do echo line $i of the log of a job; i=$((i+1)); done\n")
        for number in range(FILES):
            (self.code / f"inner/{number}.py").write_text(f"# file {number}\n" * 100)
        os.chdir(self.code)
        self.peers = Peers(parts(), self.emulator, self.others)
        self.numbers = itertools.count()
        self.body = root / "job.json"
        environment = "azureml://registries/azureml/environments/e/versions/1"
        self.body.write_text(json.dumps({"properties": {"jobType": "Command", "command": "true", "environmentId": environment}}))

    def name(self) -> str:
        return f"peer-{next(self.numbers)}"

    def ours(self, *words: str) -> Callable[[], float]:
        return lambda: self.shop.run([self.tow, *words])

    def theirs(self, words: list[str]) -> Callable[[], float]:
        return lambda: self.others.run(words)

    def changed(self) -> None:
        (self.code / "inner/0.py").write_text(f"# {next(self.numbers)}\n")

    def stop(self) -> None:
        self.shop.run([self.tow, "daemon", "stop"])
        self.emulator.stop()


def measure(bench: AzureBench) -> list[Row]:
    rows = startup(bench)
    # A log that all of them can read, and a page of jobs beside it.
    run = bench.shop.ask([bench.tow, "submit", "sh", "main.sh"]).strip()
    bench.shop.run([bench.tow, "wait", run])
    bench.emulator.say("asleep")
    bench.shop.run([bench.tow, "submit", "--sweep", f"i=1-{JOBS - 1}", "true"])
    rows += reading(bench, run)
    rows += submitting(bench)
    return rows


def startup(bench: AzureBench) -> list[Row]:
    python = bench.peers.client
    ways = {
        TOW: bench.ours("--version"),
        SDK: bench.theirs([python, "-c", "from azure.ai.ml import MLClient"]),
        AZ: bench.theirs(bench.peers.az("version")),
    }
    return [row("start-up: `tow --version`, `import MLClient`, `az version`", take_turns(ways, bench.rounds), WANTED)]


def reading(bench: AzureBench, run: str) -> list[Row]:
    peers = bench.peers
    said = bench.shop.ask([bench.tow, "logs", run])
    if len(said.splitlines()) != LINES:
        raise BenchError(f"the log of {run} is not whole")
    brought = next((bench.shop.root / "state/towline").glob(f"*/runs/{run}"))
    downloads = bench.others.root / "logs"

    def first_time() -> float:
        shutil.rmtree(brought)
        return bench.shop.run([bench.tow, "logs", run])

    listed = {SDK: bench.theirs(peers.sdk("list")), AZ: bench.theirs(peers.rest("get", "/jobs"))}
    shown = {SDK: bench.theirs(peers.sdk("show", run)), AZ: bench.theirs(peers.rest("get", f"/jobs/{run}"))}
    fetched = {SDK: bench.theirs(peers.sdk("logs", run, str(downloads)))}
    figures: list[tuple[str, Ways, int | None]] = [
        (f"list {JOBS} jobs: `tow ps`, from the history", {TOW: bench.ours("ps")} | listed, WANTED),
        (f"list {JOBS} jobs: `tow ps --remote --all`, from the service", {TOW: bench.ours("ps", "--remote", "--all")} | listed, WANTED),
        ("show one: `tow show`, `jobs.get`, `az rest`", {TOW: bench.ours("show", run)} | shown, None),
        (f"logs of {LINES:,} lines for the first time: `tow logs`, `jobs.download`", {TOW: first_time} | fetched, None),
        (f"logs of {LINES:,} lines again", {TOW: bench.ours("logs", run)} | fetched, None),
    ]
    return [row(title, take_turns(ways, bench.rounds), wanted) for title, ways, wanted in figures]


def submitting(bench: AzureBench) -> list[Row]:
    peers, code = bench.peers, str(bench.code)

    def by_sdk(change: bool) -> float:
        if change:
            bench.changed()
        return bench.others.run(peers.sdk("submit", bench.name(), code))

    def by_tow(change: bool) -> float:
        if change:
            bench.changed()
        return bench.shop.run([bench.tow, "submit", "sh", "main.sh"])

    def by_az() -> float:
        return bench.others.run(peers.rest("put", f"/jobs/{bench.name()}", "--body", f"@{bench.body}"))

    unchanged: Ways = {TOW: lambda: by_tow(False), SDK: lambda: by_sdk(False), AZ: by_az}
    changed: Ways = {TOW: lambda: by_tow(True), SDK: lambda: by_sdk(True)}
    return [
        row(f"submit, {FILES + 1} files of code, none changed (`az rest`: the PUT alone)", take_turns(unchanged, bench.rounds), WANTED),
        row(f"submit, {FILES + 1} files of code, one changed", take_turns(changed, bench.rounds), WANTED),
    ]


def take_turns(ways: Ways, rounds: int) -> dict[str, list[float]]:
    """Every way once a round, another one first each time, after each was done once."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for number in range(rounds):
        for name in rotated(ways, number):
            samples[name].append(ways[name]())
    say("  " + ", ".join(f"{name} {statistics.median(found):.4f} s" for name, found in samples.items()))
    return samples


def row(figure: str, samples: dict[str, list[float]], wanted: int | None) -> Row:
    """How many times quicker `tow` is; the bar is for the quickest of the others."""
    others = [name for name in samples if name != TOW]
    quicker = {name: paired_ratio(samples[name], samples[TOW]) for name in others}
    return Row(
        figure=figure,
        tow=span(statistics.median(samples[TOW])),
        peers=", ".join(f"{name} {span(statistics.median(samples[name]))}" for name in others),
        ratio=", ".join(f"{quicker[name]:.0f}× quicker than {name}" for name in others),
        bar=f"≥ {wanted}× quicker" if wanted else "—",
        held=min(quicker.values()) >= wanted if wanted else None,
        raw={"samples": samples, "quicker": quicker},
    )


def span(seconds: float) -> str:
    return ms(seconds) if seconds < 0.2 else sec(seconds)
