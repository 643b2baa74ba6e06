"""``/proc/*/cmdline``: the virtual machines that run on this host under QEMU, and their disks. (QEMU invocation; man 5
proc_pid_cmdline)

What is kept of a command line is said in ``guest_lines``. Anybody may give a process any name and any arguments: what such a
process has open (``guest_files``) decides whether its disks are what it says. There is no bound on their number but the share
of a user in what is read at all (``host/owner.py``): over a bound on all of them, a user with a thousand such processes would
hide the guests of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from auditor.facts import HOST, Fact, Facts, Guest, GuestDisk, GuestStarter, Subject, known, rows
from auditor.host.guest_lines import BY, DROPS, GUEST, KEEPS, UNSURE
from auditor.host.request import UNANSWERED, Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {
    "guests": rows(Guest, "each process that is a virtual machine"),
}
LINES = "/proc/*/cmdline"
FIRST = "/proc/1/cmdline"  # readable by everybody, unless processes of others are hidden (hidepid)
_PATH = re.compile(r"/proc/(\d+)/cmdline")
TOLD = 20  # by name in the evidence
NOT_READ = "(unread)"  # in place of a name
UNREAD = (*UNANSWERED, "more than ")
ENDED = ("no such file", "no such process")
COMMAND = "pgrep -a 'qemu|kvm'"


def request(host: Subject, facts: Facts) -> Read:
    return Read((LINES, FIRST))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where processes are hidden, or one of them may not be read. One that lets its reader wait, or
    has an endless line, may be a virtual machine."""
    if FIRST not in reply.text:
        raise ValueError(f"{FIRST}: {reply.errors.get(FIRST, 'was not read')}")
    guests = told(reply).guests
    text = ", ".join(each.name for each in guests[:TOLD]) or "no virtual machine runs"
    text += f" and {len(guests) - TOLD:,} more" if len(guests) > TOLD else ""
    yield Fact(HOST, "guests", known(tuple(guests), text, COMMAND))


class Told(NamedTuple):
    """none: numbers of those that are no virtual machine, or have ended."""

    guests: list[Guest]
    starters: list[GuestStarter]
    disks: list[GuestDisk]
    none: set[str]


def told(reply: Files) -> Told:
    """What the command lines say. Raises ValueError where one of them may not be read."""
    found = Told([], [], [], set())
    for path, error in sorted(reply.errors.items()):
        if not (process := _PATH.fullmatch(path)):
            continue
        if error.startswith(ENDED):
            found.none.add(process[1])
        elif path == FIRST or not error.startswith(UNREAD):
            raise ValueError(f"{path}: {error}")
        else:
            # if it is one: what it has open decides what depends on that
            found.guests.append(Guest(process[1], NOT_READ))
            found.disks.append(GuestDisk(process[1], UNSURE))
    for path, text in sorted(reply.text.items()):
        if not (process := _PATH.fullmatch(path)):
            continue
        number = process[1]
        if not text.startswith(GUEST):
            found.none.add(number)
            continue
        first, *rest = text.splitlines()
        found.guests.append(Guest(number, first.removeprefix(GUEST)))
        found.starters.extend(GuestStarter(number, each.removeprefix(BY)) for each in rest if each.startswith(BY))
        for each in rest:
            how = next((one for one in (KEEPS, DROPS) if each.startswith(one)), "")
            if how or each == UNSURE:
                found.disks.append(GuestDisk(number, how.strip() or UNSURE, each.removeprefix(how) if how else ""))
    return found
