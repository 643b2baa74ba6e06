"""Releases and ranges of them, as tables write them: ``2.2.0-2.2.4``, both ends included, or ``2.1.0-``, which no release of
its line mends. A release of 0.6 can have four numbers.

Not every version is of a release. META of OpenZFS's branch of development says X.Y.99 from the day on which X.Y is branched
off until the next line is (tag zfs-2.2.99 follows zfs-2.2.0-rc1, and zfs-2.3.0-rc1 contains it); what is to become X.Y.0 is
X.Y.0-rcN; and where it is built from git, the commits since the tag are counted: X.Y.Z-N_gHASH (config/zfs-meta.m4). Of such
a build its numbers do not say which commits it has, so that it is neither before nor after a release that is near.

And what releases have: fixes that builds of distributions carry (builds.toml), bugs (fixes.toml), and defaults of module
parameters (tunables.toml). The head of each file says what its words mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from auditor import data
from auditor.data import TableError

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
    numbers = tuple(part for part in release if isinstance(part, int))
    first, last = bounds
    return first <= numbers and numbers[: len(last)] <= last


def after(last: Release) -> Release:
    return (*last[:-1], last[-1] + 1)


def spelt(release: Release) -> str:
    """``2.2.4``."""
    return ".".join(map(str, release))


def in_words(bounds: tuple[Range, ...]) -> str:
    """``all of 2.1, 2.2.1 and later of 2.2, 2.3.0 to 2.3.3``."""
    return ", ".join(map(_told, bounds))


def _told(bounds: Range) -> str:
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
BUILD_TEXTS = ("name", "source", "newer")
BUILD_KEYS = frozenset({*BUILD_TEXTS, "fixes", "builds"})


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
    """Version -> build."""
    return parse_builds(data.table(BUILDS))


def parse_builds(document: data.Document) -> dict[str, Build]:
    """The builds of a table in this form. Raises TableError for anything misspelt, missing, of the wrong type or twice."""
    found: dict[str, Build] = {}
    for series, table in document.items():
        for version, build in _series(f"{BUILDS}: [{series}]", table):
            if version in found:
                raise TableError(f"{BUILDS}: [{series}]: {version} is there twice")
            found[version] = build
    return found


def _series(where: str, table: object) -> Iterator[tuple[str, Build]]:
    if not isinstance(table, Mapping) or set(table) != BUILD_KEYS or not isinstance(builds := table["builds"], list):
        raise TableError(f"{where}: it has {', '.join(sorted(BUILD_KEYS))}, and nothing else")
    if not all(isinstance(table[key], str) and table[key].strip() for key in BUILD_TEXTS):
        raise TableError(f"{where}: {', '.join(BUILD_TEXTS)} are texts")
    fixes = frozenset(data.texts(f"{where}: fixes", table["fixes"]))
    release = ""
    carries: tuple[str, ...] = ()
    for build in builds:
        if not isinstance(build, list) or len(build) != 2 or not isinstance(build[0], str):
            raise TableError(f"{where}: a build is [version, commits]")
        version, new = build
        if (number := version.partition("-")[0]) != release:
            release, carries = number, ()
        carries = (*carries, *data.texts(f"{where}: {version}", new))
        yield version, Build(table["name"], table["source"], table["newer"], fixes, carries)


# -- bugs that later releases fix, or that none does yet --------------------------------------------------------------
# fixes.toml: bugs of releases that later releases fix, or that none does yet. Its head says what its words mean.

FIXES = "fixes.toml"
NEWEST = ((2, 1, 16), (2, 2, 11), (2, 3, 9), (2, 4, 4))  # the tags that were there when it was made
DOES = ("loss", "errors", "panic", "hang", "boot", "slow", "other")  # the gravest first
USES = frozenset(
    {
        *("encryption", "dedup", "volumes", "nfs"),
        *("raidz", "draid", "mirror", "removal", "special", "log", "cache", "spares", "multihost", "autotrim"),
        *("cloning", "direct-io", "gang", "quotas", "snapshots", "sends", "rebuild"),
    }
)
NEEDED = {"bug", "does", "uses", "affected", "subject", "issues"}
MARKS = {"panic", "fault", "hung"}
UNRELEASED = {"unreleased", "until"}


class Fix(NamedTuple):
    """One entry. marks: of how it shows in the kernel's log, (word of MARKS, functions that are all in one message).
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
    """All entries, the gravest first, of these those first that need least in use. Raises TableError."""
    return parse_fixes(data.table(FIXES))


def parse_fixes(document: data.Document) -> tuple[Fix, ...]:
    """Raises TableError for anything misspelt, missing or of the wrong type."""
    found = [_fix(f"{FIXES}: [{name}]", name, entry) for name, entry in document.items()]
    return tuple(sorted(found, key=lambda fix: (DOES.index(fix.does), len(fix.uses))))


def _fix(where: str, name: str, entry: object) -> Fix:
    perhaps = MARKS | UNRELEASED
    if not isinstance(entry, dict) or not NEEDED <= entry.keys() <= NEEDED | perhaps:
        raise TableError(
            f"{where}: it has {', '.join(sorted(NEEDED))}, perhaps {', '.join(sorted(perhaps))}, and no more"
        )
    bug, does, subject = (entry[key] for key in ("bug", "does", "subject"))
    if not all(isinstance(each, str) and each.strip() for each in (bug, subject)) or does not in DOES:
        raise TableError(f"{where}: bug and subject are texts, does is one of {', '.join(DOES)}")
    uses, issues = entry["uses"], entry["issues"]
    if not isinstance(uses, list) or not USES.issuperset(uses):
        raise TableError(f"{where}: uses are of {', '.join(sorted(USES))}")
    if not isinstance(issues, list) or not all(type(each) is int for each in issues):
        raise TableError(f"{where}: issues are numbers")
    try:
        affected = ranges(entry["affected"])
    except ValueError as error:
        raise TableError(f"{where}: {error}") from None
    unreleased, until = entry.get("unreleased", False), entry.get("until", "")
    if not isinstance(unreleased, bool) or not isinstance(until, str) or (until and not unreleased) or "(" in until:
        raise TableError(f"{where}: unreleased is true or false, until a text of what is unreleased, without brackets")
    if unreleased is not (without(affected, affected[-1][0]) is None):
        raise TableError(f"{where}: {'a release fixes it' if unreleased else 'no release fixes it'}")
    marks = tuple(
        (kind, _functions(where, mark)) for kind in sorted(MARKS & entry.keys()) for mark in _list(where, entry[kind])
    )
    return Fix(name, bug, does, frozenset(uses), affected, subject, tuple(issues), marks, unreleased, until)


def _list(where: str, found: object) -> list[object]:
    if not isinstance(found, list) or not found:
        raise TableError(f"{where}: marks are lists of functions, those of hung lists of such lists")
    return found


def _functions(where: str, mark: object) -> frozenset[str]:
    found = [mark] if isinstance(mark, str) else _list(where, mark)
    if not all(isinstance(each, str) and each for each in found):
        raise TableError(f"{where}: marks are lists of functions, those of hung lists of such lists")
    return frozenset(map(str, found))


# -- defaults of module parameters by release -------------------------------------------------------------------------
# tunables.toml: defaults of module parameters by release, and what a change means. The file's head says how to read it.

TUNABLES = "tunables.toml"
CHANGED = ("low", "medium", "own", "meant")
TUNABLE_KEYS = frozenset({"default", "changed", "means"})


class Tunable(NamedTuple):
    """One parameter. steps: (from this release on, default), oldest first; "" is gone. changed: one of CHANGED."""

    name: str
    steps: tuple[tuple[Release, str], ...]
    changed: str
    means: str

    def default(self, release: Release) -> str:
        """The default of a release; "" where it has no such parameter."""
        return next((value for since, value in reversed(self.steps) if since <= release), "")


@cache
def load_tunables() -> dict[str, Tunable]:
    """All, by name. Raises TableError."""
    return parse_tunables(data.table(TUNABLES))


def parse_tunables(document: data.Document) -> dict[str, Tunable]:
    """The entries of a table in this form. Raises TableError for anything misspelt, missing or of the wrong type."""
    return {name: _tunable(name, table) for name, table in document.items()}


def _tunable(name: str, table: object) -> Tunable:
    if (
        not isinstance(table, dict)
        or TUNABLE_KEYS ^ set(table)
        or not all(isinstance(each, str) for each in table.values())
    ):
        raise TableError(f"{TUNABLES}: {name} needs {', '.join(sorted(TUNABLE_KEYS))}, as text, and nothing else")
    if table["changed"] not in CHANGED:
        raise TableError(f"{TUNABLES}: {name}: changed is one of {', '.join(CHANGED)}")
    steps = tuple(_steps(name, table["default"]))
    if not steps or list(steps) != sorted(steps):
        raise TableError(f"{TUNABLES}: {name}: default is RELEASE=VALUE, oldest release first")
    return Tunable(name, steps, table["changed"], table["means"])


def _steps(name: str, text: str) -> Iterator[tuple[Release, str]]:
    for step in text.split():
        since, mark, value = step.partition("=")
        numbers = since.split(".")
        if not mark or not value or len(numbers) != 3 or not all(number.isdigit() for number in numbers):
            raise TableError(f"{TUNABLES}: {name}: {step!r} is not RELEASE=VALUE")
        yield tuple(map(int, numbers)), "" if value == "-" else value
