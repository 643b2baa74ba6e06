"""Whether a snapshot is mounted: somebody looks into it, below .zfs/snapshot or mounted by hand. OpenZFS takes those
away that nobody has used for five minutes. (man 4 zfs, zfs_expire_snapshot)"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, Unknown, flag, known, words_of

SUBJECT = "host"
FACTS = {"snapshots_mounted": flag("a snapshot is mounted")}


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """From the source of each mount of ZFS."""
    table = facts.get(HOST, "mount_table")
    if isinstance(table, Unknown):
        yield Fact(HOST, "snapshots_mounted", table)
        return
    ends = (str(line).partition(" - zfs ")[2].partition(" ")[0] for line in words_of(table))
    first = next((source for source in ends if "@" in source), "")
    text = f"{first} is mounted" if first else "no snapshot is mounted"
    yield Fact(HOST, "snapshots_mounted", known(bool(first), text, "grep ' zfs .*@' /proc/1/mountinfo"))
