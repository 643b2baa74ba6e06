"""``/proc/PID/fd``: what each virtual machine of this host has open; for root and the user that it runs as. (man 5
proc_pid_fd)

Anybody may call his processes QEMU, and may make any number of them hard to read: that one could not be looked into says
nothing of the others. Nor does a name say what is open: in mounts of his own any user can call any file of his ``/dev/zd0``,
and in a container a volume has a name that this host does not know. What counts is the number of the device. (man 7
user_namespaces; Linux Documentation/ABI/testing/sysfs-dev)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.collect import guests
from auditor.facts import (
    HOST,
    ClosedGuest,
    Fact,
    Facts,
    Guest,
    GuestDisk,
    GuestFile,
    GuestStarter,
    Subject,
    Unknown,
    known,
    rows,
    rows_of,
    words,
)
from auditor.host.request import BLOCK, FILE, GENERIC, NEITHER, UNASKED, UNMOUNTED, Files, Read, Skip

PER = "host"
SUBJECT = "host"
FACTS = {
    "guest_files": rows(
        GuestFile,
        "each file and block device that a virtual machine has open; where a file lies: MAJOR:MINOR or MAJOR:MINOR,NODE (- of"
        " memory without a name), or btrfs",
    ),
    "closed_guests": rows(ClosedGuest, "each virtual machine of which not all that it has open was seen"),
    "generic_guests": words("NUMBER of each virtual machine that has a generic SCSI device open, and with it a drive"),
    "open_guests": rows(Guest, "each virtual machine, as it calls itself beside what it has open"),
    "guest_starters": rows(GuestStarter, "who started each that shows it"),
    "guest_disks": rows(GuestDisk, "each of their disks, as their command lines name them"),
}
NUMBERS = "/sys/dev/block/"
# file systems in memory and those of the kernel itself: what is written there is nobody's data
ELSEWHERE = re.compile(
    "tmpfs|ramfs|devtmpfs|hugetlbfs|proc|sysfs|debugfs|tracefs|securityfs|cgroup2?|bpf|configfs|pstore|efivarfs|selinuxfs|devpts"
    "|nsfs|mqueue|binder|fusectl"
)
# memory without a name, which shows as /memfd:NAME (deleted) and the like, where no mount that anybody made holds it
MEMORY = re.compile(r"/(?:dmabuf:[^/]*|[^/]* \(deleted\))", re.DOTALL)
NAMELESS = "-"
BTRFS = "btrfs"  # whose subvolumes have numbers that no table of mounts names (man 2 stat, st_dev)
_PATH = re.compile(r"/proc/(\d+)/fd/\d+")
_ASKED = re.compile(r"/proc/(\d+)/fd/.+")
_OPEN = re.compile(rf"(?P<how>[rw]) (?:{BLOCK} (?P<node>\d+:\d+)|{FILE} (?P<on>\d+:\d+) (?P<kind>[\w.-]+))", re.ASCII)


def request(host: Subject, facts: Facts) -> Read | Skip:
    """Of those that were found. What each says of its disks is asked once more, in a row with what it has open: the number of
    one that ended meanwhile may be that of another process."""
    found = facts.get(HOST, "guests")
    if isinstance(found, Unknown):
        return Skip("which virtual machines run here is not known")
    if not found.value:
        return Skip("no virtual machine runs here", applies=False)
    each = [f"/proc/{guest.process}/" for guest in rows_of(found, Guest)]
    return Read((*(f"{process}{name}" for process in each for name in ("fd/*", "cmdline")), f"{NUMBERS}*"))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where none of them could be looked into, or block devices have no numbers. Of an older recording, which
    has the names alone, nothing is said of what is open."""
    nodes = {
        path.removeprefix(NUMBERS): target.rpartition("/")[2]
        for path, target in reply.links.items()
        if path.startswith(NUMBERS)
    }
    if (why := reply.errors.get(f"{NUMBERS}*", "")) and why != UNASKED:
        raise ValueError(f"{NUMBERS}*: {why}")
    said = guests.told(reply)
    closed: dict[str, str] = {}
    for path, error in sorted(reply.errors.items()):
        if (match := _ASKED.fullmatch(path)) and not error.startswith(guests.ENDED) and error != UNASKED:
            closed.setdefault(match[1], f"{path}: {error}")
    named = {path: target for path, target in reply.links.items() if _PATH.fullmatch(path) and target.startswith("/")}
    if closed and not named:
        raise ValueError(next(iter(closed.values())))
    found: dict[GuestFile, None] = {}
    for path, target in sorted(named.items()):
        where = _where(reply.devices.get(path, ""), target, nodes)
        if where and (match := _PATH.fullmatch(path)) and match[1] not in said.none:
            found[GuestFile(match[1], *where, target)] = None
    generic = {path.split("/")[2]: None for path in named if reply.devices.get(path) == GENERIC}
    generic = {number: None for number in generic if number not in said.none}
    text = f"{len(generic)} have a generic SCSI device open"
    yield Fact(HOST, "generic_guests", known(tuple(generic), text, "ls -l /proc/PID/fd"))
    if all(path in reply.devices or path in reply.errors for path in named):
        yield Fact(HOST, "guest_files", known(tuple(found), f"{len(found)} files are open", "ls -l /proc/PID/fd"))
    text = f"{len(closed)} of them could not be looked into"
    unseen = tuple(ClosedGuest(number, why) for number, why in closed.items() if number not in said.none)
    yield Fact(HOST, "closed_guests", known(unseen, text, "ls -l /proc/PID/fd"))
    for name, those in (("open_guests", said.guests), ("guest_starters", said.starters), ("guest_disks", said.disks)):
        yield Fact(HOST, name, known(tuple(those), f"{len(those)} of virtual machines", guests.COMMAND))


def _where(said: str, target: str, nodes: dict[str, str]) -> tuple[str, str] | None:
    """How it is open, and where it lies. None of what was closed meanwhile, and of what keeps no data. Raises ValueError."""
    if said in ("", NEITHER, GENERIC):
        return None
    if not (found := _OPEN.fullmatch(said)):
        raise ValueError("what is open is not understood")
    if node := found["node"]:
        return found["how"], f"/dev/{nodes.get(node, f'block/{node}')}"
    if ELSEWHERE.fullmatch(kind := found["kind"]):
        return None
    if kind == UNMOUNTED and MEMORY.fullmatch(target):  # unless that number is mounted on this host
        return found["how"], f"{found['on']},{NAMELESS}"
    on = BTRFS if kind == BTRFS else found["on"]
    return found["how"], f"{on},{nodes[on]}" if on in nodes else on
