"""Which leaves end on a disk: the way back from leaf.disks, laid out once for all that ask it of each of many disks."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Evidence, Fact, Facts, Known, Subject, links

SUBJECT = "host"  # all leaves at once
FACTS = {"disk.used_by": links("leaf", "leaves that are known to end on it, cache devices and spares included")}


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Of every disk; a leaf whose disks are not known is on none."""
    found: dict[Subject, dict[Subject, None]] = {disk: {} for disk in facts.subjects("disk")}
    for leaf in facts.subjects("leaf"):
        for disk in facts.linked(leaf, "disks"):
            found.setdefault(disk, {})[leaf] = None
    for disk, leaves in found.items():
        names = ", ".join(map(str, leaves)) or "no leaf"
        yield Fact(disk, "used_by", Known(tuple(leaves), (Evidence(f"{disk}: {names}", "lsblk"),)))
