"""The standard streams, of which a program may be started without one."""

from __future__ import annotations

import os
import sys


def open_streams() -> None:
    """The null device in place of each standard stream that was closed when zaudit was started: else the next file that is
    opened takes its number, and Python has no stream there to write to."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (the lowest free number, which is its own)
