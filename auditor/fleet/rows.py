"""Rows of ``zaudit fleet judge``, or of ``zaudit check --format jsonl``, as what a report needs of them. They are as
untrusted as any file: what is missing or of another type is refused with the number of its line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

from auditor import codec
from auditor.codec import moment, one_of, text
from auditor.errors import Stop
from auditor.judge.event import Severity
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
        """Which look it was."""
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
    commands, title = _texts(table["fix"]["commands"]), text(table["title"])
    follows = {
        "key": [*_key(table)],
        "counts": table["outcome"] != "waived" and not table.get("known"),
        "title": unknown_headline(title) if "unknown" in (table["outcome"], table.get("was")) else title,
        "command": _step(table["fix"], commands)[0] if commands else "",
        **{name: table[name][:LISTED] for name in ("models", "remedies", "bugs") if name in table},
    }
    return codec.load(FindingRow, {**table, **follows}, "finding", codec.OF_ANY_RELEASE)


def _step(fix: Mapping[str, Any], commands: tuple[str, ...]) -> tuple[str, ...]:
    """The commands, the first behind what it needs."""
    needs = text(fix.get("needs", ""))
    return (f"{needs}: {commands[0]}", *commands[1:]) if needs and commands else commands


def _key(table: Mapping[str, Any]) -> Key:
    return text(table.get("name", table["host"])), moment(table["taken"]), text(table.get("recording", ""))


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{type(value).__name__} in place of a list")
    return tuple(map(text, value[:LISTED]))


# Which look at a host counts: the newest, as far as the hosts themselves may say so.
#
# A recording says what its host is called and when it was taken. One that says that it was taken in a time that has not come
# would be the newest for ever, so it counts only where there is no other, and is told. One that takes the name of another host
# stands in its place: nobody can tell here which of them is that host, so it is told.

NAMES = 6  # of a list, before the rest is counted
HOSTS = 1_000_000  # more is no fleet
AHEAD = 86400.0  # seconds that the clocks of two machines may differ
_DATE = r"\d{4}-?\d\d-?\d\d"
_DATED = re.compile(rf"[-_.@]{_DATE}")
_ARCHIVE = re.compile(r"\.(?:tar\.gz|tgz|zaudit)$")


@dataclass(slots=True)
class Looks:
    """newest: name -> the look that counts. absent: what is no look. total: how many looks there are. ahead: hosts with a look
    in the future. spread: hosts whose recordings lie in several folders that are no dates. claimed: names that recordings of
    several places have, of which at least one is not called so, and of how many places none counts."""

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
    """Whether that time has not come."""
    return taken - now > AHEAD


def _rank(look: HostLook, now: float) -> tuple[bool, tuple[str, float, str]]:
    return not ahead(look.taken, now), look.key


def named(recording: str) -> Iterator[str]:
    """What a host may be called by where its recording lies: by a folder or the name of the file, with a date behind it or
    without (db1/2026-11-22.tar.gz, db1.tar.gz, db1-2026-11-22.tar.gz). The outermost comes first: who may write into db2/
    names the files there."""
    path = PurePosixPath(recording)
    for name in (*path.parent.parts, _ARCHIVE.sub("", path.name)):
        yield name
        yield _DATED.split(name, maxsplit=1)[0]


def place(recording: str, host: str) -> str:
    """Where a recording comes from that says that it is of this host: the same for all that are called so, else its path
    without dates. A name that is a place means no other."""
    if not recording or host in named(recording) or f"/{undated(recording)}".endswith(f"/{host}"):
        return ""
    return re.sub(_DATE, "", recording)


def folder_of(recording: str, host: str) -> str:
    """What is above the part of its path that a host is called by, without dates."""
    above, called, _ = f"/{undated(recording)}/".partition(f"/{host}/")
    return above if called else ""


def undated(recording: str) -> str:
    """The path of a recording without dates and ending: the same for each recording of one host; of a file that is nothing
    but a date its folder."""
    path = PurePosixPath(recording)
    parts = (
        _DATED.sub("", re.sub(rf"^{_DATE}$", "", each)) for each in (*path.parent.parts, _ARCHIVE.sub("", path.name))
    )
    return "/".join(filter(None, parts)) or recording


def names(every: Iterable[str], most: int = NAMES) -> str:
    """The first few, and how many more there are."""
    return few(sorted(every), most)
