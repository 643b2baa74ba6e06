"""``/proc/*/stat``: which database servers run here. (man 5 proc_pid_stat)

A server that forks a process for each client is the one of them whose parent is no such process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, links, word
from auditor.host.request import Files, Read
from auditor.host.telling import SERVERS

PER = "host"
SUBJECT = "host"
FACTS = {
    "database_processes": links("database", "database servers that run, or that the user named"),
    "database.engine": word("which server it is", "postgres", "mysql", "mariadb", "mongodb", "etcd", "redis"),
    "database.process": word("its process number, or self where it does not run"),
}
NOT_RUNNING = "self"  # its files are looked for below our own root directory


def request(host: Subject, facts: Facts) -> Read:
    """One line of each process."""
    return Read(("/proc/*/stat",))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where process 1 is not shown: then others are hidden, too (proc mounted with hidepid)."""
    processes = {}
    for path, text in reply.text.items():
        if re.fullmatch(r"/proc/\d+/stat", path):
            number, _, rest = text.partition(" (")
            name, _, after = rest.rpartition(") ")  # a name may hold anything, what follows it only numbers
            fields = after.split(" ")
            if not (text.endswith("\n") and number.isdecimal() and len(fields) > 2 and fields[1].isdecimal()):
                raise ValueError(f"{path} is cut off")
            processes[number] = name, fields[1]
    for path, error in reply.errors.items():  # without its parent a child looks like a server; one that ended is none
        if path != "/proc/*/stat" and not error.startswith("no such"):
            raise ValueError(f"{path}: {error}")
    if "1" not in processes:
        why = "permission denied" if processes else reply.errors.get("/proc/*/stat", "was not read")
        raise ValueError(f"/proc/1/stat: {why}")
    servers = []
    for number, (name, parent) in sorted(processes.items(), key=lambda each: int(each[0])):
        if name not in SERVERS or processes.get(parent, ("", ""))[0] == name:
            continue
        subject = Subject("database", f"{SERVERS[name]} {number}")
        servers.append(subject)
        yield Fact(subject, "engine", known(SERVERS[name], f"process {number} is {name}", f"ps {number}"))
        yield Fact(subject, "process", known(number, f"process {number}", f"ps {number}"))
    text = ", ".join(each.name for each in servers) or "no database server runs"
    yield Fact(HOST, "database_processes", known(tuple(servers), text, f"pgrep -x '{'|'.join(SERVERS)}'"))
