"""What the signals do that end the program: they end it through what cleans up, and never between two things that belong
together."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import NoReturn

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Whole:
    """``with interrupt.whole:`` a block that a signal does not break; it comes at the end."""

    def __init__(self) -> None:
        self._inside = False
        self._came = 0

    def __enter__(self) -> None:
        self._inside = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside = False
        if number := self._came:
            self._came = 0
            _end(number)

    def signalled(self, number: int, _: FrameType | None) -> None:
        """The handler of all of them."""
        if self._inside:
            self._came = number
        else:
            _end(number)


whole = _Whole()


def install() -> None:
    """From now on; a signal that is ignored stays ignored, as under nohup."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, whole.signalled)


def _end(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)
