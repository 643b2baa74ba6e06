"""Until somebody has seen enough: SIGINT or SIGTERM ends the watching, and the report is still made."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator

from auditor import interrupt

SLICE_S = 0.1


@contextlib.contextmanager
def ending() -> Iterator[Callable[[], bool]]:
    """Gives a function that tells whether the first of these signals came. A second one does what it did before."""
    came: list[int] = []

    def end(number: int, _: object) -> None:
        came.append(number)
        interrupt.heard(number)
        for each, handler in before.items():
            signal.signal(each, handler)

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    for each in before:
        signal.signal(each, end)
    try:
        yield lambda: bool(came)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def wait(until: float, over: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
    """Until this time of the monotonic clock, or until it is over; meanwhile is called now and then. A sleep goes on after a
    signal, so it is cut into slices."""
    while (left := until - time.monotonic()) > 0 and not over():
        time.sleep(min(left, SLICE_S))
        meanwhile()
