"""A process of a user without rights that answers where a database server does not: it gets no password, and is not believed.

Each is a real process. What it is asked by stands in for the driver (tests/drivers.py), and counts what it sent.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.host import sql, sql_watch
from tests.drivers import Drivers
from tests.security import fakes
from tests.security.fakes import USER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a process of another user")
NOBODYS = "an account that nobody has"
ACCEPTS = """
os.chdir({home!r})
at = {at!r}
listener = socket.socket(socket.AF_UNIX if isinstance(at, str) else socket.AF_INET)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(at)
listener.listen()
accepted = []
def accept():
    while {accepts!r}:
        accepted.append(listener.accept())
threading.Thread(target=accept, daemon=True).start()
{more}
"""


OWN = "{pid}\n"  # what postmaster.pid says


@contextlib.contextmanager
def false(
    pid_file: str | None = OWN,
    *,
    unix: str = "",
    name: str = "postgres",
    accepts: bool = True,
    more: str = "",
    user: int = USER,
    before: str = "",
) -> Iterator[tuple[Any, int]]:
    """(address, process) of a server of a hostile user. pid_file: what is in that of its folder, if anything; None: it works
    in /. unix: the mode of the folder of its socket. more, before: Python that it executes as the user, and as root."""
    with fakes.folder() as home, tempfile.TemporaryDirectory(dir="/srv") as above:
        os.chmod(above, 0o755)
        sockets = Path(above, "run")
        sockets.mkdir()
        os.chown(sockets, USER, USER)
        if unix:
            sockets.chmod(int(unix, 8))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            at: Any = str(sockets / ".s.PGSQL.5432") if unix else free.getsockname()
        if pid_file:
            more = f"open('postmaster.pid', 'w').write({pid_file!r}.format(pid=os.getpid()))\n{more}"
        code = ACCEPTS.format(home="/" if pid_file is None else str(home), at=at, accepts=accepts, more=more)
        before = f"import socket, threading\n{before}"
        with fakes.server(name=name, user=user, before=before, after=code) as process:
            yield at, process


def judged(at: Any, account: str = NOBODYS, path: str = "") -> Any:
    with socket.socket(socket.AF_UNIX if isinstance(at, str) else socket.AF_INET) as client:
        client.connect(at)
        own = at if isinstance(at, str) else ""
        return sql.judge(client.fileno(), path or own, ("postgres", "mysqld"), account)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"pid_file": None}, "works in a folder of another user"),
        ({"pid_file": ""}, "works in a folder without postmaster.pid"),
        ({"pid_file": "1\n"}, "is not the server that postmaster.pid names"),
        ({"pid_file": "x" * 100}, "is not the server that postmaster.pid names"),
        ({"pid_file": "", "more": "os.mkfifo('postmaster.pid')"}, "postmaster.pid of another user"),
        ({"pid_file": "", "more": "os.symlink('/etc/passwd', 'postmaster.pid')"}, "postmaster.pid of another user"),
        ({"name": "ssh"}, "the other end of the connection is ssh"),
        ({"pid_file": None, "unix": "1777"}, "works in a folder of another user"),
    ],
)
def test_one_that_is_no_server_of_a_directory_of_its_own_is_refused(how: dict[str, Any], says: str) -> None:
    with false(**how) as (at, _), pytest.raises(sql.UntrustedServer) as error:
        judged(at)
    assert says in str(error.value)
    assert f"uid {USER}" in str(error.value)


@pytest.mark.parametrize("name", ["postgres", "mysqld"])
def test_one_with_a_directory_of_its_own_is_that_server_and_gets_no_password(name: str) -> None:
    with false(name=name) as (at, process):
        assert judged(at) == ({"process": process, "name": name}, False)
        with pytest.raises(sql.UntrustedServer, match="is not in the folder that it works in"):
            sql.agree(process, "/srv")
        sql.agree(process, os.readlink(f"/proc/{process}/cwd"))


def test_the_account_of_the_engine_is_who_was_meant() -> None:
    account = pwd.getpwuid(USER).pw_name
    with false() as (at, process):
        assert judged(at, account) == ({"process": process, "name": "postgres"}, True)
    with false(None) as (at, _):
        found, named = judged(at, account)
        assert ("works in a folder of another user" in found["unseen"], named) == (True, True)


APART = """
must(libc.unshare(0x20000000))  # CLONE_NEWPID
if (child := os.fork()):
    os.waitpid(child, 0)
    os._exit(0)
libc.prctl(1, 9, 0, 0, 0)
"""


@pytest.mark.parametrize("apart", [False, True])
def test_root_of_a_container_is_not_root(apart: bool) -> None:
    """Whoever passes connections on as root is who was meant; not where it has process numbers of its own."""
    try:
        with false(None, name="proxy", user=0, before=APART if apart else "") as (at, _):
            if apart:
                with pytest.raises(sql.UntrustedServer, match="is proxy"):
                    judged(at)
            else:
                found, named = judged(at)
                assert ("is proxy" in found["unseen"], named) == (True, True)
    except fakes.Refused as refused:
        pytest.skip(f"this machine grants no namespace of processes: {refused}")


@pytest.mark.parametrize(("mode", "named"), [("0755", True), ("2775", True), ("0777", False), ("1777", False)])
def test_a_socket_names_its_server_where_nobody_else_could_have_put_it(mode: str, named: bool) -> None:
    """2775: of Debian's /run/postgresql, whose group is that of the server."""
    with false(unix=mode) as (at, process):
        assert judged(at) == ({"process": process, "name": "postgres"}, named)


def test_a_folder_that_another_group_may_write_names_nobody() -> None:
    with false(unix="0775") as (at, _):
        os.chown(os.path.dirname(at), USER, 12)
        os.chmod(os.path.dirname(at), 0o775)
        assert judged(at)[1] is False


def test_a_folder_above_that_others_may_write_names_nobody() -> None:
    with false(unix="0755") as (at, _):
        os.chmod(os.path.dirname(os.path.dirname(at)), 0o777)
        assert judged(at)[1] is False


@pytest.mark.parametrize(("above", "named"), [(0o755, True), (0o777, False)])
def test_links_on_the_way_count(above: int, named: bool) -> None:
    """As /var/run, and as one that anybody may lay."""
    with false(unix="0755") as (at, _), tempfile.TemporaryDirectory(dir="/srv") as way:
        os.chmod(way, above)
        Path(way, "one").symlink_to("two")
        Path(way, "two").symlink_to(os.path.dirname(at))
        assert judged(at, path=f"{way}/one/{os.path.basename(at)}")[1] is named


@pytest.mark.usefixtures("no_account")
@pytest.mark.parametrize(("mode", "named"), [("0755", True), ("1777", False)])
def test_a_link_in_the_place_of_the_socket_counts_where_it_leads(
    mode: str, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root lays one from the usual folder to a socket in /tmp, where clients and server do not agree: anybody may listen
    there while the server is down."""
    with false(unix=mode) as (at, process), tempfile.TemporaryDirectory(dir="/srv") as usual:
        os.chmod(usual, 0o755)
        link = Path(usual, ".s.PGSQL.5432")
        link.symlink_to(at)
        assert judged(at, path=str(link)) == ({"process": process, "name": "postgres"}, named)
        psycopg = drivers(monkeypatch, str(link))
        sql.postgres_at("host=x")
        assert ("PGREQUIREAUTH" not in os.environ, len(psycopg.conninfo)) == (named, 1 if named else 2)
    with false(unix=mode, name="mysqld") as (at, _), tempfile.TemporaryDirectory(dir="/srv") as usual:
        os.chmod(usual, 0o755)
        link = Path(usual, "mysqld.sock")
        link.symlink_to(at)
        pymysql = drivers(monkeypatch, str(link))
        pymysql.password = b"hunter2"
        with contextlib.nullcontext() if named else pytest.raises(sql.UntrustedServer, match="no password is sent"):
            sql.mysql_at(f"mysql://u@/?unix_socket={link}")
        assert bool(pymysql.sent) is named


def test_who_accepted_it_counts_and_not_what_his_process_became(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with the set-user-ID bit keeps what the process had open."""
    with false(None) as (at, process), socket.socket() as client:
        client.connect(at)
        for _ in range(100):
            row = sql.row_of(client.getpeername(), client.getsockname())
            if row and row[1] != "0":
                break
            time.sleep(0.02)
        assert row is not None
        assert (row[0], sql.process_with(row[1], USER)) == (USER, str(process))
        status = sql.status_of
        grown = {"Uid": f"{USER}\t0\t0\t0"}
        monkeypatch.setattr(sql, "status_of", lambda each: status(each) | (grown if each == str(process) else {}))
        assert sql.process_with(row[1], USER) == ""
        assert sql.server_of(str(process), USER, ("postgres",), False).keys() == {"unseen"}


def test_one_that_nobody_accepts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until somebody does, the kernel's table has it as one of root."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with false(accepts=False) as (at, _), pytest.raises(sql.UntrustedServer, match="has accepted"):
        judged(at, "root")


def test_an_address_of_this_host_is_no_other_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel's table lacks the row at that moment, too: it reaches itself from itself."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(sql, "row_of", lambda *_: None)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this host has no route")
        address = probe.getsockname()[0]
    with (
        socket.create_server((address, 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        pytest.raises(sql.UntrustedServer, match="has accepted"),
    ):
        sql.peer_of(client.fileno())


# -- what is sent -------------------------------------------------------------------------------------------------------


class Answers:
    """A connection on which everything is well."""

    read_only = False

    def execute(self, _: str) -> None:
        pass

    def cursor(self) -> contextlib.nullcontext[Any]:
        return contextlib.nullcontext(self)

    def close(self) -> None:
        pass


@pytest.fixture
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hostile user is not the one that runs the database here."""
    monkeypatch.setenv("PGREQUIREAUTH", "")
    monkeypatch.delenv("PGREQUIREAUTH")


def drivers(monkeypatch: pytest.MonkeyPatch, at: Any) -> Drivers:
    found = Drivers(at, Answers())
    found.install(monkeypatch)
    return found


@pytest.mark.usefixtures("no_account")
@pytest.mark.parametrize("unix", ["", "1777"])
def test_nothing_is_sent_to_one_that_is_refused(monkeypatch: pytest.MonkeyPatch, unix: str) -> None:
    with false(None, unix=unix) as (at, _):
        psycopg = drivers(monkeypatch, at)
        with pytest.raises(sql.UntrustedServer):
            sql.postgres_at("host=x")
        assert psycopg.sent == 0
    with false(None, unix=unix, name="mysqld") as (at, _):
        pymysql = drivers(monkeypatch, at)
        with pytest.raises(sql.UntrustedServer):
            sql.mysql_at(f"mysql://u@/?unix_socket={at}" if unix else f"mysql://u@127.0.0.1:{at[1]}")
        assert pymysql.sent == 0


@pytest.mark.usefixtures("no_account")
@pytest.mark.parametrize("asked", ["", "md5"])
def test_libpq_may_send_no_password_in_clear_unless_it_is_asked_to(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    if asked:
        monkeypatch.setenv("PGREQUIREAUTH", asked)
    with false() as (at, process):
        psycopg = drivers(monkeypatch, at)
        assert sql.postgres_at("host=x")[1] == {"process": process, "name": "postgres"}
    assert (len(psycopg.conninfo), psycopg.sent) == (2, 1)
    assert os.environ["PGREQUIREAUTH"] == (asked or "!password,!md5")
    assert not {"password", "require_auth"} & psycopg.conninfo[1][1].keys()


@pytest.mark.usefixtures("no_account")
def test_a_libpq_that_cannot_refuse_has_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with false() as (at, _):
        psycopg = drivers(monkeypatch, at)
        psycopg.version = 150000
        sql.postgres_at("host=x")
    assert psycopg.conninfo[1][1].items() >= {"password": "", "passfile": "/nonexistent"}.items()
    assert "PGREQUIREAUTH" not in os.environ


@pytest.mark.usefixtures("no_account")
def test_where_the_server_was_meant_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    with false(unix="0755") as (at, _):
        psycopg = drivers(monkeypatch, at)
        sql.postgres_at("host=x")
    assert len(psycopg.conninfo) == 1
    assert "PGREQUIREAUTH" not in os.environ


@pytest.mark.parametrize("password", [b"", b"hunter2"])
def test_mysql_is_asked_over_tcp_without_a_password_alone(monkeypatch: pytest.MonkeyPatch, password: bytes) -> None:
    with false(name="mysqld") as (at, process):
        pymysql = drivers(monkeypatch, at)
        pymysql.password = password
        dsn = f"mysql://u@127.0.0.1:{at[1]}"
        if not password:
            assert sql.mysql_at(dsn)[1] == {"process": process, "name": "mysqld"}
            return
        with pytest.raises(sql.UntrustedServer, match="no password is sent") as error:
            sql.mysql_at(dsn)
        assert (pymysql.sent, "hunter2" in str(error.value)) == (0, False)


def test_the_socket_of_mysql_that_was_judged_is_the_one_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with false(unix="0755", name="mysqld") as (at, process):
        pymysql = drivers(monkeypatch, at)
        pymysql.password = b"hunter2"
        assert sql.mysql_at(f"mysql://u@/?unix_socket={at}")[1] == {"process": process, "name": "mysqld"}
        assert pymysql.paths == [at]


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
def test_what_it_says_of_its_directory_must_be_so(monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """Else it would speak for the directory of another."""

    class Lies(Answers):
        rows = [("datadir", "/srv")] if engine == "mysql" else [("data_directory", "/srv", "", None, None, False)]

        def execute(self, _: str) -> Lies:  # type: ignore[override]
            return self

        def fetchall(self) -> list[Any]:
            return self.rows

        def __enter__(self) -> Lies:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    with false(unix="0755", name="mysqld" if engine == "mysql" else "postgres") as (at, _):
        Drivers(at, Lies()).install(monkeypatch)
        dsn = f"mysql://u@/?unix_socket={at}" if engine == "mysql" else "host=x"
        with pytest.raises(sql.UntrustedServer, match="is not in the folder"):
            sql.answer(engine, dsn)


def test_diagnose_says_why() -> None:
    error = sql.UntrustedServer("process 7 (postgres) works in a folder of another user (uid 5000)")
    assert sql_watch.kind(error) == str(error)
