"""What a running PostgreSQL, MySQL or MariaDB says of its settings, over the connection that ``--db NAME=DSN`` names.

It asks in a read-only session for settings alone, with short time-outs. The drivers (psycopg, PyMySQL) are optional. They
may hang where nothing ends them, so the functions here run as :func:`script` by ``python3 -I -c``: with this Python where it
has the driver, else with the system's, to which Debian's packages belong. No password goes into the DSN (:func:`fault`),
and so into no recording, report or list of processes: libpq takes it from PGPASSFILE, a service or the environment, PyMySQL
from the option file that the DSN names.

A connection alone does not say on which host the server runs. The process at the other end of the socket does: SO_PEERCRED
names it for a unix socket, and for TCP the kernel's table of sockets, in which a socket of this host has an inode, and the
process that holds this inode. (man 7 unix; man 5 proc_pid_net; PostgreSQL manual, libpq, Connection Strings)
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any

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
    if secret or any("pass" in word and word != "passfile" for word in words):
        return f"no password here, where every user of this host sees it (ps); put it into {where}"
    return "not a URI" if uri and not _URI.match(dsn) else ""


def answer(engine: str, dsn: str) -> str:
    """JSON: engine, version, the settings, and "process" (a number) with its "name", or "unseen" (why there is none).

    Raises what the driver raises; no error shows more than the driver's own words.
    """
    import json

    return json.dumps((postgres if engine == "postgres" else mysql)(dsn), indent=1, sort_keys=True) + "\n"


def postgres(dsn: str) -> dict[str, Any]:
    """Settings as pg_settings has them (a role without pg_read_all_settings is not shown some), and what roles and
    databases set otherwise for themselves."""
    names = (
        "'fsync', 'synchronous_commit', 'full_page_writes', 'wal_init_zero', 'wal_recycle', 'wal_sync_method',"
        " 'temp_tablespaces', 'data_directory', 'block_size', 'server_version'"
    )
    with postgres_at(dsn) as connection:
        settings = connection.execute(
            "SELECT name, setting, source, sourcefile, sourceline, pending_restart FROM pg_settings"
            f" WHERE name IN ({names}) ORDER BY name"
        ).fetchall()
        roles = connection.execute(
            "SELECT coalesce(datname, ''), coalesce(rolname, ''), entry FROM pg_db_role_setting"
            " CROSS JOIN unnest(setconfig) AS entry LEFT JOIN pg_database d ON d.oid = setdatabase"
            " LEFT JOIN pg_roles r ON r.oid = setrole WHERE entry LIKE 'synchronous_commit=%' ORDER BY 1, 2, 3"
        ).fetchall()
        return {
            "settings": [list(row) for row in settings],
            "roles": [list(row) for row in roles],
            **holder(connection.fileno(), ("postgres",)),
        }


def postgres_at(dsn: str) -> Any:
    """A connection in whose first transaction nothing is written, and nothing takes long; each further one begins with
    :func:`bounded`."""
    import psycopg

    # of a database of encoding SQL_ASCII psycopg would give bytes
    words = {"connect_timeout": 5, "fallback_application_name": "zaudit", "client_encoding": "utf8"}
    connection = psycopg.connect(dsn, **words)
    try:
        connection.read_only = True
        bounded(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def bounded(connection: Any) -> None:
    """No statement of this transaction takes long."""
    connection.execute("SET LOCAL statement_timeout = 5000")
    connection.execute("SET LOCAL lock_timeout = 5000")


def mysql(dsn: str) -> dict[str, Any]:
    """Settings as SHOW GLOBAL VARIABLES has them, and whether InnoDB writes its redo log, which is no setting."""
    connection, number = mysql_at(dsn)
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'innodb_doublewrite',"
                " 'innodb_flush_method', 'innodb_page_size', 'sync_binlog', 'log_bin', 'log_bin_basename', 'datadir',"
                " 'innodb_log_group_home_dir', 'innodb_undo_directory', 'innodb_data_home_dir', 'innodb_data_file_path',"
                " 'innodb_doublewrite_dir', 'aria_log_dir_path', 'version')"
            )
            settings = sorted([str(name), str(value)] for name, value in cursor.fetchall())
            cursor.execute("SHOW GLOBAL STATUS WHERE Variable_name = 'Innodb_redo_log_enabled'")
            status = [[str(name), str(value)] for name, value in cursor.fetchall()]
        return {"settings": settings, "status": status, **holder(number, ("mysqld", "mariadbd"))}
    finally:
        connection.close()


def mysql_at(dsn: str) -> tuple[Any, int]:
    """A connection whose session writes nothing, and in which no answer is waited for longer than 5 s; and the descriptor of
    its socket, which PyMySQL does not tell."""
    import configparser
    import os
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
    before = sockets()
    try:
        connection = pymysql.connect(**words)
    except configparser.Error:  # its words are lines of the file
        raise ValueError("the option file of the connection is not understood") from None
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION READ ONLY")
        new = {number: unix for number, unix in sockets().items() if number not in before}
        number = min(new, key=lambda each: new[each])  # another may be left of a look for the name of the host (sssd)
    except BaseException:
        connection.close()
        raise
    return connection, number


def sockets() -> dict[int, bool]:
    """The descriptors of this process that are sockets, and whether it is a unix socket."""
    import os
    import socket
    import stat

    found: dict[int, bool] = {}
    for number in map(int, os.listdir("/proc/self/fd")):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as each:
                    found[number] = each.family == socket.AF_UNIX
        except OSError:  # the folder itself, which is closed by now
            continue
    return found


def holder(number: int, names: tuple[str, ...]) -> dict[str, Any]:
    """{"process": N, "name": of its command} of the server at the other end of this socket, or {"unseen": why}. names: that
    it may have."""
    import contextlib
    import os
    import socket
    import struct
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

    def status(process: str) -> tuple[str, str]:  # for which nobody waits, as for stat (host/memory.py)
        with open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as file:
            fields = dict(line.rstrip("\n").partition(":\t")[::2] for line in file)
            return fields["Name"], fields["PPid"]

    def server(process: str) -> dict[str, Any]:
        try:
            name, parent = status(process)
            if name not in names:
                return {"unseen": f"the other end of the connection is {name}, which may pass it on to another host"}
            if status(parent)[0] == name:
                process = parent
        except OSError:
            return {"unseen": "the process at the other end of the connection is not one that is seen here"}
        return {"process": int(process), "name": name}

    with socket.socket(fileno=os.dup(number)) as mine:
        if mine.family == socket.AF_UNIX:
            return server(str(struct.unpack("3i", mine.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]))
        ends = spelt(mine.getpeername()), spelt(mine.getsockname())
    inode = ""
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/net/{table}", encoding="ascii") as file:
            for fields in map(str.split, file):
                if bare(fields[1]) == ends[0] and fields[2].endswith(ends[1]):
                    inode = fields[9]
    if not inode:
        return {"unseen": "the connection leaves this host, or this network namespace"}
    denied = False
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if status(process)[0] in names:
                folder = f"/proc/{process}/fd"
                if any(os.readlink(f"{folder}/{each}") == f"socket:[{inode}]" for each in os.listdir(folder)):
                    return server(process)
        except (FileNotFoundError, ProcessLookupError):
            continue
        except PermissionError:
            denied = True
    return {
        "unseen": "permission denied to see which process has the other end"
        if denied
        else "no server here has the other end"
    }


def importable(engine: str) -> bool:
    """Whether this Python has the driver."""
    return importlib.util.find_spec(DRIVERS[engine]) is not None


def environment() -> dict[str, str]:
    """What libpq reads of the caller's."""
    return {name: value for name, value in os.environ.items() if name in VARIABLES or name.startswith("PG")}


MEMORY = 512 << 20  # bytes of the process that asks
CONNECTING = (postgres_at, bounded, mysql_at, sockets, holder)


@cache
def script() -> str:
    """For ``python3 -I -c SCRIPT ENGINE DSN``."""
    return program(
        (answer, postgres, mysql, *CONNECTING),
        "answer(sys.argv[1], sys.argv[2])",
        'type(error).__name__ + ": " + str(error)',
    )


def program(functions: tuple[Callable[..., Any], ...], call: str, words: str) -> str:
    """A script of these functions that prints what a call gives. words: what is said of an error. A server may answer without
    end, or not at all, and no time-out of its own holds it: so much memory is all that it gets here, and who asks dies with
    zaudit. (man 2 setrlimit, PR_SET_PDEATHSIG)"""
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
