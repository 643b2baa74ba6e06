"""The same hunt with atheris, where it is installed: it keeps the bytes that reach new code, and cases are drawn from them.

Readers alone: a whole audit takes too long for each of its steps to be told apart. In a process of its own, which libFuzzer
ends: ``python -m tests.fuzz.guided SECONDS SEED FOLDER``.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from random import Random

MOST_BYTES = 4096


class Drawn(Random):
    """Chance that comes from bytes, as long as there are any."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._data, self._at = data, 0

    def getrandbits(self, bits: int) -> int:
        """From the next bytes."""
        count = (bits + 7) // 8
        part = self._data[self._at : self._at + count]
        self._at += count
        return int.from_bytes(part, "little") >> (count * 8 - bits) if len(part) == count else super().getrandbits(bits)

    def random(self) -> float:
        """The same."""
        return self.getrandbits(53) / (1 << 53)


def there() -> bool:
    """Whether atheris is installed."""
    return find_spec("atheris") is not None


def hunt(seconds: float, seed: int, file: Path) -> int:
    """In another process; its exit code: 1 when something was found."""
    words = [sys.executable, "-u", "-m", "tests.fuzz.guided", f"{seconds:g}", str(seed), str(file)]
    return subprocess.run(words, check=False).returncode


def main(seconds: float, seed: int, file: Path) -> None:
    """Never returns."""
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["auditor"]):
        from tests.fuzz import __main__ as plain
        from tests.fuzz import readers
        from tests.fuzz.found import Kept

        targets = list(readers.targets())
    counts, kept = Counter[tuple[str, str]](), dict[str, Kept]()
    began = time.process_time()

    def one(data: bytes) -> None:
        if time.process_time() - began > seconds:
            code = plain.report(counts, list(kept.values()))
            sys.stdout.flush()
            os._exit(code)
        chance = Drawn(data)
        target = targets[chance.randrange(len(targets))]
        plain.attempt(target, target.make(chance), counts, kept, file)

    quiet = (
        "-verbosity=0",
        "-print_final_stats=0",
        "-timeout=600",  # seconds of wall time: on a busy machine an input takes long, and a hang is told by its steps
        "-rss_limit_mb=0",
    )
    atheris.Setup([sys.argv[0], f"-seed={seed}", f"-max_len={MOST_BYTES}", "-len_control=0", *quiet], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
