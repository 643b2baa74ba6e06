"""firmware.toml: every entry finds its own example and lets the mended revision pass; the loader refuses what is wrong."""

from __future__ import annotations

import pytest

from auditor import data
from auditor.data import TableError, firmware
from auditor.data.firmware import Bug
from auditor.facts import Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.model.disk import firmware_bug, identity

DISK = Subject("disk", "sda")
ENTRY = """
[[firmware]]
model = "X"
firmware = "1"
harm = "dies"
fixed = "2"
source = "here"
example = ["X", "1", "2"]
"""


@pytest.mark.parametrize("bug", firmware.load(), ids=[bug.example[0] for bug in firmware.load()])
def test_an_entry_matches_its_example_and_not_the_mended_revision(bug: Bug) -> None:
    model, bad, good = bug.example
    assert firmware.match(model, bad) is bug
    assert firmware.match(f" ATA {model.lower()} ", f" {bad} ") is bug
    assert firmware.match(model, good) is None
    assert firmware.match(model, bug.fixed) is None
    assert firmware.match("EXAMPLE DRIVE", bad) is None


def judged(model: object, revision: object) -> Known | Unknown:
    facts = Facts()
    for name, value in (("model", model), ("firmware", revision)):
        facts.put(Fact(DISK, name, unknown("not asked") if value is None else known(str(value), str(value))))
    return next(fact.value for fact in firmware_bug.derive(DISK, facts))


def test_the_derived_fact_says_what_happens_and_what_mends_it() -> None:
    found = judged("HP VO0480JFDGT", "HPD5")
    assert isinstance(found, Known)
    assert "32,768 hours" in str(found.value)
    assert "HPD8" in str(found.value)
    assert any("HPE" in each.text for each in found.evidence)
    good = judged("HP VO0480JFDGT", "HPD9")
    assert isinstance(good, Known)
    assert good.value == ""


def test_without_model_or_revision_it_is_unknown() -> None:
    assert isinstance(judged(None, "HPD5"), Unknown)
    assert isinstance(judged("HP VO0480JFDGT", None), Unknown)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("harm", "hurm"), "missing or unknown harm, hurm"),
        (('"dies"', "7"), "all values are texts"),
        (('["X", "1", "2"]', '["X"]'), "example has three"),
        (('model = "X"', 'model = "("'), "entry 1"),
        (("[[firmware]]", "[[firmwere]]"), r"expected \[\[firmware\]\]"),
        (('fixed = "2"', "fixed = "), "firmware.toml"),
    ],
)
def test_a_wrong_table_is_an_error(change: tuple[str, str], says: str) -> None:
    assert len(firmware.parse(data.toml(firmware.FILE, ENTRY))) == 1
    with pytest.raises(TableError, match=says):
        firmware.parse(data.toml(firmware.FILE, ENTRY.replace(*change)))


def revision(**said: str) -> Known | Unknown:
    facts = Facts()
    for name, text in said.items():
        facts.put(Fact(DISK, name, known(text, text)))
    return next(fact.value for fact in identity.derive(DISK, facts) if fact.name == "firmware")


def test_the_four_characters_that_the_kernel_gives_of_a_sata_drive_are_no_revision() -> None:
    assert isinstance(revision(sysfs_vendor="ATA     ", sysfs_firmware="GXA7"), Unknown)
    whole = revision(sysfs_vendor="ATA     ", sysfs_firmware="GXA7", udev_firmware="3B2QGXA7")
    assert isinstance(whole, Known)
    assert whole.value == "3B2QGXA7"
    asked = revision(sysfs_vendor="ATA     ", sysfs_firmware="GXA7", smart_firmware="5B2QGXA7", udev_firmware="x")
    assert isinstance(asked, Known)
    assert asked.value == "5B2QGXA7"
    sas = revision(sysfs_vendor="HP      ", sysfs_firmware="HPD7")
    assert isinstance(sas, Known)
    assert sas.value == "HPD7"
