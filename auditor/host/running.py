"""What may take long: waiting in which only the time counts that somebody really waited, calls that are given up when they
hang in the kernel, and calls beside each other. Threads do not keep the program from ending: it ends by os._exit()."""

from __future__ import annotations

import time
from _thread import start_new_thread  # Thread.start() waits for ever for a thread that had too little memory to begin
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Generic, NamedTuple, NoReturn, TypeVar

SLICE_S = 0.25
PATIENCE = 40  # slices in which no thread does anything although something is to be done: they have ended

K = TypeVar("K")
T = TypeVar("T")


class Time(NamedTuple):
    """How long an answer may take, and what is said when it took longer."""

    seconds: float
    late: str

    @classmethod
    def of(cls, seconds: float) -> Time:
        """The time of one question."""
        return cls(seconds, f"no answer within {seconds:g} s")


def slices(seconds: float) -> Iterator[float]:
    """The time-outs of waits, one after the other, that are so many seconds together.

    A wait counts for no longer than it was meant to take: who was stopped meanwhile (Ctrl-Z, a virtual machine that was
    frozen) or got no processor still hears what was said.
    """
    while seconds > 0:
        wait, began = min(seconds, SLICE_S), time.monotonic()
        yield wait
        seconds -= min(time.monotonic() - began, wait)


def within(allowed: Time, call: Callable[[], T], failed: Callable[[str], T]) -> T:
    """What a call returns that may hang in the kernel, where nothing ends it: then its thread is left behind, with what it
    holds. failed: makes an answer of the reason why there is none, which is also what the call raised."""
    answers: SimpleQueue[T | BaseException] = SimpleQueue()

    def make() -> None:
        try:
            answers.put(call())
        except BaseException as error:  # told to the thread that asks
            answers.put(error)

    if allowed.seconds <= 0:
        return failed(allowed.late)
    try:
        start_new_thread(make, ())
    except RuntimeError as error:  # no more threads for this user
        return failed(f"cannot be started: {error}")
    for wait in slices(allowed.seconds):
        try:
            answer = answers.get(timeout=wait)
        except Empty:
            continue
        return failed(f"{type(answer).__name__}: {answer}") if isinstance(answer, BaseException) else answer
    return failed(allowed.late)


class Workers(Generic[K, T]):
    """Makes calls in parallel, by key, at most a given number at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads = 0
        self._busy = 0
        self._open = 0
        self._calls: SimpleQueue[tuple[K, Callable[[], T]]] = SimpleQueue()
        self._made: SimpleQueue[tuple[K, Callable[[], T]]] = SimpleQueue()

    def __len__(self) -> int:
        """Those whose answer nobody has taken yet."""
        return self._open

    def start(self, key: K, call: Callable[[], T]) -> None:
        """Have it called as soon as one of the threads is free."""
        self._open += 1
        self._calls.put((key, call))
        if self._threads < min(self._open, self._most):
            try:
                start_new_thread(self._work, ())
                self._threads += 1
            except RuntimeError:  # no more threads for this user: those that there are do it, or else this one
                if not self._threads:
                    self._make()

    def ended(self, waiting: Callable[[], None] = lambda: None) -> tuple[K, T]:
        """The next that was called, in the order in which they end: waits for it, and raises what it raised. Raises MemoryError
        where its thread had too little memory to say so itself. waiting: called now and then meanwhile."""
        idle = 0
        while True:
            idle = 0 if self._busy else idle + 1
            try:
                key, result = self._made.get(timeout=SLICE_S)  # now and then a signal is looked for
            except Empty:
                if idle > PATIENCE:
                    self._make_here()
                waiting()
                continue
            self._open -= 1
            return key, result()

    def _make_here(self) -> None:
        """A call that no thread has taken, as the threads ended before they began."""
        try:
            key, call = self._calls.get_nowait()
        except Empty:
            raise MemoryError("a thread ended before its answer") from None
        self._answer(key, call)

    def abandon(self) -> None:
        """Call nothing more. What is being called goes on, and nobody hears of it."""
        try:
            while True:
                self._calls.get_nowait()
        except Empty:
            self._open = 0

    def _work(self) -> None:
        while True:
            self._make()

    def _make(self) -> None:
        key, call = self._calls.get()
        self._busy += 1
        try:
            self._answer(key, call)
        finally:
            self._busy -= 1

    def _answer(self, key: K, call: Callable[[], T]) -> None:
        try:
            answer = call()
        except BaseException as error:  # raised where the answer is taken
            self._made.put((key, _raising(error)))
        else:
            self._made.put((key, lambda: answer))


def _raising(error: BaseException) -> Callable[[], NoReturn]:
    def result() -> NoReturn:
        raise error

    return result
