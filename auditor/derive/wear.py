"""How much of its rated endurance a drive has used, how long the rest lasts, and whether its spare blocks run out.

NVMe drives report both (SMART / Health Information log page), SAS and SATA drives the first; attributes of vendors are
not read, because their scale is not the same from one to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from auditor.derive.combine import every
from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, flag, join, number, unknown

SUBJECT = "disk"
FACTS = {
    "wear_percent": number("rated endurance used; may exceed 100"),
    "endurance_left_days": number(
        "days until all of it is used at the pace of its hours so far; of a drive that has used 2 % or more"
    ),
    "counts_wear": flag("it reports its wear in a form that all vendors share"),
    "spare_low": flag("its spare blocks are within 10 % of the threshold at which it warns"),
}
USED = ("nvme_percent_used", "smart_percent_used")
HOURS = ("nvme_power_on_hours", "smart_power_on_hours")
LEAST = 2  # percent; the drive rounds, so that 1 % may be hardly anything
SPARE = (
    ("nvme_available_spare_percent", "nvme_available_spare_threshold_percent"),
    ("smart_available_spare_percent", "smart_available_spare_threshold_percent"),
)
MARGIN = 10


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """All facts of FACTS."""
    used = _first(disk, facts, USED)
    yield Fact(disk, "wear_percent", used)
    yield Fact(disk, "endurance_left_days", _days_left(used, _first(disk, facts, HOURS)))
    yield Fact(disk, "counts_wear", _counts(used, facts.get(disk, "smart_attributes_named")))
    yield Fact(disk, "spare_low", _spare_low(disk, facts))


def _first(disk: Subject, facts: Facts, names: Iterable[str]) -> Judged:
    missing = []
    for name in names:
        found = facts.get(disk, name)
        if isinstance(found, Known):
            return found
        missing.append(found)
    return join(missing)


def _days_left(used: Judged, hours: Judged) -> Judged:
    pair = every((used, hours))
    if isinstance(pair, Unknown):
        return pair
    percent, on = (each.value for each in pair)
    assert isinstance(percent, int)
    assert isinstance(on, int)
    if percent < LEAST:
        return unknown(f"only {percent} % of its endurance is used: too little to tell its pace")
    return Known(max(100 - percent, 0) * on // percent // 24, pair[0].evidence + pair[1].evidence)


def _counts(used: Judged, named: Judged) -> Judged:
    """named is known of a SATA drive whose SMART attributes were read, beside which its wear would stand."""
    if isinstance(used, Known):
        return Known(True, used.evidence)
    return Known(False, named.evidence) if isinstance(named, Known) else used


def _spare_low(disk: Subject, facts: Facts) -> Judged:
    protocol = facts.get(disk, "smart_protocol")
    if isinstance(protocol, Known) and protocol.value in ("ATA", "SCSI"):
        return Known(False, protocol.evidence)  # reports no count of spare blocks; what is left shows in the wear
    reasons: list[Unknown] = []
    for names in SPARE:
        pair = every(facts.get(disk, name) for name in names)
        if isinstance(pair, Unknown):
            reasons.append(pair)
            continue
        spare, threshold = pair
        assert isinstance(spare.value, int)
        assert isinstance(threshold.value, int)
        return Known(spare.value <= threshold.value + MARGIN, spare.evidence + threshold.evidence)
    return join(reasons)
