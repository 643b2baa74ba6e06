"""``/proc/PID/fd``: what each virtual machine of this host has open; for root and the user that it runs as. (man 5
proc_pid_fd)

Anybody may call his processes QEMU, and may make any number of them hard to read: that one could not be looked into says
nothing of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Known, Subject, known, words
from auditor.host.request import Files, Read, Skip

PER = "host"
SUBJECT = "host"
FACTS = {
    "guest_files": words("NUMBER PATH of each file and device that a virtual machine has open"),
    "closed_guests": words("NUMBER REASON of each virtual machine of which not all that it has open was seen"),
}
_PATH = re.compile(r"/proc/(\d+)/fd/\d+")
_ASKED = re.compile(r"/proc/(\d+)/fd/.+")


def request(host: Subject, facts: Facts) -> Read | Skip:
    """Of those that were found."""
    guests = facts.get(HOST, "guests")
    if not isinstance(guests, Known) or not isinstance(guests.value, tuple):
        return Skip("which virtual machines run here is not known")
    if not guests.value:
        return Skip("no virtual machine runs here", applies=False)
    return Read(tuple(f"/proc/{str(each).partition(' ')[0]}/fd/*" for each in guests.value))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where none of them could be looked into."""
    found = {
        f"{match[1]} {target}": None
        for path, target in sorted(reply.links.items())
        if (match := _PATH.fullmatch(path)) and target.startswith("/")
    }
    closed: dict[str, str] = {}
    for path, error in sorted(reply.errors.items()):
        if (match := _ASKED.fullmatch(path)) and not error.startswith("no such"):
            closed.setdefault(match[1], f"{path}: {error}")
    if closed and not reply.links:
        raise ValueError(next(iter(closed.values())))
    yield Fact(HOST, "guest_files", known(tuple(found), f"{len(found)} files are open", "ls -l /proc/PID/fd"))
    text = f"{len(closed)} of them could not be looked into"
    unseen = tuple(f"{number} {why}" for number, why in closed.items())
    yield Fact(HOST, "closed_guests", known(unseen, text, "ls -l /proc/PID/fd"))
