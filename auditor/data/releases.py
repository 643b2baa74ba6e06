"""Ranges of releases, as tables write them: ``2.2.0-2.2.4``, both ends included, or ``2.1.0-``, which no release of its line
mends. A release of 0.6 can have four numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

Release = tuple[int, ...]  # three numbers; a line has two
Range = tuple[Release, Release]  # first, last; last has two numbers, its line, where no release of it mends the bug
ENDED = ((0, 6), (0, 7), (0, 8), (2, 0))  # lines that nobody mends any more, not even a distribution
LINES = (*ENDED, (2, 1), (2, 2), (2, 3), (2, 4))
_NUMBERS = re.compile(r"\d{1,9}(?:\.\d{1,9}){2,3}")


def of(text: str) -> Release | None:
    """The numbers that the text of a version begins with: (0, 6, 5, 2) of "0.6.5.2-1"."""
    found = _NUMBERS.match(text)
    return tuple(map(int, found[0].split("."))) if found else None


def ranges(text: object) -> tuple[Range, ...]:
    """Those of a text, with spaces between them. Raises ValueError for what is none, and where there is none."""
    found = tuple(_range(each) for each in text.split()) if isinstance(text, str) else ()
    if not found:
        raise ValueError("affected must be text: FIRST-LAST or FIRST- of each line")
    return found


def _range(text: str) -> Range:
    first, mark, last = text.partition("-")
    try:
        start, end = (tuple(map(int, one.split("."))) for one in (first, last or first.rpartition(".")[0]))
    except ValueError:
        mark = ""
    if not mark or len(start) < 3 or len(end) < 2 or start[:2] != end[:2] or (end[2:] and end < start):
        raise ValueError(f"affected: {text!r} is not FIRST-LAST of one line, or FIRST-")
    return start, end


def within(bounds: Range, release: tuple[object, ...]) -> bool:
    """Whether a release is in the range."""
    numbers = tuple(part for part in release if isinstance(part, int))
    first, last = bounds
    return first <= numbers and numbers[: len(last)] <= last


def after(last: Release) -> Release:
    """The next release."""
    return (*last[:-1], last[-1] + 1)


def spelt(release: Release) -> str:
    """``2.2.4``."""
    return ".".join(map(str, release))


def mended(bounds: tuple[Range, ...]) -> Iterator[Release]:
    """The first release of each line that has not the bug any more."""
    return (after(last) for _, last in bounds if len(last) > 2)


def without(bounds: tuple[Range, ...], release: Release) -> Release | None:
    """The next release that has not the bug: where no release of a line mends it, the first one of another line."""
    starts = ((*line, 0) for line in LINES)
    found = [*mended(bounds), *(start for start in starts if not any(within(each, start) for each in bounds))]
    return min((each for each in found if each > release), default=None)
