"""A database that is asked while it works: read-only, columns that there are, nothing of others, and an end that is heard."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.diagnose import database_counters, watch
from auditor.host import process, sql, sql_watch
from auditor.host.live import HidingHost, LiveHost
from auditor.host.request import Capture, Run
from auditor.host.sql_watch import Connection
from tests.diagnose import databases
from tests.drivers import Installed

SECRET = "host=db.example user=alice"


class Server:
    """What psycopg and PyMySQL have in common, as far as it is used: it answers as one of some release does, and refuses a
    column that this has not."""

    def __init__(self, release: int, fails: str = "") -> None:
        self.release, self.fails = release, fails
        self.said: list[str] = []
        self.read_only, self.prepare_threshold = False, 5
        self.rolled_back = 0
        self.rows: list[tuple[Any, ...]] = []

    def execute(self, text: str) -> Server:
        self.said.append(text)
        self.rows = self.answer(text)
        return self

    def answer(self, text: str) -> list[tuple[Any, ...]]:
        if self.fails and self.fails in text:
            raise RuntimeError(1142, f"denied to {SECRET}")
        if "pg_attribute" in text:
            return [(view, name) for view, names in databases.COLUMNS[self.release].items() for name in names]
        if found := re.search(r"FROM pg_catalog\.(pg_stat_(?:wal|bgwriter|checkpointer|io))\b", text):
            there = databases.COLUMNS[self.release][found[1]]
            asked = re.findall(r"(\w+)\)?::text", text)
            assert set(asked) <= set(there), f"{self.release}: {found[1]} has no {set(asked) - set(there)}"
            row = tuple(databases.RESET if each == "stats_reset" else "5" for each in asked)
            return [("wal normal", *row), ("relation normal", *row)] if "GROUP BY" in text else [row]
        if "pg_stat_activity" in text:
            return [("LWLock", "WALWrite", 12), ("IO", "WALSync", 1), (None, None, 2), ("Extension", "x\n; --", 1)]
        if "pg_has_role" in text:
            return [(True,)]
        if "pg_settings" in text:
            return list(databases.SETTINGS.items())
        if "pg_is_in_recovery" in text:
            return [("4711",)]
        if "information_schema.COLUMNS" in text:
            return [("EVENT_NAME",), ("COUNT_MISC",), ("SUM_TIMER_MISC",)]
        if "file_summary_by_event_name" in text:
            assert "COUNT_WRITE" not in text
            return [("wait/io/file/sql/binlog", 3, 10**9)]
        if "USER_PRIVILEGES" in text:
            return [(1,)] if self.release else []
        if "PROCESSLIST" in text:
            return [("commit", 3), ("sending payroll to alice", 2)]
        return (
            [("Innodb_data_fsyncs", 7)] if "STATUS" in text else [("version", "10.11")] if "VARIABLES" in text else []
        )

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.rows

    def cursor(self) -> contextlib.nullcontext[Server]:
        return contextlib.nullcontext(self)

    def rollback(self) -> None:
        self.rolled_back += 1

    def close(self) -> None:
        pass


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is the child, and is told to end after its first look."""
    monkeypatch.setattr(signal, "pthread_sigmask", lambda *_: set())
    monkeypatch.setattr(signal, "sigtimedwait", lambda *_: True)


@pytest.mark.usefixtures("child")
@pytest.mark.parametrize("release", databases.COLUMNS)
def test_postgres_is_asked_for_columns_that_it_has_in_read_only_transactions(
    installed: Installed, capsys: pytest.CaptureFixture[str], release: int
) -> None:
    server = Server(release)
    installed(server)
    found = database_counters.parse_counters(sql_watch.watch("postgres", SECRET, 60))
    assert capsys.readouterr().out == "\n"
    assert server.read_only
    assert server.prepare_threshold is None
    asked = [text for text in server.said if not text.startswith("SET LOCAL ")]
    assert all(text.startswith("SELECT ") for text in asked)
    assert server.rolled_back == len(asked) == server.said.count("SET LOCAL statement_timeout = 5000") - 1
    assert not {"query", "usename", "client_addr", "datname"} & set(re.findall(r"\w+", " ".join(asked)))
    assert database_counters.rows_of(found, "postgres")[0].counted == 0
    assert found.waits == {"LWLock WALWrite": (12, 12), "IO WALSync": (1, 1), "": (2, 2), "?": (1, 1)}
    assert (found.moments, found.ended, found.sees) == (1, "", True)


@pytest.mark.usefixtures("child")
@pytest.mark.parametrize("privileged", [False, True])
def test_mysql_is_asked_for_counters_and_names_of_states_alone(installed: Installed, privileged: bool) -> None:
    server = Server(int(privileged))
    text = sql_watch.watch("mariadb", f"mariadb://root@/?unix_socket={installed(server).at}", 60)
    assert server.said[0] == "SET SESSION TRANSACTION READ ONLY"
    assert all(each.startswith(("SELECT ", "SHOW GLOBAL ")) for each in server.said[1:])
    assert server.rolled_back == len(server.said) - 1  # nothing stays open between two questions
    assert database_counters.parse_counters(text).waits == {"commit": (3, 3), "": (2, 2)}
    assert (
        database_counters.parse_counters(text).sees is privileged
    )  # else it shows one's own sessions, without an error
    assert "alice" not in text
    assert database_counters.parse_counters(text).before["wait/io/file/sql/binlog"] == {
        "COUNT_MISC": "3",
        "SUM_TIMER_MISC": "1000000000",
    }


@pytest.mark.usefixtures("child")
def test_a_table_that_may_not_be_read_costs_no_other_and_no_words_of_its_error_are_kept(
    installed: Installed,
) -> None:
    server = Server(0, fails="performance_schema.file_summary")
    text = sql_watch.watch("mysql", f"mysql://root@/?unix_socket={installed(server).at}", 60)
    assert database_counters.parse_counters(text).faults == {"file_summary_by_event_name": "RuntimeError 1142"}
    assert "status" in database_counters.parse_counters(text).after
    assert "alice" not in text


@pytest.mark.usefixtures("child")
def test_an_error_in_the_middle_ends_the_look_and_keeps_its_beginning(installed: Installed) -> None:
    server = Server(15, fails="pg_stat_activity")
    installed(server)
    text = sql_watch.watch("postgres", SECRET, 60)
    found = database_counters.parse_counters(text)
    assert (found.ended, found.moments, found.after.keys()) == ("RuntimeError 1142", 0, found.before.keys())
    assert "alice" not in text


@pytest.mark.usefixtures("child")
def test_a_server_that_is_gone_at_the_end_leaves_the_beginning(
    monkeypatch: pytest.MonkeyPatch, installed: Installed
) -> None:
    server = Server(15)
    installed(server)

    def gone(_pid: int, _engine: str) -> set[int]:
        server.fails = "SELECT"
        return set()

    monkeypatch.setattr(sql_watch, "members", gone)
    found = database_counters.parse_counters(sql_watch.watch("postgres", SECRET, 60))
    assert (found.ended, bool(found.before), found.after) == ("RuntimeError 1142", True, {})


def test_a_child_that_nobody_listens_to_any_more_ends(monkeypatch: pytest.MonkeyPatch, installed: Installed) -> None:
    """As after a kill -9 of its parent: it becomes the child of another process."""
    monkeypatch.setattr(signal, "pthread_sigmask", lambda *_: set())
    monkeypatch.setattr(signal, "sigtimedwait", lambda *_: None)
    parents = iter((7, 7, 7, 1))
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    server = Server(15)
    installed(server)
    found = database_counters.parse_counters(sql_watch.watch("postgres", SECRET, 3600))
    assert found.moments == 2


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ModuleNotFoundError("No module named 'psycopg'"), "ModuleNotFoundError No module named 'psycopg'"),
        (RuntimeError(f"no {SECRET}"), "RuntimeError"),
        (RuntimeError(), "RuntimeError"),
        (RuntimeError(2003, f"no {SECRET}"), "RuntimeError 2003"),
    ],
)
def test_of_an_error_its_kind_alone_is_told(error: Exception, says: str) -> None:
    assert sql_watch.kind(error) == says


# -- the child ----------------------------------------------------------------------------------------------------------


def run(monkeypatch: pytest.MonkeyPatch, script: str) -> sql_watch.Answer:
    """What comes of a child that runs this in the place of the questions."""
    monkeypatch.setattr(sql, "importable", lambda engine: True)
    monkeypatch.setattr(sql_watch, "script_of", lambda: f"from __future__ import annotations\n{script}")
    with sql_watch.watching(Connection("postgres", SECRET), 60) as end:
        return end()


def test_a_child_is_told_to_end_and_says_what_it_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\nprint(flush=True)\n"
        "signal.sigwait({signal.SIGTERM})\nprint(sys.argv[1:])"
    )
    assert run(monkeypatch, script) == (f"['postgres', '{SECRET}', '180']\n", "")


def test_a_child_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "import sys; sys.exit('OperationalError 28P01')") == ("", "OperationalError 28P01")


def test_whatever_happens_no_child_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "importable", lambda engine: True)
    script = "from __future__ import annotations\nimport time\nprint(flush=True)\ntime.sleep(600)"
    monkeypatch.setattr(sql_watch, "script_of", lambda: script)
    before = set(process._RUNNING)
    started: list[subprocess.Popen[bytes]] = []

    def interrupted() -> None:
        with sql_watch.watching(Connection("postgres", SECRET), 60):
            started.extend(process._RUNNING - before)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [each.returncode for each in started] == [-signal.SIGKILL]
    assert before == process._RUNNING


def test_who_asks_has_so_much_memory_and_dies_with_zaudit() -> None:
    """A server may answer without end, or never."""
    asks = [sys.executable, "-I", "-c", sql.program((), "str(len(bytearray(1 << 30)))", "type(error).__name__")]
    assert subprocess.run(asks, capture_output=True, text=True, check=False).stderr == "MemoryError\n"
    never = sql.program((), "print(flush=True) or __import__('time').sleep(600)", "''")
    script = f"import subprocess, sys\nwith subprocess.Popen([sys.executable, '-I', '-c', {never!r}]) as one:\n    one.wait()\n"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as zaudit:
        assert zaudit.stdout
        assert zaudit.stdout.readline() == b"\n"
        zaudit.kill()
        assert zaudit.stdout.read() == b""  # until nobody has the other end any more


def test_the_script_is_python_and_says_which_driver_is_missing() -> None:
    argv = [sys.executable, "-I", "-S", "-c", sql_watch.script_of(), "postgres", SECRET, "1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "ModuleNotFoundError No module named 'psycopg'"


def test_a_database_without_a_connection_is_not_asked() -> None:
    for engine, why in (("postgres", "--db postgres=DSN names"), ("redis", "zaudit can ask no such server")):
        with watch.asking(Connection(engine, ""), 1) as end:
            answer = end()
        assert answer is not None
        assert why in answer.fault
    with watch.asking(None, 1) as end:
        assert end() is None


def test_nobody_is_told_the_connection() -> None:
    class Refusing(LiveHost):
        def run(self, request: Run) -> Capture:
            assert request.argv == (sql.NAME, "postgres", SECRET)
            return Capture(1, b"", f'OperationalError: no "{SECRET}"\nmore'.encode())

    host = HidingHost(Refusing(1), SECRET)
    answer = host.run(Run((sql.NAME, "postgres", sql.REDACTED)))
    assert answer.stderr == b"OperationalError: (redacted)"
    assert SECRET in host.error


# -- servers that there are -------------------------------------------------------------------------------------------


PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


@pytest.fixture
def postgres() -> Iterator[str]:
    """DSN of a server of our own, where there is one to be started, and a driver to ask it."""
    if not (PROGRAMS and sql.importable("postgres") and os.geteuid() == 0):
        pytest.skip("needs root, PostgreSQL and psycopg")
    programs, home = PROGRAMS[-1].parent, tempfile.mkdtemp()
    shutil.chown(home, "postgres", "postgres")

    def call(*words: str) -> None:
        subprocess.run(
            words, user="postgres", group="postgres", extra_groups=[], check=True, capture_output=True, cwd="/"
        )

    call(f"{programs}/initdb", "-A", "trust", "-N", "-D", f"{home}/data")
    options = f"-k {home} -h '' -c track_wal_io_timing=on -c max_wal_size=32MB -c min_wal_size=32MB"
    call(f"{programs}/pg_ctl", "start", "-w", "-D", f"{home}/data", "-o", options, "-l", f"{home}/log")
    try:
        yield f"host={home} user=postgres dbname=postgres"
    finally:
        call(f"{programs}/pg_ctl", "stop", "-m", "immediate", "-D", f"{home}/data")
        shutil.rmtree(home)


@pytest.fixture
def mariadb() -> Iterator[str]:
    """The same of a MariaDB."""
    if not (shutil.which("mariadbd") and sql.importable("mariadb") and os.geteuid() == 0):
        pytest.skip("needs root, MariaDB and PyMySQL")
    home = tempfile.mkdtemp()
    shutil.chown(home, "mysql", "mysql")
    os.chmod(home, 0o755)
    install = ["mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={home}/data", "--skip-test-db"]
    subprocess.run([*install, "--auth-root-authentication-method=socket"], check=True, capture_output=True)
    server = subprocess.Popen(
        ["mariadbd", "--no-defaults", "--user=mysql", f"--datadir={home}/data", f"--socket={home}/s", "--skip-networking",
         "--performance-schema=ON", f"--log-bin={home}/data/bin", "--sync-binlog=1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(100):
            if Path(f"{home}/s").exists():
                break
            time.sleep(0.2)
        yield f"mariadb://root@/?unix_socket={home}/s"
    finally:
        server.terminate()
        server.wait(60)
        shutil.rmtree(home)


@pytest.mark.slow
def test_a_real_mariadb_counts_what_it_is_made_to_do(mariadb: str) -> None:
    connection, _ = sql.mysql_at(mariadb)
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION READ WRITE")
        cursor.execute("CREATE DATABASE t")
        cursor.execute("CREATE TABLE t.t(n int) ENGINE=InnoDB")
        with sql_watch.watching(Connection("mariadb", mariadb), 30) as end:
            for _ in range(30):
                cursor.execute("INSERT INTO t.t VALUES (1)")
                connection.commit()
            answer = end()
    connection.close()
    assert answer.fault == ""
    found = database_counters.parse_counters(answer.text)
    rows = {each.what: each for each in database_counters.rows_of(found, "mysql")}
    assert (rows["InnoDB syncs of log and data"].counted or 0) >= 30
    assert rows["commits through the binary log"].counted == 30
    assert (rows["the binary log: syncs and the like"].mean_ns or 0) > 0
    assert found.process in found.threads
    assert (found.faults, found.sees) == ({}, True)


@pytest.mark.slow
def test_a_real_postgres_counts_what_it_is_made_to_do(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE t(n int)")
        connection.execute("SELECT pg_switch_wal()")
        time.sleep(1.5)  # its statistics are late by a second
        with sql_watch.watching(Connection("postgres", postgres), 30) as end:
            for _ in range(30):
                connection.execute("INSERT INTO t VALUES (1)")
            time.sleep(1.5)
            for _ in range(3):
                connection.execute("INSERT INTO t VALUES (1)")
                connection.execute("SELECT pg_switch_wal()")
                connection.execute("CHECKPOINT")
            time.sleep(1.5)
            answer = end()
    assert answer.fault == ""
    found = database_counters.parse_counters(answer.text)
    wal = database_counters.rows_of(found, "postgres")[0]
    assert wal.counted is not None
    assert wal.counted >= 30
    assert (wal.mean_ns or 0) > 0
    counts = database_counters.checkpoints(found)
    assert counts is not None
    assert counts[0] >= 3
    assert (found.grown("wal", "inserted") or 0) > 3 << 24
    assert found.process in found.threads
    assert len(found.threads) > 3
    assert json.loads(answer.text)["name"] == "postgres"
