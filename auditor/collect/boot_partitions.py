"""``udevadm info --export-db``: the partitions from which firmware starts a boot loader, and what is on them.

An EFI system partition without a file system starts nothing: what copies a partition table makes such ones. A leg of md RAID 1
with its superblock at the end looks like FAT to the firmware. (UEFI Specification, 13.3 File System Format; GRUB manual, BIOS
installation; util-linux libblkid: ID_PART_ENTRY_TYPE, ID_FS_TYPE)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import udev
from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import Output, Run

PER = "host"
SUBJECT = "host"
FACTS = {
    "boot_partitions": words(
        "KIND DISK NODE: efi (EFI system partition with a file system), empty (without one) or bios (code of GRUB)"
    )
}
_EFI = ("c12a7328-f81f-11d2-ba4b-00a0c93ec93b", "0xef")
_BIOS = "21686148-6449-6e6f-744e-656564454649"
_STARTS = ("vfat", "linux_raid_member")


def request(host: Subject, facts: Facts) -> Run:
    return udev.request(host, facts)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where the database is cut off or empty, as in a container."""
    found = udev.devices(reply.text)
    if not found:
        raise ValueError("no block device in it")
    kinds = {device.name: kind for device in found.values() if (kind := _kind(device))}
    lines = tuple(f"{kind} {found[name].disk} {name}" for name, kind in kinds.items())
    text = ", ".join(f"{name}: {kind}" for name, kind in kinds.items()) or "no partition to boot from"
    yield Fact(HOST, "boot_partitions", known(lines, text, "lsblk -o NAME,PARTTYPE,FSTYPE"))


def _kind(device: udev.Device) -> str:
    """Empty where it is none."""
    type_ = device.properties.get("ID_PART_ENTRY_TYPE", "")
    if type_ in _EFI:
        return "efi" if device.properties.get("ID_FS_TYPE") in _STARTS else "empty"
    return "bios" if type_ == _BIOS else ""
