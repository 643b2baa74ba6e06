"""What MySQL and MariaDB say of their syncs, from the counters that there are. Pure.

Innodb_data_fsyncs counts the syncs of all files of InnoDB, the log's among them; how long they take is in
performance_schema alone, where a sync is one of the operations that neither read nor write (MISC). MariaDB has
performance_schema off by default. (MariaDB and MySQL manuals, Server Status Variables, The file_summary_by_event_name
Table, Binary Log Group Commit; timers are in picoseconds)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.diagnose.said import Said, number
from auditor.diagnose.view import Row
from auditor.units import size

SETTINGS = ("innodb_flush_log_at_trx_commit", "innodb_flush_method", "sync_binlog", "log_bin", "performance_schema")
LOG, BINLOG = "wait/io/file/innodb/innodb_log_file", "wait/io/file/sql/binlog"
HIDDEN = "what sessions wait for: the user of the connection is not seen to have PROCESS"
WORDS = {
    "commit": "its commit",
    "waiting for handler commit": "its commit",
    "waiting for prior transaction to commit": "the commit of another transaction before it",
    "": "something else than a commit, or a CPU",
}
STATUS = "mysql -e \"SHOW GLOBAL STATUS WHERE Variable_name RLIKE 'fsyncs|log_waits|^Binlog_'\""
FILES = "mysql -e \"SELECT * FROM performance_schema.file_summary_by_event_name WHERE EVENT_NAME RLIKE 'log'\""


def commands(said: Said) -> tuple[str, ...]:
    """Of the tables that this server has."""
    return (STATUS, FILES) if len(said.before) > 1 else (STATUS,)


def settings(said: Said) -> tuple[str, ...]:
    """NAME = VALUE, as far as they are shown, and how full the log of InnoDB is."""
    shown = [f"{name} = {said.settings[name]}" for name in SETTINGS if name in said.settings]
    status = said.after.get("status", {})
    age, most = (number(status.get(f"Innodb_checkpoint_{name}")) for name in ("age", "max_age"))
    if age is None:  # MySQL 8.0.30 and later
        now, checkpoint = (number(status.get(f"Innodb_redo_log_{name}_lsn")) for name in ("current", "checkpoint"))
        age = now - checkpoint if now is not None and checkpoint is not None else None
        most = number(status.get("Innodb_redo_log_capacity_resized"))
    if age is not None and most:
        shown.append(f"checkpoint age at the end: {size(age)} of {size(most)}")
    return tuple(shown)


def rows(said: Said) -> tuple[Row, ...]:
    """The first is that of all syncs of InnoDB."""
    return (_status(said, "InnoDB syncs of log and data", "Innodb_data_fsyncs"), *_more(said))


def _more(said: Said) -> Iterator[Row]:
    if said.has("status", "Innodb_os_log_fsyncs"):
        yield _status(said, "InnoDB syncs of the log", "Innodb_os_log_fsyncs")
    yield _file(said, "the InnoDB log: syncs and the like", LOG)
    if said.settings.get("log_bin", "").upper() in ("ON", "1"):
        yield _file(said, "the binary log: syncs and the like", BINLOG)
    for what, column in (
        ("commits through the binary log", "Binlog_commits"),
        ("groups of them", "Binlog_group_commits"),
        ("waits for room in the log buffer", "Innodb_log_waits"),
        ("waits for a row lock", "Innodb_row_lock_waits"),
    ):
        if said.has("status", column):
            yield _status(said, what, column)


def _status(said: Said, what: str, column: str) -> Row:
    if not said.has("status", column):
        return Row(what, None, None, "this server does not count them")
    count = said.grown("status", column)
    return Row(what, None if count is None else int(count), None, said.why("status", column))


def _file(said: Said, what: str, event: str) -> Row:
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


def _uncounted(said: Said) -> str:
    if said.settings.get("performance_schema", "").upper() in ("OFF", "0"):
        return "not counted and not timed: performance_schema is off"
    if fault := said.faults.get("file_summary_by_event_name"):
        return f"performance_schema may not be read ({fault})"
    if len(said.before) > 1:
        return "performance_schema does not count them"
    return "performance_schema counts nothing that this user is shown"
