"""What a disk is and how it wears: its model, serial number and names, the leaves on it, and what it reports of its health.

A disk is a whole physical device, or a virtual one. What it is called comes from nvme-cli, smartctl, sysfs and udev; what its
model is known for from ``drives.toml``, ``firmware.toml`` and ``shingled.toml`` in data/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from auditor.data import drives
from auditor.data.drives import Drive
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, is_true, unknown
from auditor.model.derivation import catch_missing, derivation, every, evidence, first_known, gaps

NOT_IN_TABLE = "not in the table"
# in order of trust: the drive's own words before the kernel's, which cuts the model of a SATA drive after 16 characters
SOURCES = {
    "model": ("nvme_model", "nvme_list_model", "smart_model", "sysfs_model", "udev_model"),
    "serial": ("nvme_serial", "nvme_list_serial", "smart_serial", "sysfs_serial", "udev_serial"),
    "firmware": ("nvme_firmware", "nvme_list_firmware", "smart_firmware", "sysfs_firmware", "udev_firmware"),
    "wwn": ("smart_wwn", "udev_wwn"),
}
DRIVES = frozenset({"nvme", "sata", "sas", "usb", "mmc", "pmem", "dasd"})  # "scsi" may be a RAID controller
HYPERVISOR = frozenset({"virtio", "virtio-scsi", "xen", "hyperv"})
NETWORK = frozenset({"iscsi", "fc", "nvme-tcp", "nvme-rdma", "nvme-fc", "nvme-loop", "nbd", "rbd", "drbd"})
SOFTWARE = frozenset({"loop", "dm", "md", "bcache", "zvol", "ram", "zram", "file"})
EMULATED = "2.5+"
"""Firmware revision of QEMU's SATA and SCSI disks since 2.5, whatever model they are given (QEMU_HW_VERSION, which "do not
change" holds; hw/ide/core.c, hw/scsi/scsi-disk.c)."""
SAYS = {
    "plp-full": "power-loss protection for all that it acknowledged",
    "data-at-rest-only": "power-loss protection for flushed data only",
    "none": "no power-loss protection",
    "ephemeral": "storage that is gone when the instance stops",
    "virtual": "no drive",
}


@derivation(
    "disk",
    model=Spec.word("model, as the drive gives it"),
    serial=Spec.word("serial number"),
    firmware=Spec.word("firmware revision"),
    wwn=Spec.word("world-wide name"),
    virtual=Spec.flag(
        "no drive that can be seen from here: a volume of a hypervisor, cloud, network or RAID controller"
    ),
    hdd=Spec.flag("a hard disk: it has platters, and needs no power-loss protection beyond a flush that is honoured"),
    drive_class=Spec.word("power-loss protection of its model in drives.toml", *drives.CLASSES, NOT_IN_TABLE),
    drive_confidence=Spec.word("how sure drives.toml is of that", *drives.CONFIDENCES),
)
def identity(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """What a disk is: model, serial number, whether it is a drive at all, and what drives.toml says of it.

    Of a virtual disk a hypervisor, cloud, storage network or RAID controller decides about cache and power-loss protection.
    A drive that is passed through is none: the table knows its model. In a virtual machine an unknown model proves nothing:
    QEMU lets a SATA or SCSI disk have any name. The firmware revision of an emulated one is its own (:data:`EMULATED`)."""
    model = _model(disk, facts)
    drive = drives.match(str(model.value)) if isinstance(model, Known) else None
    table = _table(model, drive, disk, facts)
    firmware = _firmware(disk, facts)
    virtual = _virtual(table, drive, firmware, disk, facts)
    yield Fact(disk, "model", model)
    for name in ("serial", "wwn"):
        yield Fact(disk, name, _first(disk, facts, SOURCES[name]))
    yield Fact(disk, "firmware", firmware)
    yield Fact(disk, "virtual", virtual)
    yield Fact(disk, "hdd", _hdd(table, drive, virtual, disk, facts))
    yield Fact(disk, "drive_class", table)
    seen = table.need().evidence
    no_word = unknown(f"disk {disk}: its model is not in drives.toml")
    yield Fact(disk, "drive_confidence", Known(drive.confidence, seen) if drive else no_word)


def _first(disk: Subject, facts: Facts, names: tuple[str, ...]) -> Judged:
    missing = []
    for name in names:
        match facts.get(disk, name):
            case Known(str(text), evidence) if text.strip():
                return Known(text.strip(), evidence)
            case Unknown() as why if name in facts.of(disk):
                missing.append(why)
    return Unknown.join(missing) if missing else unknown(f"disk {disk}: no source for {' or '.join(names)}")


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
                vendor, bare = _vendor(disk, facts, name), text.strip()
                in_it = (
                    vendor in ("", "ATA", "NVMe") or vendor.startswith("0x") or bare.lower().startswith(vendor.lower())
                )
                return Known(bare if in_it else f"{vendor} {bare}", evidence)
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


def _vendor(disk: Subject, facts: Facts, source: str) -> str:
    return facts.get(disk, source.replace("_model", "_vendor")).word().strip()


@catch_missing
def _table(model: Judged, drive: Drive | None, disk: Subject, facts: Facts) -> Judged:
    """drive_class, with what the table says as evidence. What is made by software has no model, and is no drive."""
    match facts.get(disk, "transport"):
        case Known(str(kind)) as made if kind in SOFTWARE and isinstance(model, Unknown):
            return Known("virtual", made.evidence)
    model = model.need()
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


@catch_missing
def _virtual(table: Judged, drive: Drive | None, firmware: Judged, disk: Subject, facts: Facts) -> Judged:
    if isinstance(firmware, Known) and firmware.value == EMULATED:
        return Known(True, (Evidence(f"{disk} has firmware {EMULATED}: QEMU emulates it"), *firmware.evidence))
    if drive and drive.plp in ("virtual", "ephemeral") and isinstance(table, Known):
        return Known(True, table.evidence)
    transport = facts.get(disk, "transport")
    bus = str(transport.value) if isinstance(transport, Known) else ""
    if isinstance(transport, Known) and bus in HYPERVISOR | NETWORK | SOFTWARE:
        if drive:
            why = f"{disk} calls itself a {drive.family}, but is attached by {bus}: what lies between is not known"
            return unknown(why)
        return Known(True, (Evidence(f"{disk} is attached by {bus}"), *transport.evidence))
    table = table.need()
    if drive:
        return Known(False, table.evidence)
    transport = transport.need()
    if bus not in DRIVES:
        return perhaps_a_volume(disk, bus)
    machine, hint = facts.get(HOST, "virtualization"), facts.get(HOST, "virtual_machine_hint")
    for each in (machine, hint):
        if isinstance(each, Known) and each.value != "none":
            why = f"this host runs in {each.value}; {disk}, whose model is not in drives.toml, may be emulated"
            return unknown(why)
    return Known(False, (*machine.need().evidence, *transport.evidence))


def perhaps_a_volume(disk: Subject, bus: str) -> Unknown:
    """Why nothing is known of a disk behind a controller that can give its volumes any name."""
    return unknown(
        f"{disk} is attached by {bus}, its model is not in drives.toml: it may be the volume of a controller"
    )


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
        silent = unknown(f"{disk}: neither the drive nor the kernel says whether it spins")
        return Unknown.join(gaps((rate, flagged)) or [silent])
    return virtual if isinstance(virtual, Unknown) else Known(answers.pop(), evidence)


# -- names ----------------------------------------------------------------------------------------------------------
#
# What distinguishes physical devices: the kernel's name, the serial number, the NVMe subsystem, the world-wide name.
#
# Namespaces of one NVMe drive and paths of one LUN have a name in common. Virtual disks are distinguished by their kernel and
# world-wide names alone: a cloud shows all its volumes as namespaces of one emulated controller with a constant serial
# number (Google "nvme_card-pd", Azure "SN: 000001"), so that a common one says nothing of what they lie on. The
# world-wide names of drives are not used: some models give all the same.
#
# Where the kernel shows a SAS drive twice, once for each of its ports, one of the two may answer and the other not; udev may
# then call by its world-wide name what itself gives a serial number. What else is said of a drive that answers is kept for
# that: it may be the one that is called so. Not of USB, where it is the bridge that udev asks.

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
        given = [found for name in ("sysfs_subsystem_nqn", "serial") if (found := _name_of(disk, name, facts))]
        if not given and not is_true(virtual):
            missing = gaps((facts.get(disk, "serial"), virtual))
            nameless.append(Unknown.join(missing) if missing else unknown(f"{disk} gives no serial number"))
        if isinstance(virtual, Known) and virtual.value is False:
            sure.update(given)
            unsure.update(_called_otherwise(disk, facts))
            continue
        for name in given:
            several = unknown(
                f"several disks, virtual or perhaps so, give {name} as NVMe subsystem or serial number: {UNSEEN}"
            )
            unsure[name] = several if isinstance(virtual, Known) else Unknown.join([several, virtual])
        if is_true(virtual) and not (wwn := _name_of(disk, "wwn", facts)).startswith(COMPOSED):
            sure.update([wwn] if wwn else [])
    return Names(frozenset(sure), unsure, tuple(nameless))


def _called_otherwise(disk: Subject, facts: Facts) -> dict[str, Unknown]:
    """What those say of a drive who are not believed first."""
    if facts.get(disk, "transport").or_none() == "usb":
        return {}
    told = {found for source in SOURCES["serial"] if (found := _name_of(disk, source, facts))}
    return {
        found: unknown(f"{disk} is also called {found}, and may be another path to the drive that is called so")
        for found in told - {_name_of(disk, "serial", facts)}
    }


def _name_of(disk: Subject, name: str, facts: Facts) -> str:
    """What a disk reports; empty where it says nothing, or nothing but zeros."""
    match facts.get(disk, name):
        case Known(str(value)) if value.rpartition(".")[2].removeprefix("0x").strip("0 "):
            return value
    return ""


@derivation(
    "host",
    **{"disk.used_by": Spec.links("leaf", "leaves that are known to end on it, cache devices and spares included")},
)
def used_by(host: Subject, facts: Facts) -> Iterator[Fact]:
    """The way back from leaf.disks, laid out once for all disks. A leaf whose disks are not known is on none."""
    found: dict[Subject, dict[Subject, None]] = {disk: {} for disk in facts.subjects("disk")}
    for leaf in facts.subjects("leaf"):
        for disk in facts.linked(leaf, "disks"):
            found.setdefault(disk, {})[leaf] = None
    for disk, leaves in found.items():
        names = ", ".join(map(str, leaves)) or "no leaf"
        yield Fact(disk, "used_by", Known(tuple(leaves), (Evidence(f"{disk}: {names}", "lsblk"),)))


# -- what its model is known for ------------------------------------------------------------------------------------


@derivation(
    "disk", firmware_bug=Spec.word("what its firmware does to it, and the first revision that does not; or empty")
)
def firmware_bug(disk: Subject, facts: Facts) -> Judged:
    """Whether firmware.toml warns of its firmware. A drive that is not in that table has no bug that is known here."""
    model, revision = facts.values(disk, "model", "firmware")
    if bug := drives.match_firmware(str(model.value), str(revision.value)):
        text = f"{bug.harm}; fixed in {bug.fixed}"
        return Known(text, (Evidence(f"{text} ({bug.source})"), *evidence(model, revision)))
    return Known("", evidence(model, revision))


BY_TRIM = "hard disk that takes TRIM"


@derivation(
    "disk", shingled_family=Spec.word("the family of shingled hard disks of its model, or that it takes TRIM, or empty")
)
def shingled_family(disk: Subject, facts: Facts) -> Judged:
    """Whether shingled.toml names its model, or it is a hard disk that takes TRIM, for which only shingled ones have a use.
    (Western Digital, white paper of June 2020: Trim Command, General Benefits for Hard Disk Drives)

    Of a model that is not in the table, and takes no TRIM, nothing is known here."""
    model = facts.need(disk, "model")
    if found := drives.match_shingled(str(model.value)):
        return Known(found.family, (Evidence(f"{found.family} ({found.source})"), *model.evidence))
    match facts.get(disk, "hdd"), facts.get(disk, "smart_trim"):
        case Known(True) as hdd, Known(True) as trim:
            return Known(BY_TRIM, (*trim.evidence, *hdd.evidence))
    return Known("", model.evidence)


# -- health ---------------------------------------------------------------------------------------------------------

USED = ("nvme_percent_used", "smart_percent_used")
HOURS = ("nvme_power_on_hours", "smart_power_on_hours")
LEAST = 2  # percent; the drive rounds, so that 1 % may be hardly anything
SPARE = (
    ("nvme_available_spare_percent", "nvme_available_spare_threshold_percent"),
    ("smart_available_spare_percent", "smart_available_spare_threshold_percent"),
)
MARGIN = 10


@derivation(
    "disk",
    wear_percent=Spec.number("rated endurance used; may exceed 100"),
    endurance_left_days=Spec.number(
        "days until all of it is used at the pace of its hours so far; of a drive that has used 2 % or more"
    ),
    counts_wear=Spec.flag("it reports its wear in a form that all vendors share"),
    spare_low=Spec.flag("its spare blocks are within 10 % of the threshold at which it warns"),
)
def wear(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """NVMe drives report wear and spare blocks (SMART / Health Information log page), SAS and SATA drives the first;
    attributes of vendors are not read, because their scale is not the same from one to the next."""
    used, hours = (first_known(facts.get(disk, name) for name in names) for names in (USED, HOURS))
    named = facts.get(disk, "smart_attributes_named")  # known of a SATA drive whose table would show its wear
    counts = Known(False, named.evidence) if isinstance(named, Known) else used
    yield Fact(disk, "wear_percent", used)
    yield Fact(disk, "endurance_left_days", _days_left(used, hours))
    yield Fact(disk, "counts_wear", Known(True, used.evidence) if isinstance(used, Known) else counts)
    yield Fact(disk, "spare_low", _spare_low(disk, facts))


@catch_missing
def _days_left(used: Judged, hours: Judged) -> Judged:
    percent, on = map(Known.number, every((used, hours)))
    if percent < LEAST:
        return unknown(f"only {percent} % of its endurance is used: too little to tell its pace")
    return Known(max(100 - percent, 0) * on // percent // 24, evidence(used, hours))


def _spare_low(disk: Subject, facts: Facts) -> Judged:
    protocol = facts.get(disk, "smart_protocol")
    if isinstance(protocol, Known) and protocol.value in ("ATA", "SCSI"):
        return Known(False, protocol.evidence)  # reports no count of spare blocks; what is left shows in the wear
    return first_known(_below_margin(*(facts.get(disk, name) for name in names)) for names in SPARE)


@catch_missing
def _below_margin(spare: Judged, threshold: Judged) -> Judged:
    left, least = map(Known.number, every((spare, threshold)))
    return Known(left <= least + MARGIN, evidence(spare, threshold))


ATA = ("smart_pending_sectors", "smart_offline_uncorrectable")
COUNTERS = (*ATA, "smart_uncorrected_errors", "smart_media_errors", "nvme_media_errors")  # the largest counts
# one of them is in every answer of a drive that keeps such counters at all
WITNESSES = (
    "smart_attributes_named",
    "smart_uncorrected_errors",
    "smart_nvme_critical_warning",
    "nvme_critical_warning",
)


@derivation(
    "disk",
    unreadable=Spec.number("sectors or commands whose data the drive could not read back"),
    counts_unreadable=Spec.flag("the drive keeps such a counter, and what it means is known"),
)
def unreadable(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """What a drive counts of its own errors: what it could not read.

    The counters differ by protocol: SMART attributes of SATA drives, which count only where smartctl knows what the model means
    by them (198 is "Offline_Uncorrectable" of a hard disk and "Host_Reads_GiB" of some SSDs), the error counter log of SAS
    drives, the health log of NVMe drives. A drive that keeps no such counter is not asked: counts_unreadable is false then.
    (smartmontools drivedb.h, smartd.conf(5) -C, -U; NVM Express Base Specification, Media and Data Integrity Errors)"""
    witnesses = [facts.get(disk, name) for name in WITNESSES]
    answered = next((each for each in witnesses if isinstance(each, Known)), None)
    found = [each for each in (_counter(disk, facts, counter) for counter in COUNTERS) if each is not None]
    if known := [each for each in found if isinstance(each, Known)]:
        most = max(known, key=Known.number)
        seen = evidence(*(each for each in known if each.value == most.value))
        yield Fact(disk, "unreadable", Known(most.value, seen))
        yield Fact(disk, "counts_unreadable", Known(True, most.evidence))
        return
    silent = unknown(f"{disk.name} does not report what it could not read")
    why = Unknown.join(gaps(found or witnesses) or [silent])
    yield Fact(disk, "unreadable", why)
    yield Fact(disk, "counts_unreadable", Known(False, answered.evidence) if answered and not found else why)


def _counter(disk: Subject, facts: Facts, name: str) -> Judged | None:
    """Its value; why it means nothing; or None where the drive does not report it."""
    value, named = facts.get(disk, name), facts.get(disk, "smart_attributes_named")
    if not isinstance(value, Known):
        return None
    if name not in ATA or is_true(named):
        return value
    if isinstance(named, Unknown):
        return named
    why = f"smartctl does not know the model of {disk.name}: what its attributes count is not known"
    return unknown(why, "update-smart-drivedb")


BITS = {
    "warns_spare_low": ("nvme_spare_low", 1),
    "warns_unreliable": ("nvme_reliability_degraded", 4),
    "warns_read_only": ("nvme_media_read_only", 8),
}


@derivation(
    "disk",
    warns_spare_low=Spec.flag("the spare blocks run out (bit 0)"),
    warns_unreliable=Spec.flag("reliability is degraded by media or internal errors (bit 2)"),
    warns_read_only=Spec.flag("it has made itself read-only (bit 3)"),
)
def critical_warning(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """Of an NVMe drive, read by nvme-cli or smartctl; one that reports it is enough.
    (NVM Express Base Specification, SMART / Health Information log page: Critical Warning, bits 0, 2 and 3)"""
    bits = facts.get(disk, "smart_nvme_critical_warning")
    for name, (of_nvme, bit) in BITS.items():
        flagged = facts.get(disk, of_nvme)
        answers = [flagged, bits._replace(value=bool(bits.number() & bit)) if isinstance(bits, Known) else bits]
        worst = [each for each in answers if is_true(each)]
        known = Known(bool(worst), evidence(*(worst or answers)))
        unseen = gaps(answers)
        yield Fact(disk, name, Unknown.join(unseen) if len(unseen) == len(answers) else known)


# -- who stands below -------------------------------------------------------------------------------------------------


@derivation("disk", providers=Spec.words("entries of providers.toml, one of which may describe what is below it"))
def providers_below(disk: Subject, facts: Facts) -> Judged:
    """Of a disk that a hypervisor or a network shows, as far as the guest can see; of any other none."""
    if (own := _host_drive(disk, facts)) is not None:
        return Known((), own.evidence)
    model, transport, table = facts.values(disk, "model", "transport", "drive_class")
    seen = model, transport, facts.need(HOST, "virtualization")
    listed = drives.load_providers().values() if table.value != "ephemeral" else ()
    return Known(tuple(each.id for each in listed if each.may_be(*map(Known.word, seen))), evidence(*seen))


@derivation(
    "host",
    provider_machine=Spec.word("who shows the virtual disks of the pools, as the guest sees it"),
    provider_answer=Spec.words("the line of a policy that adopts what is documented of them"),
    provider_terms=Spec.word("what must be so at the site"),
)
def providers_of_pools(host: Subject, facts: Facts) -> Iterator[Fact]:
    """What all disks of a hypervisor below the pools have in common; of several possible ones the first of the table."""
    disks = disks_behind("hypervisor", facts)
    found = every(facts.get(disk, "providers") for disk in disks)
    common = [
        each for id, each in drives.load_providers().items() if found and all(id in names.words() for names in found)
    ]
    seen = evidence(*found[:1])
    lines = tuple(f'answers.hypervisor = "{each.id}"' for each in common[:1])
    yield Fact(host, "provider_answer", Known(lines, seen))
    if common:
        yield Fact(host, "provider_machine", Known(common[0].machine, seen))
        yield Fact(host, "provider_terms", Known(common[0].terms, seen))
    else:
        nobody = unknown("no entry of providers.toml has such disks")
        yield from (Fact(host, name, nobody) for name in ("provider_machine", "provider_terms"))


def disks_behind(party: str, facts: Facts) -> list[Subject]:
    """The disks of all pools that are no drives of this host, or Missing: those of a target are reached through a network."""
    leaves = [leaf for pool in facts.need_linked(HOST, "pools") for leaf in facts.need_linked(pool, "leaves")]
    with_disks = [leaf for leaf in leaves if facts.need(leaf, "type").value == "disk"]
    disks = [
        disk for leaf in with_disks for disk in facts.need_linked(leaf, "disks") if _host_drive(disk, facts) is None
    ]
    return [disk for disk in disks if shower(disk, facts) == party]


def shower(disk: Subject, facts: Facts) -> str:
    """Of a disk that is no drive of this host, or Missing."""
    return "target" if facts.need(disk, "transport").value in NETWORK else "hypervisor"


def _host_drive(disk: Subject, facts: Facts) -> Known | None:
    virtual, transport = facts.get(disk, "virtual"), facts.get(disk, "transport")
    if isinstance(virtual, Known) and virtual.value is False:
        return virtual
    return transport if isinstance(transport, Known) and transport.value in SOFTWARE else None
