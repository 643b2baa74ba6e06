"""A database that is asked itself: what is refused, whom it asks how, and who is at the other end of the connection."""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from auditor.gather.answer import command_line, fault_of
from auditor.host import sql
from auditor.host.live import LiveHost, permitted
from auditor.host.request import Run
from tests.drivers import Installed, listening

ME = Path(f"/proc/{os.getpid()}/comm").read_text().strip()


@pytest.mark.parametrize(
    ("engine", "dsn", "says"),
    [
        ("postgres", "postgresql://app:hunter2@db1/app", "no password"),
        ("postgres", "postgresql://app@db1/app?password=hunter2", "no password"),
        ("postgres", "postgresql:///app?sslpassword=hunter2", "no password"),
        ("postgres", "host=db1 password=hunter2", "no password"),
        ("postgres", "host=db1 oauth_client_id=x oauth_client_secret=hunter2", "no password"),
        ("postgres", "postgresql:///app?oauth%5Fclient_secret=hunter2", "no password"),
        ("postgres", "host=db1 sslkeylogfile=/tmp/hunter2", "sslkeylogfile names a file that libpq writes"),
        ("postgres", "postgresql://db1/app?SSLkeylogfile=/tmp/hunter2", "sslkeylogfile names a file that libpq writes"),
        ("postgres", "host=db1 PassWord = 'hunter2'", "no password"),
        ("postgres", "mysql://app@db1", "a DSN of PostgreSQL is"),
        ("postgres", "POSTGRESQL://app@db1/app", "a DSN of PostgreSQL is"),  # libpq compares it letter by letter
        ("postgres", "postgresql://[::1/app", "not a URI"),
        ("postgres", "postgresql://::1]/app", "not a URI"),
        ("postgres", "postgresql://db1:54x2/app", "not a URI"),
        ("postgres", "postgresql://db1,[::1/app", "not a URI"),
        ("mysql", "mysql://root@[::1", "not a URI"),
        # as libpq takes them: several hosts, names that are no addresses in brackets, folders of sockets
        ("postgres", "postgresql://db1:5432,[::1]:5433/app", ""),
        ("postgres", "postgresql://app@[::1]:5433,db2,[fe80::2%25eth0]/app?target_session_attrs=primary", ""),
        ("postgres", "postgresql://app@[db1]/app", ""),
        ("postgres", "postgresql://app@%2Frun%2Fpostgresql/app", ""),
        ("postgres", "postgresql:///app?host=/run/postgresql", ""),
        ("postgres", "postgresql://", ""),
        ("postgres", "postgresql://app@", ""),
        ("mysql", "mysql://root@[::1]:3307", ""),
        ("postgres", "postgresql://db1:5432,[::1]:5433/app?pass%77ord=hunter2", "no password"),
        ("postgres", "postgresql://app:hunter2@db1:5432,[::1]:5433/app", "no password"),
        # as libpq parts them, which has other ends of a password than urllib
        ("postgres", "postgresql://app:hunter2?x@db1/app", "no password"),
        ("postgres", "postgresql://app:hunter2#x@db1/app", "no password"),
        ("postgres", "postgresql://app:hunter2/x@db1/app", "no password"),
        ("postgres", "postgresql://db1:5432?hunter2@db1", "no password"),
        ("postgres", "postgresql://db1/app?user=x#&password=hunter2", "no password"),
        ("postgres", "user='app'password=hunter2", "no password"),
        ("mysql", "mysql://root:hunter2?x@db1/", "no password"),
        ("postgres", "postgresql://db1:5432,[::1]:5433/app?user=a@b", ""),
        ("mysql", "mysql://root:hunter2@db1", "no password"),
        ("mysql", "mysql://root@db1?passwd=hunter2", "no password"),
        ("mysql", "mysql://root@db1?init_command=DROP", "init_command is no option"),
        ("mariadb", "host=db1", "a DSN of mariadb is"),
        ("mysql", "mysql://root@/?unix_socket=mysqld.sock", "unix_socket must be an absolute path"),
        ("postgres", "postgresql://app@db1:5433/app?passfile=/root/.pgpass", ""),
        ("postgres", "service=audit passfile=/root/.pgpass", ""),
        ("mariadb", "mariadb://root@/?unix_socket=/run/mysqld/mysqld.sock", ""),
        ("mysql", "mysql://root@db1:3307/?read_default_file=/root/.my.cnf", ""),
    ],
)
def test_a_dsn_with_a_password_is_refused_and_not_repeated(engine: str, dsn: str, says: str) -> None:
    fault = sql.fault(engine, dsn)
    assert says in fault
    assert bool(says) is bool(fault)
    assert "hunter2" not in fault
    assert permitted((sql.NAME, engine, dsn)) is not bool(says)


def test_what_is_taken_is_no_matter_of_the_release_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """urllib judges a host since 3.11.4, and those of several hosts not as libpq does."""
    for each in ("urlsplit", "urlparse", "parse_qsl", "parse_qs"):
        monkeypatch.delattr(f"urllib.parse.{each}")
    assert sql.fault("postgres", "postgresql://db1:5432,[::1]:5433/app") == ""
    assert "no password" in sql.fault("mysql", "mysql://root@db1/?passwd=hunter2")


def test_nothing_else_is_asked() -> None:
    assert not permitted((sql.NAME, "redis", "redis://db1"))
    assert not permitted((sql.NAME, "postgres"))
    assert not permitted((sql.NAME, "postgres", "service=x", "DROP TABLE t"))


# -- the other end ----------------------------------------------------------------------------------------------------


def judged(client: socket.socket, name: str = ME, path: str = "") -> Any:
    return sql.judge(client.fileno(), path, (name,), "postgres")


def test_the_other_end_of_a_unix_socket_is_the_process_that_listens(tmp_path: Path) -> None:
    with listening(tmp_path) as path, socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        found, named = judged(client)
        assert found.get("process", os.getpid()) in (
            os.getpid(),
            os.getppid(),
        )  # its parent, where that has the same name
        assert found["name" if "process" in found else "unseen"]
        assert named  # it runs as who asks
        assert "other end of the connection is" in judged(client, "postgres")[0]["unseen"]


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_other_end_of_a_tcp_connection_is_found_by_its_inode(family: int, host: str) -> None:
    with socket.socket(family) as server, socket.socket(family) as client:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip(f"no {host} here")
        server.listen()
        client.connect(server.getsockname())
        with server.accept()[0] as accepted:
            row = sql.row_of(client.getpeername(), client.getsockname())
            assert row == (os.geteuid(), str(os.fstat(accepted.fileno()).st_ino))
            found, named = judged(client, "postgres")
            assert (found.keys(), named) == ({"unseen"}, True)


def test_a_connection_to_another_host_is_that_of_the_server_that_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's table has no socket with these two addresses, as when the server is elsewhere."""
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
        monkeypatch.setattr(socket.socket, "getpeername", lambda _: ("192.0.2.1", 5432))
        found, named = judged(client)
        assert ("leaves this host" in found["unseen"], named) == (True, True)


def test_on_the_loop_there_is_no_other_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(sql, "row_of", lambda *_: None)
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
        with pytest.raises(sql.UntrustedServer, match="no process of this host"):
            judged(client)


# -- the drivers ------------------------------------------------------------------------------------------------------


class Answered:
    """What psycopg and PyMySQL have in common, as far as it is used."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self.rows = rows
        self.said: list[str] = []
        self.read_only = False

    def execute(self, text: str) -> Answered:
        self.said.append(text)
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.rows if "pg_db_role_setting" not in self.said[-1] else []

    def cursor(self) -> contextlib.nullcontext[Answered]:
        return contextlib.nullcontext(self)

    def __enter__(self) -> Answered:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass


def test_postgres_is_asked_in_a_read_only_session_with_time_outs(installed: Installed) -> None:
    server = Answered([("fsync", "on", "default", None, None, False)])
    psycopg = installed(server)
    found = json.loads(sql.answer("postgres", "service=audit"))
    assert found["settings"] == [["fsync", "on", "default", None, None, False]]
    assert "unseen" in found
    assert psycopg.conninfo == [("service=audit", {"fallback_application_name": "zaudit", "client_encoding": "utf8"})]
    assert server.read_only
    assert all(text.startswith(("SET LOCAL ", "SELECT ")) for text in server.said)
    assert any("statement_timeout" in text for text in server.said)


@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("mysql://root@/?unix_socket={at}", {"user": "root", "unix_socket": "{at}"}),
        ("mysql://a%40b@db1:3307", {"user": "a@b", "host": "db1", "port": 3307}),
        ("mysql:///?read_default_file=/root/.my.cnf", {"read_default_file": "/root/.my.cnf"}),
    ],
)
def test_mysql_is_asked_for_variables_alone(
    monkeypatch: pytest.MonkeyPatch, installed: Installed, dsn: str, words: dict[str, Any]
) -> None:
    server = Answered([("sync_binlog", "1")])
    pymysql = installed(server)
    here, there = socket.socketpair()
    monkeypatch.setattr(socket, "create_connection", lambda *_: here)
    with here, there:
        assert json.loads(sql.answer("mysql", dsn.format(at=pymysql.at)))["settings"] == [["sync_binlog", "1"]]
    fixed = {"connect_timeout": 5, "read_timeout": 5, "write_timeout": 5, "local_infile": False}
    asked = {name: pymysql.at if value == "{at}" else value for name, value in words.items()}
    assert pymysql.words == [{**fixed, **asked}]
    assert [text.split(" WHERE")[0] for text in server.said] == [
        "SET SESSION TRANSACTION READ ONLY", "SHOW GLOBAL VARIABLES", "SHOW GLOBAL STATUS",
        *(f"SELECT count(*) FROM information_schema.{each}" for each in ("USER_PRIVILEGES", "PROCESSLIST")),
    ]  # fmt: skip


def test_an_option_file_that_is_not_understood_is_not_quoted(
    monkeypatch: pytest.MonkeyPatch, installed: Installed
) -> None:
    installed(Answered([]))

    def connect(**_: Any) -> None:
        raise configparser.MissingSectionHeaderError("/root/.my.cnf", 1, "password=hunter2")

    monkeypatch.setattr(sys.modules["pymysql"], "connect", connect)
    with pytest.raises(ValueError, match="not understood") as error:
        sql.answer("mysql", "mysql:///?read_default_file=/root/.my.cnf")
    assert "hunter2" not in str(error.value)


def test_the_script_is_python_and_says_which_driver_is_missing() -> None:
    argv = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        sql.script(),
        "postgres",
        "service=audit",
    ]  # -S: without what is installed
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No module named 'psycopg'" in done.stderr


def test_a_missing_driver_is_a_reason_with_both_ways_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "importable", lambda engine: False)
    monkeypatch.setattr(
        sql, "script", lambda: "import sys\nsys.exit(\"ModuleNotFoundError: No module named 'psycopg'\")"
    )
    request = Run((sql.NAME, "postgres", "service=audit"), package="python3-psycopg", extra="postgres")
    text = command_line(request.argv)
    fault = fault_of(request, LiveHost(20).run(request), text, 0)
    assert fault is not None
    assert fault.text == "--db postgres=service=audit: Python's psycopg is not installed"
    assert fault.remedy == "pip install 'zaudit[postgres]' or apt install python3-psycopg"


def test_libpq_in_another_process_has_its_environment_and_nothing_else_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "importable", lambda engine: False)
    monkeypatch.setattr(
        sql, "script", lambda: "import os\nprint(sorted(name for name in os.environ if name[:2] in ('PG', 'HO', 'MY')))"
    )
    monkeypatch.setenv("PGSERVICE", "audit")
    monkeypatch.setenv("MYSQL_PWD", "hunter2")
    capture = LiveHost(20).run(Run((sql.NAME, "postgres", "service=audit")))
    assert capture.stdout == b"['HOME', 'PGSERVICE']\n"
