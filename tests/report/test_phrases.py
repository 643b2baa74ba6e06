"""What the page says of events is what the table says, no more and no less."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from auditor import rulebook
from auditor.judge.event import EVENTS, KEPT, Cell, Word
from auditor.judge.event_table import Column
from auditor.report import model, phrases
from tests.folded import for_each
from tests.golden import report_of
from tests.shared import HOSTS

RULES = {rule.id: rule for rule in rulebook.load(examples=False)}


def column(**takes: Any) -> Column:
    """takes: of the events at which something is lost."""
    lost = {event: Cell("lost", taken) for event, taken in takes.items()}
    return Column(("tank",), {event: lost.get(event, KEPT) for event in EVENTS})


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            [column(process=("commits",), crash=("commits", "consistency"), power=("commits", "consistency"))],
            "KILLING THE DATABASE LOSES ACKNOWLEDGED COMMITS, A CRASH OR POWER CUT ALSO CORRUPTS THE DATABASE",
        ),
        (
            [column(process=("commits",), crash=("commits",), power=("commits",)), column(power=("commits", "pool"))],
            "KILLING THE DATABASE LOSES ACKNOWLEDGED COMMITS, A POWER CUT ALSO LOSES THE POOL",
        ),
        (
            [column(crash=("consistency",), power=("consistency",)), column(power=("commits", "pool"))],
            "A CRASH OR POWER CUT CORRUPTS THE DATABASE, A POWER CUT ALSO LOSES ACKNOWLEDGED COMMITS AND THE POOL",
        ),
        ([column(power=("commits", "pool"))], "A POWER CUT LOSES ACKNOWLEDGED COMMITS AND THE POOL"),
    ],
)
def test_the_headline_says_of_each_event_what_goes_at_it(columns: list[Column], said: str) -> None:
    assert phrases.headline(columns) == said


@pytest.mark.parametrize(
    ("amounts", "said"),
    [
        (["up to 15 s of commits", "up to 15 s of commits"], "LOSES up to 15 s of commits"),
        (["up to 15 s of commits", "the last groups"], "LOSES up to 15 s of commits and the last groups"),
        (["up to 15 s of commits", ""], "LOSES commits"),
    ],
)
def test_an_amount_covers_all_that_take_commits(amounts: list[str], said: str) -> None:
    assert phrases.sentence(Cell("lost", ("commits",), amounts=tuple(dict.fromkeys(amounts)))) == said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([Word("drive", ("sda", "sdb"))], "sda and sdb (not verified)"),
        ([Word("drive", ("sda", "sdb"), needed=1)], "either sda or sdb (not verified)"),
        ([Word("drive", ("sda", "sdb", "sdc"), needed=1)], "one of sda, sdb and sdc (not verified)"),
        ([Word("drive", ("sda", "sdb", "sdc"), needed=2)], "2 of sda, sdb and sdc (not verified)"),
        ([Word("drive", tuple(f"sd{each}" for each in "abcdef"))], "sda, sdb, sdc, sdd and 2 more (not verified)"),
        ([Word("hypervisor"), Word("shutdown", ("tank/db",))],
         "the hypervisor and the shutdown unmounting tank/db (not verified)"),
        ([Word("hypervisor", (), "ann", date(2027, 1, 1)), Word("drive", ("sda",))],
         "sda (not verified) and the hypervisor, for which ann answers until 2027-01-01"),
    ],
)  # fmt: skip
def test_what_is_relied_on(words: list[Word], said: str) -> None:
    cell = Cell("word", parties=tuple(words))
    assert phrases.sentence(cell) == f"no loss, relies on {said}"


@for_each("rule", sorted(each.id for each in RULES.values() if not each.fix.command))
def test_the_first_sentence_of_what_to_do_can_be_done(rule: str) -> None:
    """It stands on the page alone where no command does it."""
    said = phrases.first_sentences(RULES[rule].fix.text)
    assert len(said.split()) > 2
    assert not said.startswith("No release")


def test_what_protects_pages_is_said_of_each_database() -> None:
    fix = RULES["torn-page-guard-off"].fix
    said = " ".join(phrases.first_sentences(each.text) for each in (fix, *(case for case, _ in fix.cases)))
    assert "full_page_writes" in said
    assert "innodb_doublewrite" in said


def test_the_next_step_can_be_pasted() -> None:
    """Or it is the page of the rule, where the command has a word that stands for a device."""
    report = report_of(HOSTS / "2.1-slog-striped")
    striped = [each for each in report.findings if each.rule.id == "slog-no-redundancy"]
    assert [phrases.commands(each) for each in striped] != [[]]
    assert model._next_step(report.targets, striped) == "zaudit explain slog-no-redundancy"


def test_of_several_subjects_a_merged_rule_says_the_case_of_the_first() -> None:
    found = {each.rule.id: each for each in report_of(HOSTS / "2.1-slog-striped").findings if each.failed}
    said = phrases.statement(found["slog-no-redundancy"])
    assert said.startswith(
        "log vdev nvme-QEMU_NVMe_Ctrl_LABNVME2 of pool tank is a single disk, and the log is striped"
    )
    assert said.endswith("; and 1 more like it")
    assert phrases.statement(found["atime-on"]) == RULES["atime-on"].title
