"""Whether a drive has a volatile write cache that somebody switched off, which a drive without one has not."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, flag, join, unknown

SUBJECT = "disk"
FACTS = {"cache_switched_off": flag("it has a volatile write cache, and the cache is off")}
ATA = ("smart_write_cache", "hdparm_write_cache")


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """NVMe: VWC says whether there is one, Feature 6 whether it is on. SATA: IDENTIFY DEVICE, asked in two ways."""
    yield Fact(disk, "cache_switched_off", _nvme(disk, facts) if disk.name.startswith("nvme") else _ata(disk, facts))


def _nvme(disk: Subject, facts: Facts) -> Judged:
    present, enabled = facts.get(disk, "nvme_vwc_present"), facts.get(disk, "nvme_write_cache")
    if isinstance(present, Unknown):
        return present
    if present.value is False:
        return Known(False, present.evidence)
    return enabled if isinstance(enabled, Unknown) else Known(not enabled.value, present.evidence + enabled.evidence)


def _ata(disk: Subject, facts: Facts) -> Judged:
    answers = [facts.get(disk, name) for name in ATA]
    said = [each for each in answers if isinstance(each, Known)]
    if not said:
        return join([each for each in answers if isinstance(each, Unknown)])
    if len({each.value for each in said}) > 1:
        return unknown(f"{disk}: smartctl and hdparm do not agree on its write cache")
    return Known(not said[0].value, tuple(piece for each in said for piece in each.evidence))
