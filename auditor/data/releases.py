"""Releases and ranges of them, as tables write them: ``2.2.0-2.2.4``, both ends included, or ``2.1.0-``, which no release of
its line fixes. A release of 0.6 can have four numbers.

Not every version is of a release. META of OpenZFS's branch of development says X.Y.99 from the day on which X.Y is branched
off until the next line is (tag zfs-2.2.99 follows zfs-2.2.0-rc1, and zfs-2.3.0-rc1 contains it); what is to become X.Y.0 is
X.Y.0-rcN; and where it is built from git, the commits since the tag are counted: X.Y.Z-N_gHASH (config/zfs-meta.m4). Of such
a build its numbers do not say which commits it has, so that it is neither before nor after a release that is near.

And what releases have: fixes that builds of distributions carry (builds.toml), bugs (fixes.toml), defaults of module
parameters (tunables.toml), and pages that came apart (torn_pages.toml). The head of each file says what its words mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Literal, NamedTuple

from auditor import data

Release = tuple[int, ...]  # three numbers; a line has two
Range = tuple[Release, Release]  # first, last; last has two numbers, its line, where no release of it fixes the bug
ENDED = ((0, 6), (0, 7), (0, 8), (2, 0))  # lines that nobody fixes any more, not even a distribution
LINES = (*ENDED, (2, 1), (2, 2), (2, 3), (2, 4))
DEVELOPMENT = 99  # the third number of what is built from the branch of development
REMEDY = "a release of OpenZFS (on TrueNAS: System, Update, until zfs version names one)"
_AS_TAGGED = re.compile(r"\d+\.\d+\.\d+(-1)?")
_NUMBERS = re.compile(r"\d{1,9}(?:\.\d{1,9}){2,3}")
# of 2.4.0-rc1, 2.2.0-0ubuntu1~rc3, 2.2.5-12_g0123abc, 2.3.0-rc3_12_g0123abc
_MARK = re.compile(r"(?<![A-Za-z])(?:rc\d{1,3}(?![A-Za-z\d])|\d{1,6}[-_]g[0-9a-f]{5,40}(?!\w))", re.ASCII)


def of(text: str) -> Release | None:
    """The numbers that the text of a version begins with: (0, 6, 5, 2) of "0.6.5.2-1"."""
    found = _NUMBERS.match(text)
    return tuple(map(int, found[0].split("."))) if found else None


def as_tagged(text: str) -> bool:
    """Whether a build has the name that OpenZFS gives it: 2.3.9, or 2.3.9-1 (Release: 1 in META)."""
    return bool(_AS_TAGGED.fullmatch(text))


def version(text: str, numbers: str) -> tuple[int | str, ...]:
    """The numbers that a text begins with, and what makes it another version than theirs: (2, 4, 0, "rc3")."""
    found = _MARK.search(text, len(numbers))
    release = tuple(map(int, numbers.split(".")))
    return release if release[2:] == (DEVELOPMENT,) or found is None else (*release, found[0])


def candidate(version: tuple[object, ...]) -> bool:
    """Whether it is a candidate for a release: X.Y.0-rcN."""
    return str(version[-1]).startswith("rc")


def untold(one: tuple[object, ...], other: tuple[object, ...]) -> str:
    """Why the order of two versions does not say which fixes they share; empty where it does. Each is a release, a line
    (two numbers), or a build with its mark. X.Y.99 begins with the features of line X.Y; fixes may come later."""
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
    numbers = tuple(part for part in release if isinstance(part, int))
    first, last = bounds
    return first <= numbers and numbers[: len(last)] <= last


def after(last: Release) -> Release:
    return (*last[:-1], last[-1] + 1)


def spelt(release: Release) -> str:
    return ".".join(map(str, release))


def in_words(bounds: tuple[Range, ...]) -> str:
    """``all of 2.1, 2.2.1 and later of 2.2, 2.3.0 to 2.3.3``."""
    return ", ".join(map(_spell, bounds))


def _spell(bounds: Range) -> str:
    first, last = bounds
    if len(last) == 2:
        return f"all of {spelt(last)}" if first[2:] == (0,) else f"{spelt(first)} and later of {spelt(last)}"
    return spelt(first) if first == last else f"{spelt(first)} to {spelt(last)}"


def first_fixed(bounds: tuple[Range, ...]) -> Iterator[Release]:
    """The first release of each line without the bug."""
    return (after(last) for _, last in bounds if len(last) > 2)


def without(bounds: tuple[Range, ...], release: Release) -> Release | None:
    """The next release without the bug: where no release of a line fixes it, the first one of another line."""
    starts = ((*line, 0) for line in LINES)
    found = [*first_fixed(bounds), *(start for start in starts if not any(within(each, start) for each in bounds))]
    return min((each for each in found if each > release), default=None)


# -- builds of distributions ------------------------------------------------------------------------------------------
# builds.toml: which commits of later releases the builds of distributions carry. Its head says what its words mean.

BUILDS = "builds.toml"


class Build(NamedTuple):
    """One build. newer: how to get a newer one; carries: subjects of commits; fixes: names of advisories."""

    name: str
    source: str
    newer: str
    fixes: frozenset[str]
    carries: tuple[str, ...]


def build_fact(bug: str) -> str:
    """The fact of the host that says whether its build has a bug, by the name of the advisory."""
    return f"build_has_{bug.replace('-', '_')}"


@cache
def load_builds() -> dict[str, Build]:
    return parse_builds(data.table(BUILDS))


def parse_builds(document: data.Document) -> dict[str, Build]:
    """Each build of a series carries what those of its release before it do."""
    found: dict[str, Build] = {}
    for series in document.values():
        release, carries = "", tuple[str, ...]()
        for version, new in series["builds"]:
            if (number := version.partition("-")[0]) != release:
                release, carries = number, ()
            carries = (*carries, *new)
            fixes = frozenset(series["fixes"])
            found[version] = Build(series["name"], series["source"], series["newer"], fixes, carries)
    return found


# -- bugs that later releases fix, or that none does yet --------------------------------------------------------------
# fixes.toml: bugs of releases that later releases fix, or that none does yet. Its head says what its words mean.

FIXES = "fixes.toml"
NEWEST = ((2, 1, 16), (2, 2, 11), (2, 3, 9), (2, 4, 4))  # the tags that were there when it was made
DOES = ("loss", "errors", "panic", "hang", "boot", "slow", "other")  # the most severe first


class Fix(NamedTuple):
    """One entry. marks: of how it shows in the kernel's log, (panic, fault or hung; functions that are all in one message).
    unreleased: no release fixes it, only what is developed now; until: what to do meanwhile, or nothing."""

    name: str
    bug: str
    does: str
    uses: frozenset[str]
    affected: tuple[Range, ...]
    subject: str
    issues: tuple[int, ...]
    marks: tuple[tuple[str, frozenset[str]], ...]
    unreleased: bool
    until: str

    @property
    def source(self) -> str:
        """Where to read about it: the commit by its subject, and what it names."""
        return f"openzfs/zfs commit '{self.subject}'" + "".join(f", #{each}" for each in self.issues)

    def fixed_in_line(self, release: Release) -> bool:
        """Whether a later release of the same line fixes it."""
        return bool((found := self.strikes(release)) and found[1][2:])

    def strikes(self, release: tuple[object, ...]) -> Range | None:
        """The range in which a release is, if it has the bug."""
        return next((each for each in self.affected if within(each, release)), None)


def fixes_cover(release: tuple[object, ...]) -> bool:
    """Whether the table was made after the release: what is fixed after a newer one nobody knew then."""
    return release < NEWEST[0][:2] or any(each[:2] == release[:2] and release <= each for each in NEWEST)


@cache
def load_fixes() -> tuple[Fix, ...]:
    """All entries, the most severe first, of these those first that need least in use."""
    return parse_fixes(data.table(FIXES))


def parse_fixes(document: data.Document) -> tuple[Fix, ...]:
    """The bugs of a table in this form."""
    found = [_fix(name, **entry) for name, entry in document.items()]
    return tuple(sorted(found, key=lambda fix: (DOES.index(fix.does), len(fix.uses))))


def _fix(
    name: str,
    bug: str,
    does: str,
    uses: list[str],
    affected: str,
    subject: str,
    issues: list[int],
    unreleased: bool = False,
    until: str = "",
    **marks: list[str | list[str]],
) -> Fix:
    shown = tuple(
        (kind, frozenset([one] if isinstance(one, str) else one)) for kind in sorted(marks) for one in marks[kind]
    )
    return Fix(name, bug, does, frozenset(uses), ranges(affected), subject, tuple(issues), shown, unreleased, until)


# -- defaults of module parameters by release -------------------------------------------------------------------------
# tunables.toml: defaults of module parameters by release, and what a change means. The file's head says how to read it.

TUNABLES = "tunables.toml"


class Tunable(NamedTuple):
    """One parameter. steps: (from this release on, default), oldest first; "" is gone. changed: low, medium, own or meant."""

    name: str
    steps: tuple[tuple[Release, str], ...]
    changed: str
    means: str

    def default(self, release: Release) -> str:
        """The default of a release; "" where it has no such parameter."""
        return next((value for since, value in reversed(self.steps) if since <= release), "")


@cache
def load_tunables() -> dict[str, Tunable]:
    return {name: _tunable(name, **entry) for name, entry in data.table(TUNABLES).items()}


def _tunable(name: str, default: str, changed: str, means: str) -> Tunable:
    """default: RELEASE=VALUE, the oldest release first."""
    steps = (each.partition("=") for each in default.split())
    found = tuple((of(since) or (), "" if value == "-" else value) for since, _, value in steps)
    return Tunable(name, found, changed, means)


# -- pages that came apart in the intent log --------------------------------------------------------------------------
# torn_pages.toml: which pages came apart in the intent log, tried on each line of OpenZFS. Its head explains its words.

TORN_PAGES = "torn_pages.toml"
KIB = 1024
LARGEST_RECORD = 128 * KIB  # record
# with what it was made
TORN_CONDITIONS = {"zil_maxblocksize": 131072, "zfs_immediate_write_sz": 32768}

Way = Literal["fsync", "always"]


class TornSetting(NamedTuple):
    """page: bytes; write: how a page is committed: by a later fsync, or always, with its write (sync=always, O_DSYNC)."""

    page: int
    logbias: str
    write: Way
    slog: bool


class TornPages(NamedTuple):
    """Of the releases first to last. apart: setting -> record in bytes -> at how many of so many lengths of the writes next to
    it a page came apart."""

    first: Release
    last: Release
    tried: str
    lengths: int
    apart: Mapping[TornSetting, Mapping[int, int]]

    def lengths_apart(self, setting: TornSetting, blocks: Iterable[int]) -> list[int] | None:
        """Of the records from the last that is no larger than these blocks to the first that is no smaller; None outside of
        the table. Blocks that are smaller than a page say nothing."""
        records = self.apart.get(setting, {})
        inside = [each for each in blocks if each >= setting.page]
        if not records or not inside or min(inside) < min(records) or max(inside) > max(records):
            return None
        least = max(each for each in records if each <= min(inside))
        most = min(each for each in records if each >= max(inside))
        return [apart for record, apart in records.items() if least <= record <= most]


def find_torn_pages(version: tuple[object, ...]) -> TornPages | None:
    return next(
        (each for each in load_torn_pages().values() if each.first <= version[:3] <= each.last and len(version) == 3),
        None,
    )


@cache
def load_torn_pages() -> dict[str, TornPages]:
    return parse_torn_pages(data.table(TORN_PAGES))


def parse_torn_pages(lines: data.Document) -> dict[str, TornPages]:
    """The tables of a document in this form."""
    return {line: _torn_pages(each) for line, each in lines.items()}


def _torn_pages(line: data.Document) -> TornPages:
    apart: dict[TornSetting, dict[int, int]] = {}
    for each in line["rows"]:
        records = apart.setdefault(TornSetting(each["page"] * KIB, each["logbias"], each["write"], each["slog"]), {})
        records |= {record * KIB: each["apart"] for record in each["recordsizes"]}
    first, last = (of(line[key]) or () for key in ("first", "last"))
    return TornPages(first, last, line["tried"], line["lengths"], apart)
