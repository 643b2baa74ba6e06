"""``/proc/*/stat``: which database servers run here. (man 5 proc_pid_stat)

A server that forks a process for each client is the one of them whose parent is no such process. Any user may give any
process the name of a server: of more than a few ``database_crowd`` says which are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.databases import SERVERS
from auditor.facts import HOST, Fact, Facts, Subject, known, links, word, words
from auditor.host import request as host_request
from auditor.host.request import UNANSWERED, Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {
    "database_processes": links("database", "database servers that run, or that the user named"),
    "other_databases": links("database", "servers of a kind that nobody looked for"),
    "server_processes": words("NUMBER NAME START of each process, where they are too many to look at each"),
    "database.engine": word("which server it is", *(each.name for each in SERVERS.values())),
    "database.process": word("its process number, or self where it does not run"),
}
_STAT = re.compile(r"/proc/\d+/stat")
LATEST = str(1 << 62)
NOT_RUNNING = "self"  # its files are looked for below our own root directory


def request(host: Subject, facts: Facts) -> Read:
    """One line of each process."""
    return Read(("/proc/*/stat",))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where process 1 is not shown: then others are hidden, too (proc mounted with hidepid)."""
    processes = {}
    for path, text in reply.text.items():
        if path.removeprefix("/proc/").removesuffix("/stat").isdigit():
            number, _, rest = text.partition(" (")
            name, _, rest = rest.rpartition(") ")  # which may hold any character
            fields = rest.split(" ")
            if len(fields) < 3 or not (number.isdecimal() and fields[1].isdecimal() and text.endswith("\n")):
                raise ValueError(f"{path} is cut off")
            if path != f"/proc/{number}/stat":
                raise ValueError(f"{path} is that of another process")
            processes[number] = name, fields[1]
    for path, error in reply.errors.items():  # without its parent a child looks like a server; one that ended is none
        if _STAT.fullmatch(path) and not error.startswith("no such"):
            number = path.split("/")[2]
            processes[number] = _named(reply, number), ""
    if "1" not in processes:
        why = "permission denied" if processes else reply.errors.get("/proc/*/stat", "was not read")
        raise ValueError(f"/proc/1/stat: {why}")
    servers = [
        (number, name)
        for number, (name, parent) in sorted(processes.items(), key=lambda each: int(each[0]))
        if name in SERVERS and processes.get(parent, ("", ""))[0] != name
    ]
    command = f"pgrep -x '{'|'.join(SERVERS)}'"
    if not any(f"{name}()" in reply.unkept for name in SERVERS):
        yield Fact(HOST, "other_databases", known((), "every kind of server was looked for", command))
    if len(servers) > host_request.SERVERS_OF_A_USER:
        each_of = tuple(f"{number} {name} {_start(reply, number)}" for number, name in servers)
        text = f"{len(servers):,} processes have the name of a database server"
        yield Fact(HOST, "server_processes", known(each_of, text, command))
        return
    subjects = []
    for number, name in servers:
        subjects.append(Subject("database", f"{SERVERS[name].name} {number}"))
        yield Fact(subjects[-1], "engine", known(SERVERS[name].name, f"process {number} is {name}", f"ps {number}"))
        yield Fact(subjects[-1], "process", known(number, f"process {number}", f"ps {number}"))
    text = ", ".join(each.name for each in subjects) or "no database server runs"
    yield Fact(HOST, "database_processes", known(tuple(subjects), text, command))


def _named(reply: Files, number: str) -> str:
    """Which server a process is, if any, that lets nobody read its line: it counts as one, whatever its parent is. Raises
    ValueError where that was not asked."""
    status = reply.text.get(f"/proc/{number}/status")
    if status is None or not reply.errors[f"/proc/{number}/stat"].startswith(UNANSWERED):
        raise ValueError(f"/proc/{number}/stat: {reply.errors[f'/proc/{number}/stat']}")
    return next((name for name in SERVERS if f"Name:\t{name}\n" in status), "")


def _start(reply: Files, number: str) -> str:
    """When a process started, in ticks since the machine did: its 22nd field, the 20th after its name. One that does not say
    stands behind those that do."""
    if f"/proc/{number}/stat" not in reply.text:
        return LATEST
    fields = reply.text[f"/proc/{number}/stat"].rpartition(") ")[2].split()
    if len(fields) < 20 or not fields[19].isdecimal():
        raise ValueError(f"/proc/{number}/stat is cut off")
    return fields[19]
