"""The table of events: what the model answers, in the words of a report, and how severe rules are by it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from itertools import product
from typing import Any

import pytest

from auditor import audit
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, unknown
from auditor.judge.event import EVENTS, KEPT, ORDER, Cell, Event, Word, joined, milder
from auditor.judge.event_table import Column, EventTable, Relations
from auditor.judge.finding import exit_code
from auditor.judge.policy import NONE, Answer, Declared, Policy
from auditor.judge.verdict import Verdict
from auditor.judge.waivers import Answers
from auditor.recording import recording
from auditor.report import audit_page as audit_page
from auditor.report import phrases
from auditor.report.model import Report
from tests import shared

# better: more is known. What is relied on is not yet known to be kept
MAY_BECOME: dict[str, set[Any]] = {
    "lost": {"lost"},
    "kept": {"kept"},
    "word": {"word", "kept", "lost"},
    "unknown": {"unknown", "word", "kept", "lost"},
}
HEALTHY = "2.4-healthy-physical-protected-cache"
DISABLED = "2.3-sync-disabled-local"
SINGLE_LOG = "2.1-healthy-single-slog"


def looked(name: str, policy: Policy = NONE) -> audit.Look:
    past = shared.host(name)
    return audit.look(
        recording.ReplayHost(past), past.targets, audit.Options.from_words(past.options)._replace(policy=policy)
    )


def changed(name: str, *facts: Fact) -> Facts:
    """Facts of a recorded host with some of them replaced."""
    seen = looked(name).facts
    for each in facts:
        seen.replace(each)
    return seen


def judged(facts: Facts, policy: Policy = NONE) -> Report:
    return audit.judge(audit.Look(facts, (), policy=policy), shared.audited(), ("tank",), "low")


def columns(facts: Facts) -> tuple[Column, ...]:
    return EventTable(facts).columns((), Answers(NONE, facts))


def cell(found: tuple[Column, ...], name: str, event: Event) -> Cell:
    return next(column for column in found if name in column.names).cells[event]


def severities(report: Report) -> Mapping[str, str]:
    return {each.rule.id: each.severity for each in report.findings if each.failed}


@pytest.mark.parametrize(("first", "second"), list(product(ORDER, repeat=2)))
def test_more_knowledge_never_overturns_an_answer(first: Any, second: Any) -> None:
    """By exhaustion: whatever either of two becomes, the answer becomes what it may become."""
    before: str = joined((Cell(first), Cell(second))).outcome
    assert before == max(first, second, key=("kept", "word", "unknown", "lost").index)
    for one, other in product(MAY_BECOME[first], MAY_BECOME[second]):
        assert joined((Cell(one), Cell(other))).outcome in MAY_BECOME[before]


def test_one_setting_costs_the_dataset_that_has_it() -> None:
    report = judged(looked(DISABLED).facts)
    lost = [event for event in EVENTS if cell(report.columns, "tank/db", event).outcome == "lost"]
    assert lost == ["crash", "power", "power+log", "power+drive", "below"]
    assert cell(report.columns, "tank/db", "crash").takes == ("commits",)
    assert cell(report.columns, "tank/db", "crash").rules == ("sync-disabled",)
    assert cell(report.columns, "tank/db", "crash").amounts == ("up to 5.3 s of commits, more under load",)
    restart = cell(report.columns, "tank/db", "restart")
    assert (restart.outcome, restart.parties) == ("word", (Word("shutdown", ("tank/db",)),))
    assert cell(report.columns, "tank/wal", "crash") == KEPT
    assert severities(report)["sync-disabled"] == "critical"


@pytest.mark.parametrize("name", shared.each_host())
def test_a_graver_event_costs_no_less(name: str) -> None:
    for column in columns(looked(name).facts):
        for event in EVENTS:
            for mild in milder(event):
                assert ORDER[column.cells[mild].outcome] <= ORDER[column.cells[event].outcome], (
                    column.names,
                    mild,
                    event,
                )


@pytest.mark.parametrize("name", shared.each_host())
def test_each_cell_that_is_lost_has_a_rule_that_explains_it(name: str) -> None:
    report = shared.report_of(shared.HOSTS / name)
    bare = [
        (column.names, event)
        for column in report.columns for event in report.events
        if column.cells[event].outcome == "lost" and not column.cells[event].rules
    ]  # fmt: skip
    assert bare == []


def test_a_log_device_that_is_lost_leaves_a_pool_that_imports_only_with_m() -> None:
    found = judged(looked(SINGLE_LOG).facts)
    assert cell(found.columns, "tank/db", "power+log").takes == ("commits", "import")
    assert "LOSES up to" in phrases.sentence(cell(found.columns, "tank/db", "power+log"))
    assert severities(found)["slog-no-redundancy"] == "high"


def test_elements_in_series_carry_the_cell_that_they_hide_from_each_other() -> None:
    """fsync=off below sync=disabled: either alone would cost the commits, and none of them ranks as nothing."""
    server, data = Subject("database", "postgres 1"), Subject("dataset", "tank/db")
    settings: dict[str, Any] = {"engine": "postgres", "fsync": False, "synchronous_commit": "on", "torn_page_guard": True,
                "datasets": (data,), "log_datasets": (data,), "data_datasets": (data,), "off_zfs": (), "forgotten": (),
                "asynchronous_roles": (), "eatmydata": False, "live": True, "process": "1"}  # fmt: skip
    facts = changed(DISABLED, Fact(HOST, "databases", known((server,), "")))
    for name, value in settings.items():
        facts.replace(Fact(server, name, known(value, "")))
    both = severities(judged(facts))
    assert (both["sync-disabled"], both["pg-fsync-off"]) == ("critical", "critical")


def test_where_the_databases_of_a_host_are_unknown_nobody_is_said_to_call_fsync() -> None:
    assert cell(columns(looked(HEALTHY).facts), "tank/db", "process") == KEPT
    unseen = columns(changed(HEALTHY, Fact(HOST, "databases", unknown("/proc: permission denied"))))
    assert {cell(unseen, "tank/db", event).outcome for event in ("process", "crash", "power")} == {"unknown"}


def test_a_database_whose_files_nobody_could_place_may_lie_on_any_dataset() -> None:
    """Any user may start one of that name, with fsync=off and a folder that nobody may look into."""
    server = Subject("database", "postgres 4242")
    facts = changed(HEALTHY, Fact(HOST, "databases", known((server,), "")))
    settings: dict[str, Any] = {"engine": "postgres", "fsync": False, "synchronous_commit": "on", "eatmydata": False}
    for name, value in settings.items():
        facts.replace(Fact(server, name, known(value, "")))
    facts.replace(Fact(server, "datasets", unknown("/home/evil/data: permission denied")))
    found = [cell(columns(facts), name, "crash") for name in ("tank", "tank/db")]
    assert {each.outcome for each in found} == {"unknown"}
    assert {each.unseen for each in found} == {("the dataset of postgres 4242 was not seen",)}
    facts.replace(Fact(server, "fsync", known(True, "")))
    facts.replace(Fact(server, "asynchronous_roles", known((), "")))
    assert {cell(columns(facts), name, "process").outcome for name in ("tank", "tank/db")} == {"kept"}


def test_the_setting_decides_first_where_it_may_lose_pages_of_innodb() -> None:
    """A report without a mechanism keeps the cell unknown; the step removes what it is about."""
    facts = changed(
        "2.3-db-mariadb-doublewrite-off", Fact(Subject("dataset", "tank/db"), "logbias", known("throughput", ""))
    )
    for server in facts.linked(HOST, "databases"):
        facts.replace(Fact(server, "torn_page_guard", known(True, "")))
    report = judged(facts)
    found = cell(report.columns, "tank/db", "crash")
    assert (found.outcome, found.rules) == ("unknown", ("innodb-logbias-throughput",))
    assert (first := phrases.first(report)) is not None
    assert first[1].rule.id == "innodb-logbias-throughput"


def test_a_pool_that_lies_on_itself_says_so() -> None:
    facts = looked(HEALTHY).facts
    for each in facts.linked(Subject("pool", "tank"), "leaves"):
        facts.replace(Fact(each, "lies_on", known((Subject("dataset", "tank/db"),), "")))
        facts.replace(Fact(each, "layers", known(("zvol",), "")))
        facts.replace(Fact(each, "type", known("file", "")))
    found = cell(columns(facts), "tank/db", "power")
    assert (found.outcome, found.unseen) == ("unknown", ("pool tank lies on itself",))


def test_a_pool_that_does_not_work_has_no_table() -> None:
    assert columns(looked("2.3-suspended-path-failed").facts) == ()
    assert phrases.worst(()).outcome == "unknown"


def test_what_a_site_has_declared_to_be_rebuilt_relies_on_the_replicas_and_counts_little() -> None:
    facts = changed(DISABLED, Fact(Subject("dataset", "tank/db"), "role", known("rebuildable", "")))
    report = judged(facts)
    assert cell(report.columns, "tank/db", "crash").outcome == "word"
    assert {each.party for each in cell(report.columns, "tank/db", "crash").parties} == {"replicas"}
    assert severities(report)["sync-disabled-rebuildable"] == "low"


def test_an_answer_of_the_site_says_who_answers_and_changes_no_cell() -> None:
    answered = Answer("hypervisor", "", "", "", "ann", "cache=none", date(2099, 1, 1), 1)
    before, after = (
        judged(looked(DISABLED, policy).facts, policy) for policy in (NONE, NONE._replace(answers=(answered,)))
    )
    for column in after.columns:
        for event in EVENTS:
            assert column.cells[event].outcome == cell(before.columns, column.names[0], event).outcome
    (word,) = cell(after.columns, "tank/wal", "power").parties
    assert (word.party, word.owner) == ("hypervisor", "ann")
    assert "for which ann answers until 2099-01-01" in phrases.sentence(cell(after.columns, "tank/wal", "power"))
    assert "container-or-vm-blind" not in severities(after)


def test_a_row_from_the_next_boot_on_names_what_changes_then() -> None:
    """sync_binlog is 1 in the server and 0 in its files, and the doublewrite is off in both."""
    report = judged(looked("2.3-db-mariadb-doublewrite-off").facts)
    column = next(each for each in report.columns if "tank/db" in each.names)
    assert column.cells["crash"].rules == ("torn-page-guard-off",)
    assert column.next_boot["crash"].takes == ("commits", "consistency")
    assert column.next_boot["crash"].rules == ("db-changes-at-restart",)
    assert severities(report)["db-changes-at-restart"] == "medium"


def test_from_the_next_boot_on() -> None:
    """An option of the next boot is no loss of today, and a line of its own."""
    facts = changed(
        HEALTHY, Fact(HOST, "zil_nocacheflush_boot", known(1, "")), Fact(HOST, "zfs_nocacheflush_boot", known(1, ""))
    )
    for disk in [*facts.subjects("disk")]:
        facts.replace(Fact(disk, "volatile_cache", known(True, "")))
        facts.replace(Fact(disk, "drive_class", known("consumer", "")))
    report = judged(facts)
    (column,) = report.columns
    assert column.cells["power"].outcome == "word"
    assert column.next_boot["power"].outcome == "lost"
    assert report.headline.startswith("AFTER A RESTART OF THE HOST, A POWER CUT LOSES")
    assert (first := phrases.first(report)) is not None
    assert first[1].rule.id == "boot-option-loses-commits"
    said = [line.text for line in phrases.lines(column, ("power",))]
    assert [each.startswith("after a restart of the host: LOSES") for each in said] == [False, True]


def test_an_event_that_cannot_happen_here_is_not_told() -> None:
    assert EventTable(looked("2.4-healthy-raidz1").facts).events == tuple(
        event for event in EVENTS if event not in ("log", "power+log")
    )


TANK, LEAF, DISK = Subject("pool", "tank"), Subject("leaf", "sda1", "tank"), Subject("disk", "sda")
DATASET, SERVER = Subject("dataset", "tank/db"), Subject("database", "postgres 1")


@cache
def linked() -> Facts:
    facts = Facts()
    facts.put(Fact(HOST, "pools", Known((TANK,), ())))
    facts.put(Fact(HOST, "databases", Known((SERVER,), ())))
    facts.put(Fact(TANK, "vdevs", Known((Subject("vdev", "mirror-0", "tank"),), ())))
    facts.put(Fact(LEAF, "disks", Known((DISK,), ())))
    facts.put(Fact(DISK, "used_by", Known((LEAF,), ())))
    facts.put(Fact(LEAF, "vdev", Known(Subject("vdev", "mirror-0", "tank"), ())))
    facts.put(Fact(Subject("vdev", "mirror-0", "tank"), "leaves", Known((LEAF,), ())))
    facts.put(Fact(SERVER, "datasets", Known((DATASET,), ())))
    return facts


@pytest.mark.parametrize(
    ("subject", "other", "wanted"),
    [
        (HOST, DISK, True), (DISK, LEAF, True), (LEAF, DISK, True), (Subject("vdev", "mirror-0", "tank"), DISK, True),
        (LEAF, Subject("vdev", "mirror-0", "tank"), True), (DATASET, SERVER, True), (SERVER, DATASET, True),
        (TANK, LEAF, True), (TANK, DATASET, True), (Subject("pool", "other"), LEAF, False),
        (Subject("disk", "sdb"), LEAF, False), (Subject("dataset", "tank/wal"), SERVER, False), (DATASET, DISK, False),
    ],
)  # fmt: skip
def test_whom_a_fault_concerns(subject: Subject, other: Subject, wanted: bool) -> None:
    assert (subject in Relations(linked()).of(other)) is wanted


@pytest.mark.parametrize(
    "name",
    shared.briefly([(DISABLED,), ("2.3-db-postgres-healthy",), ("2.3-consumer-ssd-log",)], quick=1),
)
def test_on_a_recorded_host_a_fact_that_is_lost_overturns_nothing(name: str) -> None:
    """Every seventh fact in turn: without it no lost becomes kept, and no kept becomes lost. A vdev without a class counts as
    one of the data, whose rows then have what a dead log device costs."""
    facts = looked(name).facts
    read = {(fact.subject, fact.name) for fact in facts if isinstance(fact.value, Known)}
    whole = _outcomes(facts)
    tried = 0
    for subject, fact in sorted(read, key=str)[::7]:
        was = facts.get(subject, fact)
        facts.replace(Fact(subject, fact, unknown("lost")))
        for key, outcome in _outcomes(facts).items() if fact != "allocation_class" else ():
            assert whole.get(key, outcome) in MAY_BECOME[outcome], (subject, fact, key)
        facts.replace(Fact(subject, fact, was))
        tried += 1
    assert tried > 50


def _outcomes(facts: Facts) -> dict[tuple[str, Event], str]:
    """Of the rows that the table has: without the class of a vdev there is no row of a log device."""
    table = EventTable(facts)
    return {
        (name, event): each.cells[event].outcome
        for each in table.columns((), Answers(NONE, facts))
        for name in each.names
        for event in table.events
    }


def test_the_exit_code_counts_what_is_undecided_unless_it_is_asked_not_to() -> None:
    found: list[tuple[Any, bool]] = [("critical", False), ("low", True)]
    assert exit_code(found, "low") == 14
    assert exit_code(found, "low", failed_only=True) == 11
    assert exit_code(found, "medium", failed_only=True) == 10
    assert exit_code([], "low") == exit_code(found[1:], "medium") == 0


def test_a_verdict_of_a_rule_without_elements_keeps_its_severity() -> None:
    rule = next(each for each in shared.audited() if not each.elements)
    (same,) = EventTable(looked(HEALTHY).facts).ranked([Verdict(rule, HOST, "fail", "medium")])
    assert same.severity == "medium"


# -- the pool is gone -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ages", "says"),
    [
        (
            {"tank/db": 26, "tank": 30},
            "LOSES at least 30 h of commits: the newest mark is tank#mark",
        ),
        ({"tank/db": 0.5, "tank": 1}, "LOSES at least 60 min of commits: the newest mark is tank#mark"),
        (
            {"tank/db": 26, "tank": 24 * 9},
            "LOSES at least 9 days of commits: the newest mark is tank#mark",
        ),
        ({"tank/db": 26, "tank": None}, "LOSES all that is not copied elsewhere (no replication found)"),
        ({"tank/db": 26}, "LOSES all that is not copied elsewhere (newest copy unknown)"),
    ],
)
def test_what_goes_with_the_pool_is_told_by_the_oldest_mark_of_a_copy(
    ages: Mapping[str, float | None], says: str
) -> None:
    seen = looked(DISABLED).facts
    for name, hours in ages.items():
        made = 0 if hours is None else int(seen.now - hours * 3600)
        seen.replace(Fact(Subject("dataset", name), "copied_s", known(made, f"the newest mark is {name}#mark")))
    one = EventTable(seen).copies(("tank", "tank/db"))
    assert phrases.sentence(Cell("lost", ("commits",), amounts=(one,))) == says


def test_the_loss_of_the_pool_is_a_row_and_decides_nothing() -> None:
    before = judged(looked(HEALTHY).facts)
    assert before.columns
    assert {column.gone.outcome for column in before.columns if column.gone} == {"lost"}
    assert before.headline == "NO LOSS FOUND FROM ANY EVENT CHECKED, INCLUDING A POWER CUT"
    assert not phrases.loses(before.columns)
    page = " ".join(audit_page.write_text(before, width=100).split())
    assert "loss of the pool: LOSES all that is not copied elsewhere" in page
    kept = Declared("tank", "rebuildable", "", "from db2", 1)
    rebuilt = judged(looked(HEALTHY, Policy("p", "", datasets=(kept,))).facts)
    assert {column.gone.outcome for column in rebuilt.columns if column.gone} == {"word"}


def test_an_unmounted_dataset_may_have_commits_in_its_log_alone() -> None:
    log = Fact(Subject("dataset", "tank/db"), "log_claimed", known(True, "claim_txg 8, flags 0x3"))
    before, after = columns(looked(SINGLE_LOG).facts), columns(changed(SINGLE_LOG, log))
    assert cell(before, "tank/db", "log").outcome == "word"
    assert cell(after, "tank/db", "log").outcome == "lost"


def test_the_first_step_is_for_the_event_of_the_headline() -> None:
    """A file on tmpfs is gone at a restart, before zil_nocacheflush costs anything, however many pools that concerns."""
    report = judged(changed("2.3-stacked-devices", Fact(HOST, "zil_nocacheflush", known(1, ""))))
    assert report.headline.startswith("A RESTART LOSES")
    assert (first := phrases.first(report)) is not None
    assert first[1].rule.id in ("file-vdev", "loop-vdev")
