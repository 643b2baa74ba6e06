"""Whether a virtual machine of this host has the device of a leaf open for writing: two kernels then write to one pool.

What it has open is told by the number of the device. It counts where that is the leaf's device or anything that this lies on; a
partition beside it is another one. What a guest reaches by SCSI commands (/dev/sgN) is not told by a number: who has such a
device open may have any drive. Who serves a network block device to this host has that open as well, and writes nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import (
    HOST,
    ClosedGuest,
    Evidence,
    Fact,
    Facts,
    Guest,
    GuestFile,
    Judged,
    Known,
    Subject,
    Unknown,
    join,
    rows_of,
    unknown,
    word,
    word_of,
    words_of,
)
from auditor.text import harmless

SUBJECT = "leaf"
FACTS = {"open_in_guest": word("the virtual machine that has it open for writing, or empty")}
WRITES, SERVED = "w", "/dev/nbd"


def derive(leaf: Subject, facts: Facts) -> Iterator[Fact]:
    """Known to be none only where all that guests have open was seen, and the way from the leaf to its disks."""
    yield Fact(leaf, "open_in_guest", _open(leaf, facts))


def _open(leaf: Subject, facts: Facts) -> Judged:
    guests, opened, closed, generic = (
        facts.get(HOST, name) for name in ("guests", "guest_files", "closed_guests", "generic_guests")
    )
    if isinstance(guests, Unknown) or not guests.value:
        return guests if isinstance(guests, Unknown) else Known("", guests.evidence)
    node, nodes, disks = (facts.get(leaf, name) for name in ("node", "nodes", "disks"))
    mine = {word_of(node), *words_of(nodes), *(disk.name for disk in facts.linked(leaf, "disks"))}
    names = dict(rows_of(facts.get(HOST, "open_guests"), Guest))
    for number, how, where, _ in rows_of(opened, GuestFile):
        if how == WRITES and not where.startswith(SERVED) and where.removeprefix("/dev/") in mine:
            text = harmless(f"guest {names.get(number, number)} (process {number})")
            return Known(text, (Evidence(f"{text} has {where} open for writing", f"ls -l /proc/{number}/fd"),))
    unseen = [each for each in (opened, closed, generic, node, nodes, disks) if isinstance(each, Unknown)]
    if hidden := rows_of(closed, ClosedGuest):
        unseen.append(unknown(harmless(f"a guest, or what calls itself one: {hidden[0].reason}")))
    unseen += [
        unknown(harmless(f"guest {names.get(each, each)} (process {each}) reaches a drive by SCSI commands (/dev/sg)"))
        for each in words_of(generic)[:1]
    ]
    return join(unseen) if unseen else Known("", opened.evidence if isinstance(opened, Known) else ())
