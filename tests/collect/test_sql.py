"""A database that is asked itself: what is refused, whom it asks how, and who is at the other end of the connection."""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from auditor.gather.reasons import command_line, fault_of
from auditor.host import sql
from auditor.host.live import LiveHost, permitted
from auditor.host.request import Run
from tests.folded import for_each

ME = Path(f"/proc/{os.getpid()}/comm").read_text().strip()


@pytest.mark.parametrize(
    ("engine", "dsn", "says"),
    [
        ("postgres", "postgresql://app:hunter2@db1/app", "no password"),
        ("postgres", "postgresql://app@db1/app?password=hunter2", "no password"),
        ("postgres", "postgresql:///app?sslpassword=hunter2", "no password"),
        ("postgres", "host=db1 password=hunter2", "no password"),
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


def test_the_other_end_of_a_unix_socket_is_the_process_that_listens(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(str(tmp_path / "s"))
        server.listen()
        client.connect(str(tmp_path / "s"))
        found = sql.holder(client.fileno(), (ME,))
        assert found["process"] in (os.getpid(), os.getppid())  # its parent, where that has the same name
        assert found["name"] == ME
        assert "other end of the connection is" in sql.holder(client.fileno(), ("postgres",))["unseen"]


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_other_end_of_a_tcp_connection_is_found_by_its_inode(family: int, host: str) -> None:
    with socket.socket(family) as server, socket.socket(family) as client:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip(f"no {host} here")
        server.listen()
        client.connect(server.getsockname())
        with server.accept()[0]:
            found = sql.holder(client.fileno(), (ME,))
            assert (found["process"] in (os.getpid(), os.getppid()), found["name"]) == (True, ME)
            assert sql.holder(client.fileno(), ("postgres",)) == {"unseen": "no server here has the other end"}


def test_an_end_that_is_not_on_this_host_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's table has no socket with these two addresses, as when the server is elsewhere."""
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
        monkeypatch.setattr(socket.socket, "getpeername", lambda _: ("192.0.2.1", 5432))
        assert "leaves this host" in sql.holder(client.fileno(), (ME,))["unseen"]


# -- the drivers ------------------------------------------------------------------------------------------------------


class Answered:
    """What psycopg and PyMySQL have in common, as far as it is used."""

    def __init__(self, rows: list[tuple[Any, ...]], said: list[str]) -> None:
        self.rows, self.said = rows, said
        self.read_only = False
        self.ends = socket.socketpair()

    def execute(self, text: str) -> Answered:
        self.said.append(text)
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.rows if "pg_db_role_setting" not in self.said[-1] else []

    def cursor(self) -> contextlib.nullcontext[Answered]:
        return contextlib.nullcontext(self)

    def fileno(self) -> int:
        return self.ends[0].fileno()

    def __enter__(self) -> Answered:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for end in self.ends:
            end.close()


def driver(
    monkeypatch: pytest.MonkeyPatch, name: str, rows: list[tuple[Any, ...]]
) -> tuple[list[str], list[dict[str, Any]]]:
    said: list[str] = []
    asked: list[dict[str, Any]] = []

    def connect(*words: Any, **named: Any) -> Answered:
        asked.append({"dsn": words, **named})
        return Answered(rows, said)

    module = ModuleType(name)
    module.connect = connect  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, module)
    return said, asked


def test_postgres_is_asked_in_a_read_only_session_with_time_outs(monkeypatch: pytest.MonkeyPatch) -> None:
    said, asked = driver(monkeypatch, "psycopg", [("fsync", "on", "default", None, None, False)])
    found = json.loads(sql.answer("postgres", "service=audit"))
    assert found["settings"] == [["fsync", "on", "default", None, None, False]]
    assert "unseen" in found
    assert asked[0].pop("fallback_application_name") == "zaudit"
    assert asked == [{"dsn": ("service=audit",), "connect_timeout": 5, "client_encoding": "utf8"}]
    assert all(text.startswith(("SET LOCAL ", "SELECT ")) for text in said)
    assert any("statement_timeout" in text for text in said)


@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("mysql://root@/?unix_socket=/s", {"user": "root", "unix_socket": "/s"}),
        ("mysql://a%40b@db1:3307", {"user": "a@b", "host": "db1", "port": 3307}),
        ("mysql:///?read_default_file=/root/.my.cnf", {"read_default_file": "/root/.my.cnf"}),
    ],
)
def test_mysql_is_asked_for_variables_alone(monkeypatch: pytest.MonkeyPatch, dsn: str, words: dict[str, Any]) -> None:
    said, asked = driver(monkeypatch, "pymysql", [("sync_binlog", "1")])
    assert json.loads(sql.answer("mysql", dsn))["settings"] == [["sync_binlog", "1"]]
    fixed = {"dsn": (), "connect_timeout": 5, "read_timeout": 5, "write_timeout": 5, "local_infile": False}
    assert asked == [{**fixed, **words}]
    assert [text.split(" WHERE")[0] for text in said] == [
        "SET SESSION TRANSACTION READ ONLY", "SHOW GLOBAL VARIABLES", "SHOW GLOBAL STATUS",
    ]  # fmt: skip


@for_each("family, host", [(socket.AF_UNIX, ""), (socket.AF_INET, "127.0.0.1")])
def test_the_socket_of_a_connection_is_the_new_one(family: int, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyMySQL does not tell it. Where the name of a host is looked for, another may be opened and stay."""
    driver(monkeypatch, "pymysql", [])
    opened: list[socket.socket] = []

    def connect(**_: Any) -> Answered:
        answered = Answered([], [])
        answered.close()
        opened.extend(socket.socket(each) for each in ([socket.AF_UNIX] if host else []) + [family])
        return answered

    with socket.socket(), monkeypatch.context() as patch:
        patch.setattr(sys.modules["pymysql"], "connect", connect)
        assert sql.mysql_at("mysql://root@db1")[1] == opened[-1].fileno()
    for each in opened:
        each.close()


def test_an_option_file_that_is_not_understood_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    driver(monkeypatch, "pymysql", [])

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
