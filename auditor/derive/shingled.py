"""Whether the model of a drive is one of those that shingled.toml names."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import shingled
from auditor.facts import Evidence, Fact, Facts, Known, Subject, Unknown, word

SUBJECT = "disk"
FACTS = {"shingled_family": word("the family of hard disks known to be shingled that its model is of, or empty")}
NEEDS = ("disk.model",)


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """Of a model that is not in the table nothing is known here."""
    model = facts.get(disk, "model")
    if isinstance(model, Unknown):
        yield Fact(disk, "shingled_family", model)
        return
    if found := shingled.match(str(model.value)):
        seen = (Evidence(f"{found.family} ({found.source})"), *model.evidence)
        yield Fact(disk, "shingled_family", Known(found.family, seen))
    else:
        yield Fact(disk, "shingled_family", Known("", model.evidence))
