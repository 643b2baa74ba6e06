"""What a running PostgreSQL, MySQL or MariaDB counts of its syncs meanwhile, over the connection of ``--db``.

A child asks, as for the settings (:mod:`.sql`): in read-only transactions with short time-outs, at both ends for counters,
and about once a second for the waits of its backends. Columns are asked for, never assumed, and only those named here are
kept; no query, user, address or database is asked for. It ends when told (SIGTERM), when its time is over or no one
listens, and prints one JSON object: ``before`` and ``after`` (table -> column -> text), ``waits`` ("TYPE EVENT" ->
[backends in all moments, most at once]), ``moments``, ``threads`` (of the server, as the kernel numbers them),
``settings``, ``from``, ``to``, and the process of :func:`.sql.judge`. Of an error only its kind is kept: its words name
hosts and people.

(PostgreSQL src/backend/catalog/system_views.sql at 14 to 18; MariaDB and MySQL manuals, Server Status Variables and The
file_summary_by_event_name Table; man 5 proc_pid_task, proc_tid_children)"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from auditor.host import builtin, process, sql
from auditor.host.live import ENVIRONMENT
from auditor.host.process import Output, Time, Total, slices
from auditor.host.sql import UntrustedServer, bounded, mysql_at, postgres_at

SLACK_S = 120.0  # by which the child outlives the time that was planned, if nobody ends it
FIRST_S, LAST_S = 15.0, 30.0  # that the first reading, and the last one, may take


class Connection(NamedTuple):
    """A connection of --db."""

    engine: str
    dsn: str


class Answer(NamedTuple):
    """text: the JSON; fault: why there is none."""

    text: str
    fault: str


@contextlib.contextmanager
def watching(wanted: Connection, seconds: float) -> Iterator[Callable[[], Answer]]:
    """Asks the server within the block; gives what ends it and returns its answer. Nothing of it remains."""
    own = sql.importable(wanted.engine)
    tool, fault = (sys.executable, "") if own else process.find_program(("python3",))
    if fault:
        yield lambda: Answer("", f"python3 is {fault}")
        return
    script = builtin.script(script_of())
    argv = (tool, "-I", "-c", script, wanted.engine, wanted.dsn, f"{seconds + SLACK_S:.0f}")
    mark = f"{process.MARK}={os.getpid()}.watch."
    environment = {**ENVIRONMENT, **sql.environment(), process.MARK: mark.partition("=")[2]}
    try:
        child = process.start(argv, environment, "/")
    except OSError as error:
        why = f"python3 cannot be started: {error.strerror}"
        yield lambda: Answer("", why)
        return
    try:
        _begun(child)
        yield lambda: _ended(child)
    finally:
        if child.poll() is None:
            process.end(child, mark)
        process.close(child)


def _begun(child: subprocess.Popen[bytes]) -> None:
    """Wait for the first reading: a newline, or the end of a child that failed."""
    assert child.stdout is not None
    with selectors.PollSelector() as pipes:
        pipes.register(child.stdout, selectors.EVENT_READ)
        for wait in slices(FIRST_S):
            if pipes.select(wait):
                os.read(child.stdout.fileno(), 1)
                return


def _ended(child: subprocess.Popen[bytes]) -> Answer:
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGTERM)
    output = Output("", "", Total())
    late = process.listen(child, Time.of(LAST_S), output)
    said, error = (each.decode("utf-8", "replace") for each in output.streams(whole=not late))
    if late or child.returncode:
        return Answer("", late or error.strip()[:200] or f"it ended with {child.returncode}")
    return Answer(said, "")


@cache
def script_of() -> str:
    """For ``python3 -I -c SCRIPT ENGINE DSN SECONDS``."""
    functions = (watch, kind, postgres_asks, mysql_asks, members, *sql.CONNECTING)
    return sql.program(functions, "watch(sys.argv[1], sys.argv[2], float(sys.argv[3]))", "kind(error)")


# -- in the child ---------------------------------------------------------------------------------------------------


def watch(engine: str, dsn: str, seconds: float) -> str:
    """Raises what the driver raises where the server could not be asked; later errors end the look (``ended``)."""
    import json
    import os
    import signal
    import sys
    import time

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # sigtimedwait() takes it: no answer is interrupted
    parent, until = os.getppid(), time.monotonic() + seconds
    ask, moment, found = (postgres_asks if engine == "postgres" else mysql_asks)(dsn)
    waits: dict[str, list[int]] = {}
    threads: set[int] = set()
    found |= {"from": time.time(), "before": ask(), "after": {}, "waits": waits, "moments": 0, "ended": ""}
    sys.stdout.write("\n")
    sys.stdout.flush()
    try:
        while time.monotonic() < until and os.getppid() == parent:
            for words, count in moment():
                if words in waits or len(waits) < 64:
                    row = waits.setdefault(words, [0, 0])
                    row[0], row[1] = row[0] + count, max(row[1], count)
            found["moments"] += 1
            if len(threads) < 4096:
                threads |= members(found.get("process", 0), engine)
            if signal.sigtimedwait({signal.SIGTERM}, 1.0):
                break
        threads |= members(found.get("process", 0), engine)
    except Exception as error:
        found["ended"] = kind(error)
    try:
        found["after"] = ask()
    except Exception as error:
        found["ended"] = found["ended"] or kind(error)
    return json.dumps({**found, "to": time.time(), "threads": sorted(threads)[:4096]}) + "\n"


def kind(error: Exception) -> str:
    """The kind of an error without its words: OperationalError 08006, ProgrammingError 1142. zaudit's own keep theirs."""
    import re

    if isinstance(error, UntrustedServer):
        return str(error)
    number = getattr(error, "sqlstate", None) or (error.args[0] if error.args else "")
    told = re.fullmatch(r"[0-9A-Z]{1,5}", str(number))
    missing = re.fullmatch(r"No module named '(\w+)'", str(error))
    return f"{type(error).__name__} {told[0] if told else missing[0] if missing else ''}".rstrip()


def postgres_asks(dsn: str) -> Any:
    """(counters, waits of its backends, what is asked once). Each answer has its own transaction, since statistics stay as
    they are within one. (PostgreSQL manual, stats_fetch_consistency)"""
    import re

    times = ("fsyncs", "fsync_time", "writes", "write_time")
    wanted = {
        "pg_stat_wal": ("wal_bytes", "wal_buffers_full", "wal_write", "wal_sync", "wal_write_time", "wal_sync_time"),
        "pg_stat_bgwriter": ("checkpoints_timed", "checkpoints_req", "checkpoint_sync_time"),
        "pg_stat_checkpointer": ("num_timed", "num_requested", "num_done", "sync_time"),
        "pg_stat_io": times,
    }
    settings = (
        "'fsync', 'full_page_writes', 'synchronous_commit', 'wal_sync_method', 'track_wal_io_timing', 'track_io_timing',"
        " 'max_wal_size', 'checkpoint_completion_target', 'checkpoint_timeout', 'wal_segment_size', 'server_version_num'"
    )
    connection, server = postgres_at(dsn)
    connection.prepare_threshold = None  # a pooler may give each transaction to another backend

    def rows(text: str) -> Any:
        bounded(connection)
        try:
            return connection.execute(text).fetchall()
        finally:
            connection.rollback()

    there: dict[str, list[str]] = {}
    for view, column in rows(
        "SELECT c.relname, a.attname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid"
        " WHERE c.relnamespace = 'pg_catalog'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped"
        f" AND c.relname IN ({', '.join(f'{each!r}' for each in wanted)})"
    ):
        there.setdefault(view, []).append(column)

    def ask() -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for view, columns in wanted.items():
            own = [each for each in columns if each in there.get(view, ())]
            names = [*own, *(["stats_reset"] if "stats_reset" in there.get(view, ()) else [])]
            if not own:
                continue
            if view == "pg_stat_io":
                sums = ", ".join(f"sum({each})::text" if each in own else f"max({each})::text" for each in names)
                asked = f"SELECT object || ' ' || context, {sums} FROM pg_catalog.{view} GROUP BY 1"
                named = [(f"{view} {row[0]}", row[1:]) for row in rows(asked) if re.fullmatch(r"[\w ]{1,60}", row[0])]
            else:
                row = rows(f"SELECT {', '.join(f'{each}::text' for each in names)} FROM pg_catalog.{view}")[0]
                named = [(view, row)]
            found.update((name, dict(zip(names, cells, strict=True))) for name, cells in named)
        lsn = rows(
            "SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL"
            " ELSE (pg_catalog.pg_current_wal_insert_lsn() - '0/0')::text END"
        )
        found["wal"] = {"inserted": lsn[0][0]}
        return found

    def moment() -> Any:
        for type_, event, count in rows(
            "SELECT wait_event_type, wait_event, count(*) FROM pg_catalog.pg_stat_activity"
            " WHERE backend_type = 'client backend' AND state = 'active' AND pid <> pg_catalog.pg_backend_pid()"
            " GROUP BY 1, 2"
        ):
            words = f"{type_ or ''} {event or ''}".strip()
            yield words if re.fullmatch(r"[\w :.-]{0,80}", words) else "?", int(count)

    said = rows(f"SELECT name, setting FROM pg_catalog.pg_settings WHERE name IN ({settings})")
    sees = rows("SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')")[0][0]
    found = {"settings": dict(said), "sees": bool(sees), **server}
    return ask, moment, found


def mysql_asks(dsn: str) -> Any:
    """As :func:`postgres_asks`. Of a table that may not be read its counters are missing, and its error is told in "faults"."""
    status = (
        "'Innodb_os_log_fsyncs', 'Innodb_data_fsyncs', 'Innodb_log_waits', 'Innodb_os_log_written',"
        " 'Innodb_checkpoint_age', 'Innodb_checkpoint_max_age', 'Innodb_row_lock_waits', 'Binlog_commits',"
        " 'Binlog_group_commits', 'Innodb_redo_log_current_lsn', 'Innodb_redo_log_checkpoint_lsn',"
        " 'Innodb_redo_log_capacity_resized', 'Uptime'"
    )
    variables = (
        "'version', 'performance_schema', 'innodb_flush_log_at_trx_commit', 'innodb_flush_method', 'sync_binlog',"
        " 'log_bin', 'innodb_log_buffer_size'"
    )
    columns = ("COUNT_WRITE", "SUM_TIMER_WRITE", "COUNT_MISC", "SUM_TIMER_MISC")
    events = "'wait/io/file/innodb/innodb_log_file', 'wait/io/file/sql/binlog'"
    states = ("commit", "waiting for handler commit", "waiting for prior transaction to commit")
    connection, server = mysql_at(dsn)
    faults: dict[str, str] = {}

    def rows(text: str, part: str = "") -> Any:
        try:
            with connection.cursor() as cursor:
                cursor.execute(text)
                found = cursor.fetchall()
            connection.rollback()  # tables of information_schema may be of InnoDB, which would keep what was deleted since
            return found
        except Exception as error:
            if not part:
                raise
            faults[part] = kind(error)
            return ()

    there = [
        str(row[0]).upper()
        for row in rows(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'performance_schema'"
            " AND TABLE_NAME = 'file_summary_by_event_name'"
        )
    ]
    own = [each for each in columns if each in there]

    def ask() -> dict[str, dict[str, Any]]:
        told = rows(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({status})")
        found = {"status": {str(name): str(value) for name, value in told}}
        if own:
            asked = f"SELECT EVENT_NAME, {', '.join(own)} FROM performance_schema.file_summary_by_event_name"
            for row in rows(f"{asked} WHERE EVENT_NAME IN ({events})", "file_summary_by_event_name"):
                found[str(row[0])] = dict(zip(own, map(str, row[1:]), strict=True))
        return found

    def moment() -> Any:
        for state, count in rows(
            "SELECT LOWER(STATE), COUNT(*) FROM information_schema.PROCESSLIST"
            " WHERE COMMAND IN ('Query', 'Execute') AND ID <> CONNECTION_ID() GROUP BY 1",
            "PROCESSLIST",
        ):
            yield state if state in states else "", int(count)

    said = rows(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({variables})")
    timed = rows(
        f"SELECT NAME FROM performance_schema.setup_instruments WHERE NAME IN ({events})"
        " AND ENABLED = 'YES' AND TIMED = 'YES'",
        "setup_instruments",
    )
    # without PROCESS there is no error, and none but one's own sessions
    sees = rows(
        "SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'PROCESS'"
        " AND GRANTEE = CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@',"
        " QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))",
        "USER_PRIVILEGES",
    )
    found = {
        "settings": {str(name): str(value) for name, value in said},
        "timed": [str(row[0]) for row in timed],
        "sees": bool(sees),
        "faults": faults,
        **server,
    }
    return ask, moment, found


def members(process: int, engine: str) -> set[int]:
    """The threads of a server, or the processes that it started and itself; none where that is not told."""
    import os

    try:
        if engine != "postgres":
            return {int(each) for each in os.listdir(f"/proc/{process}/task")}
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
            return {process, *map(int, file.read().split())}
    except OSError:
        return set()
