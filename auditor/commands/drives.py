"""``zaudit drives``: what is known of the power-loss protection of a model, what zaudit makes of it, and of a hard disk that it
is shingled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from auditor.commands._options import formats
from auditor.report import document as doc
from auditor.screen import ascii_only, say, width

if TYPE_CHECKING:
    from auditor.data.drives import Drive, Shingled

CONFIDENCE = {
    "A": "named in a primary source",
    "B": "the position of the family is common knowledge; no data sheet was opened",
    "C": "the way from the model to the family is inferred: it counts for little without capacitors that speak",
}
GRADES = {5: "proven", 4: "strong", 3: "declared", 2: "flushed data only", 1: "no protection"}
UNLISTED = (
    "This model is not in the table. That says nothing for or against the drive: zaudit counts it as unprotected, unless the "
    "drive itself says that it has no volatile write cache, and then as protected by its own word alone. A hard disk needs no "
    "protection but a flush that is honoured."
)
SHINGLED = (
    "shingled (SMR), managed by the drive: small writes stall for seconds when its cache is full, and during a resilver it may "
    "be ejected (disk-shingled)"
)
HARD_DISK = "A hard disk, which needs no protection but a flush that is honoured: no grade is given to it."
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("it has a volatile write cache that is on", {"volatile_cache": True, "nvme_vwc_present": True}),
    (
        "it has one and reports its capacitors as healthy",
        {"volatile_cache": True, "nvme_vwc_present": True, "capacitor_ok": True},
    ),
    ("it says that it has none (NVMe, VWC 0)", {"volatile_cache": False, "nvme_vwc_present": False}),
)


@click.command(short_help="What is known about the power-loss protection of a drive model.")
@click.argument("words", nargs=-1, metavar="[MODEL]")
@formats
def drives(words: tuple[str, ...], format_: str) -> None:
    """What is known about the power-loss protection of MODEL (as nvme list, lsblk or smartctl print it) and why, and which
    grade of evidence that makes, depending on what the drive reports about itself. For a part of a name ("990 PRO") the models
    that contain it are listed. Without MODEL: the whole table."""
    from auditor.data import drives as table

    model = " ".join(" ".join(words).split())
    if not model:
        _all(table.load(), format_)
        return
    found, recorded = table.match(model), table.match_shingled(model)
    near = table.near(model) if found is None and recorded is None else ()
    if format_ == "json":
        import json

        say(json.dumps(_document(model, found, recorded, near), indent=1))
    else:
        from auditor.report import terminal

        blocks = _page(model, found, recorded, near)
        say(terminal.fragment(blocks, width=min(width(), 100), ascii_only=ascii_only()))


def _grades(found: Drive | None) -> Iterator[tuple[str, int | None]]:
    """(what the drive says, grade, if there is one): the derivation itself is asked."""
    from auditor.facts import Fact, Facts, Subject, known, value_of
    from auditor.model.disk import NOT_IN_TABLE
    from auditor.model.write_cache import plp_grade

    disk = Subject("disk", "nvme0n1")
    given = {"drive_class": found.plp if found else NOT_IN_TABLE, "virtual": False, "hdd": False}
    if found:
        given["drive_confidence"] = found.confidence
    for says, facts_of in CASES:
        facts = Facts()
        for name, value in {**given, "nvme_critical_warning": 0, **facts_of}.items():
            facts.put(Fact(disk, name, known(value, f"{name}={value}")))
        (grade,) = (value_of(fact.value) for fact in plp_grade.derive(disk, facts) if fact.name == "plp_grade")
        yield says, grade if isinstance(grade, int) else None


def _spelt(grade: int | None) -> str:
    return (
        f"grade {grade}, {GRADES[grade]}"
        if grade
        else "no grade (what the table and the drive say does not go together)"
    )


def _virtual(found: Drive | None) -> bool:
    return found is not None and found.plp in ("virtual", "ephemeral")


def _page(
    model: str, found: Drive | None, recorded: Shingled | None, near: Sequence[tuple[Drive, str]]
) -> Iterator[doc.Block]:
    from auditor.model.disk import SAYS

    def fields(*rows: tuple[str, str]) -> doc.Section:
        return doc.section("", [doc.labelled(rows, at=12)])

    yield doc.Say(model)
    if recorded:
        yield fields(("Recording", SHINGLED), ("Family", recorded.family), ("Source", recorded.source))
        yield fields(("Means", HARD_DISK))
        return
    if found is None:
        similar = (f"{example} ({drive.family}): {drive.plp}" for drive, example in near)
        yield fields(("Class", UNLISTED), *(("" if i else "Similar", text) for i, text in enumerate(similar)))
    else:
        yield fields(
            ("Class", f"{found.plp}: {SAYS[found.plp]}"),
            ("Family", found.family),
            ("Confidence", f"{found.confidence}: {CONFIDENCE[found.confidence]}"),
            ("Source", found.source),
            ("Pattern", found.pattern),
        )
    if _virtual(found):
        yield fields(
            ("Means", "No drive that can be seen from here: protection is decided where the volume comes from.")
        )
        return
    yield fields(
        *(("" if i else "Means", f"{_spelt(grade)}, when {says}") for i, (says, grade) in enumerate(_grades(found)))
    )
    yield fields(("", "5 is proven, 4 strong, 3 declared, 2 flushed data only, 1 none. zaudit check asks the drive."))


def _document(
    model: str, found: Drive | None, recorded: Shingled | None, near: Sequence[tuple[Drive, str]]
) -> dict[str, Any]:
    keys = {"class": "plp", **{key: key for key in ("family", "confidence", "source", "pattern")}}
    graded = () if recorded or _virtual(found) else _grades(found)
    return {
        "model": model,
        "in_table": found is not None,
        "similar": [{"model": example, "family": drive.family, "class": drive.plp} for drive, example in near],
        "drive": {key: getattr(found, name) for key, name in keys.items()} if found else None,
        "shingled": {"family": recorded.family, "source": recorded.source} if recorded else None,
        "grades": [{"when": says, "grade": grade} for says, grade in graded],
    }


def _all(entries: tuple[Drive, ...], format_: str) -> None:
    """The table, in the order in which it is tried."""
    rows = [(each.plp, each.confidence, each.family, each.examples[0]) for each in entries]
    if format_ == "json":
        import json

        names = ("class", "confidence", "family", "example")
        say(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=1))
        return
    for plp, confidence, family, example in rows:
        say(f"{plp:<19}{confidence}  {family} ({example})"[: width()])
    say(f"{len(rows)} families; zaudit drives MODEL says what is known of one model")


COMMAND = drives
