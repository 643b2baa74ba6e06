"""Threads that wait for commands. concurrent.futures would do, but takes as long to import as half a check to run."""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Hashable, Iterable
from queue import SimpleQueue
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Workers(Generic[K, T]):
    """Runs calls in at most so many threads. One thread submits them and asks for what came of them, by key."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads = 0
        self._open = 0  # submitted, and not answered
        self._calls: SimpleQueue[tuple[K, Callable[[], T]] | None] = SimpleQueue()
        self._results: dict[K, T | BaseException] = {}
        self._awaited: set[K] = set()
        self._guard = allocate_lock()  # of all that changes when a call ends
        self._asleep = allocate_lock()  # held by the thread that waits, until the last of what it awaits has ended

    def submit(self, key: K, call: Callable[[], T]) -> None:
        """Have it called; does not wait."""
        with self._guard:
            self._open += 1
            more = self._threads < min(self._most, self._open)
        self._calls.put((key, call))
        if more:
            self._threads += 1
            start_new_thread(self._work, ())  # threading would wait for it to run

    def wait(self, keys: Iterable[K]) -> None:
        """Wait until all these calls have ended: once, for a thread that is woken for each of them disturbs the others."""
        with self._guard:
            self._awaited = set(keys) - self._results.keys()
            if not self._awaited:
                return
            self._asleep.acquire()
        self._asleep.acquire()  # which the last of them lets go of
        self._asleep.release()

    def result(self, key: K) -> T:
        """Wait for what a call returns; raises what it raised."""
        self.wait((key,))
        found = self._results.pop(key)
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        """Let the threads go; a call that hangs does not keep the program from ending."""
        for _ in range(self._threads):
            self._calls.put(None)

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            key, call = item
            try:
                result: T | BaseException = call()
            except BaseException as error:  # handed on to the thread that asks
                result = error
            with self._guard:
                self._results[key] = result
                self._open -= 1
                if key in self._awaited:
                    self._awaited.remove(key)
                    if not self._awaited:
                        self._asleep.release()
