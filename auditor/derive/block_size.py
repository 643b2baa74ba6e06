"""The block size that the disks of a vdev are built for, to compare its ashift with."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import about, every
from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, is_true, number, unknown

SUBJECT = "vdev"
FACTS = {"native_ashift": number("largest physical block of its disks as a power of two: 12 is 4096 bytes")}


def derive(vdev: Subject, facts: Facts) -> Iterator[Fact]:
    """vdev.native_ashift: as OpenZFS says it of a leaf, else as the kernel says it of the disks.

    A virtual disk of 512-byte blocks says nothing of the device below it, so that is unknown.
    """
    leaves = facts.get(vdev, "leaves")
    if isinstance(leaves, Unknown):
        yield Fact(vdev, "native_ashift", leaves)
        return
    found = every(_leaf(leaf, facts) for leaf in facts.linked(vdev, "leaves"))
    if isinstance(found, Unknown):
        yield Fact(vdev, "native_ashift", found)
    elif found:
        largest = max(int(each.value) for each in found if isinstance(each.value, int))
        seen = tuple(dict.fromkeys(piece for each in found if each.value == largest for piece in each.evidence))
        yield Fact(vdev, "native_ashift", Known(largest, seen))
    else:
        yield Fact(vdev, "native_ashift", unknown(f"{vdev}: no leaf is known"))


def _leaf(leaf: Subject, facts: Facts) -> Judged:
    said = facts.get(leaf, "physical_ashift")
    if isinstance(said, Known):
        return Known(said.value, about(leaf, said))
    native = facts.get(leaf, "native_block_bytes")
    if isinstance(native, Known) and isinstance(native.value, int):
        return Known(native.value.bit_length() - 1, about(leaf, native))
    disks = facts.get(leaf, "disks")
    if isinstance(disks, Unknown):
        return disks
    found = every(_disk(disk, facts) for disk in facts.linked(leaf, "disks"))
    if isinstance(found, Unknown):
        return found
    return max(found, key=lambda each: int(each.value) if isinstance(each.value, int) else 0)


def _disk(disk: Subject, facts: Facts) -> Judged:
    size = facts.get(disk, "physical_block_bytes")
    if isinstance(size, Unknown):
        return size
    assert isinstance(size.value, int)
    if size.value == 512 and is_true(facts.get(disk, "virtual")):
        return unknown(f"{disk.name} is virtual: its 512-byte blocks say nothing of the device below")
    return Known(size.value.bit_length() - 1, about(disk, size))
