"""Releases and ranges of them, as tables write them: ``2.2.0-2.2.4``, both ends included, or ``2.1.0-``, which no release of
its line mends. A release of 0.6 can have four numbers.

Not every version is of a release. META of OpenZFS's branch of development says X.Y.99 from the day on which X.Y is branched
off until the next line is (tag zfs-2.2.99 follows zfs-2.2.0-rc1, and zfs-2.3.0-rc1 contains it); what is to become X.Y.0 is
X.Y.0-rcN; and where it is built from git, the commits since the tag are counted: X.Y.Z-N_gHASH (config/zfs-meta.m4). Of such
a build its numbers do not say which commits it has, so that it is neither before nor after a release that is near.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Release = tuple[int, ...]  # three numbers; a line has two
Range = tuple[Release, Release]  # first, last; last has two numbers, its line, where no release of it mends the bug
ENDED = ((0, 6), (0, 7), (0, 8), (2, 0))  # lines that nobody mends any more, not even a distribution
LINES = (*ENDED, (2, 1), (2, 2), (2, 3), (2, 4))
DEVELOPMENT = 99  # the third number of what is built from the branch of development
REMEDY = "a release of OpenZFS (on TrueNAS: System, Update, until zfs version names one)"
_NUMBERS = re.compile(r"\d{1,9}(?:\.\d{1,9}){2,3}")
# of 2.4.0-rc1, 2.2.0-0ubuntu1~rc3, 2.2.5-12_g0123abc, 2.3.0-rc3_12_g0123abc
_MARK = re.compile(r"(?<![A-Za-z])(?:rc\d{1,3}(?![A-Za-z\d])|\d{1,6}[-_]g[0-9a-f]{5,40}(?!\w))", re.ASCII)


def of(text: str) -> Release | None:
    """The numbers that the text of a version begins with: (0, 6, 5, 2) of "0.6.5.2-1"."""
    found = _NUMBERS.match(text)
    return tuple(map(int, found[0].split("."))) if found else None


def version(text: str, numbers: str) -> tuple[int | str, ...]:
    """The numbers that a text begins with, and what makes it another version than theirs: (2, 4, 0, "rc3")."""
    found = _MARK.search(text, len(numbers))
    release = tuple(map(int, numbers.split(".")))
    return release if release[2:] == (DEVELOPMENT,) or found is None else (*release, found[0])


def candidate(version: tuple[object, ...]) -> bool:
    """Whether it is a candidate for a release: X.Y.0-rcN."""
    return str(version[-1]).startswith("rc")


def untold(one: tuple[object, ...], other: tuple[object, ...]) -> str:
    """Why the order of two versions says nothing of which has what the other has, or nothing where it does.

    Each is a release or a line (two numbers), or the numbers of a build and its mark. Features of a line are there when it is
    branched off, which is when X.Y.99 begins; what its releases fix may come to the branch of development later.
    """
    for build, beside in ((one, other), (other, one)):
        if (why := nature(build)) and not _far(build, tuple(each for each in beside if isinstance(each, int))):
            return why
    return ""


def nature(version: tuple[object, ...]) -> str:
    """What a version is that is not of a release, as a sentence; nothing for a release."""
    match version:
        case (int(major), int(minor), 99, *_):
            return (
                f"OpenZFS {major}.{minor}.{DEVELOPMENT} is no release, but a snapshot of its development between "
                f"{major}.{minor} and the next line: which fixes and which bugs it has, its number does not say"
            )
        case (int(), int(), int(), str(mark)):
            release = ".".join(map(str, version[:3]))
            if candidate(version):
                return f"OpenZFS {release}-{mark} came before {release}: which fixes it lacks, its number does not say"
            return (
                f"OpenZFS {release}-{mark} is {release} and commits after it: which they are, its number does not say"
            )
    return ""


def _far(build: tuple[object, ...], other: Release) -> bool:
    """Whether a build that is no release is surely before or after a release or a line, which stands as other."""
    numbers = tuple(each for each in build if isinstance(each, int))
    lines = _place(other) - _place(numbers)
    if not candidate(build) and numbers[2:] != (DEVELOPMENT,):  # a release and commits after it
        return lines != 0 or other < numbers
    lines += candidate(build)  # made of the branch of development that was there before it
    near = (0, 1) if candidate(build) else (-1, 0, 1)
    return lines != 1 if len(other) == 2 else lines not in near


def _place(release: Release) -> int:
    """Lines in the order in which they came, so that 2.0 follows 0.8."""
    major, minor, *_ = (*release, 0, 0)
    return minor if major == 0 else 9 * major - 9 + minor


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


def told(bounds: tuple[Range, ...]) -> str:
    """``all of 2.1, 2.2.1 and later of 2.2, 2.3.0 to 2.3.3``."""
    return ", ".join(map(_told, bounds))


def _told(bounds: Range) -> str:
    first, last = bounds
    if len(last) == 2:
        return f"all of {spelt(last)}" if first[2:] == (0,) else f"{spelt(first)} and later of {spelt(last)}"
    return spelt(first) if first == last else f"{spelt(first)} to {spelt(last)}"


def mended(bounds: tuple[Range, ...]) -> Iterator[Release]:
    """The first release of each line that has not the bug any more."""
    return (after(last) for _, last in bounds if len(last) > 2)


def without(bounds: tuple[Range, ...], release: Release) -> Release | None:
    """The next release that has not the bug: where no release of a line mends it, the first one of another line."""
    starts = ((*line, 0) for line in LINES)
    found = [*mended(bounds), *(start for start in starts if not any(within(each, start) for each in bounds))]
    return min((each for each in found if each > release), default=None)
