"""What a database counts of its own syncs, next to what the kernel counted. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from auditor import codec
from auditor.databases import ENGINES
from auditor.diagnose.commits import FEW, Trace
from auditor.diagnose.diagnosis import Row, View, Wait
from auditor.diagnose.observation import Observation
from auditor.facts import HOST, Facts, Known, Subject, Unknown
from auditor.text import crowded, duration, size

# What a database said of its own counters, read strictly, and how they grew. Pure.
#
# A counter that fell, or whose statistics were reset meanwhile, is None with a reason, never 0; so is one that is not there.

MOST = 1 << 20  # characters of an answer
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?(?:e[+-]?[0-9]{1,3})?")
Table = Mapping[str, str | None]


# what earlier releases did not write
_LATER = {"process": 0, "unseen": "", "sees": True, "timed": [], "faults": {}}


class CounterSnapshot(NamedTuple):
    """An answer of :mod:`auditor.host.sql_watch`, member by member. began, until: its ``from`` and ``to``. before, after: table
    -> column -> text. waits: "TYPE EVENT" -> backends that waited for it in all moments, and at most at once; empty words for
    those that ran. moments: that were looked at. threads: of the server. process: of the server, 0 where it was not found here,
    and unseen says why. sees: whether it was told what backends of others wait for. timed: file events that are timed. faults:
    table -> why it could not be read. ended: why the look ended early, or empty."""

    began: float
    until: float
    before: Mapping[str, Table]
    after: Mapping[str, Table]
    waits: Mapping[str, tuple[int, int]]
    moments: int
    threads: tuple[int, ...]
    settings: Mapping[str, str]
    ended: str
    process: int
    unseen: str
    sees: bool
    timed: tuple[str, ...]
    faults: Mapping[str, str]

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
        """Why it is not known how a counter grew that is there, or an empty string."""
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
    """None for what is none."""
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
        result = codec.load(CounterSnapshot, {**_LATER, **found, "began": found["from"], "until": found["to"]})
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"it is not understood ({type(error).__name__})") from None
    if result.seconds <= 0:
        raise ValueError("the clock was set back meanwhile")
    return result


# What PostgreSQL 14 to 18 say of their syncs, from the columns that there are. Pure.
#
# WAL syncs are counted in pg_stat_wal until 17, from 18 on in pg_stat_io for the object wal; checkpoints in pg_stat_bgwriter
# until 16, then in pg_stat_checkpointer. Only with fsync, fdatasync or fsync_writethrough is a WAL sync a call of its own;
# open_sync and open_datasync sync with each write. (PostgreSQL manual, The Cumulative Statistics System, wal_sync_method, Wait
# Events; src/backend/access/transam/xlog.c issue_xlog_fsync(), CalculateCheckpointSegments(), XLogCheckpointNeeded())

_VIEW = re.compile(r"(pg_stat_[a-z]{1,20})(?: |$)")  # what a shell leaves as it is
POSTGRES_SETTINGS = (
    *("fsync", "synchronous_commit", "wal_sync_method", "track_wal_io_timing", "track_io_timing", "max_wal_size"),
)
POSTGRES_HIDDEN = "what backends wait for: the role of the connection is not of pg_read_all_stats"
WAL_IO, NEW_WAL, DATA_IO = "pg_stat_io wal normal", "pg_stat_io wal init", "pg_stat_io relation normal"
POSTGRES_WORDS = {  # in lower case: 17 spells WalSync what 16 spells WALSync
    "lwlock walwrite": "the lock WALWrite, its turn to flush",
    "lwlock walinsert": "the lock WALInsert, its turn to insert",
    "io walsync": "the disk, to sync the WAL",
    "io walwrite": "the disk, to write the WAL",
    "io datafileread": "the disk, to read data",
    "ipc syncrep": "a synchronous standby",
    "lock transactionid": "a row that another transaction holds",
    "lock tuple": "its turn at a row",
    "": "nothing, or a CPU",
}
ACTIVITY = "psql -c \"SELECT wait_event_type, wait_event, count(*) FROM pg_stat_activity WHERE state = 'active' GROUP BY 1, 2\""


def postgres_commands(said: CounterSnapshot) -> tuple[str, ...]:
    """Of the tables that this server has."""
    tables = sorted({found[1] for table in said.before if (found := _VIEW.match(table))})
    return (*(f"psql -xc 'TABLE {table}'" for table in tables), ACTIVITY)


def postgres_settings(said: CounterSnapshot) -> tuple[str, ...]:
    """NAME = VALUE, as far as they are shown."""
    shown = ((name, said.settings[name]) for name in POSTGRES_SETTINGS if name in said.settings)
    return tuple(f"{name} = {value}{' MB' if name == 'max_wal_size' else ''}" for name, value in shown)


def postgres_rows(said: CounterSnapshot) -> tuple[Row, ...]:
    """The first is that of the WAL syncs."""
    method = said.settings.get("wal_sync_method", "")
    of_write = method.startswith("open_")
    if said.has("pg_stat_wal", "wal_sync"):
        table, columns = "pg_stat_wal", ("wal_write", "wal_write_time") if of_write else ("wal_sync", "wal_sync_time")
    else:
        table, columns = WAL_IO, ("writes", "write_time") if of_write else ("fsyncs", "fsync_time")
    what = f"WAL writes that sync ({method})" if of_write else "WAL syncs"
    wal = "track_wal_io_timing"
    more = (
        ("syncs of new WAL files", NEW_WAL, "fsyncs", "fsync_time", wal),
        ("syncs of data files", DATA_IO, "fsyncs", "fsync_time", "track_io_timing"),
        ("checkpoints requested", *requested(said)),
        ("checkpoints by time", *_timed(said)),
    )
    there = (each for each in more if said.has(each[1], each[2]))
    return (_row(said, what, table, *columns, wal), *(_row(said, *each) for each in there))


def requested(said: CounterSnapshot) -> tuple[str, str]:
    """Table and column of the checkpoints that were requested."""
    return _checkpoint_column(said, "num_requested", "checkpoints_req")


def _checkpoint_column(said: CounterSnapshot, new: str, old: str) -> tuple[str, str]:
    """From PostgreSQL 17 on, and before."""
    return ("pg_stat_checkpointer", new) if said.has("pg_stat_checkpointer", new) else ("pg_stat_bgwriter", old)


def _timed(said: CounterSnapshot) -> tuple[str, str]:
    return _checkpoint_column(said, "num_timed", "checkpoints_timed")


def _row(said: CounterSnapshot, what: str, table: str, column: str, time: str = "", setting: str = "") -> Row:
    """time: its column, in milliseconds, or empty; setting: without which it stays 0."""
    if not said.has(table, column):
        return Row(what, None, None, "this server does not count them")
    grown = said.grown(table, column)
    if grown is None:
        return Row(what, None, None, said.why(table, column))
    count = int(grown)
    if not time or not count:
        return Row(what, count, None, "")
    if said.settings.get(setting) != "on":
        return Row(what, count, None, f"not timed: {setting} is {said.settings.get(setting, 'not shown')}")
    took = said.grown(table, time)
    if not took:
        return Row(what, count, None, said.why(table, time) or "no time of theirs was counted")
    return Row(what, count, took * 1e6 / count, "")


def checkpoints(said: CounterSnapshot) -> tuple[int, int] | None:
    """(requested, by time); None where that is not known."""
    found = said.grown(*requested(said)), said.grown(*_timed(said))
    return None if found[0] is None or found[1] is None else (int(found[0]), int(found[1]))


def trigger(said: CounterSnapshot) -> int | None:
    """Bytes of WAL, whole segments, that lie between two checkpoints which it causes, at the least."""
    words = ("max_wal_size", "checkpoint_completion_target", "wal_segment_size")  # in MiB, as a share, in bytes
    most, target, segment = (number(said.settings.get(each)) for each in words)
    if most is None or target is None or segment is None or segment < 1:
        return None
    return max(int(int(most * (1 << 20) / segment) / (1 + target)), 1) * int(segment)


# What MySQL and MariaDB say of their syncs, from the counters that there are. Pure.
#
# Innodb_data_fsyncs counts the syncs of all files of InnoDB, the log's among them; how long they take is in performance_schema
# alone, where a sync is one of the operations that neither read nor write (MISC). MariaDB has performance_schema off by
# default. (MariaDB and MySQL manuals, Server Status Variables, The file_summary_by_event_name Table, Binary Log Group Commit;
# timers are in picoseconds)

MYSQL_SETTINGS = (
    *("innodb_flush_log_at_trx_commit", "innodb_flush_method", "sync_binlog", "log_bin", "performance_schema"),
)
LOG, BINLOG = "wait/io/file/innodb/innodb_log_file", "wait/io/file/sql/binlog"
MYSQL_HIDDEN = "what sessions wait for: the user of the connection is not seen to have PROCESS"
MYSQL_WORDS = {
    "commit": "its commit",
    "waiting for handler commit": "its commit",
    "waiting for prior transaction to commit": "the commit of another transaction before it",
    "": "something else than a commit, or a CPU",
}
STATUS = "mysql -e \"SHOW GLOBAL STATUS WHERE Variable_name RLIKE 'fsyncs|log_waits|^Binlog_'\""
FILES = "mysql -e \"SELECT * FROM performance_schema.file_summary_by_event_name WHERE EVENT_NAME RLIKE 'log'\""


def mysql_commands(said: CounterSnapshot) -> tuple[str, ...]:
    """Of the tables that this server has."""
    return (STATUS, FILES) if len(said.before) > 1 else (STATUS,)


def mysql_settings(said: CounterSnapshot) -> tuple[str, ...]:
    """NAME = VALUE, as far as they are shown, and how full the log of InnoDB is."""
    shown = [f"{name} = {said.settings[name]}" for name in MYSQL_SETTINGS if name in said.settings]
    status = said.after.get("status", {})
    age, most = (number(status.get(f"Innodb_checkpoint_{name}")) for name in ("age", "max_age"))
    if age is None:  # MySQL 8.0.30 and later
        now, checkpoint = (number(status.get(f"Innodb_redo_log_{name}_lsn")) for name in ("current", "checkpoint"))
        age = now - checkpoint if now is not None and checkpoint is not None else None
        most = number(status.get("Innodb_redo_log_capacity_resized"))
    if age is not None and most:
        shown.append(f"checkpoint age at the end: {size(age)} of {size(most)}")
    return tuple(shown)


def mysql_rows(said: CounterSnapshot) -> tuple[Row, ...]:
    """The first is that of all syncs of InnoDB."""

    def of_status(*counters: tuple[str, str]) -> Iterator[Row]:
        return (_row(said, what, "status", column) for what, column in counters if said.has("status", column))

    binlog = said.settings.get("log_bin", "").upper() in ("ON", "1")
    return (
        _row(said, "InnoDB syncs of log and data", "status", "Innodb_data_fsyncs"),
        *of_status(("InnoDB syncs of the log", "Innodb_os_log_fsyncs")),
        _file(said, "the InnoDB log: syncs and the like", LOG),
        *([_file(said, "the binary log: syncs and the like", BINLOG)] if binlog else []),
        *of_status(
            ("commits through the binary log", "Binlog_commits"),
            ("groups of them", "Binlog_group_commits"),
            ("waits for room in the log buffer", "Innodb_log_waits"),
            ("waits for a row lock", "Innodb_row_lock_waits"),
        ),
    )


def _file(said: CounterSnapshot, what: str, event: str) -> Row:
    if not said.has(event, "COUNT_MISC"):
        return Row(what, None, None, _uncounted(said))
    grown = said.grown(event, "COUNT_MISC")
    if grown is None or not (count := int(grown)):
        return Row(what, None if grown is None else 0, None, said.why(event, "COUNT_MISC"))
    took = said.grown(event, "SUM_TIMER_MISC") if event in said.timed else None
    if not took:
        why = said.why(event, "SUM_TIMER_MISC") if event in said.timed else ""
        return Row(what, count, None, why or "not timed: setup_instruments does not time them")
    return Row(what, count, took / 1000 / count, "")


def _uncounted(said: CounterSnapshot) -> str:
    if said.settings.get("performance_schema", "").upper() in ("OFF", "0"):
        return "not counted and not timed: performance_schema is off"
    if fault := said.faults.get("file_summary_by_event_name"):
        return f"performance_schema may not be read ({fault})"
    if len(said.before) > 1:
        return "performance_schema does not count them"
    return "performance_schema counts nothing that this user is shown"


# The database's view of the same time, beside the kernel's: what it counted, what its backends waited for, and whether the two
# agree. Pure.

FAR = 3.0  # times as many, or as long, from which on two witnesses do not agree
LATE_S, LEAST_S = 2.0, 5.0  # by which its counters and the first reading may be late; too much of a shorter time
WAITS = 12  # that are told
KERNEL = "commits by its processes"
APART = ("checkpointer",)  # roles whose syncs are not those of commits


class _Engine(NamedTuple):
    """How the counters of one kind of server are read. hidden: what its user may not be shown; words: of what is waited for."""

    hidden: str
    words: Mapping[str, str]
    rows: Callable[[CounterSnapshot], tuple[Row, ...]]
    settings: Callable[[CounterSnapshot], tuple[str, ...]]
    commands: Callable[[CounterSnapshot], tuple[str, ...]]


_POSTGRES = _Engine(POSTGRES_HIDDEN, POSTGRES_WORDS, postgres_rows, postgres_settings, postgres_commands)
_MYSQL = _Engine(MYSQL_HIDDEN, MYSQL_WORDS, mysql_rows, mysql_settings, mysql_commands)


class DatabaseFindings(NamedTuple):
    """What the reports tell, and what it was made from; said: None where there is no answer. differs: where the two do
    not agree, or empty. here: it runs on this host, and its log is not known to lie elsewhere."""

    view: View
    said: CounterSnapshot | None = None
    differs: str = ""
    here: bool = False


def compare_database(observed: Observation, facts: Facts, trace: Trace) -> DatabaseFindings | None:
    """None where no database was named."""
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
    of = _POSTGRES if postgres else _MYSQL
    rows = of.rows(found)
    kernel = _kernel(found, trace, observed, postgres) if not place.why and observed.traced else None
    unseen = [place.why] if place.why else []
    if observed.traced is None:
        unseen.append(f"the kernel's side was not traced: {observed.untraced}")
    if not found.sees:
        unseen.append(of.hidden)
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
        waits=_waits(found, of.words) if found.sees else (),
        active=found.active / found.moments if found.moments else 0.0,
        settings=of.settings(found),
        unseen=tuple(unseen),
        commands=of.commands(found),
    )
    compared = together and seconds >= LEAST_S
    differs = _differs(title, rows[0], kernel, postgres) if compared else ""
    return DatabaseFindings(view, found, differs, found.process > 0 and not place.elsewhere)


def elsewhere(facts: Facts, pool: str) -> str:
    """Why the database is not one of this pool, or an empty string where it is, or may be."""
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
    """Commits of its threads. Whoever came and went between two looks at its processes is not known to be one of them."""
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
