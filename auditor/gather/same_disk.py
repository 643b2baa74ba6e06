"""Whether all witnesses of a disk describe the same one: model and serial number, as each of them reports them.

The kernel, udev, ``nvme list``, ``nvme id-ctrl`` and ``smartctl`` are asked one after the other, and an answer that is for
another disk looks as good as any. They spell one and the same thing differently (the kernel cuts the model of a SATA
drive after 16 characters, udev writes blanks as ``_``, smartctl puts the vendor first), so two names are the same where
one is part of the other. Behind a USB bridge, a RAID controller, a hypervisor or a network each may rightly
name another layer: only disks that are attached by NVMe, SATA or SAS are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from auditor.facts import Fact, Facts, Known, Subject, unknown
from auditor.sources import nvme, smartctl
from auditor.text import harmless

BLOCKS = "physical_block_bytes"  # what it says depends on what the disk is: one that is virtual says 512 of anything
BUSES = frozenset({"nvme", "sata", "sas"})
_WWN = re.compile(r"(?:0x)?[0-9a-f]{16}(?:[0-9a-f]{16})?")


class Witness(NamedTuple):
    """Who says it, its facts for model and serial number, and what is not believed of one that speaks of another disk."""

    name: str
    model: str
    serial: str
    believed: tuple[str, ...]


WITNESSES = (
    Witness("nvme id-ctrl", "nvme_model", "nvme_serial", tuple(nvme.id_ctrl.facts)),
    Witness("nvme list", "nvme_list_model", "nvme_list_serial", tuple(nvme.devices.facts)),
    Witness("smartctl -x", "smart_model", "smart_serial", tuple(smartctl.health.facts)),
    Witness(
        "the kernel (/sys/block)", "sysfs_model", "sysfs_serial", ("sysfs_model", "sysfs_serial", "sysfs_firmware")
    ),
    Witness("udev", "udev_model", "udev_serial", ("udev_model", "udev_serial", "udev_firmware", "udev_wwn")),
)


def compare(facts: Facts) -> None:
    """All disks. Of two that differ neither is believed, nor what anybody else says of which disk it is."""
    for disk in list(facts.subjects("disk")):
        transport = facts.get(disk, "transport")
        if not (isinstance(transport, Known) and transport.value in BUSES):
            continue
        for one, other, what in _contradictions(disk, facts):
            why = unknown(f"{disk.name}: {what}: they describe different disks")
            for witness in WITNESSES:
                names = witness.believed if witness in (one, other) else (witness.model, witness.serial)
                for name in (*names, BLOCKS):
                    if isinstance(facts.get(disk, name), Known):
                        facts.replace(Fact(disk, name, why))


def _contradictions(disk: Subject, facts: Facts) -> Iterator[tuple[Witness, Witness, str]]:
    said = {
        (witness.name, part): _text(facts, disk, name)
        for witness in WITNESSES
        for part, name in (("model", witness.model), ("serial number", witness.serial))
    }
    for one, other in combinations(WITNESSES, 2):
        for part in ("serial number", "model"):
            ours, theirs = said[one.name, part], said[other.name, part]
            if _differ(ours, theirs):
                text = f"{one.name} says {part} {harmless(ours)}, {other.name} {harmless(theirs)}"
                yield one, other, text
                break


def _text(facts: Facts, disk: Subject, name: str) -> str:
    """Empty where it says nothing; a world-wide name, which udev takes where a SCSI disk has no serial number, is none."""
    found = facts.get(disk, name)
    text = str(found.value) if isinstance(found, Known) else ""
    return "" if _WWN.fullmatch(text) else text


def _differ(one: str, other: str) -> bool:
    first, second = (re.sub(r"[^a-z0-9]", "", each.lower()) for each in (one, other))
    return bool(first and second) and first not in second and second not in first
