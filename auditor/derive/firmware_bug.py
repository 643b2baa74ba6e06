"""Whether the firmware of a drive is one of those that firmware.toml warns of."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import firmware
from auditor.derive.combine import evidence, values
from auditor.facts import Evidence, Fact, Facts, Known, Subject, Unknown, word

SUBJECT = "disk"
FACTS = {"firmware_bug": word("what its firmware does to it, and the first revision that does not; or empty")}


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """A drive that is not in the table has no bug that is known here."""
    found = values(facts, disk, "model", "firmware")
    if isinstance(found, Unknown):
        yield Fact(disk, "firmware_bug", found)
        return
    model, revision = found
    bug = firmware.match(str(model.value), str(revision.value))
    if bug:
        text = f"{bug.harm}; fixed in {bug.fixed}"
        yield Fact(disk, "firmware_bug", Known(text, (Evidence(f"{text} ({bug.source})"), *evidence(model, revision))))
    else:
        yield Fact(disk, "firmware_bug", Known("", evidence(model, revision)))
