"""The database servers that run here, and what the kernel says of each. (man 5 proc_pid_stat)

``/proc/*/stat`` shows which run: a server that forks a process for each client is the one whose parent is no such process.
Any user may start a thousand processes with the name of a server, so :func:`choose` has a quota for each user, and none crowds
out the server of another. The oldest come first: a real server seldom starts after its imitations. Of a user with more
processes than that, only those count whose program is a server's, as far as that can be seen. The rest is one database for
each user and name, of which nothing is known: it stays unknown, and is not left out.

``/proc/PID`` shows where a server was told to find its data, and whether a library ignores its flushes. Some servers change
to their data directory when they start.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from auditor.databases import ENGINES, SERVERS, configuration
from auditor.databases.configuration import ELSEWHERE
from auditor.databases.engine import DOUBT, WITHHELD
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Known,
    Subject,
    Unknown,
    flag,
    known,
    links,
    number,
    unknown,
    word,
    words,
)
from auditor.host import request as host_request
from auditor.host.request import UNANSWERED, Files, Read, Skip
from auditor.sources.source import source
from auditor.text import harmless

PROCESSES_FACTS = {
    "database_processes": links("database", "database servers that run, or that the user named"),
    "server_processes": words("NUMBER NAME START of each process, where they are too many to look at each"),
    "database.engine": word("which server it is", *(each.name for each in SERVERS.values())),
    "database.process": word("its process number, or self where it does not run"),
}
_STAT = re.compile(r"/proc/\d+/stat")
LATEST = str(1 << 62)


def request_processes(host: Subject, facts: Facts) -> Read:
    """One line of each process."""
    return Read(("/proc/*/stat",))


@source("database_processes", "host", ask=request_processes, facts=PROCESSES_FACTS)
def database_processes(reply: Files, host: Subject) -> Iterator[Fact]:
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


PROCESS_FACTS = {
    "arguments": words("its command line, without the name: the options that zaudit knows"),
    "arguments_bytes": number("how long they were together, each with its end, where a title stands in their place"),
    "variables": words("of its environment, those that say where its files are"),
    "program": word("the path of its executable, as it sees it"),
    "data_directory": word("where its data lies, as it sees it"),
    "eatmydata": flag("a library that turns fsync into nothing is loaded into it"),
}


def request_process(database: Subject, facts: Facts) -> Read | Skip:
    """What the kernel says of the process."""
    process = database.name.partition(" ")[2]
    if process == ELSEWHERE:
        return Skip("it is not one of the processes that are seen here")
    if not process.isdigit():
        return Skip("it does not run", applies=False)
    return Read(tuple(f"/proc/{process}/{name}" for name in ("cmdline", "cwd", "environ", "exe", "maps")))


# a server that is asked says what it uses itself
@source("database_process", "database", ask=request_process, facts=PROCESS_FACTS, after=("database_sql",))
def database_process(reply: Files, database: Subject) -> Iterator[Fact]:
    """maps, cwd and environ are only for root and the user that it runs as."""
    name, _, process = database.name.partition(" ")
    engine = ENGINES[name]
    here = f"/proc/{process}/"
    found: list[tuple[str, str]] = []
    cwd = reply.links.get(here + "cwd", "")
    if engine.at_home and cwd and not cwd.endswith(" (deleted)"):
        found.append((cwd, "cwd"))
    if program := reply.links.get(here + "exe"):
        yield Fact(database, "program", known(program.removesuffix(" (deleted)"), program, f"ls -l {here}exe"))
    line = reply.text.get(here + "cmdline")
    if line is not None:
        if not line.endswith("\0"):  # of a postmaster that has set its title, too
            raise ValueError(f"{here}cmdline is cut off")
        given = configuration.arguments(engine, line)
        arguments = (WITHHELD,) if given is None else tuple(each.text for each in given)
        shown = known(arguments, " ".join(arguments) or "no arguments", f"tr '\\0' ' ' <{here}cmdline")
        yield Fact(database, "arguments", shown)
        if given == [] and engine.units:
            # a title is written over its name and them, and NUL bytes over the rest
            size = len(line) - len(line.partition("\0")[0].partition(" ")[0]) - 1
            yield Fact(
                database, "arguments_bytes", known(size, f"{size} bytes behind its name", f"wc -c {here}cmdline")
            )
        if given is None or DOUBT in given:
            found.append((WITHHELD, "cmdline"))
        options = {each.name: each.value for each in given or ()}
        found += [(options[name], "cmdline") for name in engine.data_options if name in options]
    if here + "environ" in reply.text:
        pairs = configuration.environment(reply.text[here + "environ"])
        variables = tuple(f"{name}={value}" for name, value in pairs)
        shown = known(variables, " ".join(variables), f"tr '\\0' '\\n' <{here}environ")
        yield Fact(database, "variables", shown)
        found += [(value, "environ") for name, value in pairs if name == engine.data_variable]
    told = [(path, source) for path, source in found if path.startswith("/") or path == WITHHELD]
    if told and told[0][0] != WITHHELD:
        path, source = told[0]
        yield Fact(database, "data_directory", known(path.rstrip("/") or "/", path, f"ls -l {here}{source}"))
    if maps := reply.text.get(here + "maps", ""):
        loaded = [each for each in maps.splitlines() if "libeatmydata" in each]
        text = f"{loaded[0]} is loaded" if loaded else "libeatmydata is not loaded"
        yield Fact(database, "eatmydata", Known(bool(loaded), (Evidence(text, f"grep libeatmydata {here}maps"),)))


PROVIDES = {"database.unexamined": number("how many processes it stands for, none of which was looked at")}
GROUPS = 10  # that are told apart; users of whom there are more than that are one
OTHERS = "others"
NAMES = tuple(each.partition("-")[0] for each in SERVERS)  # Debian's redis-server is a link to redis-check-rdb


class Server(NamedTuple):
    """A process with the name of a server. start: in ticks of the kernel. foreign: its program has the name of none."""

    process: str
    name: str
    start: int
    user: str
    foreign: bool


def choose(facts: Facts, read: Callable[[Read], Files]) -> Mapping[Subject, Unknown]:
    """Make databases of the processes that ``database_processes`` saw, where it left that to be done; those that stand for
    many, and why nothing is known of them."""
    seen = facts.get(HOST, "server_processes")
    if not isinstance(seen, Known) or not isinstance(seen.value, tuple):
        return {}
    asked = {each.name.partition(" ")[2] for each in facts.linked(HOST, "connected_database")}
    servers = _servers([str(each).split(" ") for each in seen.value], read)
    servers.sort(key=lambda each: (each.process not in asked, each.start, int(each.process)))
    every = Counter(each.user for each in servers)
    chosen: list[Server] = []
    of_user: Counter[str] = Counter()
    rest: Counter[tuple[str, str]] = Counter()  # by name and user
    for each in servers:
        crowded = len(chosen) >= host_request.SERVERS or of_user[each.user] >= host_request.SERVERS_OF_A_USER
        doubtful = each.foreign and every[each.user] > host_request.SERVERS_OF_A_USER
        if each.process in asked or not (crowded or doubtful):
            of_user[each.user] += 1
            chosen.append(each)
        else:
            rest[each.name, each.user] += 1
    subjects = [_examined(facts, each) for each in sorted(chosen, key=lambda each: int(each.process))]
    groups = dict(_group(facts, name, user, count) for (name, user), count in _merged(rest).items())
    facts.put(Fact(HOST, "database_processes", Known((*subjects, *groups), seen.evidence)))
    return groups


def _servers(processes: list[list[str]], read: Callable[[Read], Files]) -> list[Server]:
    """With who runs them, and what."""
    said = read(Read(tuple(f"/proc/{process}/{file}" for process, _, _ in processes for file in ("status", "exe"))))
    found = []
    for process, name, start in processes:
        users = said.text.get(f"/proc/{process}/status", "").partition("Uid:")[2].split()
        program = said.links.get(f"/proc/{process}/exe", "").removesuffix(" (deleted)").rpartition("/")[2]
        foreign = bool(program) and not program.startswith(NAMES)
        found.append(Server(process, name, int(start), users[0] if users else "unknown", foreign))
    return found


def _merged(rest: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """No more groups than a reader may look through."""
    ordered = sorted(rest.items(), key=lambda each: (-each[1], each[0]))
    merged = Counter(dict(ordered[:GROUPS]))
    for (name, _), count in ordered[GROUPS:]:
        merged[name, OTHERS] += count
    return merged


def _examined(facts: Facts, server: Server) -> Subject:
    process, name = server.process, server.name
    subject = Subject("database", f"{SERVERS[name].name} {process}")
    facts.put(Fact(subject, "engine", known(SERVERS[name].name, f"process {process} is {name}", f"ps {process}")))
    facts.put(Fact(subject, "process", known(process, f"process {process}", f"ps {process}")))
    return subject


def _group(facts: Facts, name: str, user: str, count: int) -> tuple[Subject, Unknown]:
    whose = "other users" if user == OTHERS else f"user {harmless(user)}"
    text = f"{count:,} processes of {whose} that call themselves {name}"
    subject = Subject("database", f"{SERVERS[name].name} of {whose}")
    facts.put(Fact(subject, "engine", Known(SERVERS[name].name, (Evidence(text, f"pgrep -x {name}"),))))
    facts.put(Fact(subject, "unexamined", Known(count, (Evidence(text, f"pgrep -x {name}"),))))
    return subject, unknown(f"{text} were not looked at one by one")


SOURCES = (
    database_processes,
    database_process,
)
