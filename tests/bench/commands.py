"""Many commands at once: zaudit's way beside the barest one. ``python -m tests.bench.commands ours|bare`` is the child that
prints the seconds on the clock and of its own processor time as JSON; ``scripts FOLDER`` runs those of a host of scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from auditor.host import process
from auditor.host.live import ENVIRONMENT
from auditor.host.process import Time, Workers
from auditor.host.request import AT_ONCE, Capture
from tests.bench.measure import ROOT

COMMANDS = 145  # of a host with 24 drives
ARGV = ("/bin/echo", "hello")
REPEATS = 7


def ours() -> None:
    workers: Workers[int, Capture] = Workers(AT_ONCE)
    for number in range(COMMANDS):
        workers.start(number, partial(process.run, ARGV, Time.of(20), ENVIRONMENT))
    for _ in range(COMMANDS):
        workers.ended()


def bare() -> None:
    """Threads and subprocess.run() of the standard library, with nothing bounded but the time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda _: subprocess.run(ARGV, capture_output=True, timeout=20, start_new_session=True),
                      range(COMMANDS)))  # fmt: skip


def scripts(folder: Path) -> None:
    """All commands of a host that tools.lay_out() made, in the barest way, and none after another."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        every = json.loads((folder / "argv.json").read_text())
        list(pool.map(lambda argv: subprocess.run(argv, capture_output=True, timeout=60), every))


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processes that do nothing but take processor time."""
    running = [subprocess.Popen((sys.executable, "-c", "while True: pass")) for _ in range(loops)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def compared(loops: int) -> tuple[float, float, float]:
    """(seconds of ours, of the bare way, processor time of ours): the medians of runs that took turns."""
    found: dict[str, list[tuple[float, float]]] = {"ours": [], "bare": []}
    with busy(loops):
        for _ in range(REPEATS):
            for way, took in found.items():
                argv = (sys.executable, "-m", "tests.bench.commands", way)
                wall, cpu = json.loads(subprocess.run(argv, capture_output=True, check=True, cwd=ROOT).stdout)
                took.append((wall, cpu))
    middle = {way: sorted(took)[REPEATS // 2] for way, took in found.items()}
    return middle["ours"][0], middle["bare"][0], middle["ours"][1]


if __name__ == "__main__":
    began, used = time.monotonic(), time.process_time()
    ways: dict[str, Callable[[], None]] = {
        "ours": ours,
        "bare": bare,
        "scripts": partial(scripts, Path(sys.argv[-1])),
    }
    ways[sys.argv[1]]()
    print(json.dumps((time.monotonic() - began, time.process_time() - used)), flush=True)
    os._exit(0)
