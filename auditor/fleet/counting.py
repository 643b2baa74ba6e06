"""Rows of ``zaudit fleet judge``, or of ``zaudit check --format jsonl``, counted for a report. They are untrusted: what is
missing or of another type is refused with the number of its line."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from sys import intern
from typing import Any, Literal, NamedTuple, TypeVar

from auditor import EXIT_USAGE, Stop, codec
from auditor.codec import moment, one_of, text
from auditor.judge.event import Severity
from auditor.judge.finding import RANK, exit_code
from auditor.report.formats.exchange import LINES
from auditor.report.report_reader import BugName, Outcome
from auditor.text import few, harmless, unknown_headline

STANDINGS = (
    *("stalled", "damaged", "lost", "corrupted", "cannot tell", "waived", "one failure away", "at risk"),
    *("on the word", "kept"),
)
LISTED = 100
Key = tuple[str, float, str]  # which look it was: at which host, when, and the recording


class BadRows(Stop):
    """A line that is no row, and why."""


class HostLook(NamedTuple):
    """A look at a host. taken: seconds since the epoch."""

    name: str
    taken: float
    recording: str
    openzfs: str
    standing: str
    rules: str

    @property
    def key(self) -> Key:
        return self.name, self.taken, self.recording


class FindingRow(NamedTuple):
    """A finding of one look. counts: it is neither waived nor known to a baseline."""

    key: Key
    id: str
    rule: str
    outcome: Outcome
    counts: bool
    severity: Severity
    place: str
    title: str
    command: str
    openzfs: str = ""
    models: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    bugs: tuple[BugName, ...] = ()


class Absent(NamedTuple):
    """A recording that was not judged or was there twice, or a host that did not come."""

    kind: Literal["unjudged", "duplicate", "missing"]
    name: str
    recording: str
    error: str


Row = HostLook | FindingRow | Absent


def rows(lines: Iterable[bytes]) -> Iterator[Row]:
    """Each row of a kind that is known. Raises BadRows."""
    for number, line in enumerate(lines, 1):
        try:
            table = json.loads(line)
            if table["schema"] != LINES:
                raise ValueError(f"its schema is not {LINES}")
            if row := _row(table):
                yield row
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            said = harmless(f"{type(error).__name__}: {error}"[:120])
            raise BadRows(f"line {number} is no row of zaudit fleet judge ({said})") from None


def _row(table: Mapping[str, Any]) -> Row | None:
    match table["kind"]:
        case "report":
            return HostLook(
                *_key(table), text(table["openzfs"]), one_of(table["standing"], STANDINGS), text(table["rules"])
            )
        case "finding":
            return _found(table)
        case "unjudged" | "duplicate" | "missing" as kind:
            name, recording, error = (text(table.get(key, "")) for key in ("name", "recording", "error"))
            return Absent(kind, name, recording, error)
        case _:
            return None


def _found(table: Mapping[str, Any]) -> FindingRow:
    commands, needs = _texts(table["fix"]["commands"]), text(table["fix"].get("needs", ""))
    title = text(table["title"])
    follows = {
        "key": [*_key(table)],
        "counts": table["outcome"] != "waived" and not table.get("known"),
        "title": unknown_headline(title) if "unknown" in (table["outcome"], table.get("was")) else title,
        "command": f"{needs}: {commands[0]}" if needs and commands else next(iter(commands), ""),
        **{name: table[name][:LISTED] for name in ("models", "remedies", "bugs") if name in table},
    }
    return codec.load(FindingRow, {**table, **follows}, "finding", codec.OF_ANY_RELEASE)


def _key(table: Mapping[str, Any]) -> Key:
    return text(table.get("name", table["host"])), moment(table["taken"]), text(table.get("recording", ""))


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{type(value).__name__} in place of a list")
    return tuple(map(text, value[:LISTED]))


# Which look at a host counts: the newest, as far as recordings may say so. One from the future would be the newest for
# ever, so it counts only without another, and the report says so. One that claims the name of another host takes its place:
# the report says that too.

NAMES = 6  # of a list, before the rest is counted
HOSTS = 1_000_000  # more is no fleet
AHEAD = 86400.0  # seconds that the clocks of two machines may differ
_DATE = r"\d{4}-?\d\d-?\d\d"
_DATED = re.compile(rf"[-_.@]{_DATE}")
_ARCHIVE = re.compile(r"\.(?:tar\.gz|tgz|zaudit)$")


@dataclass(slots=True)
class Looks:
    """newest: name -> the look that counts. total: how many looks. ahead: hosts with a look in the future. spread: hosts
    whose recordings lie in several folders that are no dates. claimed: names that recordings of several
    places claim, although at least one has another name, and how many of these places do not count."""

    newest: dict[str, HostLook] = field(default_factory=dict)
    absent: list[Absent] = field(default_factory=list)
    total: int = 0
    ahead: set[str] = field(default_factory=set)
    spread: set[str] = field(default_factory=set)
    claimed: dict[str, int] = field(default_factory=dict)


def looks(rows: Iterable[Row], now: float) -> Looks:
    """now: seconds since the epoch. Raises BadRows."""
    found = Looks()
    places: dict[str, set[str]] = {}
    folders: dict[str, str] = {}
    for row in rows:
        if isinstance(row, Absent):
            found.absent.append(row)
        elif isinstance(row, HostLook):
            found.total += 1
            if ahead(row.taken, now):
                found.ahead.add(row.name)
            places.setdefault(row.name, set()).add(place(row.recording, row.name))
            folder = folder_of(row.recording, row.name)
            if folders.setdefault(row.name, folder) != folder:
                found.spread.add(row.name)
            if (other := found.newest.get(row.name)) is None or _rank(other, now) < _rank(row, now):
                found.newest[row.name] = row
        if len(found.newest) + len(found.absent) > HOSTS:
            raise BadRows(f"more than {HOSTS:,} hosts")
    found.claimed = {name: len(at) - 1 for name, at in places.items() if len(at) > 1}
    return found


def ahead(taken: float, now: float) -> bool:
    return taken - now > AHEAD


def _rank(look: HostLook, now: float) -> tuple[bool, tuple[str, float, str]]:
    return not ahead(look.taken, now), look.key


def named(recording: str) -> Iterator[str]:
    """What a host may be called by the place of its recording: a folder or the name of the file, with a date behind it or
    without (db1/2026-11-22.tar.gz, db1.tar.gz, db1-2026-11-22.tar.gz). The outermost comes first: who may write into db2/
    names the files there."""
    path = PurePosixPath(recording)
    for name in (*path.parent.parts, _ARCHIVE.sub("", path.name)):
        yield name
        yield _DATED.split(name, maxsplit=1)[0]


def place(recording: str, host: str) -> str:
    """Where a recording comes from: empty if it is called like the host (no name is a place of another); else without
    dates."""
    if not recording or host in named(recording) or f"/{undated(recording)}".endswith(f"/{host}"):
        return ""
    return re.sub(_DATE, "", recording)


def folder_of(recording: str, host: str) -> str:
    """What is above the part of its path that a host is called by, without dates."""
    above, called, _ = f"/{undated(recording)}/".partition(f"/{host}/")
    return above if called else ""


def undated(recording: str) -> str:
    """The path of a recording without dates and ending, alike for each of one host; of a mere date its folder."""
    path = PurePosixPath(recording)
    parts = (
        _DATED.sub("", re.sub(rf"^{_DATE}$", "", each)) for each in (*path.parent.parts, _ARCHIVE.sub("", path.name))
    )
    return "/".join(filter(None, parts)) or recording


def names(every: Iterable[str], most: int = NAMES) -> str:
    return few(sorted(every), most)


# The rows of many hosts, counted: of each host its newest look, and what fails, what is unknown, and why.


GRAVE: tuple[Severity, ...] = ("critical", "high")
KEPT = 12  # findings of a host that a page shows; the rows have all
KINDS = 1_000_000  # lines of one table, each with the hosts that it is about
OF_ONE = 1_000  # lines that one host adds to all tables together: no honest one has so much that no other has
ADVISORY = "advisory-"
OLD = 7 * 86400.0  # seconds after which a look is no longer one at the fleet of today
_Key = TypeVar("_Key")
Read = Callable[[], Iterable[bytes]]


@dataclass(slots=True)
class Host:
    """One host, by its newest look. failed, open: findings of each severity that fail or are unknown; worst: the first of
    them. grave: rule -> severity, critical or high, of what fails. lines: of the tables that it is the first on."""

    seen: HostLook
    failed: Counter[Severity] = field(default_factory=Counter)
    open: Counter[Severity] = field(default_factory=Counter)
    worst: list[FindingRow] = field(default_factory=list)
    grave: dict[str, Severity] = field(default_factory=dict)
    lines: int = 0

    @property
    def gravity(self) -> tuple[object, ...]:
        """The worst hosts come first."""
        counts = [-each[severity] for severity in GRAVE for each in (self.failed, self.open)]
        return (STANDINGS.index(self.seen.standing), *counts, self.seen.name)


@dataclass(slots=True)
class Line:
    """One line of a table: hosts where it fails, where it is unknown. severity: the most severe. title: of a failure, if
    any."""

    severity: Severity = "low"
    title: str = ""
    failed: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)

    def add(self, found: FindingRow) -> None:
        if RANK[found.severity] >= RANK[self.severity]:
            self.severity = found.severity
        if not self.title or (found.outcome == "fail" and not self.failed):
            self.title = found.title
        (self.failed if found.outcome == "fail" else self.open).add(found.key[0])

    @property
    def gravity(self) -> tuple[int, int, int]:
        """What fails before what is unknown; the most severe first, then by how many hosts."""
        return -RANK[self.severity] if self.failed else 1, -len(self.failed), -len(self.open)


class News(NamedTuple):
    """What changed since an earlier report. fresh: new failures of hosts that were there. gone: failures no longer there.
    unseen: failures that are unknown now. came, left: hosts. rules: other rules judged."""

    fresh: tuple[FindingRow, ...]
    gone: int
    unseen: int
    came: tuple[str, ...]
    left: tuple[str, ...]
    rules: bool


@dataclass(slots=True)
class Fleet:
    """hosts: the worst first. absent: not judged, or missing. older: looks that newer ones replace. ahead, spread, claimed:
    as of Looks. crowded: hosts with more for the tables than they hold of one. now: seconds since the epoch."""

    hosts: list[Host]
    absent: list[Absent]
    older: int
    twice: int
    rules: dict[str, Line]
    models: dict[tuple[str, str], Line]
    advisories: dict[tuple[str, str], Line]
    remedies: dict[str, Line]
    waived: int
    now: float = 0.0
    ahead: tuple[str, ...] = ()
    spread: tuple[str, ...] = ()
    claimed: Mapping[str, int] = field(default_factory=dict)
    crowded: set[str] = field(default_factory=set)
    news: News | None = None

    @property
    def standings(self) -> dict[str, int]:
        """How many hosts have which standing, the worst first; those not judged count as unknown."""
        found = Counter(host.seen.standing for host in self.hosts)
        found["cannot tell"] += len(self.absent)
        return {standing: found[standing] for standing in STANDINGS if found[standing]}

    @property
    def total(self) -> int:
        return len(self.hosts) + len(self.absent)

    @property
    def aside(self) -> int:
        """Places that claim the name of a host of another place; one of them counts."""
        return sum(self.claimed.values())

    @property
    def stale(self) -> list[Host]:
        """Those whose newest look is much older than the newest of all."""
        newest = max((host.seen.taken for host in self.hosts if not ahead(host.seen.taken, self.now)), default=0.0)
        return [host for host in self.hosts if newest - host.seen.taken > OLD]

    def exit_code(self, threshold: Severity, *, failed_only: bool = False) -> int:
        """As of a check; an unjudged host may be as bad as any. EXIT_USAGE where more places were left aside than count."""
        if self.aside > len(self.hosts):
            return EXIT_USAGE
        every: list[tuple[Severity, bool]] = [("critical", False)] * bool(self.absent)
        for host in self.hosts:
            every += [(severity, True) for severity in host.failed] + [(severity, False) for severity in host.open]
        return exit_code(every, threshold, failed_only=failed_only)


def fleet(read: Read, before: Read | None, now: float) -> Fleet:
    """What the rows come to. read, before (of an earlier time): give the lines from the beginning. Raises BadRows."""
    seen = looks(rows(read()), now)
    hosts = {name: Host(look) for name, look in seen.newest.items()}
    absent = [each for each in seen.absent if each.kind != "duplicate"]
    found = Fleet([], absent, seen.total - len(hosts), len(seen.absent) - len(absent), {}, {}, {}, {}, 0, now)
    found.ahead, found.spread, found.claimed = tuple(seen.ahead), tuple(seen.spread), seen.claimed
    for each in _findings(read, seen.newest):
        _count(found, hosts[each.key[0]], each)
    if before:
        found.news = _news(before, read, seen.newest, now)
    found.hosts = sorted(hosts.values(), key=lambda host: host.gravity)
    return found


def _findings(read: Read, hosts: dict[str, HostLook]) -> Iterator[FindingRow]:
    """Those of the newest looks. Raises BadRows for one of a look that is not there."""
    for row in rows(read()):
        if isinstance(row, FindingRow):
            if row.key[0] not in hosts:
                raise BadRows(f"a finding of {row.key[0]} without a row of kind report")
            if row.key == hosts[row.key[0]].key:
                yield row


def _count(found: Fleet, host: Host, each: FindingRow) -> None:
    if not each.counts:
        found.waived += 1
        return
    (host.failed if each.outcome == "fail" else host.open)[each.severity] += 1
    if len(host.worst) < KEPT:
        host.worst.append(each)
    if each.outcome == "fail" and each.severity in GRAVE and len(host.grave) < KEPT:
        host.grave.setdefault(intern(each.rule), each.severity)
    _add(found.rules, each.rule, each, found, host)
    for model in each.models:
        _add(found.models, (model, each.rule), each, found, host)
    alone = (
        ((each.rule, each.severity),) if each.rule.startswith(ADVISORY) else ()
    )  # in rows of 0.2 each bug is a finding
    for bug, severity in (*each.bugs, *alone):
        one = each._replace(rule=bug, severity=severity)
        _add(found.advisories, (each.openzfs or host.seen.openzfs, bug), one, found, host)
    if each.outcome == "unknown":
        for remedy in each.remedies:
            _add(found.remedies, remedy, each, found, host)


def _add(lines: dict[_Key, Line], key: _Key, each: FindingRow, found: Fleet, host: Host) -> None:
    """To the line of a table. A host has a share of new lines, so that none makes the tables too long for the others."""
    if (line := lines.get(key)) is None:
        if host.lines == OF_ONE or len(lines) == KINDS:
            found.crowded.add(host.seen.name)
            return
        host.lines += 1
        line = lines[key] = Line()
    line.add(each)


def _news(before: Read, read: Read, hosts: dict[str, HostLook], now: float) -> News:
    then = looks(rows(before()), now).newest
    there = {(each.key[0], each.id) for each in _findings(before, then) if each.outcome == "fail"}
    failing, unknown, fresh = set(), set(), []
    for each in _findings(read, hosts):
        if each.outcome == "fail":
            failing.add((each.key[0], each.id))
            if each.counts and each.key[0] in then and (each.key[0], each.id) not in there:
                fresh.append(each)
        elif each.outcome == "unknown":
            unknown.add((each.key[0], each.rule))
    lost = [
        each
        for each in _findings(before, then)
        if each.outcome == "fail" and each.key[0] in hosts and (each.key[0], each.id) not in failing
    ]
    unseen = sum((each.key[0], each.rule) in unknown for each in lost)
    digests = [{look.rules for look in each.values()} for each in (then, hosts)]
    return News(
        fresh=tuple(sorted(fresh, key=lambda each: (-RANK[each.severity], each.rule, each.key))),
        gone=len(lost) - unseen,
        unseen=unseen,
        came=tuple(sorted(hosts.keys() - then.keys())),
        left=tuple(sorted(then.keys() - hosts.keys())),
        rules=digests[0] != digests[1],
    )
