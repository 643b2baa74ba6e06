"""What tells physical devices apart: the kernel's name, the serial number, the NVMe subsystem, the world-wide name.

Namespaces of one NVMe drive and paths of one LUN have a name in common. Virtual disks are told apart by their kernel and
world-wide names alone: a cloud shows all its volumes as namespaces of one emulated controller with a constant serial
number (Google "nvme_card-pd", Azure "SN: 000001"), so that a common one says nothing of what they lie on. The world-wide
names of drives are not used: some models give all the same.

Where the kernel shows a SAS drive twice, once for each of its ports, one of the two may answer and the other not; udev may
then call by its world-wide name what itself gives a serial number. What else is said of a drive that answers is kept for that:
it may be the one that is called so. Not of USB, where it is the bridge that udev asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from auditor.derive.disk_identity import SOURCES
from auditor.facts import Facts, Known, Subject, Unknown, is_true, join, unknown, value_of

NAMED_BY = (
    *("disk.serial", "disk.sysfs_subsystem_nqn", "disk.virtual", "disk.wwn", "disk.transport"),
    *(f"disk.{source}" for source in SOURCES["serial"]),
)
COMPOSED = "nvme."  # the kernel makes it of serial number, model and namespace where the namespace has no name
UNSEEN = "what they lie on is not seen from here"


class Names(NamedTuple):
    """What identifies some devices. sure: one name, one device. unsure: name -> why it may stand for several. nameless: why
    one of them may be another device here: it is perhaps a drive, and gives no name but the kernel's."""

    sure: frozenset[str]
    unsure: Mapping[str, Unknown]
    nameless: tuple[Unknown, ...] = ()

    @property
    def all(self) -> set[str]:
        return {*self.sure, *self.unsure}


def names(disks: tuple[Subject, ...], facts: Facts) -> Names:
    """Every name that is known of the physical device behind each disk."""
    sure: set[str] = set()
    unsure: dict[str, Unknown] = {}
    nameless: list[Unknown] = []
    for disk in disks:
        sure.add(disk.name)
        virtual = facts.get(disk, "virtual")
        given = [found for name in ("sysfs_subsystem_nqn", "serial") if (found := _given(disk, name, facts))]
        if not given and not is_true(virtual):
            missing = [each for each in (facts.get(disk, "serial"), virtual) if isinstance(each, Unknown)]
            nameless.append(join(missing) if missing else unknown(f"{disk} gives no serial number"))
        if isinstance(virtual, Known) and virtual.value is False:
            sure.update(given)
            unsure.update(_called_otherwise(disk, facts))
            continue
        for name in given:
            several = unknown(
                f"several disks, virtual or perhaps so, give {name} as NVMe subsystem or serial number: {UNSEEN}"
            )
            unsure[name] = several if isinstance(virtual, Known) else join([several, virtual])
        if is_true(virtual) and not (wwn := _given(disk, "wwn", facts)).startswith(COMPOSED):
            sure.update([wwn] if wwn else [])
    return Names(frozenset(sure), unsure, tuple(nameless))


def _called_otherwise(disk: Subject, facts: Facts) -> dict[str, Unknown]:
    """What those say of a drive who are not believed first."""
    if value_of(facts.get(disk, "transport")) == "usb":
        return {}
    told = {found for source in SOURCES["serial"] if (found := _given(disk, source, facts))}
    return {
        found: unknown(f"{disk} is also called {found}, and may be another path to the drive that is called so")
        for found in told - {_given(disk, "serial", facts)}
    }


def _given(disk: Subject, name: str, facts: Facts) -> str:
    """What a disk says of itself; empty where it says nothing, or nothing but zeros."""
    match facts.get(disk, name):
        case Known(str(value)) if value.rpartition(".")[2].removeprefix("0x").strip("0 "):
            return value
    return ""
