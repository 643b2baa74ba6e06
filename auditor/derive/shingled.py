"""Whether the model of a drive is one of those that shingled.toml names, or it is a hard disk that takes TRIM, for which only
shingled ones have a use. (Western Digital, white paper of June 2020: Trim Command, General Benefits for Hard Disk Drives)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import shingled
from auditor.facts import Evidence, Fact, Facts, Known, Subject, Unknown, word

SUBJECT = "disk"
FACTS = {
    "shingled_family": word(
        "the family of hard disks known to be shingled that its model is of, or that it takes TRIM, or empty"
    )
}
BY_TRIM = "hard disk that takes TRIM"


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """Of a model that is not in the table, and takes no TRIM, nothing is known here."""
    model = facts.get(disk, "model")
    if isinstance(model, Unknown):
        yield Fact(disk, "shingled_family", model)
        return
    if found := shingled.match(str(model.value)):
        seen = (Evidence(f"{found.family} ({found.source})"), *model.evidence)
        yield Fact(disk, "shingled_family", Known(found.family, seen))
        return
    match facts.get(disk, "hdd"), facts.get(disk, "smart_trim"):
        case Known(True) as hdd, Known(True) as trim:
            yield Fact(disk, "shingled_family", Known(BY_TRIM, (*trim.evidence, *hdd.evidence)))
        case _:
            yield Fact(disk, "shingled_family", Known("", model.evidence))
