"""Runs in the guest: commits as a database log does until SIGTERM, then says what it measured itself.

    load.py PATH fsync|fdatasync|turns|dsync|write[,...] [PAUSE_S] [BYTES] [THREADS] [COUNT]

turns: fsync, one thread after the other. Of several kinds each thread takes the next one. COUNT: of each thread, after which
it ends; 0: at SIGTERM.
Prints ``{"pid": ..., "syncs": {"TID": [[at, us], ...]}, "nothing": {"TID": [us, ...]}, "whole": ...}``: of each of its threads
when each sync ended, seconds since the epoch, and what it took; what the same call took on a file in memory, halfway to the
next sync: the way into the kernel and back, and no commit; and whether it ended by itself.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from types import FrameType

path, kinds = sys.argv[1], sys.argv[2].split(",")
given = [*sys.argv[3:], *("0", "8192", "1", "0")[len(sys.argv) - 3 :]]
pause, size, threads, most = float(given[0]), int(given[1]), int(given[2]), int(given[3])
syncs: dict[int, list[tuple[float, float]]] = {}
nothing: dict[int, list[float]] = {}
over = threading.Event()
turn: contextlib.AbstractContextManager[object] = threading.Lock() if "turns" in kinds else contextlib.nullcontext()


def end(_number: int, _frame: FrameType | None) -> None:
    over.set()


def timed(kind: str, file: int, data: bytes, offset: int) -> float:
    """Microseconds of the sync after a write, or of the write that is one."""
    start = time.monotonic()
    os.pwrite(file, data, offset)
    if kind in ("fsync", "fdatasync", "turns"):
        start = time.monotonic()
        (os.fdatasync if kind == "fdatasync" else os.fsync)(file)
    return round((time.monotonic() - start) * 1e6)


def commits(name: str, kind: str) -> None:
    flags = os.O_RDWR | os.O_CREAT | (os.O_DSYNC if kind == "dsync" else 0)
    file, memory = os.open(name, flags, 0o600), os.memfd_create("load")
    data = os.urandom(size)
    own = syncs[threading.get_native_id()] = []
    others = nothing[threading.get_native_id()] = []
    number = 0
    while not over.is_set() and (number < most or not most):
        with turn:
            us = timed(kind, file, data, number % 2000 * len(data))
            own.append((round(time.time(), 3), us))
        number += 1
        over.wait(pause / 2)
        others.append(timed(kind, memory, data, 0))
        over.wait(pause / 2)


signal.signal(signal.SIGTERM, end)
workers = [threading.Thread(target=commits, args=(f"{path}{i or ''}", kinds[i % len(kinds)])) for i in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    while worker.is_alive():
        worker.join(0.2)
print(json.dumps({"pid": os.getpid(), "syncs": syncs, "nothing": nothing, "whole": not over.is_set()}), flush=True)
