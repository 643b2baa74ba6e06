"""What a database counts of its own syncs, next to what the kernel counted. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from auditor import codec, data
from auditor.databases import ENGINES
from auditor.diagnose.commits import FEW, Trace
from auditor.diagnose.diagnosis import Row, View, Wait
from auditor.diagnose.observation import FILE, Observation
from auditor.facts import HOST, Facts, Known, Subject, Unknown
from auditor.text import crowded, duration, size

# What a database reports of its counters, read strictly, and how they grew. A counter that fell, is missing, or whose
# statistics were reset is None with a reason, never 0.

MOST = 1 << 20  # characters of an answer
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?(?:e[+-]?[0-9]{1,3})?")
Table = Mapping[str, str | None]


class CounterSnapshot(NamedTuple):
    """An answer of :mod:`auditor.host.sql_watch`. began, until: its ``from`` and ``to``. before, after: table -> column ->
    text. waits: "TYPE EVENT" -> backends that waited for it in all moments, and at most at once; empty words for those that
    ran. moments: how many. threads: of the server. process: of the server, 0 where it was not found here (unseen). sees: it
    may see the waits of other users' backends. timed: file events with times. faults: table -> why it could not be read.
    ended: why the look ended early, or empty."""

    began: float
    until: float
    before: Mapping[str, Table]
    after: Mapping[str, Table]
    waits: Mapping[str, tuple[int, int]]
    moments: int
    threads: tuple[int, ...]
    settings: Mapping[str, str]
    ended: str
    process: int = 0  # from here on: not in an answer of earlier releases
    unseen: str = ""
    sees: bool = True
    timed: tuple[str, ...] = ()
    faults: Mapping[str, str] = MappingProxyType({})

    @property
    def seconds(self) -> float:
        return self.until - self.began

    @property
    def active(self) -> int:
        """Backends that were at work, in all moments."""
        return sum(together for together, _ in self.waits.values())

    def has(self, table: str, column: str) -> bool:
        return self.before.get(table, {}).get(column) is not None

    def grown(self, table: str, column: str) -> float | None:
        """Between the readings; None where it is not counted, or not known (:meth:`why`)."""
        earlier, later = (number(each.get(table, {}).get(column)) for each in (self.before, self.after))
        return later - earlier if earlier is not None and later is not None and not self.why(table, column) else None

    def why(self, table: str, column: str) -> str:
        """Why the growth of a counter is unknown, or an empty string."""
        if not self.has(table, column):
            return ""
        if not self.after:
            return f"the second reading is missing: {self.ended or 'the look ended early'}"
        earlier, later = self.before[table], self.after.get(table, {})
        if earlier.get("stats_reset") != later.get("stats_reset"):
            return f"the statistics of {table} were reset meanwhile"
        values = number(earlier.get(column)), number(later.get(column))
        if values[0] is None or values[1] is None:
            return f"{column} of {table} is no number"
        up = [number(each.get("status", {}).get("Uptime")) for each in (self.before, self.after)]
        if values[1] < values[0] or (up[0] is not None and up[1] is not None and up[1] < up[0]):
            return f"{column} of {table} fell: the server was restarted, or its statistics were reset"
        return ""


def number(text: str | None) -> float | None:
    if text is None or not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) and value < 2**63 else None


def parse_counters(text: str) -> CounterSnapshot:
    """Raises ValueError for what is no answer of :mod:`auditor.host.sql_watch`."""
    if len(text) > MOST or crowded(text):
        raise ValueError("it is too long")
    try:
        found = json.loads(text)
        answer = {**found, "began": found["from"], "until": found["to"]}
        result = codec.load(CounterSnapshot, answer, how=codec.LENIENT)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"it is not understood ({type(error).__name__})") from None
    if result.seconds <= 0:
        raise ValueError("the clock was set back meanwhile")
    return result


# What an engine counts of its syncs, by the table of counters.


class Counter(NamedTuple):
    """One of the table, whose head says what its words mean."""

    what: str
    columns: tuple[tuple[str, str, str], ...]
    unit_ns: float = 1e6
    timed: str = ""
    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    always: bool = False

    def source(self, said: CounterSnapshot) -> tuple[str, str, str]:
        """Table, column and the column of their time, of this server."""
        return next((each for each in self.columns if said.has(*each[:2])), self.columns[-1])

    def applies(self, said: CounterSnapshot) -> bool:
        """Whether it is one of the rows of this server."""
        chosen = (not self.only or _begins(said, *self.only)) and not (self.but and _begins(said, *self.but))
        return chosen and (self.always or said.has(*self.source(said)[:2]))


def _begins(said: CounterSnapshot, setting: str, *values: str) -> bool:
    return said.settings.get(setting, "").lower().startswith(values)


@cache
def counters(engine: str) -> tuple[Counter, ...]:
    return tuple(data.record(Counter, each) for each in data.table(FILE)[engine]["counter"])


def rows_of(said: CounterSnapshot, engine: str) -> tuple[Row, ...]:
    """The first is that of the syncs of the log."""
    return tuple(_row(said, each) for each in counters(engine) if each.applies(said))


def _row(said: CounterSnapshot, counter: Counter) -> Row:
    table, column, time = counter.source(said)
    what = counter.what.format_map(said.settings)
    if not said.has(table, column):
        return Row(
            what, None, None, _uncounted(said) if table.startswith("wait/") else "this server does not count them"
        )
    grown = said.grown(table, column)
    if grown is None:
        return Row(what, None, None, said.why(table, column))
    count = int(grown)
    if not time or not count:
        return Row(what, count, None, "")
    if counter.timed and said.settings.get(counter.timed) != "on":
        setting = said.settings.get(counter.timed, "not shown")
        return Row(what, count, None, f"not timed: {counter.timed} is {setting}")
    if not counter.timed and table not in said.timed:
        return Row(what, count, None, "not timed: setup_instruments does not time them")
    took = said.grown(table, time)
    if not took:
        return Row(what, count, None, said.why(table, time) or "no time of theirs was counted")
    return Row(what, count, took * counter.unit_ns / count, "")


def _uncounted(said: CounterSnapshot) -> str:
    """Why performance_schema does not count a file."""
    if said.settings.get("performance_schema", "").upper() in ("OFF", "0"):
        return "not counted and not timed: performance_schema is off"
    if fault := said.faults.get("file_summary_by_event_name"):
        return f"performance_schema may not be read ({fault})"
    if len(said.before) > 1:
        return "performance_schema does not count them"
    return "performance_schema counts nothing that this user is shown"


def _commands(said: CounterSnapshot, listed: Sequence[tuple[str, str]]) -> Iterator[str]:
    return (command for command, table in listed if not table or any(each.startswith(table) for each in said.before))


def _settings(said: CounterSnapshot, listed: Sequence[str]) -> Iterator[str]:
    """NAME = VALUE, as far as they are shown, and how full the log of InnoDB is."""
    for name, _, unit in (each.partition("=") for each in listed):
        if name in said.settings:
            yield f"{name} = {said.settings[name]}{unit}"
    status = said.after.get("status", {})
    age, most = (number(status.get(f"Innodb_checkpoint_{name}")) for name in ("age", "max_age"))
    if age is None:  # MySQL 8.0.30 and later
        now, checkpoint = (number(status.get(f"Innodb_redo_log_{name}_lsn")) for name in ("current", "checkpoint"))
        age = now - checkpoint if now is not None and checkpoint is not None else None
        most = number(status.get("Innodb_redo_log_capacity_resized"))
    if age is not None and most:
        yield f"checkpoint age at the end: {size(age)} of {size(most)}"


def checkpoints(said: CounterSnapshot) -> tuple[int, int, str] | None:
    """(requested, by time, the table that counts them); None where that is not known."""
    asked, timed = (each.source(said) for each in counters("postgres") if each.what.startswith("checkpoints "))
    found = said.grown(*asked[:2]), said.grown(*timed[:2])
    return None if found[0] is None or found[1] is None else (int(found[0]), int(found[1]), asked[0])


def trigger(said: CounterSnapshot) -> int | None:
    """Least bytes of WAL, in whole segments, between two checkpoints that WAL causes. (PostgreSQL
    src/backend/access/transam/xlog.c CalculateCheckpointSegments(), XLogCheckpointNeeded())"""
    words = ("max_wal_size", "checkpoint_completion_target", "wal_segment_size")  # in MiB, as a share, in bytes
    most, target, segment = (number(said.settings.get(each)) for each in words)
    if most is None or target is None or segment is None or segment < 1:
        return None
    return max(int(int(most * (1 << 20) / segment) / (1 + target)), 1) * int(segment)


# The database's view of the same time, next to the kernel's: counters, waits, and whether both agree.

FAR = 3.0  # times as many, or as long, from which on two witnesses do not agree
LATE_S, LEAST_S = 2.0, 5.0  # by which its counters and the first reading may be late; too much of a shorter time
WAITS = 12  # that are told
KERNEL = "commits by its processes"
APART = ("checkpointer",)  # roles whose syncs are not those of commits


class DatabaseFindings(NamedTuple):
    """The view, and its source. said: None without an answer. differs: where it contradicts the kernel, or empty. here: it
    runs on this host, and its log is not known to lie elsewhere."""

    view: View
    said: CounterSnapshot | None = None
    differs: str = ""
    here: bool = False


def compare_database(observed: Observation, facts: Facts, trace: Trace) -> DatabaseFindings | None:
    """None without --db."""
    asked = observed.database
    if asked is None:
        return None
    engine = ENGINES.get(asked.engine)
    title = engine.title if engine else "the database"
    place = _place(facts, observed.pool)
    nothing = View(title, place.server, "", (), None, (), 0.0, (), (), ())
    if asked.fault:
        return DatabaseFindings(nothing._replace(unseen=(asked.fault,)))
    try:
        found = parse_counters(asked.said)
    except ValueError as error:
        return DatabaseFindings(nothing._replace(unseen=(f"what it answered could not be used: {error}",)))
    postgres = asked.engine == "postgres"
    kind = "postgres" if postgres else "mysql"
    of = data.table(FILE)[kind]
    rows = rows_of(found, kind)
    kernel = _kernel(found, trace, observed, postgres) if not place.why and observed.traced else None
    unseen = [place.why] if place.why else []
    if observed.traced is None:
        unseen.append(f"the kernel's side was not traced: {observed.untraced}")
    if not found.sees:
        unseen.append(of["hidden"])
    elif "PROCESSLIST" in found.faults:
        unseen.append(f"what sessions wait for: PROCESSLIST may not be read ({found.faults['PROCESSLIST']})")
    seconds = observed.after.at - observed.before.at
    together = abs(found.seconds - seconds) <= max(LATE_S, 0.1 * seconds)
    if not together:
        unseen.append(f"all of the time: it was asked for {found.seconds:.0f} s of {seconds:.0f} s")
    if found.ended:
        unseen.append(f"the look ended early: {found.ended}")
    view = View(
        engine=title,
        server=place.server,
        first=_first(title, rows[0], kernel),
        rows=rows,
        kernel=kernel,
        waits=_waits(found, of["waits"]) if found.sees else (),
        active=found.active / found.moments if found.moments else 0.0,
        settings=tuple(_settings(found, of["settings"])),
        unseen=tuple(unseen),
        commands=tuple(_commands(found, of["commands"])),
    )
    compared = together and seconds >= LEAST_S
    differs = _differs(title, rows[0], kernel, postgres) if compared else ""
    return DatabaseFindings(view, found, differs, found.process > 0 and not place.elsewhere)


def elsewhere(facts: Facts, pool: str) -> str:
    """Why the database is not one of this pool, or an empty string."""
    for database in facts.linked(HOST, "connected_database"):
        found = facts.get(database, "datasets")
        if isinstance(found, Known) and not _inside(facts, database, "datasets", pool):
            names = ", ".join(each.name for each in facts.linked(database, "datasets")) or "no dataset at all"
            return f"{database.name} keeps its files on {names}, and none on {pool}"
    return ""


class _Place(NamedTuple):
    """server: which it is, or empty. why: its log is not known to lie on the pool, or empty; elsewhere: it is known not to."""

    server: str
    why: str = ""
    elsewhere: bool = False


def _place(facts: Facts, pool: str) -> _Place:
    linked = facts.get(HOST, "connected_database")
    databases = facts.linked(HOST, "connected_database")
    if not databases:
        why = linked.reasons[0].text if isinstance(linked, Unknown) else "the audit did not find it"
        return _Place("", f"whether it lies on {pool} is not known: {why}")
    database = databases[0]
    found = facts.get(database, "log_datasets")
    if isinstance(found, Unknown):
        return _Place(database.name, f"whether its log lies on {pool} is not known: {found.reasons[0].text}")
    if not _inside(facts, database, "log_datasets", pool):
        names = ", ".join(each.name for each in facts.linked(database, "log_datasets")) or "no dataset"
        why = f"its log lies on {names}, not on {pool}: its syncs are not those of this pool"
        return _Place(database.name, why, elsewhere=True)
    return _Place(database.name)


def _inside(facts: Facts, database: Subject, link: str, pool: str) -> bool:
    return any(each.name.partition("/")[0] == pool for each in facts.linked(database, link))


def _kernel(found: CounterSnapshot, trace: Trace, observed: Observation, postgres: bool) -> Row:
    """Commits of its threads. A process that came and went between two looks is not known to be one of them."""
    if not found.threads:
        return Row(KERNEL, None, None, found.unseen or "which processes are its own was not seen")
    if not trace.whole:
        return Row(KERNEL, None, None, "the kernel's histograms are not whole")
    apart = {each.pid for each in observed.processes if each.role in APART}
    own = [each for each in trace.threads if each.pid in found.threads and each.pid not in apart]
    commits, us = sum(each.commits for each in own), sum(each.us for each in own)
    gone = sum(each.commits for each in trace.threads if each.name == "postgres" and each.pid not in found.threads)
    why = f"and {gone:,} by processes called postgres that came and went, or are of another server" if gone else ""
    return Row(KERNEL, commits, us * 1000 / commits if commits else None, why if postgres else "")


def _first(title: str, row: Row, kernel: Row | None) -> str:
    """PostgreSQL: 1,204 WAL syncs, 26.9 ms each (kernel: 1,201 commits by its processes, 27.1 ms)."""
    if row.counted is None:
        return f"{title}: {row.what} are not known: {row.why}"
    each = f", {duration(row.mean_ns)} each" if row.mean_ns is not None else ""
    beside = ""
    if kernel and kernel.counted is not None:
        took = f", {duration(kernel.mean_ns)}" if kernel.mean_ns is not None else ""
        beside = f" (kernel: {kernel.counted:,} {kernel.what}{took})"
    return f"{title}: {row.counted:,} {row.what}{each}{beside}"


def _waits(found: CounterSnapshot, words: Mapping[str, str]) -> tuple[Wait, ...]:
    told = [
        Wait(words.get(what.lower(), what), together / found.moments, most)
        for what, (together, most) in found.waits.items()
        if found.moments
    ]
    return tuple(sorted(told, key=lambda each: (-each.mean, each.what))[:WAITS])


def _differs(title: str, row: Row, kernel: Row | None, postgres: bool) -> str:
    """Commits are syncs of other files, too, which MySQL and MariaDB do not count."""
    if row.counted is None or kernel is None or kernel.counted is None or kernel.why:
        return ""
    many, few = max(row.counted, kernel.counted), min(row.counted, kernel.counted)
    if many >= FEW and many >= FAR * few and (postgres or row.counted == many):
        return f"{title} counted {row.counted:,} {row.what}, and the kernel {kernel.counted:,} {kernel.what}"
    means = row.mean_ns or 0.0, kernel.mean_ns or 0.0
    if few >= FEW and min(means) > 0 and max(means) >= FAR * min(means):
        one, other = map(duration, means)
        return f"{title} says that its {row.what} take {one} each, and the kernel that {kernel.what} take {other}"
    return ""
