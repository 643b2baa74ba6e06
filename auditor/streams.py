"""The standard streams, of which a program may be started without one, and the line of progress on one of them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

PATIENCE_S = 2.0  # before seconds are counted


def open_streams() -> None:
    """The null device in place of each standard stream that was closed when zaudit was started: else the next file that is
    opened takes its number, and Python has no stream there to write to."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (the lowest free number, which is its own)


def shows_progress() -> bool:
    """Whether standard error is a terminal on which a line can be written over."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def progress(deadline_s: float = 0.0) -> Callable[[int, int, str, float], None] | None:
    """Writes one line on standard error while commands run: how many are done, how many were asked, what is waited for, for how
    many seconds, and how long that may still take. On a terminal only. deadline_s: of all together, from now on; 0 is none."""
    if not shows_progress():
        return None
    from auditor.text import harmless

    ends = time.monotonic() + deadline_s
    written = ""

    def show(done: int, asked: int, what: str, seconds: float) -> None:
        nonlocal written
        waits = f", {seconds:.0f} s" if seconds >= PATIENCE_S else ""
        if waits and deadline_s:
            waits += f", at most {max(ends - time.monotonic(), 0):.0f} s more"
        head = f"{done}/{asked} "
        room = max(_columns() - 1 - len(head) - len(waits), 10)
        said = harmless(what)
        said = said if len(said) <= room else said[: room - 3] + "..."
        line = head + said + waits
        if line != written:
            end = "\r\x1b[K" if done >= asked else ""
            sys.stderr.write(f"\r\x1b[K{line}{end}")
            sys.stderr.flush()
            written = line

    return show


def _columns() -> int:
    """Of the terminal on standard error; 80 where it does not know."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
