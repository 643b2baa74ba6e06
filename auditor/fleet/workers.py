"""Recordings judged in processes of their own, bounded in memory and time: a recording that exhausts either, or kills its
process, is a row that says so, and costs no other recording anything."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

from auditor.fleet.judging import How, judged_lines, lines, unjudged

MEMORY = 3 << 30  # bytes of address space of one process; a recording is 256 MiB at most, and its text as much again
AHEAD = 8  # recordings a process may be ahead of one that takes long, whose rows come first
TRIES = 2  # of a recording whose process died: something else may have killed it
_SPAWN = multiprocessing.get_context("spawn")


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


class Bounds(NamedTuple):
    """jobs: processes. seconds: for one recording."""

    jobs: int = 1
    seconds: float = 120.0


def judged(names: Iterable[str], how: How, bounds: Bounds) -> Iterator[str]:
    """The lines of each recording, in the order of the names, whoever is done first. Close it, and the processes end."""
    left = enumerate(names)
    done: dict[int, str] = {}
    order: deque[int] = deque()
    workers = [_Worker(how) for _ in range(bounds.jobs)]
    try:
        while True:
            for worker in (each for each in workers if each.task is None):
                if len(order) < bounds.jobs * AHEAD and (task := next(left, None)):
                    order.append(task[0])
                    worker.give(_Task(*task), bounds.seconds)
            while order and order[0] in done:
                yield done.pop(order.popleft())
            busy = [each for each in workers if each.task]
            if not busy and not order:
                return
            if busy:
                _collect(busy, done, bounds.seconds)
    finally:
        for worker in workers:
            worker.end()


class _Task(NamedTuple):
    """number: in the order of the names. tries: how often its process has died."""

    number: int
    name: str
    tries: int = 0


def _collect(busy: list[_Worker], done: dict[int, str], seconds: float) -> None:
    """What comes next: rows, the death of a process, or the end of its time."""
    soonest = min(worker.until for worker in busy)
    ready = wait([worker.pipe for worker in busy], max(soonest - time.monotonic(), 0))
    for worker in busy:
        task = worker.task
        assert task is not None
        if worker.pipe in ready:
            try:
                done[task.number], worker.task = worker.pipe.recv_bytes().decode(), None
                continue
            except (EOFError, OSError):
                status = worker.restart()
            if task.tries + 1 < TRIES:
                worker.give(task._replace(tries=task.tries + 1), seconds)
                continue
            error = f"the process that judged it died {TRIES} times ({status})"
        elif worker.until > time.monotonic():
            continue
        else:
            worker.restart()
            error = f"not judged within {seconds:g} s"
        done[task.number] = lines([unjudged(task.name, error)])


class _Worker:
    """One process; it is started when it is first given something."""

    def __init__(self, how: How) -> None:
        self._how = how
        self._process: multiprocessing.context.SpawnProcess | None = None
        self.pipe: Connection
        self.task: _Task | None = None
        self.until = 0.0

    def give(self, task: _Task, seconds: float) -> None:
        """Judge this; the time that a new process takes to start does not count for much."""
        if self._process is None:
            self.pipe, theirs = _SPAWN.Pipe()
            self._process = _SPAWN.Process(target=_work, args=(theirs, self._how), daemon=True)
            self._process.start()
            theirs.close()
        self.task, self.until = task, time.monotonic() + seconds
        with suppress(OSError):  # a process that is gone shows at the other end, too
            self.pipe.send_bytes(task.name.encode("utf-8", "surrogateescape"))

    def restart(self) -> str:
        """End the process, so that the next task has a new one; how it ended."""
        process = self._process
        assert process is not None
        process.join(0.2)
        self.end()
        self.task = None
        code = process.exitcode or 0
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def end(self) -> None:
        """Kill the process, if there is one, and wait for its end."""
        if self._process:
            self._process.kill()
            self._process.join()
            self.pipe.close()
            self._process = None


def _work(pipe: Connection, how: How) -> None:
    """In the process: a name comes, its lines go back, until nobody is at the other end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal means the parent, which ends us
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    least = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (least if soft == resource.RLIM_INFINITY else min(soft, least), hard))
    with suppress(EOFError, OSError):
        while True:
            name = pipe.recv_bytes().decode("utf-8", "surrogateescape")
            pipe.send_bytes(judged_lines(name, how).encode())
