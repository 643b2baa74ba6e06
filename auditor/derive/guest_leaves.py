"""Whether a virtual machine of this host has the device of a leaf open for writing: two kernels then write to one pool.

What it has open is told by the number of the device. A partition beside the leaf's is another device; the whole disk, and what
the leaf's device lies on, are not.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    join,
    pairs_of,
    unknown,
    word,
    word_of,
    words_of,
)
from auditor.text import harmless

SUBJECT = "leaf"
FACTS = {"open_in_guest": word("the virtual machine that has it open for writing, or empty")}
NEEDS = (
    *("host.guests", "host.guest_files", "host.open_guests", "host.closed_guests", "host.labelled_paths"),
    *("leaf.path", "leaf.disks"),
)
WRITES = "w"


def derive(leaf: Subject, facts: Facts) -> Iterator[Fact]:
    yield Fact(leaf, "open_in_guest", _open(leaf, facts))


def _open(leaf: Subject, facts: Facts) -> Judged:
    guests, opened, closed = (facts.get(HOST, name) for name in ("guests", "guest_files", "closed_guests"))
    if isinstance(guests, Unknown) or not words_of(guests):
        return guests if isinstance(guests, Unknown) else Known("", guests.evidence)
    if isinstance(opened, Unknown):
        return opened
    disks, path = facts.get(leaf, "disks"), word_of(facts.get(leaf, "path"))
    node = dict(pairs_of(facts.get(HOST, "labelled_paths"))).get(path, path.removeprefix("/dev/"))
    mine = {f"/dev/{each}" for each in (node, *(disk.name for disk in facts.linked(leaf, "disks")))}
    names = dict(each.split(" ", 1) for each in words_of(facts.get(HOST, "open_guests")))
    for number, how, where, _ in (each.split(" ", 3) for each in words_of(opened)):
        if how == WRITES and where in mine:
            text = harmless(f"guest {names.get(number, number)} (process {number})")
            return Known(text, (Evidence(f"{text} has {where} open for writing", f"ls -l /proc/{number}/fd"),))
    unseen = [each for each in (disks, closed) if isinstance(each, Unknown)]
    if hidden := words_of(closed):
        unseen.append(unknown(harmless(f"a guest, or what calls itself one: {hidden[0].partition(' ')[2]}")))
    return join(unseen) if unseen else Known("", opened.evidence)
