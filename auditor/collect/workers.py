"""Threads that wait for commands. concurrent.futures would do, but takes as long to import as half a check to run."""

from __future__ import annotations

from _thread import start_new_thread
from collections.abc import Callable, Hashable
from queue import SimpleQueue
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Workers(Generic[K, T]):
    """Runs calls in at most so many threads. One thread submits them and asks for what came of them, by key."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads = 0
        self._open = 0  # submitted, and not answered as far as we know
        self._calls: SimpleQueue[tuple[K, Callable[[], T]] | None] = SimpleQueue()
        self._ended: SimpleQueue[tuple[K, T | BaseException]] = SimpleQueue()
        self._results: dict[K, T | BaseException] = {}

    def submit(self, key: K, call: Callable[[], T]) -> None:
        """Have it called; does not wait."""
        self._open += 1
        self._calls.put((key, call))
        if self._threads < min(self._most, self._open):
            self._threads += 1
            start_new_thread(self._work, ())  # threading would wait for it to run

    def result(self, key: K) -> T:
        """Wait for what a call returns; raises what it raised."""
        while key not in self._results:
            ended, result = self._ended.get()
            self._results[ended] = result
            self._open -= 1
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
            self._ended.put((key, result))
