"""Whether a disk has a volatile write cache that is on: what it acknowledged can be lost until it is flushed.

The drive's own word decides (NVMe: VWC and Feature 6; SATA: IDENTIFY DEVICE through hdparm and smartctl). The kernel's
``write_cache`` counts only when it says "write back": "write through" can be written there by anyone, and is what the
kernel assumes of a SCSI disk without a caching mode page. What a virtual disk denies proves nothing: its host may
cache. So True needs one witness, False needs the word of a drive that can be seen, and a drive that contradicts itself
is unknown. (Linux Documentation/ABI/stable/sysfs-block; drivers/scsi/sd.c; NVM Express Base Specification, VWC)

A zvol and a loop device keep what they get in memory until they are flushed, whatever their queue says: unless what is below
them has sync=always. (OpenZFS module/os/linux/zfs/zvol_os.c zvol_write; Linux drivers/block/loop.c)

Held by a property test: with fewer facts a known answer stays, becomes unknown, or turns from False to True, never from
True to False; an unknown becomes False only where the fact that went was half of a contradiction.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import about
from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, flag, is_true, join, unknown

SUBJECT = "disk"
FACTS = {"volatile_cache": flag("it has a volatile write cache, and the cache is on")}
NVME = ("nvme_vwc_present", "nvme_ns_vwc_absent", "nvme_write_cache")
SCSI = ("smart_write_cache", "hdparm_write_cache")
KERNEL = ("sysfs_write_cache", "scsi_cache_type", "virtio_cache_type")
IN_MEMORY = frozenset({"zvol", "loop"})


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    match facts.get(disk, "transport"):
        case Known(str(kind)) as made if kind in IN_MEMORY:
            yield Fact(disk, "volatile_cache", _in_memory(disk, made, facts))
        case _:
            yield Fact(disk, "volatile_cache", _seen(disk, facts, _said(disk, facts)))


def _in_memory(disk: Subject, made: Known, facts: Facts) -> Judged:
    below = facts.get(disk, "lies_on")
    syncs = [(each, facts.get(each, "sync")) for each in facts.linked(disk, "lies_on")]
    if isinstance(below, Known) and not syncs:
        return Known(True, (*made.evidence, *below.evidence))
    for dataset, sync in syncs:
        if isinstance(sync, Known) and sync.value != "always":
            return Known(True, (*made.evidence, *about(dataset, sync)))
    if unknowns := [each for each in (below, *(sync for _, sync in syncs)) if isinstance(each, Unknown)]:
        return join(unknowns)
    return Known(
        False, tuple(piece for dataset, sync in syncs if isinstance(sync, Known) for piece in about(dataset, sync))
    )


def _seen(disk: Subject, facts: Facts, said: Judged) -> Judged:
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


def _said(disk: Subject, facts: Facts) -> Judged:
    """What the drive and the kernel say."""
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
    return join([said, *through])


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
            return join([unknown(f"{disk} has a volatile write cache; whether it is on is not known"), why])
        case _:
            return join([each for each in (present, enabled) if isinstance(each, Unknown)])


def _scsi(disk: Subject, facts: Facts) -> Judged:
    """The two ways to ask the drive have to agree."""
    answers = [facts.get(disk, name) for name in SCSI]
    said = [each for each in answers if isinstance(each, Known)]
    if not said:
        return join([each for each in answers if isinstance(each, Unknown)])
    evidence = tuple(line for each in said for line in each.evidence)
    if len({each.value for each in said}) > 1:
        return unknown(f"{disk}: on or off? " + " but ".join(f"{line.text} ({line.command})" for line in evidence))
    return Known(said[0].value, evidence)
