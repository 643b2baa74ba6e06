"""Runs in the guest: commits as a database log does until SIGTERM, then says what it measured itself.

    load.py PATH fsync|turns|dsync|write [PAUSE_S] [BYTES] [THREADS] [COUNT]

turns: fsync, one thread after the other. COUNT: of each thread, after which it ends; 0: at SIGTERM.
Prints ``{"pid": ..., "count": ..., "mean_us": ..., "whole": ...}``: its own syncs, what each took, and whether it ended by
itself.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from types import FrameType

path, kind = sys.argv[1:3]
given = [*sys.argv[3:], *("0", "8192", "1", "0")[len(sys.argv) - 3 :]]
pause, size, threads, most = float(given[0]), int(given[1]), int(given[2]), int(given[3])
spans: list[float] = []
over = threading.Event()
turn: contextlib.AbstractContextManager[object] = threading.Lock() if kind == "turns" else contextlib.nullcontext()


def end(_number: int, _frame: FrameType | None) -> None:
    over.set()


def commits(name: str) -> None:
    flags = os.O_RDWR | os.O_CREAT | (os.O_DSYNC if kind == "dsync" else 0)
    file = os.open(name, flags, 0o600)
    data = os.urandom(size)
    number = 0
    while not over.is_set() and (number < most or not most):
        with turn:
            start = time.monotonic()
            os.pwrite(file, data, number % 2000 * len(data))
            if kind in ("fsync", "turns"):
                start = time.monotonic()
                os.fsync(file)
            spans.append(time.monotonic() - start)
        number += 1
        if pause:
            over.wait(pause)


signal.signal(signal.SIGTERM, end)
workers = [threading.Thread(target=commits, args=(f"{path}{i or ''}",)) for i in range(threads)]
for worker in workers:
    worker.start()
while any(worker.is_alive() for worker in workers):
    over.wait(0.2)
mean = sum(spans) / max(len(spans), 1) * 1e6
said = {"pid": os.getpid(), "count": len(spans), "mean_us": mean, "whole": not over.is_set()}
print(json.dumps(said), flush=True)
