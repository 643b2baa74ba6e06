"""The critical warning of an NVMe drive, whoever read it: nvme-cli or smartctl. One that says it is enough.

(NVM Express Base Specification, SMART / Health Information log page: Critical Warning, bits 0, 2 and 3)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import evidence
from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, flag, join

SUBJECT = "disk"
FACTS = {
    "warns_spare_low": flag("the spare blocks run out (bit 0)"),
    "warns_unreliable": flag("reliability is degraded by media or internal errors (bit 2)"),
    "warns_read_only": flag("it has made itself read-only (bit 3)"),
}
BITS = {
    "warns_spare_low": ("nvme_spare_low", 1),
    "warns_unreliable": ("nvme_reliability_degraded", 4),
    "warns_read_only": ("nvme_media_read_only", 8),
}


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """Each bit by both witnesses."""
    said = facts.get(disk, "smart_nvme_critical_warning")
    for name, (of_nvme, bit) in BITS.items():
        yield Fact(disk, name, _either(facts.get(disk, of_nvme), said, bit))


def _either(flag_: Judged, warning: Judged, bit: int) -> Judged:
    seen = [flag_] if isinstance(flag_, Known) else []
    if isinstance(warning, Known) and isinstance(warning.value, int):
        seen.append(Known(bool(warning.value & bit), warning.evidence))
    if not seen:
        return join([each for each in (flag_, warning) if isinstance(each, Unknown)])
    worst = [each for each in seen if each.value is True]
    return Known(bool(worst), evidence(*(worst or seen)))
