"""What a disk is: model, serial number, whether it is a drive at all, and what drives.toml says of it.

A virtual disk is one whose write cache and power-loss protection are decided elsewhere: by a hypervisor, a cloud, a
storage network or a RAID controller. A drive that is passed through into a virtual machine is not: the table knows its
model. A model that the table does not know proves nothing in a virtual machine (QEMU lets a SATA disk have any name).
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import drives
from auditor.data.drives import Drive
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    flag,
    is_true,
    join,
    unknown,
    word,
)

NOT_IN_TABLE = "not in the table"

SUBJECT = "disk"
FACTS = {
    "model": word("model, as the drive gives it"),
    "serial": word("serial number"),
    "firmware": word("firmware revision"),
    "wwn": word("world-wide name"),
    "virtual": flag("no drive that can be seen from here: a volume of a hypervisor, cloud, network or RAID controller"),
    "hdd": flag("a hard disk: it has platters, and needs no power-loss protection beyond a flush that is honoured"),
    "drive_class": word("power-loss protection of its model in drives.toml", *drives.CLASSES, NOT_IN_TABLE),
    "drive_confidence": word("how sure drives.toml is of that", *drives.CONFIDENCES),
}
# in order of trust: the drive's own words before the kernel's, which cuts the model of a SATA drive after 16 characters
SOURCES = {
    "model": ("nvme_model", "nvme_list_model", "smart_model", "sysfs_model", "udev_model"),
    "serial": ("nvme_serial", "nvme_list_serial", "smart_serial", "sysfs_serial", "udev_serial"),
    "firmware": ("nvme_firmware", "nvme_list_firmware", "smart_firmware", "sysfs_firmware", "udev_firmware"),
    "wwn": ("smart_wwn", "udev_wwn"),
}
OTHERS = ("sysfs_vendor", "udev_vendor", "transport", "rotational", "smart_rotation_rpm")

DRIVES = frozenset({"nvme", "sata", "sas", "usb", "mmc", "pmem", "dasd"})  # "scsi" may be a RAID controller
HYPERVISOR = frozenset({"virtio", "virtio-scsi", "xen", "hyperv"})
NETWORK = frozenset({"iscsi", "fc", "nvme-tcp", "nvme-rdma", "nvme-fc", "nvme-loop", "nbd", "rbd", "drbd"})
SOFTWARE = frozenset({"loop", "dm", "md", "bcache", "zvol", "ram", "zram", "file"})
SAYS = {
    "plp-full": "power-loss protection for all that it acknowledged",
    "data-at-rest-only": "power-loss protection for flushed data only",
    "none": "no power-loss protection",
    "ephemeral": "storage that is gone when the instance stops",
    "virtual": "no drive",
}


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """All of FACTS."""
    model = _model(disk, facts)
    drive = drives.match(str(model.value)) if isinstance(model, Known) else None
    table = _table(model, drive, disk, facts)
    virtual = _virtual(table, drive, disk, facts)
    yield Fact(disk, "model", model)
    for name in ("serial", "wwn"):
        yield Fact(disk, name, _first(disk, facts, SOURCES[name]))
    yield Fact(disk, "firmware", _firmware(disk, facts))
    yield Fact(disk, "virtual", virtual)
    yield Fact(disk, "hdd", _hdd(table, drive, virtual, disk, facts))
    yield Fact(disk, "drive_class", table)
    if drive and isinstance(table, Known):
        yield Fact(disk, "drive_confidence", Known(drive.confidence, table.evidence))
    else:
        why = unknown(f"disk {disk}: its model is not in drives.toml") if isinstance(table, Known) else table
        yield Fact(disk, "drive_confidence", why)


def _first(disk: Subject, facts: Facts, names: tuple[str, ...]) -> Judged:
    """The first that is known and not blank; otherwise the reasons of those that were looked at."""
    missing = []
    for name in names:
        match facts.get(disk, name):
            case Known(str(text), evidence) if text.strip():
                return Known(text.strip(), evidence)
            case Unknown() as why if name in facts.of(disk):
                missing.append(why)
    return join(missing) if missing else unknown(f"disk {disk}: no source for {' or '.join(names)}")


def _model(disk: Subject, facts: Facts) -> Judged:
    """The drive's own words; else the kernel's or udev's, with the SCSI vendor before it as smartctl prints it."""
    *own, sysfs, udev = SOURCES["model"]
    found = _first(disk, facts, tuple(own))
    if isinstance(found, Known):
        return found
    order = (udev, sysfs) if _vendor(disk, facts, sysfs) == "ATA" else (sysfs, udev)
    for name in order:
        match facts.get(disk, name):
            case Known(str(text), evidence) if text.strip():
                return Known(_with_vendor(_vendor(disk, facts, name), text.strip()), evidence)
    return _first(disk, facts, SOURCES["model"])


def _firmware(disk: Subject, facts: Facts) -> Judged:
    """Of the 8 characters of a SATA drive the kernel gives 4, mostly the last (libata ata_scsiop_inq_std); udev all."""
    *own, sysfs, udev = SOURCES["firmware"]
    if _vendor(disk, facts, "sysfs_model") != "ATA":
        return _first(disk, facts, SOURCES["firmware"])
    found = _first(disk, facts, (*own, udev))
    if isinstance(found, Unknown) and isinstance(facts.get(disk, sysfs), Known):
        return unknown(f"{disk}: the kernel gives only 4 characters of the firmware revision", "run as root")
    return found


def _with_vendor(vendor: str, model: str) -> str:
    bare = vendor in ("", "ATA", "NVMe") or vendor.startswith("0x") or model.lower().startswith(vendor.lower())
    return model if bare else f"{vendor} {model}"


def _vendor(disk: Subject, facts: Facts, source: str) -> str:
    match facts.get(disk, source.replace("_model", "_vendor")):
        case Known(str(vendor)):
            return vendor.strip()
        case _:
            return ""


def _table(model: Judged, drive: Drive | None, disk: Subject, facts: Facts) -> Judged:
    """drive_class, with what the table says as evidence. What is made by software has no model, and is no drive."""
    match facts.get(disk, "transport"):
        case Known(str(kind)) as made if kind in SOFTWARE and isinstance(model, Unknown):
            return Known("virtual", made.evidence)
    if isinstance(model, Unknown):
        return model
    if drive:
        sure = f"confidence {drive.confidence}" + (", declared" if drive.confidence == "C" else "")
        text = f"{model.value}: {SAYS[drive.plp]} ({drive.family}; drives.toml, {sure}: {drive.source})"
        return Known(drive.plp, (Evidence(text), *model.evidence))
    if _cut(model, disk, facts):
        return unknown(f"{model.value}: the kernel gives only the first 16 characters of the model", "run as root")
    return Known(NOT_IN_TABLE, (Evidence(f"{model.value} is not in drives.toml"), *model.evidence))


def _cut(model: Known, disk: Subject, facts: Facts) -> bool:
    """Only the kernel named this SATA drive, and its 16 characters are used up (a blank at the end was trimmed)."""
    sysfs = facts.get(disk, "sysfs_model")
    by_kernel = isinstance(sysfs, Known) and sysfs.evidence == model.evidence
    return by_kernel and _vendor(disk, facts, "sysfs_model") == "ATA" and len(str(model.value)) >= 15


def _virtual(table: Judged, drive: Drive | None, disk: Subject, facts: Facts) -> Judged:
    if drive and drive.plp in ("virtual", "ephemeral") and isinstance(table, Known):
        return Known(True, table.evidence)
    transport = facts.get(disk, "transport")
    bus = str(transport.value) if isinstance(transport, Known) else ""
    if isinstance(transport, Known) and bus in HYPERVISOR | NETWORK | SOFTWARE:
        if drive:
            return unknown(
                f"{disk} calls itself a {drive.family}, but is attached by {bus}: what lies between is not known"
            )
        return Known(True, (Evidence(f"{disk} is attached by {bus}"), *transport.evidence))
    if isinstance(table, Unknown):
        return table
    if drive:
        return Known(False, table.evidence)
    if isinstance(transport, Unknown):
        return transport
    if bus not in DRIVES:
        return unknown(
            f"{disk} is attached by {bus}, its model is not in drives.toml: it may be the volume of a controller"
        )
    machine, hint = facts.get(HOST, "virtualization"), facts.get(HOST, "virtual_machine_hint")
    for each in (machine, hint):
        if isinstance(each, Known) and each.value != "none":
            return unknown(
                f"this host runs in {each.value}; {disk}, whose model is not in drives.toml, may be emulated"
            )
    if isinstance(machine, Unknown):
        return machine
    return Known(False, (*machine.evidence, *transport.evidence))


def _hdd(table: Judged, drive: Drive | None, virtual: Judged, disk: Subject, facts: Facts) -> Judged:
    """By the drive's rotation rate, the kernel's flag and the table, which holds no hard disks; nobody knows when they
    disagree. The kernel says "rotational" of all that says nothing, as USB bridges do: it counts on SATA and SAS."""
    if is_true(virtual):
        return unknown(f"{disk} is a virtual disk: what kind of drives it lies on is not seen from here")
    votes: list[tuple[bool, Known]] = []
    rate, flagged = facts.get(disk, "smart_rotation_rpm"), facts.get(disk, "rotational")
    transport = facts.get(disk, "transport")
    if isinstance(rate, Known):
        votes.append((bool(rate.value), rate))
    trusted = isinstance(transport, Known) and transport.value in ("sata", "sas")
    if isinstance(flagged, Known) and (trusted or flagged.value is False):
        votes.append((flagged.value is True, flagged))
    if drive and isinstance(table, Known):
        votes.append((False, table))
    evidence = tuple(each for _, vote in votes for each in vote.evidence)
    answers = {spins for spins, _ in votes}
    if len(answers) > 1:
        return unknown(f"{disk}: solid-state or hard disk? " + " but ".join(vote.evidence[0].text for _, vote in votes))
    if not votes:
        silent = [each for each in (rate, flagged) if isinstance(each, Unknown)]
        return join(silent or [unknown(f"{disk}: neither the drive nor the kernel says whether it spins")])
    if isinstance(virtual, Unknown):
        return virtual
    return Known(answers.pop(), evidence)
