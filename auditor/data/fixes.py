"""fixes.toml: bugs of releases that later releases fix, or that none does yet. Its head says what its words mean."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from auditor import data
from auditor.data import TableError, releases
from auditor.data.releases import Range

FILE = "fixes.toml"
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

    def strikes(self, release: tuple[object, ...]) -> Range | None:
        """The range in which a release is, if it has the bug."""
        return next((each for each in self.affected if releases.within(each, release)), None)


def covers(release: tuple[object, ...]) -> bool:
    """Whether the table was made after the release: what is fixed after a newer one nobody knew then."""
    return release < NEWEST[0][:2] or any(each[:2] == release[:2] and release <= each for each in NEWEST)


@cache
def load() -> tuple[Fix, ...]:
    """All entries, the gravest first, of these those first that need least in use. Raises TableError."""
    return parse(data.table(FILE))


def parse(document: data.Document) -> tuple[Fix, ...]:
    """Raises TableError for anything misspelt, missing or of the wrong type."""
    found = [_fix(f"{FILE}: [{name}]", name, entry) for name, entry in document.items()]
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
        affected = releases.ranges(entry["affected"])
    except ValueError as error:
        raise TableError(f"{where}: {error}") from None
    unreleased, until = entry.get("unreleased", False), entry.get("until", "")
    if not isinstance(unreleased, bool) or not isinstance(until, str) or (until and not unreleased) or "(" in until:
        raise TableError(f"{where}: unreleased is true or false, until a text of what is unreleased, without brackets")
    if unreleased is not (releases.without(affected, affected[-1][0]) is None):
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
