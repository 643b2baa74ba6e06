"""What the terminal is: how wide, whether it shows colours and more than ASCII, and the lines that are written to it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from auditor import interrupt
from auditor.interrupt import shows_progress
from auditor.text import harmless

# what --color and --quiet say, for the one command that this process runs
_WANTED: dict[str, str] = {"color": "auto", "notes": "yes"}
# docs.github.com, workflow commands: "::" at the beginning of a line, after blanks
_COMMAND = re.compile(r"(?m)^((?: |\x1b\[[0-9;]{0,20}m)*):(?=:)")
_OURS = re.compile(r"(\n|\x1b\[[0-9;]{0,20}m)")


def width() -> int:
    """Columns of the terminal, 40 to 140; 100 in a pipe or where unknown. COLUMNS decides if it is a number."""
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit():
        columns = int(said.lstrip("0")[:9] or 0)  # int() itself refuses thousands of digits
    else:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0
    return min(max(columns, 40), 140) if columns else 100


def ascii_only() -> bool:
    """Python writes UTF-8 even where LC_ALL=C asks for less (PEP 540), unless PYTHONIOENCODING says otherwise."""
    if os.environ.get("LC_ALL") in ("C", "POSIX") and not os.environ.get("PYTHONIOENCODING"):
        return True
    return (sys.stdout.encoding or "ascii").lower().replace("-", "") not in ("utf8", "utf8sig")


def on_a_terminal() -> bool:
    """Whether somebody looks at it, or COLUMNS says how wide it is to be."""
    return sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))


def color() -> bool:
    """--color, then NO_COLOR and FORCE_COLOR (no-color.org, force-color.org), then whether this is a terminal."""
    if _WANTED["color"] != "auto":
        return _WANTED["color"] == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def wanted(color: str, quiet: bool) -> None:
    """Follow --color (auto, always, never) and --quiet."""
    _WANTED.update(color=color, notes="no" if quiet else "yes")


def look(output: Path | None) -> dict[str, Any]:
    """How a terminal report is to look: width, color, ascii_only. A file is no terminal."""
    return {} if output else {"width": width(), "color": color(), "ascii_only": ascii_only()}


def write(text: str, output: Path | None, summary: str, *, encoded: bool = False, mode: int = 0o600) -> None:
    """To a file, with a line on standard error about it, or to standard output. encoded: as UTF-8 anyway. Raises
    writing.CannotWrite."""
    shown = _shown(text, styled=output is None and color())
    if output:
        from auditor.host import user_files

        user_files.replace(output, shown.encode(), mode)
        written(output, summary)
    else:
        _out(shown.encode() if encoded else shown)


def written(path: Path, summary: str) -> None:
    """What is in a file that was written, on standard error, but for --quiet."""
    if _WANTED["notes"] == "yes":
        note(f"{path}: {summary}")


def say(text: str) -> None:
    _out(_shown(text).removesuffix("\n") + "\n")


def _out(text: str | bytes) -> None:
    try:
        with interrupt.waiting():  # for a pager
            if isinstance(text, str):
                sys.stdout.write(text)  # click would leave the colours out
                sys.stdout.flush()
            else:
                click.echo(text, nl=False)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from None


def note(text: str) -> None:
    """A line on standard error. Where none can be written, the work goes on and the exit code tells."""
    with suppress(OSError):
        click.echo(_shown(text), err=True, nl=not text.endswith("\n"))


def _shown(text: str, *, styled: bool = False) -> str:
    """Whatever a report let through: nothing leaves but lines of what is seen, and the colours of a styled one; and no line
    begins like a command to the agent of a CI, wherever the text was wrapped."""
    parts = _OURS.split(text) if styled else text.split("\n")
    lines = ("" if styled else "\n").join(part if _OURS.fullmatch(part) else harmless(part) for part in parts)
    return _COMMAND.sub(r"\1\\u003a", lines)


def steps() -> Callable[[str, float, float], None] | None:
    """Progress of a verification, with the time that is left of the run that is under way; on a terminal only."""
    if not shows_progress():
        return None

    def show(what: str, done: float, seconds: float) -> None:
        left = max(seconds - done, 0)
        sys.stderr.write(f"\r\x1b[K{harmless(what)}: {left:.0f} s left\r")
        sys.stderr.flush()

    return show
