"""The emulator of Azure ML that the tests have, as a process, and who talks to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from .spawn import BenchError, Shop

DRIVER = Path(__file__).resolve().parent / "programs/azureml.py"


class Emulator:
    def __init__(self, program: Path, env: dict[str, str]) -> None:
        self.process = subprocess.Popen([str(program)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.known = json.loads(self.line())
        self.scope = (
            f"/subscriptions/{self.known['subscription']}/resourceGroups/{self.known['group']}"
            f"/providers/Microsoft.MachineLearningServices/workspaces/{self.known['workspace']}"
        )

    def line(self) -> str:
        assert self.process.stdout
        found = self.process.stdout.readline()
        if not found:
            raise BenchError("the emulator of Azure ML does not start")
        return found

    def say(self, word: str) -> None:
        """`asleep`: jobs that are put wait for ever, so that none runs while something is measured. `awake`: they run."""
        assert self.process.stdin
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        self.line()

    def stop(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()

    def environment(self) -> dict[str, str]:
        """What any client needs to find it and to trust it."""
        known = self.known
        named = {"ENDPOINT": known["endpoint"], "STORAGE": known["storage"], "SUBSCRIPTION": known["subscription"], "GROUP": known["group"]}
        named["WORKSPACE"] = known["workspace"]
        trust = {name: known["authority"] for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")}
        return known["identity"] | trust | {f"AML_{name}": value for name, value in named.items()}


class Peers:
    """Microsoft's client and `az`, each a process of its own for each act, as a user has them."""

    def __init__(self, parts: Path, emulator: Emulator, shop: Shop) -> None:
        self.client, self.az_python = str(parts / "azureml/bin/python"), str(parts / "az/bin/python")
        self.emulator, self.shop = emulator, shop
        shop.env |= {"AZURE_CORE_COLLECT_TELEMETRY": "false", "AZURE_CORE_INSTANCE_DISCOVERY": "false", "AZURE_CONFIG_DIR": str(shop.root / "az")}
        for words in (["cloud", "register", "--name", "TowCloud", "--endpoint-resource-manager", emulator.known["endpoint"]], ["cloud", "set", "--name", "TowCloud"], ["login", "--identity"]):
            shop.ask(self.az(*words))

    def az(self, *words: str) -> list[str]:
        return [self.az_python, "-m", "azure.cli", *words, "--output", "json", "--only-show-errors"]

    def rest(self, method: str, below: str, *more: str) -> list[str]:
        mark = "&" if "?" in below else "?"
        return self.az("rest", "--method", method, "--url", f"{self.emulator.scope}{below}{mark}api-version=2024-04-01", *more)

    def sdk(self, *words: str) -> list[str]:
        return [self.client, str(DRIVER), *words]


def parts() -> Path:
    """Where `cargo xtask install` put what is not ours."""
    usual = Path(__file__).resolve().parent.parent.parent / "target/test-parts"
    found = Path(os.environ.get("TOW_TEST_PARTS", usual))
    if not (found / "azureml/bin/python").exists():
        raise BenchError(f"no clients of Azure ML in {found}: `cargo xtask install` installs them (python: {sys.version.split()[0]})")
    return found
