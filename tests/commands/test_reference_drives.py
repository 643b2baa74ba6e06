"""``zaudit drives``: what is known of a model, and that nothing is made of what is not."""

from __future__ import annotations

import json

from auditor.data import drives
from tests.fake import CommandLine
from tests.folded import for_each


def test_a_model_in_the_table(zaudit: CommandLine) -> None:
    done = zaudit("drives", "INTEL", "SSDPEDMD400G4")
    assert done.code == 0
    for words in (
        "plp-full",
        "Intel DC P3700",
        "named in a primary source",
        "Hardware, NVMe drives",
        "grade 4, strong",
    ):
        assert words in done.out
    assert all(len(line) <= 100 for line in done.out.splitlines())


def test_a_model_that_is_not(zaudit: CommandLine) -> None:
    done = zaudit("drives", "No Such Drive 3000")
    assert done.code == 0
    assert "not in the table" in done.out
    assert "says nothing for or against" in done.out
    found = json.loads(zaudit("drives", "No Such Drive 3000", "--format", "json").out)
    assert (found["in_table"], found["drive"]) == (False, None)
    assert [each["grade"] for each in found["grades"]] == [1, None, 3]


@for_each("entry", drives.load_shingled(), ids=lambda entry: entry.family)
def test_a_hard_disk_that_is_known_to_be_shingled(zaudit: CommandLine, entry: drives.Shingled) -> None:
    model = entry.examples[0]
    said = " ".join(zaudit("drives", *model.split()).out.split())
    assert "shingled (SMR)" in said
    assert entry.family in said
    assert entry.source in said
    assert "not in the table" not in said
    assert "grade 1" not in said
    found = json.loads(zaudit("drives", model, "--format", "json").out)
    assert (found["shingled"]["family"], found["drive"], found["grades"]) == (entry.family, None, [])
    assert drives.match(model) is None
    other = entry.others[0]
    assert json.loads(zaudit("drives", other, "--format", "json").out)["shingled"] is None


def test_what_is_no_drive_has_no_grade(zaudit: CommandLine) -> None:
    assert "decided where the volume comes from" in zaudit("drives", "QEMU NVMe Ctrl").out
    assert json.loads(zaudit("drives", "QEMU NVMe Ctrl", "--format", "json").out)["grades"] == []


@for_each("entry", drives.load(), ids=lambda entry: entry.family)
def test_every_entry_has_a_page(zaudit: CommandLine, entry: drives.Drive) -> None:
    found = json.loads(zaudit("drives", entry.examples[0], "--format", "json").out)
    assert (found["drive"]["class"], found["drive"]["family"]) == (entry.plp, entry.family)
    if entry.plp == "none":
        assert all(each["grade"] in (1, None) for each in found["grades"])


def test_the_whole_table(zaudit: CommandLine) -> None:
    lines = zaudit("drives").out.splitlines()
    assert len(lines) == len(drives.load()) + 1
    assert len(json.loads(zaudit("drives", "--format", "json").out)) == len(drives.load())


def test_a_hostile_model_is_harmless(zaudit: CommandLine) -> None:
    assert "\x1b" not in zaudit("drives", "evil\x1b[2J").out


def test_a_part_of_a_name_lists_the_models_that_hold_it(zaudit: CommandLine) -> None:
    found = json.loads(zaudit("drives", "990", "pro", "--format", "json").out)
    assert (found["in_table"], found["drive"]) == (False, None), "no class is given to what is not this model"
    assert [each["model"] for each in found["similar"]] == ["Samsung SSD 990 PRO 2TB"]
    assert "Samsung SSD 990 PRO 2TB" in zaudit("drives", "990 PRO").out
    (one,) = json.loads(zaudit("drives", "980 PRO", "--format", "json").out)["similar"]
    assert one["class"] == "none", "in no example: the pattern takes it behind its brand"
    assert json.loads(zaudit("drives", "PM9A3", "--format", "json").out)["similar"][0]["class"] == "plp-full"


def test_a_misspelt_model_lists_what_is_spelt_alike(zaudit: CommandLine) -> None:
    found = json.loads(zaudit("drives", "Samsng SSD 990 PR 2TB", "--format", "json").out)
    assert "Samsung SSD 990 PRO 2TB" in [each["model"] for each in found["similar"]]
    for nothing in ("No Such Drive 3000", "a", ""):
        assert drives.near(nothing) == ()
    assert json.loads(zaudit("drives", "Samsung SSD 990 PRO 2TB", "--format", "json").out)["similar"] == []
