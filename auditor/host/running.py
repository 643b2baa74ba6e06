"""What runs beside each other, commands and calls, while one thread watches over all of it.

A thread for each would read simpler, but the threads contend for the interpreter: to start 145 commands and take what
they print cost 40 ms of processor time so, in one thread it costs 16 ms.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from _thread import start_new_thread  # threading would wait for it to run
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Hashable
from typing import Any, Generic, TypeVar

HELD_UP_S = 0.05  # by calls before it
NOTICED_S = 0.01  # shorter than that, nobody was away
HEAR_S = 0.25  # to hear the rest of what was said while nobody listened

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Running(ABC, Generic[T_co]):
    """What was started and answers later."""

    @property
    @abstractmethod
    def watched(self) -> Collection[int]:
        """Descriptors that can be read when it goes on."""

    @property
    @abstractmethod
    def due(self) -> float:
        """The moment (monotonic, seconds) to look after it, whether or not any of them can be read."""

    @abstractmethod
    def proceed(self, ready: Collection[int]) -> bool:
        """Look after it; whether it has ended. ready: those of the watched descriptors that can be read. Never waits."""

    @abstractmethod
    def grant(self, seconds: float) -> None:
        """So much more time, because nobody listened for as long."""

    @abstractmethod
    def result(self) -> T_co:
        """What came of it, once it has ended; raises what it raised."""

    @abstractmethod
    def abandon(self) -> None:
        """Nobody wants to know any more."""


class Watch(Generic[K, T]):
    """All that runs, by key."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._running: dict[K, Running[T]] = {}
        self._owner: dict[int, K] = {}  # of each watched descriptor
        self._listened = time.monotonic()

    def __len__(self) -> int:
        return len(self._running)

    def add(self, key: K, running: Running[T]) -> None:
        """Watch over it from now on."""
        if not self._running:
            self._listened = time.monotonic()
        self._running[key] = running
        for descriptor in running.watched:
            self._owner[descriptor] = key
            self._poll.register(descriptor, select.POLLIN)

    def ended(self) -> dict[K, T]:
        """Wait until at least one has ended, and give what came of those that have; raises what one of them raised.
        Nothing where nothing runs."""
        if (away := time.monotonic() - self._listened) > NOTICED_S:
            self._grant(away)
        found: dict[K, T] = {}
        while self._running and not found:
            for key, ready in self._ready().items():
                running = self._running[key]
                before = tuple(running.watched)
                ended = running.proceed(ready)
                for descriptor in before:
                    if ended or descriptor not in running.watched:
                        self._poll.unregister(descriptor)
                        del self._owner[descriptor]
                if ended:
                    found[key] = self._running.pop(key).result()
        self._listened = time.monotonic()
        return found

    def _ready(self) -> dict[K, list[int]]:
        """What is to be looked after, and which of its descriptors can be read; waits until there is something."""
        soonest = min(running.due for running in self._running.values())
        ready: dict[K, list[int]] = {}
        for descriptor, _ in self._poll.poll(max(soonest - (asked := time.monotonic()), 0) * 1000):
            ready.setdefault(self._owner[descriptor], []).append(descriptor)
        now = time.monotonic()
        if (away := now - max(soonest, asked)) > NOTICED_S:  # stopped, or kept from running
            self._grant(away + (HEAR_S if ready else 0.0))
        elif soonest <= now:
            for key, running in self._running.items():
                if running.due <= now:
                    ready.setdefault(key, [])
        return ready

    def _grant(self, seconds: float) -> None:
        for running in self._running.values():
            running.grant(seconds)

    def abandon(self) -> None:
        """Let go of all that still runs."""
        for descriptor in self._owner:
            self._poll.unregister(descriptor)
        self._owner.clear()
        for running in self._running.values():
            running.abandon()
        self._running.clear()


def result(answer: T | Running[T]) -> T:
    """The answer; waits for it where it is still to come."""
    if not isinstance(answer, Running):
        return answer
    watch: Watch[str, T] = Watch()
    watch.add("", answer)
    try:
        return watch.ended()[""]
    finally:
        watch.abandon()


class Then(Running[T]):
    """What runs, and what is made of its answer."""

    def __init__(self, first: Running[T], then: Callable[[T], T]) -> None:
        self._first = first
        self._then = then

    @property
    def watched(self) -> Collection[int]:
        return self._first.watched

    @property
    def due(self) -> float:
        return self._first.due

    def proceed(self, ready: Collection[int]) -> bool:
        return self._first.proceed(ready)

    def grant(self, seconds: float) -> None:
        self._first.grant(seconds)

    def result(self) -> T:
        return self._then(self._first.result())

    def abandon(self) -> None:
        self._first.abandon()


class Lane:
    """Calls that may hang in the kernel, made one after the other in a thread while they return soon: threads that read
    files at the same time contend for the interpreter. One that is held up too long gets another thread."""

    def __init__(self) -> None:
        self._open: deque[Call[Any]] = deque()
        self._busy = False
        self._opened = 0.0

    def call(self, function: Callable[[], T], timeout_s: float, failed: Callable[[str], T]) -> T | Running[T]:
        """Have it called. failed: makes an answer of the reason why there is none: it raised something, there is no thread
        for it, or it did not return within so many seconds; its thread is left behind then, with what it holds."""
        try:
            call = Call(self, function, timeout_s, failed)
        except OSError as error:
            return failed(f"cannot be started: {error.strerror}")
        self._open.append(call)
        if not self._busy:
            try:
                self.open()
            except RuntimeError as error:  # no more threads for this user
                self._busy = False
                self._open.clear()
                call.abandon()
                return failed(f"cannot be started: {error}")
        return call

    def open(self) -> None:
        """Another thread, for as long as there is something to call; one at a time. Raises RuntimeError."""
        now = time.monotonic()
        if now - self._opened >= HELD_UP_S or not self._busy:
            self._busy, self._opened = True, now
            start_new_thread(self._work, ())

    def _work(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._open.popleft().make()
        self._busy = False  # what is added at this moment is held up, and then opens a lane of its own


class Call(Running[T]):
    """One call of a :class:`Lane`. Raises OSError when there is no descriptor for it."""

    def __init__(self, lane: Lane, function: Callable[[], T], timeout_s: float, failed: Callable[[str], T]) -> None:
        self._lane = lane
        self._function = function
        self._timeout_s = timeout_s
        self._seconds = timeout_s  # with what was granted
        self._failed = failed
        self._asked = time.monotonic()
        self._began = 0.0
        self._look = self._asked + HELD_UP_S
        self._returned: list[T] = []
        self._raised: list[BaseException] = []
        self._event = os.eventfd(0)
        self._watched: Collection[int] = (self._event,)

    def make(self) -> None:
        """Call, in the thread that may be left behind."""
        self._began = time.monotonic()
        try:
            self._returned.append(self._function())
        except BaseException as error:  # told to the thread that asks
            self._raised.append(error)
        os.eventfd_write(self._event, 1)

    @property
    def watched(self) -> Collection[int]:
        return self._watched

    @property
    def due(self) -> float:
        return self._began + self._seconds if self._began else self._look

    def proceed(self, ready: Collection[int]) -> bool:
        if ready:
            self._watched = ()
            os.close(self._event)
            return True
        now = time.monotonic()
        if self._began:
            return now >= self._began + self._seconds
        if now >= self._look:
            self._look = now + HELD_UP_S
            with contextlib.suppress(RuntimeError):  # there may be a thread the next time
                self._lane.open()
        return now >= self._asked + self._seconds

    def grant(self, seconds: float) -> None:
        self._seconds += seconds

    def result(self) -> T:
        if self._watched:
            return self._failed(f"no answer within {self._timeout_s:g} s")
        if self._raised:
            error = self._raised[0]
            return self._failed(f"{type(error).__name__}: {error}")
        return self._returned[0]

    def abandon(self) -> None:
        """The thread cannot be ended from outside; where none has begun, only the descriptor is left."""
        if not self._began:
            self._watched = ()
            os.close(self._event)
