"""Runs in the guest: commits as a database log does until SIGTERM, then says what it measured itself.

    load.py PATH fsync|turns|dsync|write [PAUSE_S] [BYTES] [THREADS]

turns: fsync, one thread after the other.
Prints ``{"pid": ..., "count": ..., "mean_us": ...}``: its own syncs and what each took.
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
given = [*sys.argv[3:], *("0", "8192", "1")[len(sys.argv) - 3 :]]
pause, size, threads = float(given[0]), int(given[1]), int(given[2])
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
    while not over.is_set():
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
while not over.wait(0.2):
    pass
for worker in workers:
    worker.join()
print(
    json.dumps({"pid": os.getpid(), "count": len(spans), "mean_us": sum(spans) / max(len(spans), 1) * 1e6}), flush=True
)
