"""``/proc/self/ns/pid``: whether process 1, as zaudit sees it, is the first process of this machine, or that of a container.

The kernel gives the first namespace of processes a number that is always the same. (Linux include/linux/proc_ns.h
PROC_PID_INIT_INO; man 7 pid_namespaces)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, flag, known
from auditor.host.request import Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {"all_processes": flag("zaudit sees the processes of the whole machine, and not those of a container alone")}
OWN = "/proc/self/ns/pid"
FIRST = 0xEFFFFFFC


def request(host: Subject, facts: Facts) -> Read:
    return Read((OWN,))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError for a link that leads to no such namespace."""
    if OWN not in reply.links:
        return
    found = re.fullmatch(r"pid:\[([0-9]{1,10})\]", reply.links[OWN])
    if not found:
        raise ValueError(f"{OWN} leads elsewhere")
    yield Fact(HOST, "all_processes", known(int(found[1]) == FIRST, f"{OWN} is {found[0]}", f"readlink {OWN}"))
