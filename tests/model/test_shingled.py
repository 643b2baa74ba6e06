"""The table of shingled hard disks, and what is made of it."""

from __future__ import annotations

import pytest

from auditor import data
from auditor.data import TableError, shingled
from auditor.facts import Fact, Facts, Known, Subject, Unknown, known
from auditor.model.disk import BY_TRIM, shingled_family

SDA = Subject("disk", "sda")
MODELS = [(each, family) for family in shingled.load() for each in family.examples]
OTHERS = [each for family in shingled.load() for each in family.others]


@pytest.mark.parametrize(("model", "family"), MODELS, ids=[model for model, _ in MODELS])
def test_examples_are_of_their_family(model: str, family: shingled.Family) -> None:
    assert shingled.match(model) == family
    assert shingled.match(f"ATA     {model}  ") == family


@pytest.mark.parametrize("model", OTHERS)
def test_others_are_of_none(model: str) -> None:
    assert shingled.match(model) is None


def test_the_fact() -> None:
    facts = Facts()
    facts.put(Fact(SDA, "model", known("ST5000LM000-2AN170", "smartctl")))
    (found,) = [each.value for each in shingled_family.derive(SDA, facts)]
    assert isinstance(found, Known)
    assert found.value == "Seagate BarraCuda 2.5 inch"
    (found,) = [each.value for each in shingled_family.derive(SDA, Facts())]
    assert isinstance(found, Unknown)


@pytest.mark.parametrize(
    ("hdd", "trim", "family"),
    [(True, True, BY_TRIM), (False, True, ""), (True, False, ""), (True, None, ""), (None, True, "")],
)
def test_a_hard_disk_that_takes_trim(hdd: bool | None, trim: bool | None, family: str) -> None:
    facts = Facts()
    facts.put(Fact(SDA, "model", known("WDC WD40EFRX-68N32N0", "smartctl")))
    for name, value in (("hdd", hdd), ("smart_trim", trim)):
        if value is not None:
            facts.put(Fact(SDA, name, known(value, name)))
    (found,) = [each.value for each in shingled_family.derive(SDA, facts)]
    assert isinstance(found, Known)
    assert found.value == family


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[shingled]]\nmodel = 1\n", "missing or unknown"),
        ("[[shingled]]\nmodel='('\nfamily='a'\nsource='b'\nexamples=['c']\nothers=['d']\n", "entry 1: "),
        ("[[shingled]]\nmodel='a'\nfamily='a'\nsource=''\nexamples=['c']\nothers=['d']\n", "are texts"),
        ("[[shingled]]\nmodel='a'\nfamily='a'\nsource='b'\nexamples=[]\nothers=['d']\n", "at least one"),
    ],
)
def test_a_wrong_table_is_an_error(text: str, says: str) -> None:
    with pytest.raises(TableError, match=says):
        shingled.parse(data.toml(shingled.FILE, text))
