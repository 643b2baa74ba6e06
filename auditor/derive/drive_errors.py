"""What a drive counts of its own errors: what it could not read.

The counters differ by protocol: SMART attributes of SATA drives, which count only where smartctl knows what the model means
by them (198 is "Offline_Uncorrectable" of a hard disk and "Host_Reads_GiB" of some SSDs), the error counter log of SAS
drives, the health log of NVMe drives. A drive that keeps no such counter is not asked: counts_unreadable is false then.
(smartmontools drivedb.h, smartd.conf(5) -C, -U; NVM Express Base Specification, Media and Data Integrity Errors)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import evidence
from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, flag, is_true, join, number, unknown

SUBJECT = "disk"
ATA = ("smart_pending_sectors", "smart_offline_uncorrectable")
COUNTERS = (*ATA, "smart_uncorrected_errors", "smart_media_errors", "nvme_media_errors")  # the largest counts
FACTS = {
    "unreadable": number("sectors or commands of which the drive could not get the data back"),
    "counts_unreadable": flag("the drive keeps such a counter, and what it means is known"),
}
# one of them is in every answer of a drive that keeps such counters at all
WITNESSES = (
    "smart_attributes_named",
    "smart_uncorrected_errors",
    "smart_nvme_critical_warning",
    "nvme_critical_warning",
)


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """Both."""
    witnesses = [facts.get(disk, name) for name in WITNESSES]
    answered = next((each for each in witnesses if isinstance(each, Known)), None)
    found = [each for each in (_counter(disk, facts, counter) for counter in COUNTERS) if each is not None]
    known = [each for each in found if isinstance(each, Known)]
    if known:
        most = max(known, key=_count)
        seen = evidence(*(each for each in known if _count(each) == _count(most)))
        yield Fact(disk, "unreadable", Known(most.value, seen))
        yield Fact(disk, "counts_unreadable", Known(True, most.evidence))
        return
    silent = unknown(f"{disk.name} does not report what it could not read")
    why = join([each for each in found or witnesses if isinstance(each, Unknown)] or [silent])
    yield Fact(disk, "unreadable", why)
    yield Fact(disk, "counts_unreadable", Known(False, answered.evidence) if answered and not found else why)


def _counter(disk: Subject, facts: Facts, name: str) -> Judged | None:
    """Its value; why it means nothing; or None where the drive does not report it."""
    value, named = facts.get(disk, name), facts.get(disk, "smart_attributes_named")
    if not isinstance(value, Known):
        return None
    if name not in ATA or (is_true(named)):
        return value
    if isinstance(named, Unknown):
        return named
    why = f"smartctl does not know the model of {disk.name}: what its attributes count is not known"
    return unknown(why, "update-smart-drivedb")


def _count(found: Known) -> int:
    return found.value if isinstance(found.value, int) else 0
