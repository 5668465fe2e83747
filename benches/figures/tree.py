"""Trees to move: like a repository of code with assets, the same in every run."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

# Beside the code and not part of it.
IGNORED = [".git", ".venv", "__pycache__", "node_modules"]
SEED = 20261115


def make_tree(root: Path, files: int) -> int:
    """So many files, about 38 KB each on average, and ignored folders with twice as many beside; the bytes that count."""
    chance = random.Random(SEED)
    text = Text(chance)
    total, folders = make_code(root, files, chance, text)
    total += write(root / ".gitignore", "\n".join(IGNORED).encode())
    make_ignored(root, folders, files, chance, text)
    return total


def make_workspace(root: Path, files: int) -> int:
    """So many files of the same mixture, nothing beside them; their bytes."""
    chance = random.Random(SEED)
    return make_code(root, files, chance, Text(chance))[0]


def change_some(root: Path, every: int, number: int) -> int:
    """Writes one file in so many anew, others each time; how many that were."""
    chance = random.Random(SEED + number)
    text = Text(chance)
    files = sorted(path for path in root.rglob("*.py"))
    chosen = chance.sample(files, max(1, sum(1 for path in root.rglob("*") if path.is_file()) // every))
    for path in chosen:
        write(path, text.of(int(chance.lognormvariate(8.9, 1.0))))
    return len(chosen)


def make_code(root: Path, files: int, chance: random.Random, text: Text) -> tuple[int, list[Path]]:
    folders = [root / f"package_{number % 40}" / f"part_{number % 7}" / f"deep_{number}" for number in range(max(10, files // 16))]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    total = 0
    for number in range(files):
        folder = folders[chance.randrange(len(folders))]
        kind = number % 250
        if kind == 0:
            total += write(folder / f"weights_{number}.bin", chance.randbytes(chance.randrange(2_000_000, 6_000_000)))
        elif kind < 20:
            total += write(folder / f"picture_{number}.png", chance.randbytes(chance.randrange(20_000, 240_000)))
        else:
            total += write(folder / f"module_{number}.py", text.of(int(chance.lognormvariate(8.9, 1.0))))
    return total, folders


def make_ignored(root: Path, folders: list[Path], files: int, chance: random.Random, text: Text) -> None:
    for number in range(files // 2):
        write(root / f".git/objects/{number % 256:02x}/{number:038x}", chance.randbytes(1500))
    write(root / ".git/HEAD", b"ref: refs/heads/main\n")
    for number in range(files // 2):
        write(root / f".venv/lib/python3.11/site-packages/package_{number % 60}/file_{number}.py", text.of(4000))
    for number in range(files):
        write(root / f"node_modules/package_{number % 400}/lib/file_{number}.js", text.of(1500))
    for folder in folders:
        write(folder / "__pycache__/module.cpython-311.pyc", chance.randbytes(3000))


def make_small_files(root: Path, files: int) -> None:
    """So many files of about a kilobyte, a hundred to a folder."""
    chance = random.Random(SEED)
    text = Text(chance)
    for number in range(files):
        write(root / f"folder_{number // 100}" / f"file_{number}.py", text.of(chance.randrange(500, 1500)))


def make_random_file(path: Path, size: int) -> None:
    chance = random.Random(SEED)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for first in range(0, size, 1 << 20):
            file.write(chance.randbytes(min(1 << 20, size - first)))


def write(path: Path, data: bytes) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return len(data)


class Text:
    """Text as compressible as code: words of a vocabulary, some far more often than others, in indented lines."""

    def __init__(self, chance: random.Random) -> None:
        words = ["".join(chance.choices("etaoinshrdlucmfwypvbgkjqxz_", k=chance.randrange(2, 11))) for _ in range(3000)]
        self.words = ["\n", "\n    ", "\n        ", "(", ")", " = ", *words]
        self.weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(self.words))))
        self.chance = chance

    def of(self, size: int) -> bytes:
        size = max(1, min(size, 200_000))
        text = " ".join(self.chance.choices(self.words, cum_weights=self.weights, k=size // 4 + 1))
        return text[:size].encode()
