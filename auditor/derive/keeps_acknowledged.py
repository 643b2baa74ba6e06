"""Whether a disk keeps what it has acknowledged when the power goes: it has no volatile cache that is on, or its cache is known
or declared to be protected (:mod:`.plp_grade`). A hard disk and a virtual disk are judged by this like any other."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import every, evidence
from auditor.facts import Fact, Facts, Known, Subject, Unknown, flag

SUBJECT = "disk"
FACTS = {"keeps_acknowledged": flag("what it has acknowledged outlives the power, flushed or not")}
DECLARED = 3  # of plp_grade


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    cache, grade = (facts.get(disk, name) for name in ("volatile_cache", "plp_grade"))
    if isinstance(cache, Known) and cache.value is False:
        yield Fact(disk, "keeps_acknowledged", Known(True, cache.evidence))
    elif isinstance(grade, Known) and isinstance(grade.value, int) and grade.value >= DECLARED:
        yield Fact(disk, "keeps_acknowledged", Known(True, grade.evidence))
    else:
        seen = every((cache, grade))
        told = seen if isinstance(seen, Unknown) else Known(False, evidence(*seen))
        yield Fact(disk, "keeps_acknowledged", told)
