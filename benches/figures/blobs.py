"""Microsoft's blob service on loopback, in memory, as `cargo xtask install` put it there."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from .spawn import BenchError, need_program, wait_until

ACCOUNT = "devstoreaccount1"
# The emulator's published key.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "bench"
VERSION = "2022-11-02"
LARGEST_MEMORY_MB = 8192


def parts_folder() -> Path:
    """Where what tests and benchmarks need is installed."""
    beside = Path(__file__).resolve().parent.parent.parent / "target/test-parts"
    folder = Path(os.environ.get("TOW_TEST_PARTS") or beside)
    if not (folder / "azurite/stamp").exists():
        raise BenchError(f"no Azurite in {folder}: `cargo xtask install` installs it")
    return folder


class Service:
    """Azurite, with one container."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = parts_folder() / "azurite/node_modules/azurite/dist/src/blob/main.js"
        self.node = need_program("node")
        self.process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/{ACCOUNT}"

    def start(self) -> None:
        """Anew and empty, on the same port."""
        self.stop()
        log = self.folder / "azurite.log"
        words = [self.node, str(self.program), "--blobHost", "127.0.0.1", "--blobPort", str(self.port), "--inMemoryPersistence"]
        words += ["--extentMemoryLimit", str(LARGEST_MEMORY_MB), "--skipApiVersionCheck", "--silent", "--disableTelemetry"]
        with log.open("wb") as out:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        wait_until(lambda: self.is_up(log), "Azurite answers")
        self.ask("PUT", f"/{CONTAINER}?restype=container")

    def is_up(self, log: Path) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise BenchError(f"Azurite left: {log.read_text(errors='replace')[-300:]}")
        return "successfully listens" in log.read_text(errors="replace")

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def target(self, path: str, query: str = "") -> str:
        """A signed path of the container, as it goes into a request's first line."""
        quoted = urllib.parse.quote(path, safe="/*")
        return f"/{ACCOUNT}/{CONTAINER}/{quoted}?{query}{'&' if query else ''}{self.sas()}"

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{self.target(path)}"

    def sas(self) -> str:
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86400))
        text = "\n".join([ACCOUNT, "rwdlac", "b", "sco", "", end, "", "", VERSION, "", ""])
        signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
        return urllib.parse.urlencode({"sv": VERSION, "ss": "b", "srt": "sco", "sp": "rwdlac", "se": end, "sig": signature})

    def ask(self, method: str, path: str) -> bytes:
        url = f"{self.endpoint}{path}&{self.sas()}"
        request = urllib.request.Request(url, method=method, headers={"x-ms-version": VERSION, "Content-Length": "0"})
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    def listing(self, prefix: str) -> dict[str, int]:
        """Every blob below a prefix, with its size."""
        found: dict[str, int] = {}
        marker = ""
        while True:
            query = urllib.parse.urlencode({"restype": "container", "comp": "list", "prefix": prefix, "marker": marker})
            page = ElementTree.fromstring(self.ask("GET", f"/{CONTAINER}?{query}"))
            for blob in page.iter("Blob"):
                found[blob.findtext("Name", "")] = int(blob.findtext("Properties/Content-Length", "0"))
            marker = page.findtext("NextMarker") or ""
            if not marker:
                return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def azcopy_program() -> str | None:
    """azcopy on PATH, or as npm unpacks it below $TOW_PEERS; None where it does not start."""
    peers = os.environ.get("TOW_PEERS")
    places = [shutil.which("azcopy"), f"{peers}/node_modules/@azure-tools/azcopy-linux/dist/bin/azcopy_linux_amd64" if peers else None]
    for place in places:
        if place and os.access(place, os.R_OK):
            # npm unpacks it without the right to run it.
            if not os.access(place, os.X_OK):
                os.chmod(place, 0o755)
            if subprocess.run([place, "--version"], capture_output=True).returncode == 0:
                return place
    return None
