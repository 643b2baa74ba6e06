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

from auditor.facts import HOST, Fact, Facts, Known, Subject, known, words
from auditor.host._reading import BLOCK, FILE, NEITHER
from auditor.host.request import UNASKED, Files, Read, Skip

PER = "host"
SUBJECT = "host"
FACTS = {
    "guest_files": words(
        "NUMBER HOW WHERE PATH of each file and block device that a virtual machine has open: HOW r (to read only) or w, WHERE"
        " /dev/NODE of a device, MAJOR:MINOR or MAJOR:MINOR,NODE of what a file lies on, or btrfs, PATH its name for that"
        " process"
    ),
    "closed_guests": words("NUMBER REASON of each virtual machine of which not all that it has open was seen"),
}
NUMBERS = "/sys/dev/block/"
# file systems in memory and those that a program of any user provides: what is written there ends there as far as the kernel
# knows (linux/magic.h: tmpfs, ramfs, hugetlbfs, secretmem, dma-buf, fuse)
ELSEWHERE = frozenset((0x01021994, 0x858458F6, 0x958458F6, 0x5345434D, 0x444D4142, 0x65735546))
# whose subvolumes have numbers that no table of mounts names (man 2 stat, st_dev; linux/magic.h)
BTRFS, BTRFS_TYPE = "btrfs", 0x9123683E
_PATH = re.compile(r"/proc/(\d+)/fd/\d+")
_ASKED = re.compile(r"/proc/(\d+)/fd/.+")
_OPEN = re.compile(rf"(?P<how>[rw]) (?:{BLOCK} (?P<node>\d+:\d+)|{FILE} (?P<on>\d+:\d+) 0x(?P<type>[0-9a-f]{{1,8}}))")


def request(host: Subject, facts: Facts) -> Read | Skip:
    """Of those that were found."""
    guests = facts.get(HOST, "guests")
    if not isinstance(guests, Known) or not isinstance(guests.value, tuple):
        return Skip("which virtual machines run here is not known")
    if not guests.value:
        return Skip("no virtual machine runs here", applies=False)
    return Read((*(f"/proc/{str(each).partition(' ')[0]}/fd/*" for each in guests.value), f"{NUMBERS}*"))


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
    closed: dict[str, str] = {}
    for path, error in sorted(reply.errors.items()):
        if (match := _ASKED.fullmatch(path)) and not error.startswith("no such"):
            closed.setdefault(match[1], f"{path}: {error}")
    named = {path: target for path, target in reply.links.items() if _PATH.fullmatch(path) and target.startswith("/")}
    if closed and not named:
        raise ValueError(next(iter(closed.values())))
    found: dict[str, None] = {}
    for path, target in sorted(named.items()):
        if (where := _where(reply.devices.get(path, ""), nodes)) and (match := _PATH.fullmatch(path)):
            found[f"{match[1]} {where} {target}"] = None
    if all(path in reply.devices or path in reply.errors for path in named):
        yield Fact(HOST, "guest_files", known(tuple(found), f"{len(found)} files are open", "ls -l /proc/PID/fd"))
    text = f"{len(closed)} of them could not be looked into"
    unseen = tuple(f"{number} {why}" for number, why in closed.items())
    yield Fact(HOST, "closed_guests", known(unseen, text, "ls -l /proc/PID/fd"))


def _where(said: str, nodes: dict[str, str]) -> str:
    """HOW WHERE; nothing of what was closed meanwhile, and of what keeps no data. Raises ValueError."""
    if said in ("", NEITHER):
        return ""
    if not (found := _OPEN.fullmatch(said)):
        raise ValueError("what is open is not understood")
    if node := found["node"]:
        return f"{found['how']} /dev/{nodes.get(node, f'block/{node}')}"
    if (kind := int(found["type"], 16)) in ELSEWHERE:
        return ""
    on = BTRFS if kind == BTRFS_TYPE else found["on"]
    return f"{found['how']} {on},{nodes[on]}" if on in nodes else f"{found['how']} {on}"
