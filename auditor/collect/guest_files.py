"""``/proc/PID/fd``: what each virtual machine of this host has open; for root and the user that it runs as. (man 5
proc_pid_fd)"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Known, Subject, known, words
from auditor.host.request import Files, Read, Skip

PER = "host"
SUBJECT = "host"
FACTS = {"guest_files": words("NUMBER PATH of each file and device that a virtual machine has open")}
_PATH = re.compile(r"/proc/(\d+)/fd/\d+")
_ASKED = re.compile(r"/proc/\d+/fd/.+")


def request(host: Subject, facts: Facts) -> Read | Skip:
    """Of those that were found."""
    guests = facts.get(HOST, "guests")
    if not isinstance(guests, Known) or not isinstance(guests.value, tuple):
        return Skip("which virtual machines run here is not known")
    if not guests.value:
        return Skip("no virtual machine runs here", applies=False)
    return Read(tuple(f"/proc/{str(each).partition(' ')[0]}/fd/*" for each in guests.value))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where one of them could not be looked into."""
    for path, error in reply.errors.items():
        if _ASKED.fullmatch(path) and not error.startswith("no such"):
            raise ValueError(f"{path}: {error}")
    found = {
        f"{match[1]} {target}": None
        for path, target in sorted(reply.links.items())
        if (match := _PATH.fullmatch(path)) and target.startswith("/")
    }
    yield Fact(HOST, "guest_files", known(tuple(found), f"{len(found)} files are open", "ls -l /proc/PID/fd"))
