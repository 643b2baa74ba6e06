"""Who answers at the other end of a connection to a database, and whether it may have a password.

On this host any user may listen where no server does, with a process of any name, and ask for the password in clear. So
the process at the other end is judged before a byte is sent:

- one that root, the user of zaudit or the account of the engine runs (``postgres``, ``mysql``), or whose socket nobody else
  could have put where it was looked for, links on the way included, is the server that was named;
- any other one must be a server of that name that works in a data directory of its own user, whose ``postmaster.pid`` names
  it. It is believed about that directory alone. Since any user can make such a directory, it gets no password that it could
  read (:func:`.sql.postgres_at`, :func:`.sql.mysql_at`);
- from all others nothing is asked.

SO_PEERCRED names the process of a unix socket. For TCP the kernel's table of sockets has the other end, where it is on this
host, with an inode and the user who accepted it. What is on another host is a server that root names. The functions run in
a script, also of an older Python, and use nothing of this module but each other.

(man 7 unix; man 5 proc_pid_net, proc_pid_status; PostgreSQL manual, Preventing Server Spoofing, and miscinit.c,
ChangeToDataDir and CreateLockFile; MySQL sql/mysqld.cc, my_setwd)
"""

from __future__ import annotations

from typing import Any


class UntrustedServer(Exception):
    """Nobody to give a password to, and nobody to believe. The text names no host and no account."""


def judge(number: int, path: str, names: tuple[str, ...], account: str) -> Any:
    """What is at the other end of a socket: ({"process": N, "name": of its command} or {"unseen": why}, whether a password may
    be sent that it can read). Raises UntrustedServer.

    path: that was connected to, for a unix socket. names: that a server may have. account: that runs it.
    """
    peer = peer_of(number)
    if peer is None:
        return {"unseen": "the connection leaves this host, or this network namespace"}, True
    uid, process, local = peer
    named = of_root(process, uid, account) or (local and guarded(path, process, uid))
    found = server_of(process, uid, names, named)
    if "unseen" in found and not named:
        raise UntrustedServer(f"{found['unseen']} (uid {uid}); any user may listen there, so it was not asked")
    return found, named


def peer_of(number: int) -> tuple[int, str, bool] | None:
    """(uid, process, whether it is a unix socket) of the other end; the process is empty where it is not seen. None where the
    other end is not on this host. Raises UntrustedServer for one that nobody has accepted."""
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
    raise UntrustedServer("no process of this host has accepted the connection, so it was not asked")


def row_of(theirs: Any, mine: Any) -> tuple[int, str] | None:
    """(uid, inode) of the socket of this host that has these two addresses, or None; the inode is 0 until somebody accepts it.
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
    """/proc/PID/status, for which nobody waits (host/memory.py). Raises OSError."""
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
    """{"process": N, "name": of its command} of the server that a process belongs to, or {"unseen": why}. named: it is the one
    that was meant, though nobody here may look into its folder."""
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
