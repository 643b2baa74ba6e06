"""What the terminal is: how wide, whether it shows colours and more than ASCII, and a line of progress on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click


def width() -> int:
    """Columns of the terminal; 100 in a pipe or file. COLUMNS decides when it is set."""
    if os.environ.get("COLUMNS", "").isdigit():
        return min(max(int(os.environ["COLUMNS"]), 60), 140)
    if not sys.stdout.isatty():
        return 100
    return min(max(os.get_terminal_size(sys.stdout.fileno()).columns, 60), 140)


def ascii_only() -> bool:
    """Python writes UTF-8 even where LC_ALL=C asks for less (PEP 540), unless PYTHONIOENCODING says otherwise."""
    if os.environ.get("LC_ALL") in ("C", "POSIX") and not os.environ.get("PYTHONIOENCODING"):
        return True
    return (sys.stdout.encoding or "ascii").lower().replace("-", "") not in ("utf8", "utf8sig")


def color() -> bool:
    """NO_COLOR and FORCE_COLOR (no-color.org, force-color.org) before the question whether this is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def progress() -> Callable[[int, int, str], None] | None:
    """One line on standard error while commands run; on a terminal only."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return None

    def show(done: int, asked: int, what: str) -> None:
        end = "\r\x1b[K" if done >= asked else ""
        sys.stderr.write(f"\r\x1b[K{done}/{asked} {what[:50]}{end}")
        sys.stderr.flush()

    return show


def look(output: Path | None) -> dict[str, Any]:
    """How a terminal report is to look: width, color, ascii_only. A file is no terminal."""
    return {} if output else {"width": width(), "color": color(), "ascii_only": ascii_only()}


def write(text: str, output: Path | None, summary: str, *, encoded: bool = False) -> None:
    """To a file, with a line on standard error that says what is in it, or to standard output.

    encoded: as UTF-8, which the text says of itself, whatever standard output is.
    """
    if output:
        output.write_text(text, encoding="utf-8")
        note(f"{output}: {summary}")
    elif encoded:
        click.echo(text.encode("utf-8"), nl=False)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


def note(text: str) -> None:
    """A line on standard error. Where none can be written the work is done all the same, and the exit code says what came
    of it."""
    with suppress(OSError):
        click.echo(text, err=True)


def steps() -> Callable[[str, float, float], None] | None:
    """Progress of a verification, with the time that is left of the run that is under way; on a terminal only."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return None

    def show(what: str, done: float, seconds: float) -> None:
        left = max(seconds - done, 0)
        sys.stderr.write(f"\r\x1b[K{what}: {left:.0f} s left\r")
        sys.stderr.flush()

    return show
