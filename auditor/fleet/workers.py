"""Recordings judged in processes of their own, bounded in memory and time: a recording that exhausts either, or kills its
process, is a row that says so, and costs no other recording anything."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing.connection import wait
from typing import NamedTuple

from auditor.fleet.child import TRIES, Child, deadly, late
from auditor.fleet.judging import How

AHEAD = 8  # recordings a process may be ahead of one that takes long, whose rows come first


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


class Bounds(NamedTuple):
    """jobs: processes. seconds: for one recording."""

    jobs: int = 1
    seconds: float = 120.0


def judged(names: Iterable[str], how: How, bounds: Bounds) -> Iterator[str]:
    """The lines of each recording, in the order of the names, whichever is done first. Close it, and the processes end."""
    left = enumerate(names)
    done: dict[int, str] = {}
    order: deque[int] = deque()
    workers = [_Worker(how) for _ in range(bounds.jobs)]
    try:
        while True:
            while order and order[0] in done:  # before they are given more: what is full here takes nothing
                yield done.pop(order.popleft())
            for worker in (each for each in workers if each.task is None):
                if len(order) < bounds.jobs * AHEAD and (task := next(left, None)):
                    order.append(task[0])
                    worker.begin(_Task(*task), bounds.seconds)
            busy = [each for each in workers if each.task]
            if not busy:
                return
            _collect(busy, done, bounds.seconds)
    finally:
        for worker in workers:
            worker.child.end()


class _Task(NamedTuple):
    """number: in the order of the names. tries: how often its process has died."""

    number: int
    name: str
    tries: int = 0


def _collect(busy: list[_Worker], done: dict[int, str], seconds: float) -> None:
    """What comes next: rows, the death of a process, or the end of its time."""
    soonest = min(worker.until for worker in busy)
    ready = wait([worker.child.pipe for worker in busy], max(soonest - time.monotonic(), 0))
    for worker in busy:
        task = worker.task
        assert task is not None
        if worker.child.pipe in ready:
            try:
                text = worker.child.taken()
            except (EOFError, OSError):
                status = worker.child.died()
                if task.tries + 1 < TRIES:
                    worker.begin(task._replace(tries=task.tries + 1), seconds)
                    continue
                text = deadly(task.name, status)
        elif worker.until > time.monotonic():
            continue
        else:
            worker.child.end()
            text = late(task.name, seconds)
        done[task.number], worker.task = text, None


class _Worker:
    """A process and what it is judging."""

    def __init__(self, how: How) -> None:
        self.child = Child(how)
        self.task: _Task | None = None
        self.until = 0.0

    def begin(self, task: _Task, seconds: float) -> None:
        """Judge this; the time that a new process takes to start does not count for much."""
        self.child.give(task.name)
        self.task, self.until = task, time.monotonic() + seconds
