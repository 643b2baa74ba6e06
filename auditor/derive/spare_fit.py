"""Whether each hot spare can stand in for any disk of the pool's data: large enough, and of sectors that its vdevs can write.

A disk of a mirror must hold all that the vdev can allocate, one of a raidz or dRAID its share. A new device of logical
sectors larger than 2**ashift is refused. Of a spare on a partition the size of its whole disk is what is known here, so that
one that fails is too small, and one that passes is as large as its disk. (OpenZFS module/zfs/spa.c spa_vdev_attach:
EOVERFLOW, and the alignment requirement of the top-level vdev; vdev.c vdev_get_min_asize) A distributed spare is a share of
the disks that it stands in for, and fits. (man 7 zpoolconcepts, dRAID) One that OpenZFS cannot open stands in for none.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive import idle_leaves
from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, join, known, unknown, word_of, words

SUBJECT = "pool"
FACTS = {"unfit_spares": words("what keeps each hot spare from standing in for a disk of its data")}
NEEDS = (
    *("pool.spare_leaves", "pool.data_vdevs", "vdev.type", "vdev.leaves", "vdev.ashift", "vdev.asize_bytes"),
    *("leaf.type", "leaf.disks", "disk.size_bytes", "disk.logical_block_bytes"),
    *(each for each in idle_leaves.NEEDS if each.startswith("leaf.") and each != "leaf.type"),
)
LABELS = 16 << 20  # four labels, the boot block, and what a partition table and its alignment take
ROUNDED = 0.97  # what a vdev can allocate is rounded down to whole metaslabs


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """pool.unfit_spares; empty where there is no spare."""
    spares, vdevs = facts.get(pool, "spare_leaves"), facts.get(pool, "data_vdevs")
    if unseen := [each for each in (spares, vdevs) if isinstance(each, Unknown)]:
        yield Fact(pool, "unfit_spares", join(unseen))
        return
    unfit, doubts = list[str](), list[Unknown]()
    for leaf in facts.linked(pool, "spare_leaves"):
        if word_of(facts.get(leaf, "type")) == "dspare":
            continue
        if gone := idle_leaves.fault(leaf, facts):
            if isinstance(gone, Unknown):
                doubts.append(gone)
            else:
                unfit.append(gone)
                continue
        disks = facts.get(leaf, "disks")
        if isinstance(disks, Unknown):
            doubts.append(disks)
        for disk in facts.linked(leaf, "disks"):
            for vdev in facts.linked(pool, "data_vdevs"):
                match _fault(vdev, disk, facts):
                    case str() as fault if fault:
                        unfit.append(f"{leaf.name} {fault}")
                    case Unknown() as why:
                        doubts.append(why)
    if not unfit and doubts:
        yield Fact(pool, "unfit_spares", join(doubts))
        return
    names = ", ".join(leaf.name for leaf in facts.linked(pool, "spare_leaves"))
    text = "; ".join(unfit) or (f"each vdev can take {names}" if names else "no hot spare")
    yield Fact(pool, "unfit_spares", known(tuple(unfit), text, "zpool status {subject}; lsblk -o NAME,SIZE,LOG-SEC"))


def _fault(vdev: Subject, disk: Subject, facts: Facts) -> str | Unknown:
    """Empty where it fits."""
    needed = _needed(vdev, facts)
    values = [facts.get(disk, "size_bytes"), facts.get(disk, "logical_block_bytes"), facts.get(vdev, "ashift"), needed]
    if unseen := [each for each in values if isinstance(each, Unknown)]:
        return join(unseen)
    size, sector, ashift, least = (int(str(each.value)) for each in values if isinstance(each, Known))
    if sector > 1 << ashift:
        return f"has sectors of {sector} bytes, and {vdev.name} writes blocks of {1 << ashift}"
    if size < least * ROUNDED:
        return f"has {size} bytes, and a disk of {vdev.name} {least}"
    return "" if size >= least + LABELS else unknown(f"{disk.name} is hardly as large as a disk of {vdev.name}")


def _needed(vdev: Subject, facts: Facts) -> Judged:
    """What a disk of it must hold, at least: a raidz has no more disks than leaves."""
    kind, size, leaves = (facts.get(vdev, name) for name in ("type", "asize_bytes", "leaves"))
    if unseen := [each for each in (kind, size, leaves) if isinstance(each, Unknown)]:
        return join(unseen)
    shared = str(getattr(kind, "value", "")).startswith(("raidz", "draid"))
    share = len(facts.linked(vdev, "leaves")) if shared else 1
    return Known(int(str(getattr(size, "value", 0))) // max(share, 1), getattr(size, "evidence", ()))
