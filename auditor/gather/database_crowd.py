"""Which of many processes that call themselves a database server are looked at one by one.

Any user may start a thousand processes of that name. Each user has a quota, so that none crowds out the server of another,
and the oldest come first: a real server seldom started after its imitations. Of a user who has more than that, only those
count whose program is a server's, as far as that can be seen. What is left over is one database for each user and name, of
which nothing is known: it stays undecided, and is not left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from auditor.databases import SERVERS
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Unknown, known, number, unknown
from auditor.host import request
from auditor.host.request import Files, Read
from auditor.text import harmless

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
        crowded = len(chosen) >= request.SERVERS or of_user[each.user] >= request.SERVERS_OF_A_USER
        doubtful = each.foreign and every[each.user] > request.SERVERS_OF_A_USER
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
