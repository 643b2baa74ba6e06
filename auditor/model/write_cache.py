"""Whether a disk keeps what it acknowledged when the power goes: its volatile write cache, its power-loss protection, and the
caches of a RAID controller and of the drives behind it; and what power cuts have shown of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from auditor.data import drives
from auditor.facts import AGAIN, HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, is_true, unknown
from auditor.model.derivation import about, about_each, catch_missing, derivation, every, evidence, first_known, gaps
from auditor.model.disk import DRIVES, HYPERVISOR, NETWORK, SOFTWARE, perhaps_a_volume
from auditor.sources.machine import DriveCuts
from auditor.text import harmless

NVME = ("nvme_vwc_present", "nvme_ns_vwc_absent", "nvme_write_cache")
SCSI = ("smart_write_cache", "hdparm_write_cache")
KERNEL = ("sysfs_write_cache", "scsi_cache_type", "virtio_cache_type")
IN_MEMORY = frozenset({"zvol", "loop"})


@derivation("disk", volatile_cache=Spec.flag("it has a volatile write cache, and the cache is on"))
def volatile_cache(disk: Subject, facts: Facts) -> Judged:
    """Whether a disk has a volatile write cache that is on: what it acknowledged can be lost until it is flushed.

    The drive's own word decides (NVMe: VWC and Feature 6; SATA: IDENTIFY DEVICE through hdparm and smartctl). The kernel's
    ``write_cache`` counts only as "write back": anyone can write "write through" there, and it is the kernel's guess
    without a caching mode page. True needs one witness, False the word of a drive that can be seen, and a contradiction is
    unknown; what a virtual disk denies proves nothing. (Linux Documentation/ABI/stable/sysfs-block; drivers/scsi/sd.c; NVM
    Express Base Specification, VWC)

    A zvol and a loop device keep what they get in memory, whatever their queue says, unless the dataset below has
    sync=always. (OpenZFS module/os/linux/zfs/zvol_os.c zvol_write; Linux drivers/block/loop.c) Held by a property test:
    with fewer facts an answer stays, becomes unknown, or turns from False to True; an unknown becomes False only where half
    of a contradiction went."""
    match facts.get(disk, "transport"):
        case Known(str(kind)) as made if kind in IN_MEMORY:
            return _in_memory(disk, made, facts)
        case _:
            return _unless_virtual(disk, facts, _report(disk, facts))


def _in_memory(disk: Subject, made: Known, facts: Facts) -> Judged:
    below = facts.get(disk, "lies_on")
    syncs = [(each, facts.get(each, "sync")) for each in facts.linked(disk, "lies_on")]
    if isinstance(below, Known) and not syncs:
        return Known(True, (*made.evidence, *below.evidence))
    for dataset, sync in syncs:
        if isinstance(sync, Known) and sync.value != "always":
            return Known(True, (*made.evidence, *about(dataset, sync)))
    if unknowns := gaps((below, *(sync for _, sync in syncs))):
        return Unknown.join(unknowns)
    return Known(False, about_each(syncs))


def _unless_virtual(disk: Subject, facts: Facts, said: Judged) -> Judged:
    """What was said, unless it is a denial or silence of something that is not a drive."""
    if is_true(said):
        return said
    match facts.get(disk, "virtual"):
        case Known(True):
            return unknown(f"{disk} is a virtual disk: whether its writes are cached is decided where it comes from")
        case Unknown() as why if isinstance(said, Known):
            return why
        case _:
            return said


def _report(disk: Subject, facts: Facts) -> Judged:
    nvme = disk.name.startswith("nvme")  # not by which facts there are: one fact less must not change who is asked
    said = _nvme(disk, facts) if nvme else _scsi(disk, facts)
    if isinstance(said, Known) or (not nvme and all(isinstance(facts.get(disk, name), Known) for name in SCSI)):
        return said
    present = facts.get(disk, "nvme_vwc_present")
    through = []
    for name in KERNEL:
        match facts.get(disk, name):
            case Known(str(word), evidence) if word.startswith("write back"):
                return Known(True, (*evidence, *(present.evidence if isinstance(present, Known) else ())))
            case Known(str(word)):
                through.append(unknown(f"{disk}: {word!r} in {name} is the kernel's word, not the drive's"))
    return Unknown.join([said, *through])


def _nvme(disk: Subject, facts: Facts) -> Judged:
    """No cache when VWC bit 0 is clear or the namespace says "not present"; else Feature 6 says on or off."""
    present, absent, enabled = (facts.get(disk, name) for name in NVME)
    match present, absent, enabled:
        case Known(False, evidence), _, _:
            return Known(False, evidence)
        case _, Known(True, evidence), _:
            return Known(False, evidence)
        case _, _, Known(bool(on), evidence):
            return Known(on, (*evidence, *(present.evidence if isinstance(present, Known) else ())))
        case Known(True), _, Unknown() as why:
            return Unknown.join([unknown(f"{disk} has a volatile write cache; whether it is on is not known"), why])
        case _:
            return Unknown.join(gaps((present, enabled)))


def _scsi(disk: Subject, facts: Facts) -> Judged:
    """The two ways to ask the drive have to agree."""
    answers = [facts.get(disk, name) for name in SCSI]
    said = [each for each in answers if isinstance(each, Known)]
    if not said:
        return Unknown.join(gaps(answers))
    seen = evidence(*said)
    if len({each.value for each in said}) > 1:
        return unknown(f"{disk}: on or off? " + " but ".join(f"{line.text} ({line.command})" for line in seen))
    return Known(said[0].value, seen)


@derivation("disk", cache_switched_off=Spec.flag("it has a volatile write cache, and the cache is off"))
def cache_switched_off(disk: Subject, facts: Facts) -> Judged:
    """Whether a drive has a volatile write cache that somebody switched off, which a drive without one has not.

    NVMe: VWC says whether there is one, Feature 6 whether it is on. SATA: IDENTIFY DEVICE, asked in two ways."""
    if disk.name.startswith("nvme"):
        present = facts.need(disk, "nvme_vwc_present")
        if present.value is False:
            return Known(False, present.evidence)
        enabled = facts.need(disk, "nvme_write_cache")
        return Known(not enabled.value, present.evidence + enabled.evidence)
    answers = [facts.get(disk, name) for name in SCSI]
    said = [each for each in answers if isinstance(each, Known)]
    if not said:
        return Unknown.join(gaps(answers))
    if len({each.value for each in said}) > 1:
        return unknown(f"{disk}: smartctl and hdparm do not agree on its write cache")
    return Known(not said[0].value, evidence(*said))


BACKUP_FAILED = 0x10  # critical warning bit 4: volatile memory backup device failed
WARNINGS = ("nvme_critical_warning", "smart_nvme_critical_warning")
BACKUPS = ("nvme_backup_failed", "smart_nvme_backup_failed")
ABSENT = (("nvme_vwc_present", False), ("nvme_ns_vwc_absent", True))
OCP = ("ocp_capacitor_health", "ocp_incomplete_shutdowns")


@derivation(
    "disk",
    plp_grade=Spec.number("evidence for power-loss protection, from 1 (none) to 5 (proven); 3 is declared"),
    plp_failed=Spec.flag("the drive reports that its power-loss protection failed"),
    plp_silent=Spec.flag("the drive has no report about its power-loss protection, neither good nor bad"),
)
def plp_grade(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """How good the evidence is that a drive keeps what it acknowledged when the power goes: a grade from 1 to 5.

    5 proven     no volatile cache (NVMe) and capacitors that report themselves healthy, no failure bit, class plp-full
    4 strong     class plp-full and healthy capacitors, or class plp-full (confidence A or B) and no volatile cache (NVMe)
    3 declared   one of the two alone: class plp-full, or the drive's word that it has no volatile cache
    2            class data-at-rest-only and a volatile cache: flushed data survives, if the flush arrives
    1            class none or a model that is not in the table, and a volatile cache; or protection that has failed
    No grade (unknown): no word of the drive about its cache, a table and a drive that contradict each other, a virtual disk
    (decided where it comes from), and a hard disk, which needs none: disk.hdd. Whether flushes arrive is not its question:
    leaf.stack_drops_flushes. A clear failure bit proves no protection; it only lifts 4 to 5.

    Capacitors speak through an ATA attribute, or through the extended SMART log of datacenter NVMe drives (OCP,
    C0h). There 0 is failed, and 100 and more is good where the drive has finished every power cut; what lies
    between, and a power cut that it did not finish, proves neither.

    Held by a property test: with fewer facts a grade stays, falls or becomes unknown; it rises only when the fact
    that went was the failure itself, or the half of a contradiction.

    """
    failed = _failed(disk, facts)
    yield Fact(disk, "plp_failed", failed)
    yield Fact(disk, "plp_silent", _silent(disk, facts, failed))
    yield Fact(disk, "plp_grade", _grade(disk, facts, failed))


def _backup(disk: Subject, facts: Facts) -> list[tuple[bool, Known]]:
    found = []
    for name in (*WARNINGS, *BACKUPS):
        match facts.get(disk, name):
            case Known(bool(bit)) as fact:
                found.append((bit, fact))
            case Known(int(bits)) as fact:
                found.append((bool(bits & BACKUP_FAILED), fact))
    return found


def _capacitors(disk: Subject, facts: Facts) -> list[Known]:
    attribute = facts.get(disk, "capacitor_ok")
    found = [attribute] if isinstance(attribute, Known) else []
    match facts.get(disk, OCP[0]), facts.get(disk, OCP[1]):
        case Known(0, failed), _:
            found.append(Known(False, failed))
        case Known(int() as percent, good), Known(0, finished) if percent >= 100:
            found.append(Known(True, (*good, *finished)))
    return found


def _failed(disk: Subject, facts: Facts) -> Judged:
    """One report of a failure is enough; no report at all is unknown, unless there is nothing that could fail: a drive that
    says nothing about its capacitors does not say that they are good."""
    reports = _backup(disk, facts) + [(not capacitor.value, capacitor) for capacitor in _capacitors(disk, facts)]
    bad = [fact for failed, fact in reports if failed]
    if bad:
        return Known(True, evidence(*bad))
    for name, value in (("hdd", True), ("drive_class", "none")):
        if nothing := _if(disk, facts, name, value):
            return Known(False, evidence(nothing))
    match facts.get(disk, "virtual"):
        case Known(True):
            return _elsewhere(disk)
        case Unknown() as why:
            return why
    if reports:
        return Known(False, evidence(*(fact for _, fact in reports)))
    if silence := _if(disk, facts, "capacitor_attribute", False):
        return unknown(f"the drive does not report on its power-loss protection ({_text(silence)})")
    return Unknown.join(gaps(facts.get(disk, name) for name in (WARNINGS[0], "capacitor_ok")))


def _silent(disk: Subject, facts: Facts, failed: Judged) -> Judged:
    """Whether there is nothing that could ever tell: all its attributes are known by name, and none is about capacitors."""
    if isinstance(failed, Known):
        return Known(False, failed.evidence)
    silence = _if(disk, facts, "capacitor_attribute", False)
    return Known(True, silence.evidence) if silence and _if(disk, facts, "virtual", False) else failed


@catch_missing
def _grade(disk: Subject, facts: Facts, failed: Judged) -> Judged:
    if is_true(failed):
        return Known(1, failed.evidence)
    table, virtual, hdd = (facts.get(disk, name) for name in ("drive_class", "virtual", "hdd"))
    match virtual, hdd:
        case Known(True), _:
            return _elsewhere(disk)
        case Known(), Known(True):
            return unknown(f"{disk} is a hard disk: a flush that is honoured is all that it needs")
    table, *_ = every((table, virtual, hdd))
    absent = next((fact for name, value in ABSENT if (fact := _if(disk, facts, name, value))), None)
    healthy = next((each for each in _capacitors(disk, facts) if each.value is True), None)
    if table.value == "plp-full":
        return _full(disk, facts, table, absent, healthy)
    if absent and table.value != "none":
        return Known(3, evidence(table, absent))
    if absent:
        return unknown(f"{_text(table)}; but the drive says that it has no volatile write cache ({_text(absent)})")
    if healthy and table.value != "data-at-rest-only":
        return unknown(f"{_text(table)}; but the drive reports healthy capacitors ({_text(healthy)}): for what?")
    cache = facts.get(disk, "volatile_cache")
    present = _if(disk, facts, "nvme_vwc_present", True)
    if isinstance(cache, Unknown) and present is None:
        return cache
    seen = [fact for fact in (cache, present) if isinstance(fact, Known)]
    return Known(2 if table.value == "data-at-rest-only" else 1, evidence(table, *seen))


def _full(disk: Subject, facts: Facts, table: Known, absent: Known | None, healthy: Known | None) -> Known:
    """Class plp-full: 5, 4 or 3. An inferred class (confidence C) is strong only with capacitors that speak."""
    clear = [fact for _, fact in _backup(disk, facts)]
    sure = _if(disk, facts, "drive_confidence", "A") or _if(disk, facts, "drive_confidence", "B")
    if absent and healthy and clear:
        return Known(5, evidence(table, absent, healthy, *clear))
    if healthy:
        return Known(4, evidence(table, healthy, *([absent] if absent else [])))
    if absent:
        return Known(4 if sure else 3, evidence(table, absent))
    return Known(3, table.evidence)


def _if(disk: Subject, facts: Facts, name: str, value: bool | str) -> Known | None:
    fact = facts.get(disk, name)
    return fact if isinstance(fact, Known) and fact.value == value else None


def _text(fact: Known) -> str:
    return fact.evidence[0].text if fact.evidence else str(fact.value)


def _elsewhere(disk: Subject) -> Unknown:
    return unknown(f"{disk} is a virtual disk: power-loss protection is decided on its host")


DECLARED = 3  # of plp_grade


@derivation("disk", keeps_acknowledged=Spec.flag("what it has acknowledged outlives the power, flushed or not"))
def keeps_acknowledged(disk: Subject, facts: Facts) -> Judged:
    """Whether a disk keeps what it has acknowledged when the power goes: it has no volatile cache that is on, or its cache is
    known or declared to be protected (:mod:`.plp_grade`). A hard disk and a virtual disk are judged by this like any other."""
    cache, grade = (facts.get(disk, name) for name in ("volatile_cache", "plp_grade"))
    if isinstance(cache, Known) and cache.value is False:
        return Known(True, cache.evidence)
    if isinstance(grade, Known) and isinstance(grade.value, int) and grade.value >= DECLARED:
        return Known(True, grade.evidence)
    return Known(False, evidence(*every((cache, grade))))


LISTED = ("storcli_controller", "raid_write_policy", "raid_level")
FAMILY = "volume of a RAID controller"


@derivation("disk", raid_volume=Spec.flag("a volume of a RAID controller, with drives behind it that cannot be seen"))
def raid_volume(disk: Subject, facts: Facts) -> Judged:
    """Whether a disk is the volume of a RAID controller: by its model, which names the controller, by how it is attached, or
    because the controller's own tool lists it.

    A "scsi" disk whose model says nothing may be such a volume: controllers can give theirs any name."""
    model, transport = facts.get(disk, "model"), facts.get(disk, "transport")
    bus = str(transport.value) if isinstance(transport, Known) else ""
    if isinstance(transport, Known) and bus in HYPERVISOR | NETWORK | SOFTWARE:
        return Known(False, transport.evidence)
    model = model.need()
    drive = drives.match(str(model.value))
    if drive and (drive.plp != "virtual" or drive.family.startswith(FAMILY)):
        return Known(drive.plp == "virtual", model.evidence)
    transport = transport.need()
    if drive or bus in DRIVES:
        return Known(False, model.evidence + transport.evidence)
    for name in LISTED:
        if isinstance(listed := facts.get(disk, name), Known):
            return Known(True, listed.evidence)
    return perhaps_a_volume(disk, bus)


GOOD = ("Optimal", "Optl")


@derivation(
    "disk",
    raid_cache_protected=Spec.flag("the battery, capacitor or flash behind the cache of its RAID controller is good"),
    raid_drive_cache=Spec.word("the write caches of the drives behind a RAID volume", "off", "on", "on, protected"),
)
def raid_cache(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether the caches behind a RAID volume survive a power cut: the controller's, and those of its drives.

    ssacli says it of the volume's controller itself, storcli and perccli of the controller by its number. A battery keeps what
    the controller holds, not what a drive holds. Linux completes the flush of a volume itself where the firmware of a MegaRAID
    controller does not take it (megaraid_sas: fw_sync_cache_support), so that the drives may never be told to empty theirs. Of
    the battery the tool that knows the volume decides."""
    yield Fact(disk, "raid_cache_protected", first_known((facts.get(disk, "raid_battery_ok"), _storcli(disk, facts))))
    yield Fact(disk, "raid_drive_cache", _drive_cache(disk, facts))


@catch_missing
def _drive_cache(disk: Subject, facts: Facts) -> Judged:
    """Whatever the policy is, drives that are all known to protect what they acknowledged need none."""
    policy, models = facts.get(disk, "raid_disk_cache"), facts.get(disk, "raid_drive_models")
    if isinstance(policy, Known) and policy.value == "disabled":
        return Known("off", policy.evidence)
    named = models.value if isinstance(models, Known) and isinstance(models.value, tuple) else ()
    behind = [drives.match(str(model)) for model in named]
    if isinstance(models, Known) and behind and all(drive and drive.plp == "plp-full" for drive in behind):
        seen = Evidence("power-loss protection of all drives behind it (drives.toml)")
        return Known("on, protected", (seen, *models.evidence))
    policy = policy.need()
    if policy.value == "default":
        return unknown(f"{policy.evidence[0].text}: whether the drives behind {disk} cache writes is not said")
    return Known("on", policy.evidence + (models.evidence if isinstance(models, Known) else ()))


@catch_missing
def _storcli(disk: Subject, facts: Facts) -> Judged:
    """All batteries of the controller must be good; having none is not."""
    own, batteries = facts.need(disk, "storcli_controller"), facts.need(HOST, "storcli_batteries")
    states = [state for number, state in batteries.pairs() if number == own.value]
    if not states:
        return unknown(f"storcli64 /call show all: does not name controller {own.value}")
    return Known(all(state in GOOD for state in states), batteries.evidence + own.evidence)


# What power cuts showed of drives (``zaudit powercut``), and what so many of them prove.
#
# Evidence is of one drive with one firmware. Other drives of its model are other units: they are counted, and never summed.
# Cuts never show that a drive loses nothing, so what held is still relied on; what was lost once is enough.

ENOUGH = 10  # informative cuts; before that no loss proves little
CONFIDENCE = 0.95
COMMAND = "zaudit powercut report"
NAMES = ("cuts_held", "lost_flushed", "model_tried", "model_lost")


@derivation(
    "host",
    **{
        "drives_tried": Spec.flag("there are records of drives that power cuts were tried with"),
        "disk.cuts_held": Spec.number(
            "informative power cuts of this drive with this firmware, none of which lost anything"
        ),
        "disk.lost_flushed": Spec.flag("a power cut took data that this drive with this firmware had flushed"),
        "disk.model_tried": Spec.number("drives of its model that power cuts were tried with, it included"),
        "disk.model_lost": Spec.number("those of them that lost flushed data; not this drive with this firmware"),
    },
)
def power_cuts(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Of each disk, from the records of runs on drives: of a run on a pool nobody knows which drive kept it.

    A record that could not be read may be one of a loss. Where a recording was made before zaudit asked for records, there are
    none."""
    read = _read(facts)
    models = dict[str, list[DriveCuts]]()
    for each in facts.get(HOST, "power_cuts").rows(DriveCuts):
        if each.layer == "drive" and each.cuts:
            models.setdefault(_model(each.model), []).append(each)
    seen = tuple(Evidence(_line(each), COMMAND) for mine in models.values() for each in mine[:1])
    yield Fact(host, "drives_tried", Known(True, seen) if models else _nothing(read)[1])
    for disk in facts.subjects("disk"):
        yield from (Fact(disk, *pair) for pair in zip(NAMES, _of(disk, facts, models, read), strict=True))


def _read(facts: Facts) -> Judged:
    """Were all records read? The reasons where one was not."""
    match facts.get(HOST, "power_cuts_read"):
        case Unknown(reasons) if all(each.remedy == AGAIN for each in reasons) or "power_cuts_read" not in facts.of(
            HOST
        ):
            return Known(True, (Evidence("records of power cuts were not asked for"),))
        case Known(False, (first, *_)):
            return unknown(first.text)
        case found:
            return found


def _model(model: str) -> str:
    return drives.normal(model.replace("_", " ")).casefold()


def _of(disk: Subject, facts: Facts, models: dict[str, list[DriveCuts]], read: Judged) -> tuple[Judged, ...]:
    model, virtual = facts.get(disk, "model"), facts.get(disk, "virtual")
    if is_true(virtual):
        return _nothing(virtual)
    if isinstance(model, Unknown):
        return _nothing(model if models else read)
    mine = models.get(_model(str(model.value)), [])
    if not mine:
        return _nothing(read)
    seen = tuple(dict.fromkeys(Evidence(_line(each), COMMAND) for each in mine))
    own = _cuts_of_drive(disk, facts, mine)
    tried = {each.serial or str(at) for at, each in enumerate(mine)}
    others = {
        each.serial or str(at)
        for at, each in enumerate(mine)
        if each.lost and not (isinstance(own, list) and each in own)
    }
    return (
        _held(own, virtual, read, seen),
        _lost(own, read, seen),
        Known(len(tried), seen),
        Known(len(others), seen) if others or isinstance(read, Known) else read,
    )


def _nothing(known: Judged) -> tuple[Judged, ...]:
    """No record is about it, or about its model; or why nobody knows."""
    if isinstance(known, Unknown):
        return (known,) * len(NAMES)
    return tuple(Known(value, known.evidence) for value in (0, False, 0, 0))


@catch_missing
def _cuts_of_drive(disk: Subject, facts: Facts, mine: Sequence[DriveCuts]) -> list[DriveCuts] | Unknown:
    """Those of this very drive, as it is now: another firmware is another drive."""
    serial = facts.need(disk, "serial")
    name = harmless(str(serial.value)).strip()
    if not name.strip("0 "):
        return unknown(f"{disk} gives no serial number: which records are about it is not known")
    found = [each for each in mine if each.serial == name]
    if not found:
        return []
    firmware = facts.need(disk, "firmware")
    return [each for each in found if each.firmware == harmless(str(firmware.value)).strip()]


def _held(own: list[DriveCuts] | Unknown, virtual: Judged, read: Judged, seen: tuple[Evidence, ...]) -> Judged:
    """None where one of its runs ended otherwise: with a loss, or with damage after what was no power cut. What may be one of
    several virtual disks with one serial number is no drive that could be known again."""
    if isinstance(own, list) and any(not each.kept for each in own):
        return Known(0, seen)
    for each in (own, read, virtual):
        if isinstance(each, Unknown):
            return each
    assert isinstance(own, list)
    return Known(sum(each.cuts for each in own), seen)


def _lost(own: list[DriveCuts] | Unknown, read: Judged, seen: tuple[Evidence, ...]) -> Judged:
    if isinstance(own, list) and any(each.lost for each in own):
        return Known(True, seen)
    return next((each for each in (own, read) if isinstance(each, Unknown)), Known(False, seen))


def _line(each: DriveCuts) -> str:
    return f"{each.model}, firmware {each.firmware}: {each.lost} of {each.cuts} power cuts lost flushed data"


# -- what so many cuts prove ----------------------------------------------------------------------------------------


def bounds(lost: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact bounds of a share of which lost of n were seen (Clopper and Pearson, 1934): one-sided where nothing or all was
    lost, else two-sided."""
    if not n:
        return 0.0, 1.0
    error = 1 - confidence
    if lost == 0:
        return 0.0, 1 - error ** (1 / n)
    if lost == n:
        return error ** (1 / n), 1.0
    low = _solve(lambda share: 1 - _at_most(lost - 1, n, share), error / 2)
    return low, _solve(lambda share: 1 - _at_most(lost, n, share), 1 - error / 2)


def _solve(rising: Callable[[float], float], value: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < value else (low, middle)
    return (low + high) / 2


def _at_most(count: int, n: int, share: float) -> float:
    if not 0 < share < 1:
        return float(share <= 0)
    logs = math.log(share), math.log1p(-share)
    first = math.lgamma(n + 1)
    return sum(
        math.exp(first - math.lgamma(each + 1) - math.lgamma(n - each + 1) + each * logs[0] + (n - each) * logs[1])
        for each in range(count + 1)
    )
