"""The processes that this one has started."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from auditor.fleet import workers

# what a child runs, where it has 200 MiB of memory
LITTLE = workers._CODE.replace("; run(", "; from auditor.fleet import workers; workers.MEMORY = 200 << 20; run(")


_before: set[int] = set()  # what other tests of this process left behind is their business


def begin() -> None:
    """From here on."""
    _before.clear()
    _before.update(of_this_process())


def of_this_process() -> list[int]:
    """Those since the beginning of the test, of all its threads, also such as have ended and were not waited for
    (proc_pid_task(5), children). Not the one with which multiprocessing keeps its books, for as long as this process runs."""
    while True:
        try:
            found = [each.read_text().split() for each in Path("/proc/self/task").glob("*/children")]
            every = {int(number) for numbers in found for number in numbers} - _before
            return [
                number for number in every if b"resource_tracker" not in Path(f"/proc/{number}/cmdline").read_bytes()
            ]
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread or a process ended meanwhile: what a thread had started is another's now


def kill(number: int) -> None:
    """At once, until it is dead; whoever started it may wait for it."""
    os.kill(number, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):  # a thread of the pool has done so already
        os.waitid(os.P_PID, number, os.WEXITED | os.WNOWAIT)
