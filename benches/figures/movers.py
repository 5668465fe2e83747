"""Those that move files to a blob service and back: `tow`, a raw client, rclone, azcopy and Microsoft's client.

Each gives the command for a job; nothing is run here. What a peer calls a setting is set alike where it can be:
requests at once, and bytes of a block and of a range.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .blobs import ACCOUNT, CONTAINER, KEY, Service, azcopy_program, parts_folder
from .cost import PROGRAMS
from .spawn import BenchError, Shop, find_program
from .tree import IGNORED

TOW, RAW, RCLONE, AZCOPY, SDK = "tow", "raw", "rclone", "azcopy", "Microsoft's client"
BLOCK = 4 << 20
# Azurite reads a range of up to 4 MiB twice, to hash it; the real service does not.
RANGE = 8 << 20


class TowMover:
    """`tow` with a home of its own, a datastore `blob` below a path of the container and a folder `data` in it."""

    def __init__(self, binary: str, root: Path, service: Service, below: str) -> None:
        self.binary = binary
        self.shop = Shop(root)
        self.shop.env["TOW_BENCH_KEY"] = KEY
        self.below = below
        blob = f"kind: azure_blob, account: {ACCOUNT}, container: {CONTAINER}, path: {below}, endpoint: '{service.endpoint}'"
        config = f"datastores:\n  blob: {{{blob}, credential: {{account_key: 'env:TOW_BENCH_KEY'}}}}\nfolders:\n  data: {{datastore: blob, path: data}}\n"
        (root / "config/towline").mkdir(parents=True, exist_ok=True)
        (root / "config/towline/config.yaml").write_text(config)

    def init(self, *words: str) -> list[str]:
        """Takes a snapshot of the folder it runs in; `--to blob` uploads it."""
        return [self.binary, "init", "--any-size", *words]

    def snapshot(self, project: Path) -> str:
        """Takes a snapshot, untimed; its id."""
        done = subprocess.run([*self.init(), "--json"], cwd=project, env=self.shop.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        try:
            return json.loads(done.stdout)["id"]
        except (ValueError, KeyError, TypeError) as error:
            raise BenchError(f"`tow init --json` names no snapshot: {(done.stdout + done.stderr)[-300:]}") from error

    def get(self, snapshot: str, folder: Path) -> list[str]:
        return [self.binary, "snapshot", "get", snapshot, str(folder)]

    def up(self, path: str) -> list[str]:
        return [self.binary, "up", path]

    def down(self, path: str) -> list[str]:
        return [self.binary, "down", path]


class RawMover:
    """Requests and nothing else: the floor."""

    def __init__(self, program: str, service: Service, parallel: int, folder: Path) -> None:
        self.program, self.service, self.parallel = program, service, parallel
        self.folder = folder
        self.lists = 0

    def argv(self, lines: Sequence[str]) -> list[str]:
        self.lists += 1
        path = self.folder / f"list-{self.lists}"
        path.write_text("".join(f"{line}\n" for line in lines))
        return [self.program, str(self.service.port), str(self.parallel), str(path)]

    def up(self, files: Sequence[tuple[Path, str]]) -> list[str]:
        """Files under names: in blocks where they are larger than one."""
        lines, last = [], []
        for number, (file, name) in enumerate(files):
            size = file.stat().st_size
            if size <= BLOCK:
                lines.append(f"PUT\t{self.service.target(name)}\t{file}\t0\t{size}")
                continue
            ids = [base64.b64encode(f"{first:020}".encode()).decode() for first in range(0, size, BLOCK)]
            for block, first in zip(ids, range(0, size, BLOCK)):
                target = self.service.target(name, f"comp=block&blockid={block.replace('=', '%3D')}")
                lines.append(f"PUT\t{target}\t{file}\t{first}\t{min(BLOCK, size - first)}")
            body = self.folder / f"blocks-{self.lists}-{number}"
            body.write_text("<?xml version='1.0' encoding='utf-8'?><BlockList>" + "".join(f"<Latest>{block}</Latest>" for block in ids) + "</BlockList>")
            last.append(f"PUT\t{self.service.target(name, 'comp=blocklist')}\t{body}\t0\t{body.stat().st_size}")
        return self.argv([*lines, "-", *last])

    def down(self, files: Sequence[tuple[Path, str, int]]) -> list[str]:
        """Names of a size to files."""
        lines = []
        for file, name, size in files:
            target = self.service.target(name)
            lines += [f"GET\t{target}\t{file}\t{first}\t{min(RANGE, size - first)}" for first in range(0, size, RANGE)]
        return self.argv(lines)


class Rclone:
    def __init__(self, program: str, service: Service, parallel: int) -> None:
        self.program, self.service, self.parallel = program, service, parallel

    def env(self) -> dict[str, str]:
        return {"RCLONE_CONFIG": "/dev/null", "RCLONE_AZUREBLOB_SAS_URL": f"{self.service.endpoint}?{self.service.sas()}"}

    def argv(self, verb: str, source: str, target: str) -> list[str]:
        many = str(self.parallel)
        words = [self.program, verb, source, target, "--transfers", many, "--checkers", many, "--azureblob-upload-concurrency", many]
        return [*words, "--azureblob-chunk-size", str(BLOCK), "--multi-thread-streams", many, "--multi-thread-cutoff", "16Mi"]

    def remote(self, name: str) -> str:
        return f":azureblob:{CONTAINER}/{name}"

    def sync(self, folder: Path, name: str) -> list[str]:
        """A tree of code, less what is ignored."""
        passed_over = [word for ignored in IGNORED for word in ("--exclude", f"{ignored}/**")]
        return [*self.argv("sync", str(folder), self.remote(name)), *passed_over]


class Azcopy:
    def __init__(self, program: str, service: Service, parallel: int, folder: Path) -> None:
        self.program, self.service, self.parallel, self.folder = program, service, parallel, folder

    def env(self) -> dict[str, str]:
        places = {name: str(self.folder) for name in ("AZCOPY_LOG_LOCATION", "AZCOPY_JOB_PLAN_LOCATION")}
        return {**places, "AZCOPY_CONCURRENCY_VALUE": str(self.parallel), "AZCOPY_DISABLE_SYSLOG": "true"}

    def argv(self, verb: str, way: str, source: str, target: str) -> list[str]:
        words = [self.program, verb, source, target, f"--from-to={way}", "--log-level=NONE", "--output-level=quiet"]
        return [*words, "--skip-version-check", f"--block-size-mb={(BLOCK if way == 'LocalBlob' else RANGE) >> 20}"]

    def sync(self, folder: Path, name: str) -> list[str]:
        """A tree of code, less what is ignored."""
        passed_over = "|".join(ignored.replace(".", r"\.") for ignored in IGNORED)
        return [*self.argv("sync", "LocalBlob", str(folder), self.service.url(name)), f"--exclude-regex=(^|/)({passed_over})(/|$)"]


class Sdk:
    """Microsoft's own client for Python. Its start counts, as everyone's does."""

    def __init__(self, service: Service, parallel: int) -> None:
        self.python = str(parts_folder() / "python/bin/python")
        self.service, self.parallel = service, parallel

    def argv(self, way: str, name: str, file: Path) -> list[str]:
        words = [self.python, "-I", str(PROGRAMS / "sdk.py"), way, self.service.endpoint, ACCOUNT, KEY, CONTAINER]
        return [*words, name, str(file), str(self.parallel), str(BLOCK if way == "up" else RANGE)]


def rclone(service: Service, parallel: int) -> Rclone | None:
    program = find_program("rclone")
    return Rclone(program, service, parallel) if program else None


def azcopy(service: Service, parallel: int, folder: Path) -> Azcopy | None:
    program = azcopy_program()
    return Azcopy(program, service, parallel, folder) if program else None
