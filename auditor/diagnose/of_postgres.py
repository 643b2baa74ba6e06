"""What PostgreSQL 14 to 18 say of their syncs, from the columns that there are. Pure.

WAL syncs are counted in pg_stat_wal until 17, from 18 on in pg_stat_io for the object wal; checkpoints in
pg_stat_bgwriter until 16, then in pg_stat_checkpointer. Only with fsync, fdatasync or fsync_writethrough is a WAL sync a
call of its own; open_sync and open_datasync sync with each write. (PostgreSQL manual, The Cumulative Statistics System,
wal_sync_method, Wait Events; src/backend/access/transam/xlog.c issue_xlog_fsync(), CalculateCheckpointSegments(),
XLogCheckpointNeeded())
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.diagnose.said import Said, number
from auditor.diagnose.view import Row

_VIEW = re.compile(r"(pg_stat_[a-z]{1,20})(?: |$)")  # what a shell leaves as it is
SETTINGS = ("fsync", "synchronous_commit", "wal_sync_method", "track_wal_io_timing", "track_io_timing", "max_wal_size")
HIDDEN = "what backends wait for: the role of the connection is not of pg_read_all_stats"
WAL_IO, NEW_WAL, DATA_IO = "pg_stat_io wal normal", "pg_stat_io wal init", "pg_stat_io relation normal"
WORDS = {  # in lower case: 17 spells WalSync what 16 spells WALSync
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


def commands(said: Said) -> tuple[str, ...]:
    """Of the tables that this server has."""
    tables = sorted({found[1] for table in said.before if (found := _VIEW.match(table))})
    return (*(f"psql -xc 'TABLE {table}'" for table in tables), ACTIVITY)


def settings(said: Said) -> tuple[str, ...]:
    """NAME = VALUE, as far as they are shown."""
    shown = ((name, said.settings[name]) for name in SETTINGS if name in said.settings)
    return tuple(f"{name} = {value}{' MB' if name == 'max_wal_size' else ''}" for name, value in shown)


def rows(said: Said) -> tuple[Row, ...]:
    """The first is that of the WAL syncs."""
    return (_wal(said), *_more(said))


def _wal(said: Said) -> Row:
    method = said.settings.get("wal_sync_method", "")
    of_write = method.startswith("open_")
    if said.has("pg_stat_wal", "wal_sync"):
        table, columns = "pg_stat_wal", ("wal_write", "wal_write_time") if of_write else ("wal_sync", "wal_sync_time")
    else:
        table, columns = WAL_IO, ("writes", "write_time") if of_write else ("fsyncs", "fsync_time")
    what = f"WAL writes that sync ({method})" if of_write else "WAL syncs"
    return _row(said, what, table, *columns, "track_wal_io_timing")


def _more(said: Said) -> Iterator[Row]:
    for what, table, setting in (
        ("syncs of new WAL files", NEW_WAL, "track_wal_io_timing"),
        ("syncs of data files", DATA_IO, "track_io_timing"),
    ):
        if said.has(table, "fsyncs"):
            yield _row(said, what, table, "fsyncs", "fsync_time", setting)
    for what, column in (("checkpoints requested", requested(said)), ("checkpoints by time", _timed(said))):
        if said.has(*column):
            yield _row(said, what, *column, "", "")


def requested(said: Said) -> tuple[str, str]:
    """Table and column of the checkpoints that were requested."""
    new = ("pg_stat_checkpointer", "num_requested")
    return new if said.has(*new) else ("pg_stat_bgwriter", "checkpoints_req")


def _timed(said: Said) -> tuple[str, str]:
    new = ("pg_stat_checkpointer", "num_timed")
    return new if said.has(*new) else ("pg_stat_bgwriter", "checkpoints_timed")


def _row(said: Said, what: str, table: str, column: str, time: str, setting: str) -> Row:
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


def checkpoints(said: Said) -> tuple[int, int] | None:
    """(requested, by time); None where that is not known."""
    found = said.grown(*requested(said)), said.grown(*_timed(said))
    return None if found[0] is None or found[1] is None else (int(found[0]), int(found[1]))


def trigger(said: Said) -> int | None:
    """Bytes of WAL, whole segments, that lie between two checkpoints which it brings about, at the least."""
    words = ("max_wal_size", "checkpoint_completion_target", "wal_segment_size")  # in MiB, as a share, in bytes
    most, target, segment = (number(said.settings.get(each)) for each in words)
    if most is None or target is None or segment is None or segment < 1:
        return None
    return max(int(int(most * (1 << 20) / segment) / (1 + target)), 1) * int(segment)
