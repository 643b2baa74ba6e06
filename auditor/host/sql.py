"""Who answers at the other end of a connection to a database, and whether it may have a password.

On this host any user may listen where no server does, with a process of any name, and ask for the password in clear. So the
process at the other end is judged before a byte is sent:

- One that root, the user of zaudit or the account of the engine runs (``postgres``, ``mysql``), or whose socket no one else
  could have put there, links on the way included, is the named server.
- Any other one must be a server of that name that works in a data directory of its own user, whose ``postmaster.pid`` names
  it. It is believed about that directory alone. Any user can make such a directory, so it gets no password that it could read
  (:func:`postgres_at`, :func:`mysql_at`).
- All others are asked nothing.

SO_PEERCRED names the process of a unix socket. For TCP the kernel's table of sockets has the other end, where it is on this
host, with an inode and the user who accepted it. On another host it is a server that root names. The functions run in a
script, also of an older Python, and use nothing of this module but each other.

(man 7 unix; man 5 proc_pid_net, proc_pid_status; PostgreSQL manual, Preventing Server Spoofing, and miscinit.c,
ChangeToDataDir and CreateLockFile; MySQL sql/mysqld.cc, my_setwd)"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any


class UntrustedServer(Exception):
    """Nobody to give a password to, and nobody to believe. The text names no host and no account."""


def judge(number: int, path: str, names: tuple[str, ...], account: str) -> Any:
    """What is at the other end of a socket: ({"process": N, "name": of its command} or {"unseen": why}, whether a password
    may be sent that it can read). path: of a unix socket. names: that a server may have. account: that runs it. Raises
    UntrustedServer."""
    peer = peer_of(number)
    if peer is None:
        return {"unseen": "the connection leaves this host, or this network namespace"}, True
    uid, process, local = peer
    named = of_root(process, uid, account) or (local and guarded(path, process, uid))
    found = server_of(process, uid, names, named)
    if "unseen" in found and not named:
        raise UntrustedServer(f"{found['unseen']} (uid {uid}); any user may listen there, so zaudit did not ask it")
    return found, named


def peer_of(number: int) -> tuple[int, str, bool] | None:
    """(uid, process, whether it is a unix socket) of the other end; the process is empty where not seen. None where the
    other end is not on this host. Raises UntrustedServer for one that no process has accepted."""
    import os
    import socket
    import struct
    import time

    with socket.socket(fileno=os.dup(number)) as mine:
        if mine.family == socket.AF_UNIX:
            process, uid, _ = struct.unpack("3i", mine.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return uid, str(process) if process else "", True
        for _ in range(100):
            try:
                row = row_of(mine.getpeername(), mine.getsockname())
            except OSError:
                break
            if row and row[1] != "0":
                return row[0], process_with(row[1], row[0]), False
            # TCP_ESTABLISHED: what is in no table now was in none before either (Linux include/net/tcp_states.h)
            if row is None and mine.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 1:
                # the tables are not read at one moment; an address of this host reaches itself from itself
                there, here = mine.getpeername()[0], mine.getsockname()[0]
                if not (there in ("::1", here) or there.replace("::ffff:", "").startswith("127.")):
                    return None
            time.sleep(0.05)
    raise UntrustedServer("no process of this host has accepted the connection, so zaudit did not ask")


def row_of(theirs: Any, mine: Any) -> tuple[int, str] | None:
    """(uid, inode) of the socket of this host with these two addresses, or None; the inode is 0 until it is accepted.
    Raises OSError where that cannot be seen."""
    import contextlib
    import socket
    import sys

    def spelt(address: tuple[Any, ...]) -> str:
        packed = socket.inet_pton(
            socket.AF_INET6 if ":" in address[0] else socket.AF_INET, address[0].partition("%")[0]
        )
        words = [packed[i : i + 4] for i in range(0, len(packed), 4)]
        host = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words).hex().upper()
        return bare(host) + f":{address[1]:04X}"

    def bare(host: str) -> str:
        mapped = "0000000000000000FFFF0000"  # an address of IPv4 in one of IPv6
        return host[len(mapped) :] if host.startswith(mapped) else host

    ends = spelt(theirs), spelt(mine)
    lines = []
    with open("/proc/net/tcp", encoding="ascii") as file:
        lines += file.readlines()
    with contextlib.suppress(FileNotFoundError), open("/proc/net/tcp6", encoding="ascii") as file:  # without IPv6
        lines += file.readlines()
    for fields in map(str.split, lines):
        if bare(fields[1]) == ends[0] and bare(fields[2]) == ends[1]:
            return int(fields[7]), fields[9]
    return None


def status_of(process: str) -> dict[str, str]:
    """/proc/PID/status, for which nobody waits (host/owner.py). Raises OSError."""
    with open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as file:
        return dict(line.rstrip("\n").partition(":\t")[::2] for line in file)


def process_with(inode: str, uid: int) -> str:
    """Which process of a user has a socket open; empty where none is seen. Raises UntrustedServer where it may not be seen."""
    import os

    denied = False
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if str(uid) == status_of(process)["Uid"].split()[1]:
                folder = f"/proc/{process}/fd"
                if any(os.readlink(f"{folder}/{each}") == f"socket:[{inode}]" for each in os.listdir(folder)):
                    return process
        except PermissionError:
            denied = True
        except (OSError, LookupError):
            continue
    if denied:
        raise UntrustedServer("permission denied to see which process has the other end of the connection")
    return ""


def of_root(process: str, uid: int, account: str) -> bool:
    """Could nobody have started it but root, or the account of the engine, or who asks? Root of a container is none of them,
    whatever its number is: a process in another PID namespace has a number in each."""
    import contextlib
    import os
    import pwd

    users = {0, os.geteuid()}
    with contextlib.suppress(LookupError):
        users.add(pwd.getpwnam(account).pw_uid)
    try:
        return uid in users and len(status_of(process)["NSpid"].split()) == 1
    except (OSError, LookupError):
        return False


def guarded(socket: str, process: str, uid: int) -> bool:
    """Could nobody but root, that user and his own group have put a socket there, or laid a link or another folder on the way?
    The socket may be a link itself, and then it counts where that leads."""
    import os
    import stat

    def shut(path: str) -> bool:
        found = os.stat(path)
        own = (found.st_uid, found.st_gid) == (uid, group)  # as Debian's /run/postgresql, postgres:postgres 2775
        if found.st_uid not in (0, uid) or found.st_mode & (0o002 if own else 0o022):
            return False
        # with a list of access the bits of the group are those of everybody in it
        return not found.st_mode & 0o020 or "system.posix_acl_access" not in os.listxattr(path)

    if not socket.startswith("/"):
        return False
    path, ahead = "/", socket.split("/")
    try:
        group = int(status_of(process)["Gid"].split()[0])
        for _ in range(256):
            if not ahead:
                return True
            if not shut(path):
                return False
            name = ahead.pop(0)
            where = os.path.join(path, name) if name else path
            if stat.S_ISLNK(os.lstat(where).st_mode):
                ahead = os.readlink(where).split("/") + ahead
                path = path if ahead[0] else "/"
            else:
                path = where
    except (OSError, LookupError):
        pass
    return False


def server_of(process: str, uid: int, names: tuple[str, ...], named: bool) -> dict[str, Any]:
    """{"process": N, "name": of its command} of the server that a process belongs to, or {"unseen": why}. named: it is the
    intended one, though its folder may not be looked into."""
    import os
    import stat

    def against(name: str) -> str:
        """Why it is not the server of a directory of its own."""
        folder = os.open(f"/proc/{process}/cwd", os.O_PATH + os.O_DIRECTORY)
        try:
            if os.fstat(folder).st_uid != uid:
                return "works in a folder of another user"
            if name != "postgres":
                return ""
            file = os.open("postmaster.pid", os.O_PATH + os.O_NOFOLLOW, dir_fd=folder)
            try:
                found = os.fstat(file)
                if not stat.S_ISREG(found.st_mode) or found.st_uid != uid:
                    return "works in a folder with the postmaster.pid of another user"
                with open(f"/proc/self/fd/{file}", "rb") as lines:
                    number = lines.readline(32).strip().decode("ascii", "replace")
            finally:
                os.close(file)
            return "" if number == status["NSpid"].split()[-1] else "is not the server that postmaster.pid names"
        except FileNotFoundError:
            return "works in a folder without postmaster.pid"
        finally:
            os.close(folder)

    try:
        status = status_of(process)
        name = status["Name"]
        if name not in names:
            return {"unseen": f"the other end of the connection is {name}, which may pass it on to another host"}
        parent = (
            status_of(status["PPid"]) if status["PPid"] != "0" else status
        )  # the first process of a container has none
        if parent["Name"] == name:
            process, status = parent["Pid"], parent
        if str(uid) != status["Uid"].split()[1]:
            return {"unseen": f"process {process} ({name}) is not run by who accepted the connection"}
        why = against(name)
    except PermissionError:
        why = "" if named else "works in a folder that may not be looked at: permission denied"
    except (OSError, LookupError):
        return {"unseen": "the process at the other end of the connection is not one that is seen here"}
    return {"unseen": f"process {process} ({name}) {why}"} if why else {"process": int(process), "name": name}


def agree(process: int, home: str) -> None:
    """Raises UntrustedServer where a process does not work in the data directory that it says is its own."""
    import os

    try:
        here = os.stat(f"/proc/{process}/cwd")
        if os.path.samestat(here, os.stat(f"/proc/{process}/root{home}")):
            return
    except PermissionError:  # of a server that was named, or judge() had refused it
        return
    except OSError:
        pass
    raise UntrustedServer(f"process {process} says that its data is not in the folder that it works in")


# for a script
JUDGING = (UntrustedServer, judge, peer_of, row_of, status_of, process_with, of_root, guarded, server_of, agree)


# What a running PostgreSQL, MySQL or MariaDB reports of its settings, over the connection of ``--db NAME=DSN``.
#
# It asks in a read-only session for settings alone, with short time-outs. The drivers (psycopg, PyMySQL) are optional, and
# may hang: so the functions run as :func:`script` by ``python3 -I -c``, with this Python where it has the driver, else with
# the system's, to which Debian's packages belong. No password goes into the DSN (:func:`fault`), and so into no recording,
# report or list of processes: libpq takes it from PGPASSFILE, a service or the environment, PyMySQL from the option file
# that the DSN names. The process at the other end is judged before it is told anything (above). (PostgreSQL manual, libpq,
# Connection Strings)

REDACTED = "redacted"  # stands for a DSN that is not told
NAME = "sql"  # argv: (NAME, engine, DSN); no program of that name is started
DRIVERS = {"postgres": "psycopg", "mysql": "pymysql", "mariadb": "pymysql"}
EXTRAS = {"psycopg": ("postgres", "python3-psycopg"), "pymysql": ("mysql", "python3-pymysql")}
# A user with a password, as libpq finds him: up to the first @, in which ? and # mean nothing; and beyond a / as well, where
# somebody forgot to spell it %2F. Where hosts and ports, a / and a ? come first, an @ behind that ends no password.
_USER = re.compile(r"[^:]*+://[^@:]*+:[^@]*+@")
_HOST = r"(?:\[[^]@]*+\]|[^][:,/?#@]*+)(?::[0-9]{0,5}+)?+"
_HOSTS = re.compile(rf"[^:]*+://{_HOST}(?:,{_HOST})*+/[^@?]*+\?")
# what libpq takes, several hosts as well; urllib's judgement of a host is another in every release of Python
_URI = re.compile(rf"[^:]*+://(?:[^@/?]*+@)?+{_HOST}(?:,{_HOST})*+(?:[/?]|\Z)")
_WORDS = re.compile(r"(?<!\w)(\w++)\s*+=")  # of key=value; behind a value in quotes no space need stand
WRITTEN = {"sslkeylogfile"}  # the keys of the connection, for whoever may read them (PostgreSQL 18)
VARIABLES = ("HOME", "KRB5CCNAME")  # and all that begin with PG: for libpq


def fault(engine: str, dsn: str) -> str:
    """Why a DSN is not taken, or an empty string. Does not repeat it: it may hold a password."""
    from urllib.parse import unquote

    uri = "://" in dsn
    scheme = dsn.partition("://")[0] if uri else ""
    secret = bool(_USER.match(dsn) and not _HOSTS.match(dsn)) if uri else False
    # of the first ? and to the end: libpq knows no fragment (#), and PyMySQL is never given one
    pairs = [each.partition("=") for each in dsn.partition("?")[2].split("&")] if uri else []
    query = {unquote(name).lower(): unquote(value) for name, equals, value in pairs if equals}
    words = set(query)
    if engine == "postgres":
        if uri and scheme not in ("postgres", "postgresql"):
            return "a DSN of PostgreSQL is postgresql://USER@HOST/NAME or key=value"
        words |= set(_WORDS.findall(dsn.lower())) if not uri else set()
        where = "PGPASSFILE (~/.pgpass) or a service (PGSERVICE)"
    else:
        if scheme not in ("mysql", "mariadb"):
            return f"a DSN of {engine} is {engine}://USER@HOST:PORT or {engine}://USER@/?unix_socket=PATH"
        if wrong := words - {"unix_socket", "read_default_file", "password", "passwd"}:
            return f"{sorted(wrong)[0]} is no option of a DSN; there are unix_socket and read_default_file"
        if relative := [
            name for name in ("unix_socket", "read_default_file") if not query.get(name, "/").startswith("/")
        ]:
            return f"{relative[0]} must be an absolute path"
        where = "the option file of ?read_default_file=PATH"
    if writes := words & WRITTEN:
        return f"{sorted(writes)[0]} names a file that libpq writes; there is no such option here"
    if secret or any(each in word and word != "passfile" for word in words for each in ("pass", "secret")):
        return f"no password here, where every user of this host sees it (ps); put it into {where}"
    return "not a URI" if uri and not _URI.match(dsn) else ""


def answer(engine: str, dsn: str) -> str:
    """JSON: engine, version, settings, and "process" (a number) with its "name", or "unseen" (why). Raises as the
    driver."""
    import json

    return json.dumps((postgres if engine == "postgres" else mysql)(dsn), indent=1, sort_keys=True) + "\n"


def postgres(dsn: str) -> dict[str, Any]:
    """Settings as pg_settings has them (a role without pg_read_all_settings is not shown some), and what roles and
    databases set otherwise for themselves; when WAL was archived last, walsenders whose state this role may not see, and
    standbys that stream from another address. (PostgreSQL manual, 28.2 The Cumulative Statistics System)"""
    names = (
        "'fsync', 'synchronous_commit', 'full_page_writes', 'wal_init_zero', 'wal_recycle', 'wal_sync_method',"
        " 'synchronous_standby_names', 'archive_mode', 'wal_compression', 'temp_tablespaces', 'data_directory',"
        " 'block_size', 'data_checksums', 'server_version'"
    )
    connection, server = postgres_at(dsn)
    with connection:
        settings = connection.execute(
            "SELECT name, setting, source, sourcefile, sourceline, pending_restart FROM pg_settings"
            f" WHERE name IN ({names}) ORDER BY name"
        ).fetchall()
        roles = connection.execute(
            "SELECT coalesce(datname, ''), coalesce(rolname, ''), entry FROM pg_db_role_setting"
            " CROSS JOIN unnest(setconfig) AS entry LEFT JOIN pg_database d ON d.oid = setdatabase"
            " LEFT JOIN pg_roles r ON r.oid = setrole WHERE entry LIKE 'synchronous_commit=%' ORDER BY 1, 2, 3"
        ).fetchall()
        copies = connection.execute(
            "SELECT coalesce(extract(epoch FROM last_archived_time), 0)::bigint, hidden, standbys FROM pg_stat_archiver,"
            " (SELECT count(*) FILTER (WHERE state IS NULL) AS hidden, count(*) FILTER (WHERE state = 'streaming'"
            " AND NOT client_addr <<= inet '127.0.0.0/8' AND client_addr <> inet '::1') AS standbys"
            " FROM pg_stat_replication AS sender WHERE NOT EXISTS (SELECT FROM pg_replication_slots"
            " WHERE active_pid = sender.pid AND slot_type = 'logical')) AS counted"
        ).fetchall()
        for name, value, *_ in settings:
            if name == "data_directory" and "process" in server:
                agree(server["process"], value)
        found = {"settings": settings, "roles": roles, "copies": copies}
        return {**{name: [list(row) for row in several] for name, several in found.items()}, **server}


def postgres_at(dsn: str) -> Any:
    """(a connection, the process of :func:`judge`). Its first transaction writes nothing and takes no long time; each
    further one begins with :func:`bounded`.

    libpq connects step by step, and sends nothing on a socket before the step after the one that connected it. A server of
    this host that anybody may run gets no password in clear or as MD5, unless the DSN asks for that (require_auth); where
    libpq is too old to refuse it, it has no password to send. (PostgreSQL manual, PQconnectStartParams; libpq 16,
    require_auth)"""
    import os
    import select
    import time

    import psycopg
    from psycopg import conninfo, pq

    # of a database of encoding SQL_ASCII psycopg would give bytes
    words = {"fallback_application_name": "zaudit", "client_encoding": "utf8"}
    until, careful, seen, server = time.monotonic() + 10.0, False, 0, {}
    link = pq.PGconn.connect_start(conninfo.make_conninfo(dsn, **words).encode())
    step = pq.PollingStatus.WRITING
    try:
        while step != pq.PollingStatus.OK:
            if step == pq.PollingStatus.FAILED or link.status == pq.ConnStatus.BAD:
                why = "; a server of this host that postgres does not run gets no password in clear or as MD5"
                why += "" if pq.version() >= 160000 else ", and from a libpq before 16 none at all"
                said = link.error_message.decode("utf-8", "replace").strip()
                raise psycopg.OperationalError(said + (why if careful else ""))
            waiting = select.poll()
            waiting.register(link.socket, select.POLLIN if step == pq.PollingStatus.READING else select.POLLOUT)
            if not waiting.poll(max(until - time.monotonic(), 0.0) * 1000):
                raise psycopg.OperationalError("no answer within 10 s")
            inode = os.fstat(link.socket).st_ino
            if link.status != pq.ConnStatus.STARTED and seen != inode:
                seen = inode
                # the name of a socket: PostgreSQL src/include/libpq/pqcomm.h, UNIXSOCK_PATH
                path = f"{os.fsdecode(link.host)}/.s.PGSQL.{os.fsdecode(link.port)}"
                server, named = judge(link.socket, path, ("postgres",), "postgres")
                if not (named or careful):
                    careful, seen = True, 0
                    if pq.version() >= 160000:
                        os.environ.setdefault("PGREQUIREAUTH", "!password,!md5")
                    else:
                        words.update(password="", passfile="/nonexistent")
                    link.finish()
                    link = pq.PGconn.connect_start(conninfo.make_conninfo(dsn, **words).encode())
                    step = pq.PollingStatus.WRITING
                    continue
            step = pq.PollingStatus(link.connect_poll())
        link.nonblocking = 1
        connection = psycopg.Connection(link)
        connection.read_only = True
        bounded(connection)
    except BaseException:
        link.finish()
        raise
    return connection, server


def bounded(connection: Any) -> None:
    """No statement of this transaction takes long."""
    connection.execute("SET LOCAL statement_timeout = 5000")
    connection.execute("SET LOCAL lock_timeout = 5000")


def mysql(dsn: str) -> dict[str, Any]:
    """Settings as SHOW GLOBAL VARIABLES has them, whether InnoDB writes its redo log, which is no setting, and how many
    replicas read its binary log from another address. (MySQL manual, Thread Command Values: Binlog Dump)"""
    connection, server = mysql_at(dsn)
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'innodb_doublewrite',"
                " 'innodb_flush_log_at_timeout',"
                " 'innodb_flush_method', 'innodb_page_size', 'sync_binlog', 'log_bin', 'log_bin_basename', 'datadir',"
                " 'innodb_log_group_home_dir', 'innodb_undo_directory', 'innodb_data_home_dir', 'innodb_data_file_path',"
                " 'innodb_doublewrite_dir', 'innodb_log_write_ahead_size', 'aria_log_dir_path', 'version')"
            )
            settings = sorted([str(name), str(value)] for name, value in cursor.fetchall())
            for name, value in settings:
                if name == "datadir" and "process" in server:
                    agree(server["process"], value)
            cursor.execute("SHOW GLOBAL STATUS WHERE Variable_name = 'Innodb_redo_log_enabled'")
            status = [[str(name), str(value)] for name, value in cursor.fetchall()]
            # without PROCESS one sees none but one's own sessions, and no error
            cursor.execute(
                "SELECT count(*) FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'PROCESS'"
                " AND GRANTEE = CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@',"
                " QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))"
            )
            sees = any(str(row[-1]) != "0" for row in cursor.fetchall())
            cursor.execute(
                "SELECT count(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'"
                " AND HOST NOT RLIKE '^(localhost|127[.]|::1:|.::1.)' AND HOST <> ''"
            )
            replicas = [[str(row[-1])] for row in cursor.fetchall() if sees]
        return {"settings": settings, "status": status, "replicas": replicas, **server}
    finally:
        connection.close()


def mysql_at(dsn: str) -> Any:
    """(a connection, the process of :func:`judge`). Its session writes nothing, and waits no longer than 5 s for an answer.
    PyMySQL sends a password in clear, or with a key from the server, to any server that asks for it so: a server of this
    host that anybody may run gets none."""
    import configparser
    import contextlib
    import os
    import socket
    from urllib.parse import parse_qs, unquote, urlsplit

    import pymysql

    parts = urlsplit(dsn)
    query = parse_qs(parts.query)
    words: dict[str, Any] = {"connect_timeout": 5, "read_timeout": 5, "write_timeout": 5, "local_infile": False}
    words.update((name, query[name][0]) for name in ("unix_socket", "read_default_file") if name in query)
    if parts.username:
        words["user"] = unquote(parts.username)
    if parts.port:
        words["port"] = parts.port
    if parts.hostname:
        words["host"] = parts.hostname
    elif not query:  # where the clients of both look
        # not /tmp/mysql.sock, which anybody may make who is quicker than the server
        usual = ("/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock")
        words["unix_socket"] = next((path for path in usual if os.path.exists(path)), usual[0])
    try:
        connection = pymysql.connect(**words, defer_connect=True)
    except configparser.Error:  # its words are lines of the file
        raise ValueError("the option file of the connection is not understood") from None

    path = connection.unix_socket
    with contextlib.ExitStack() as opened:
        if path:
            # the socket itself is held: another one of that path is not the one that is judged
            held = os.open(path, os.O_PATH)
            opened.callback(os.close, held)
            link = opened.enter_context(socket.socket(socket.AF_UNIX))
            link.settimeout(5)
            link.connect(f"/proc/self/fd/{held}")
        else:
            source = (connection.bind_address, 0) if connection.bind_address else None
            link = opened.enter_context(socket.create_connection((connection.host, connection.port), 5, source))
        server, named = judge(link.fileno(), path or "", ("mysqld", "mariadbd"), "mysql")
        if connection.password and not named:
            raise UntrustedServer(
                "mysql does not run it, and any user may listen there: no password is sent (name a unix socket in a folder"
                " of the server's own)"
            )
        if path and parts.scheme == "mysql":
            # caching_sha2_password takes a unix socket for secure only where PyMySQL has opened it
            connection.unix_socket = f"/proc/self/fd/{held}"
            connection.connect()
        else:
            connection.connect(link.dup())
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION READ ONLY")
    except BaseException:
        connection.close()
        raise
    return connection, server


def importable(engine: str) -> bool:
    """Whether this Python has the driver."""
    return importlib.util.find_spec(DRIVERS[engine]) is not None


def environment() -> dict[str, str]:
    """What libpq reads of the caller's."""
    return {name: value for name, value in os.environ.items() if name in VARIABLES or name.startswith("PG")}


MEMORY = 512 << 20  # bytes of the process that asks
CONNECTING = (*JUDGING, postgres_at, bounded, mysql_at)


@cache
def script() -> str:
    """For ``python3 -I -c SCRIPT ENGINE DSN``."""
    return program(
        (answer, postgres, mysql, *CONNECTING),
        "answer(sys.argv[1], sys.argv[2])",
        'type(error).__name__ + ": " + str(error)',
    )


def program(functions: tuple[Callable[..., Any], ...], call: str, words: str) -> str:
    """A script of these functions that prints what a call gives. words: of an error. A server may answer without end, or
    not at all: the script has a limit of memory, and dies with zaudit. (man 2 setrlimit, PR_SET_PDEATHSIG)"""
    import inspect

    source = "\n".join(inspect.getsource(each) for each in functions)
    return f"""from __future__ import annotations
import ctypes, resource, sys
from typing import Any
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
most = resource.getrlimit(resource.RLIMIT_DATA)[1]
most = {MEMORY} if most == resource.RLIM_INFINITY else min(most, {MEMORY})
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
{source}
try:
    text = {call}
except Exception as error:
    sys.exit({words})
sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
"""
