"""The standard streams, of which a program may be started without one, and the line of progress on one of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from auditor.text import harmless


def open_streams() -> None:
    """The null device in place of each standard stream that was closed when zaudit was started: else the next file that is
    opened takes its number, and Python has no stream there to write to."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (the lowest free number, which is its own)


def shows_progress() -> bool:
    """Whether standard error is a terminal on which a line can be written over."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def progress() -> Callable[[int, int, str], None] | None:
    """Writes one line on standard error while commands run: how many are done, how many were asked, which one now. On a
    terminal only."""
    if not shows_progress():
        return None

    def show(done: int, asked: int, what: str) -> None:
        end = "\r\x1b[K" if done >= asked else ""
        sys.stderr.write(f"\r\x1b[K{done} of {asked} {harmless(what[:60])}{end}")
        sys.stderr.flush()

    return show
