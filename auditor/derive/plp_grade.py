"""How good the evidence is that a drive keeps what it acknowledged when the power goes: a grade from 1 to 5.

5 proven     no volatile cache (NVMe) and capacitors that report themselves healthy, no failure bit, class plp-full
4 strong     class plp-full and healthy capacitors, or class plp-full (confidence A or B) and no volatile cache (NVMe)
3 declared   one of the two alone: class plp-full, or the drive's word that it has no volatile cache
2            class data-at-rest-only and a volatile cache: flushed data survives, if the flush arrives
1            class none or a model that is not in the table, and a volatile cache; or protection that has failed
No grade (unknown): no word of the drive about its cache, a table and a drive that contradict each other, a virtual disk
(decided where it comes from), and a hard disk, which needs none: disk.hdd. Whether flushes arrive is not its question:
leaf.flush_path_intact. A clear failure bit proves no protection; it only lifts 4 to 5.

Capacitors speak through an ATA attribute, or through the extended SMART log of datacenter NVMe drives (OCP, C0h). There 0 is
failed, and 100 and more is good where the drive has finished every power cut; what lies between, and a power cut that it
did not finish, proves neither.

Held by a property test: with fewer facts a grade stays, falls or becomes unknown; it rises only when the fact that went
was the failure itself, or the half of a contradiction.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, is_true, join, number, unknown

SUBJECT = "disk"
FACTS = {
    "plp_grade": number("evidence for power-loss protection, from 1 (none) to 5 (proven); 3 is declared"),
    "plp_failed": flag("the drive reports that its power-loss protection failed"),
    "plp_silent": flag("the drive has no report about its power-loss protection, neither good nor bad"),
}
BACKUP_FAILED = 0x10  # critical warning bit 4: volatile memory backup device failed
WARNINGS = ("nvme_critical_warning", "smart_nvme_critical_warning")
BACKUPS = ("nvme_backup_failed", "smart_nvme_backup_failed")
ABSENT = (("nvme_vwc_present", False), ("nvme_ns_vwc_absent", True))
OCP = ("ocp_capacitor_health", "ocp_incomplete_shutdowns")
READS = (
    "drive_class",
    "drive_confidence",
    "virtual",
    "hdd",
    "volatile_cache",
    "capacitor_ok",
    "capacitor_attribute",
    *OCP,
)


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """plp_failed, plp_silent and plp_grade."""
    failed = _failed(disk, facts)
    yield Fact(disk, "plp_failed", failed)
    yield Fact(disk, "plp_silent", _silent(disk, facts, failed))
    yield Fact(disk, "plp_grade", _grade(disk, facts, failed))


def _backup(disk: Subject, facts: Facts) -> list[tuple[bool, Known]]:
    """(bit 4 is set, fact) of every look at the critical warning."""
    found = []
    for name in (*WARNINGS, *BACKUPS):
        match facts.get(disk, name):
            case Known(bool(bit)) as fact:
                found.append((bit, fact))
            case Known(int(bits)) as fact:
                found.append((bool(bits & BACKUP_FAILED), fact))
    return found


def _capacitors(disk: Subject, facts: Facts) -> list[Known]:
    """What each source says of the capacitors: good or not."""
    attribute = facts.get(disk, "capacitor_ok")
    found = [attribute] if isinstance(attribute, Known) else []
    match facts.get(disk, OCP[0]), facts.get(disk, OCP[1]):
        case Known(0, evidence), _:
            found.append(Known(False, evidence))
        case Known(int() as percent, evidence), Known(0, finished) if percent >= 100:
            found.append(Known(True, (*evidence, *finished)))
    return found


def _failed(disk: Subject, facts: Facts) -> Judged:
    """One report of a failure is enough; no report at all is unknown, unless there is nothing that could fail: a drive that
    says nothing about its capacitors does not say that they are good."""
    reports = _backup(disk, facts) + [(not capacitor.value, capacitor) for capacitor in _capacitors(disk, facts)]
    bad = [fact for failed, fact in reports if failed]
    if bad:
        return Known(True, _evidence(*bad))
    for name, value in (("hdd", True), ("drive_class", "none")):
        if nothing := _if(disk, facts, name, value):
            return Known(False, _evidence(nothing))
    match facts.get(disk, "virtual"):
        case Known(True):
            return _elsewhere(disk)
        case Unknown() as why:
            return why
    if reports:
        return Known(False, _evidence(*(fact for _, fact in reports)))
    if silence := _if(disk, facts, "capacitor_attribute", False):
        return unknown(f"the drive does not report on its power-loss protection ({_text(silence)})")
    silent = [fact for name in (WARNINGS[0], "capacitor_ok") if isinstance(fact := facts.get(disk, name), Unknown)]
    return join(silent)


def _silent(disk: Subject, facts: Facts, failed: Judged) -> Judged:
    """Whether there is nothing that could ever tell: all its attributes are known by name, and none is about capacitors."""
    if isinstance(failed, Known):
        return Known(False, failed.evidence)
    silence = _if(disk, facts, "capacitor_attribute", False)
    return Known(True, silence.evidence) if silence and _if(disk, facts, "virtual", False) else failed


def _grade(disk: Subject, facts: Facts, failed: Judged) -> Judged:
    if is_true(failed):
        return Known(1, failed.evidence)
    table, virtual, hdd = (facts.get(disk, name) for name in ("drive_class", "virtual", "hdd"))
    match virtual, hdd:
        case Known(True), _:
            return _elsewhere(disk)
        case Known(), Known(True):
            return unknown(f"{disk} is a hard disk: a flush that is honoured is all that it needs")
    if isinstance(table, Unknown) or isinstance(virtual, Unknown) or isinstance(hdd, Unknown):
        return join([each for each in (table, virtual, hdd) if isinstance(each, Unknown)])
    absent = next((fact for name, value in ABSENT if (fact := _if(disk, facts, name, value))), None)
    healthy = next((each for each in _capacitors(disk, facts) if each.value is True), None)
    if table.value == "plp-full":
        return _full(disk, facts, table, absent, healthy)
    if absent and table.value != "none":
        return Known(3, _evidence(table, absent))
    if absent:
        return unknown(f"{_text(table)}; but the drive says that it has no volatile write cache ({_text(absent)})")
    if healthy and table.value != "data-at-rest-only":
        return unknown(f"{_text(table)}; but the drive reports healthy capacitors ({_text(healthy)}): for what?")
    cache = facts.get(disk, "volatile_cache")
    present = _if(disk, facts, "nvme_vwc_present", True)
    if isinstance(cache, Unknown) and present is None:
        return cache
    seen = [fact for fact in (cache, present) if isinstance(fact, Known)]
    return Known(2 if table.value == "data-at-rest-only" else 1, _evidence(table, *seen))


def _full(disk: Subject, facts: Facts, table: Known, absent: Known | None, healthy: Known | None) -> Known:
    """Class plp-full: 5, 4 or 3. An inferred class (confidence C) is strong only with capacitors that speak."""
    clear = [fact for _, fact in _backup(disk, facts)]
    sure = _if(disk, facts, "drive_confidence", "A") or _if(disk, facts, "drive_confidence", "B")
    if absent and healthy and clear:
        return Known(5, _evidence(table, absent, healthy, *clear))
    if healthy:
        return Known(4, _evidence(table, healthy, *([absent] if absent else [])))
    if absent:
        return Known(4 if sure else 3, _evidence(table, absent))
    return Known(3, table.evidence)


def _if(disk: Subject, facts: Facts, name: str, value: bool | str) -> Known | None:
    """The fact, when it is known and has this value."""
    fact = facts.get(disk, name)
    return fact if isinstance(fact, Known) and fact.value == value else None


def _text(fact: Known) -> str:
    return fact.evidence[0].text if fact.evidence else str(fact.value)


def _elsewhere(disk: Subject) -> Unknown:
    return unknown(f"{disk} is a virtual disk: power-loss protection is decided on its host")


def _evidence(*known: Known) -> tuple[Evidence, ...]:
    """All the evidence, each once."""
    return tuple(dict.fromkeys(line for fact in known for line in fact.evidence))
