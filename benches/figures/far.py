"""A real Slurm cluster on this machine, and code on its way there."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from pathlib import Path

from .cost import Cost, Programs
from .data_bench import Way, take_turns
from .data_rows import time_row
from .movers import TOW
from .progress import say
from .spawn import BenchError, Shop, find_program, need_program
from .table import Row, count, mb
from .tree import IGNORED, make_tree

SCRIPT = Path(__file__).resolve().parent.parent.parent / "crates/testkit/src/real/slurm-up.sh"
RSYNC, TAR = "rsync", "tar, ssh, tar"


class FarCluster:
    """Six hosts behind a bastion, as the tests have them; /home is a folder here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run("start", str(folder), "--no-rest")
        self.config = folder / "ssh/config"
        self.home = folder / "home/alice"

    def run(self, *words: str) -> str:
        done = subprocess.run([str(SCRIPT), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise BenchError(f"{SCRIPT.name} {words[0]}: {done.stderr[-300:]}")
        return done.stdout

    def stop(self) -> None:
        subprocess.run([str(SCRIPT), "stop", str(self.folder), "--wipe"], stdin=subprocess.DEVNULL, capture_output=True)


class FarBench:
    def __init__(self, tow: str, files: int, rounds: int, root: Path) -> None:
        self.tow, self.files, self.rounds, self.root = tow, files, rounds, root
        self.numbers = itertools.count()
        self.programs = Programs(self.new_folder())
        self.shop = Shop(self.new_folder())
        self.cluster = FarCluster(root / "cluster")
        config = self.shop.root / "config/towline"
        config.mkdir(parents=True, exist_ok=True)
        lab = f"{{kind: slurm, host: login, ssh_config: '{self.cluster.config}'}}"
        (config / "config.yaml").write_text(f"default_cluster: lab\nclusters:\n  lab: {lab}\n")

    def new_folder(self) -> Path:
        path = self.root / str(next(self.numbers))
        path.mkdir()
        return path

    def cost(self, argv: list[str], cwd: Path) -> Cost:
        return self.programs.cost(argv, self.shop.env, cwd)

    def stop(self) -> None:
        subprocess.run([self.tow, "daemon", "stop"], env=self.shop.env, capture_output=True)
        self.cluster.stop()


def measure(bench: FarBench) -> list[Row]:
    """The same tree by each way, each over a connection that is open already. `tow` also submits the job that gets it."""
    project = bench.new_folder()
    size = make_tree(project, bench.files)
    say(f"  a tree of {bench.files} files")
    socket = bench.root / "s"
    ssh = [need_program("ssh"), "-F", str(bench.cluster.config), "-o", f"ControlPath={socket}", "-o", "ControlMaster=auto", "-o", "ControlPersist=600"]
    subprocess.run([*ssh, "login", "true"], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    subprocess.run([bench.tow, "clusters"], check=True, env=bench.shop.env, stdin=subprocess.DEVNULL, capture_output=True)
    # Held: what is measured is how the code gets there, not jobs of before that run meanwhile.
    job = bench.root / "job.yaml"
    job.write_text("resources: {native: [--hold]}\ncommand: 'true'\n")
    submit = [bench.tow, "submit", "--any-size", "-f", str(job)]
    rsync = find_program("rsync")
    excludes = [f"--exclude={name}" for name in IGNORED]

    def by_tow(fresh: bool) -> Cost:
        if fresh:
            shutil.rmtree(bench.cluster.home / ".towline/snapshots", ignore_errors=True)
            state = next((bench.shop.root / "state/towline").iterdir())
            for name in ("snapshots", "trees", "indexes"):
                shutil.rmtree(state / name, ignore_errors=True)
            os.sync()
        return bench.cost(submit, project)

    def by_rsync(fresh: bool) -> Cost:
        if fresh:
            shutil.rmtree(bench.cluster.home / "rsync", ignore_errors=True)
            os.sync()
        return bench.cost([str(rsync), "-a", *excludes, "-e", " ".join(ssh), "./", "login:rsync/"], project)

    def by_tar() -> Cost:
        shutil.rmtree(bench.cluster.home / "tar", ignore_errors=True)
        os.sync()
        line = f"tar c {' '.join(excludes)} . | {' '.join(ssh)} login 'mkdir tar && tar x -C tar'"
        return bench.cost([need_program("sh"), "-c", line], project)

    first = {TOW: Way(lambda: by_tow(True)), TAR: Way(by_tar)}
    again = {TOW: Way(lambda: by_tow(False))}
    if rsync:
        first[RSYNC] = Way(lambda: by_rsync(True))
        again[RSYNC] = Way(lambda: by_rsync(False))
    missing = [] if rsync else [RSYNC]
    title = f"{count(bench.files)} files ({mb(size)}) to a cluster over ssh"
    rows = [time_row(f"{title} for the first time", take_turns(first, bench.rounds), missing, RSYNC, 0.7)]
    rows.append(time_row(f"{title}, none changed", take_turns(again, 3 * bench.rounds), missing, RSYNC, 0.8))
    return rows
