"""``/proc/*/cmdline``: the virtual machines that run on this host under QEMU, and their disks. (QEMU invocation; man 5
proc_pid_cmdline)

What is kept of a command line is said in ``guest_lines``. Anybody may give a process any name and any arguments: what such a
process has open (``guest_files``) decides whether its disks are what it says. There is no bound on their number but the share
of a user in what is read at all (``host/memory.py``): over a bound on all of them, a user with a thousand such processes would
hide the guests of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.guest_lines import BY, DROPS, GUEST, KEEPS, UNSURE
from auditor.host.request import UNANSWERED, Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {
    "guests": words("NUMBER NAME of each process that is a virtual machine"),
    "guest_starters": words("NUMBER WHO of each that shows who started it: proxmox or libvirt"),
    "guest_disks": words(
        "NUMBER HOW PATH of each of their disks: keeps or drops flushes; NUMBER unsure where not all are known"
    ),
}
LINES = "/proc/*/cmdline"
FIRST = "/proc/1/cmdline"  # readable by everybody, unless processes of others are hidden (hidepid)
_PATH = re.compile(r"/proc/(\d+)/cmdline")
TOLD = 20  # by name in the evidence
NOT_READ = "(unread)"  # in place of a name
UNREAD = (*UNANSWERED, "more than ")


def request(host: Subject, facts: Facts) -> Read:
    return Read((LINES, FIRST))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where processes are hidden, or one of them may not be read. One that lets its reader wait, or
    has an endless line, may be a virtual machine."""
    if FIRST not in reply.text:
        raise ValueError(f"{FIRST}: {reply.errors.get(FIRST, 'was not read')}")
    guests, starters, disks = list[str](), list[str](), list[str]()
    for path, error in sorted(reply.errors.items()):
        if (found := _PATH.fullmatch(path)) and not error.startswith("no such"):  # one that ended is none
            if path == FIRST or not error.startswith(UNREAD):
                raise ValueError(f"{path}: {error}")
            guests.append(f"{found[1]} {NOT_READ}")  # if it is one: what it has open decides what depends on that
            disks.append(f"{found[1]} {UNSURE}")
    for path, text in sorted(reply.text.items()):
        if (found := _PATH.fullmatch(path)) and text.startswith(GUEST):
            first, *rest = text.splitlines()
            guests.append(f"{found[1]} {first.removeprefix(GUEST)}")
            starters += (f"{found[1]} {each.removeprefix(BY)}" for each in rest if each.startswith(BY))
            disks += (f"{found[1]} {each}" for each in rest if each.startswith((KEEPS, DROPS)) or each == UNSURE)
    text = ", ".join(each.partition(" ")[2] for each in guests[:TOLD]) or "no virtual machine runs"
    text += f" and {len(guests) - TOLD:,} more" if len(guests) > TOLD else ""
    command = "pgrep -a 'qemu|kvm'"
    yield Fact(HOST, "guests", known(tuple(guests), text, command))
    yield Fact(
        HOST, "guest_starters", known(tuple(starters), f"{len(starters)} of them show who started them", command)
    )
    yield Fact(HOST, "guest_disks", known(tuple(disks), f"{len(disks)} disks of virtual machines", command))
