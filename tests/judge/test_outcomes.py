"""The table of events: Kleene's *and* over rules, and who is concerned by what."""

from __future__ import annotations

from datetime import date
from itertools import product
from typing import Any

import pytest

from auditor import audit, rulebook
from auditor.facts import HOST, Fact, Facts, Known, Subject, unknown
from auditor.judge import example, outcomes, verdict
from auditor.judge.answers import Answers
from auditor.judge.cell import KEPT, ORDER, Cell, Word, joined
from auditor.judge.event import EVENTS, INCLUDES, Event, Party, Severity, Strike
from auditor.judge.finding import exit_code
from auditor.judge.outcomes import columns, matter
from auditor.judge.policy import NONE, Answer, LeftOut, Waiver
from auditor.judge.rule import Example, Rule
from auditor.judge.verdict import Verdict
from auditor.model.write_cache import keeps_acknowledged
from auditor.recording import recording
from auditor.registry import registry
from auditor.report import event_words
from tests import shared
from tests.folded import for_each

RULES = {rule.id: rule for rule in rulebook.load(examples=False) if rule.subject not in ("run", "waiver")}
POOL, DATA, WAL = Subject("pool", "tank"), Subject("dataset", "tank/data"), Subject("dataset", "tank/wal")
DISK, LEAF = Subject("disk", "sda"), Subject("leaf", "sda", "tank")
# better: more is known. A word is not yet known to be kept
MAY_BECOME: dict[str, set[Any]] = {
    "lost": {"lost"},
    "kept": {"kept"},
    "word": {"word", "kept", "lost"},
    "unknown": {"unknown", "word", "kept", "lost"},
}


def host(leaves: tuple[Subject, ...] = (LEAF,), **disk: Any) -> Facts:
    facts = Facts()
    facts.add(HOST)
    for subject, link, targets in (
        (HOST, "pools", (POOL,)),
        (POOL, "datasets", (DATA, WAL)),
        (POOL, "leaves", leaves),
        *((leaf, "disks", (DISK,)) for leaf in leaves),
    ):
        facts.put(Fact(subject, link, Known(targets, ())))
    known = {"volatile_cache": False, "virtual": False} | disk
    for name, value in known.items():
        facts.put(Fact(DISK, name, unknown("not seen") if value is None else Known(value, ())))
    facts.put_all(list(keeps_acknowledged.derive(DISK, facts)))
    return facts


def failing(rule: Rule, subject: Subject, outcome: Any = "fail", **kept: Any) -> Verdict:
    return Verdict(rule, subject, outcome, rule.severity, strikes=kept.pop("strikes", rule.strikes[-1:]), **kept)


def left(failures: int, shares_disk_with_leg: bool = False) -> dict[str, Any]:
    """A vdev, and how many devices it can lose."""
    legs = [{"shares_disk_with_leg": shares_disk_with_leg}] * 2
    return {"too_few_devices": False, "failures_left": failures, "leaves": legs}


def of(found: tuple[outcomes.Column, ...], name: str, event: Event) -> Cell:
    return next(column for column in found if name in column.names).cells[event]


@pytest.mark.parametrize("event", EVENTS)
def test_whatever_strikes_at_one_strikes_at_every_graver_one(event: Event) -> None:
    for included in INCLUDES[event]:
        assert INCLUDES[included] <= INCLUDES[event]
    strike = Strike.at(event, "", ("commits",))
    assert {at for at in EVENTS if strike.strikes(at)} == {at for at in EVENTS if event in INCLUDES[at]}


@pytest.mark.parametrize(("first", "second"), list(product(ORDER, repeat=2)))
def test_more_knowledge_never_overturns_an_answer(first: Any, second: Any) -> None:
    """By exhaustion: whatever either of two becomes, the answer becomes what it may become."""
    before: str = joined((Cell(first), Cell(second))).outcome
    assert before == max(first, second, key=("kept", "word", "unknown", "lost").index)
    for one, other in product(MAY_BECOME[first], MAY_BECOME[second]):
        assert joined((Cell(one), Cell(other))).outcome in MAY_BECOME[before]


def test_one_failure_costs_those_whom_it_concerns() -> None:
    found = columns([failing(RULES["sync-disabled"], WAL)], host())
    assert of(found, "tank/wal", "process").outcome == "kept"
    assert [of(found, "tank/wal", event).outcome for event in ("crash", "power", "power+log", "below")] == ["lost"] * 4
    assert of(found, "tank/wal", "drive").outcome == "kept"
    assert {of(found, "tank/data", event).outcome for event in EVENTS} == {"kept"}
    assert of(found, "tank/wal", "power").rules == ("sync-disabled",)
    assert found[0].names == ("tank/wal",)


@pytest.mark.parametrize(
    "subject", [HOST, POOL, LEAF, DISK, Subject("vdev", "mirror-0", "tank"), Subject("disk", "sdx")]
)
def test_what_concerns_the_pool_concerns_all_of_it(subject: Subject) -> None:
    found = columns([failing(RULES["zfs-nocacheflush"], subject)], host())
    assert [column.names for column in found] == [("tank/data", "tank/wal")]
    assert found[0].cells["crash"] == KEPT
    assert (found[0].cells["power"].outcome, found[0].cells["power"].takes) == ("lost", ("commits", "pool"))


def test_a_database_concerns_the_datasets_that_it_is_on() -> None:
    facts = host()
    server = Subject("database", "postgres 1")
    facts.put(Fact(server, "datasets", Known((WAL,), ())))
    found = columns([failing(RULES["pg-fsync-off"], server)], facts)
    assert of(found, "tank/wal", "crash").takes == ("commits", "consistency")
    assert of(found, "tank/data", "power").outcome == "kept"


def test_of_a_database_whose_files_nobody_could_place_it_is_not_known_what_it_concerns() -> None:
    """Any user may start one of that name, with fsync=off and a folder that nobody may look into."""
    facts, server = host(), Subject("database", "postgres 4242")
    facts.put(Fact(server, "datasets", unknown("/home/evil/data: permission denied")))
    found = columns([failing(RULES["pg-fsync-off"], server)], facts)
    assert {of(found, name, "crash").outcome for name in ("tank/wal", "tank/data")} == {"unknown"}
    facts.replace(Fact(server, "datasets", Known((WAL,), ())))
    assert of(columns([failing(RULES["pg-fsync-off"], server)], facts), "tank/wal", "crash").outcome == "lost"


def test_databases_that_nobody_could_see_may_keep_something_on_any_dataset() -> None:
    """A process table that nobody may read must not turn what a database loses into "keeps all"."""
    server = Subject("database", "postgres 4242")
    facts = host()
    facts.put(Fact(server, "datasets", Known((DATA,), ())))
    seen = columns([failing(RULES["pg-fsync-off"], server)], facts)
    hidden = columns([failing(RULES["pg-fsync-off"], HOST, "unknown")], host())
    for event in EVENTS:
        assert {of(hidden, name, event).outcome for name in ("tank/wal", "tank/data")} == (
            {"unknown"} if of(seen, "tank/data", event).outcome == "lost" else {"kept"}
        )


def test_what_a_database_loses_stays_where_nobody_could_list_the_datasets() -> None:
    server = Subject("database", "redis 4242")
    facts = host()
    facts.put(Fact(server, "datasets", Known((DATA,), ())))
    facts.replace(Fact(POOL, "datasets", unknown("zfs list: permission denied")))
    found = columns(
        [failing(RULES["redis-acknowledges-early"], server, strikes=(Strike.at("process", "", ("commits",)),))], facts
    )
    assert of(found, "tank/data", "process").outcome == "lost"
    assert of(found, "tank", "process").outcome == "kept"


def test_what_was_not_decided_may_have_held() -> None:
    unknown_one = failing(RULES["zfs-nocacheflush"], HOST, "unknown")
    assert of(columns([unknown_one], host()), "tank/data", "power").outcome == "unknown"
    trusted = failing(rule := RULES["no-power-loss-protection"], LEAF, "unknown", strikes=(rule.strike,))
    assert of(columns([trusted], host()), "tank/data", "power").outcome == "word", "at worst it is kept on its word"


def test_cases_that_are_not_known_leave_it_open() -> None:
    rule = RULES["zfs-nocacheflush"]
    either = failing(rule, HOST, strikes=rule.strikes)
    assert {strike.word for strike in rule.strikes} == {"", "drive"}
    assert of(columns([either], host()), "tank/data", "power").outcome == "unknown"
    assert of(columns([either], host()), "tank/data", "crash").outcome == "kept"


@pytest.mark.parametrize(
    ("disk", "outcome"),
    [
        ({"volatile_cache": False}, "kept"),
        ({"volatile_cache": True, "plp_grade": 3}, "kept"),
        ({"volatile_cache": True, "plp_grade": 2}, "word"),
        ({"volatile_cache": True, "plp_grade": None}, "word"),
        ({"volatile_cache": None}, "word"),
        ({"volatile_cache": True, "virtual": True}, "kept"),  # whom a rule names
    ],
)
def test_a_cache_that_is_not_known_to_outlive_the_power_is_a_word(disk: dict[str, Any], outcome: str) -> None:
    """Also of a hard disk, about which no rule complains."""
    cell = of(columns([], host(**disk)), "tank/data", "power")
    assert cell.outcome == outcome
    assert cell.parties == ((Word("drive", ("sda",)),) if outcome == "word" else ())


@pytest.mark.parametrize("allocation", ["cache", "spare"])
def test_a_drive_that_holds_nothing_of_its_own_costs_nobody_anything(allocation: str) -> None:
    """What lies on a cache device lies on the data vdevs, too."""
    facts = host(volatile_cache=True)
    facts.put(Fact(LEAF, "allocation_class", Known(allocation, ())))
    forced = failing(RULES["write-cache-forced-through"], DISK)
    unseen = failing(RULES["write-cache-forced-through"], LEAF, "unknown")
    found = columns([forced, unseen], facts)
    assert {cell.outcome for column in found for cell in column.cells.values()} == {"kept"}


def test_with_a_log_device_commits_go_and_no_pool() -> None:
    other = Subject("leaf", "sda-part2", "tank")
    alone, shared = host(), host((LEAF, other))
    for facts in (alone, shared):
        facts.put(Fact(LEAF, "allocation_class", Known("log", ())))
    for rule, subject, facts, takes in (
        ("write-cache-forced-through", DISK, alone, ("commits",)),
        ("flush-latched-off", LEAF, alone, ("commits",)),
        ("write-cache-forced-through", DISK, shared, ("commits", "pool")),  # it holds data, too, as far as is known
    ):
        cell = of(columns([failing(RULES[rule], subject)], facts), "tank/data", "power")
        assert (cell.outcome, cell.takes) == ("lost", takes)


def test_a_waiver_changes_who_answers_and_not_what_happens() -> None:
    waived = failing(RULES["sync-disabled"], DATA, "waived", was="fail")
    assert of(columns([waived], host()), "tank/data", "crash").outcome == "lost"


WORD, LOSS = (Strike.at("power", "drive", ("commits",)),), (Strike.at("crash", "", ("commits", "consistency")),)
ANN = Waiver("sync-disabled", "dataset", "tank", "ann", "scratch", date(2027, 1, 1), 1)
WAYS: dict[str, dict[str, Any]] = {
    "fails": {},
    "is unknown": {"outcome": "unknown"},
    "at a crash": {"strikes": LOSS},
    "by another rule": {"strikes": LOSS, "rule": RULES["pg-fsync-off"]},
    "unknown at a crash": {"strikes": LOSS, "outcome": "unknown"},
    "on a word": {"strikes": WORD},
    "on a word of Ann": {"strikes": WORD, "outcome": "waived", "was": "fail", "waiver": ANN},
    "on a word of Bob": {"strikes": WORD, "outcome": "waived", "was": "fail", "waiver": ANN._replace(owner="bob")},
    "on a word until May": {
        "strikes": WORD,
        "outcome": "waived",
        "was": "fail",
        "waiver": ANN._replace(expires=date(2027, 5, 1)),
    },
}


@for_each("one, other", product(WAYS, repeat=2), ids=" and ".join)
def test_each_dataset_fares_as_it_would_alone(one: str, other: str) -> None:
    """Those of which the same rules say the same are looked at together: whatever differs keeps two apart."""
    ways = ((DATA, WAYS[one]), (WAL, WAYS[other]))
    verdicts = [failing(**{"rule": RULES["sync-disabled"], "subject": on, **way}) for on, way in ways]
    both = columns(verdicts, host())
    assert (len(both) == 1) == (one == other)
    for each in verdicts:
        alone = columns([each], host())
        for event in EVENTS:
            found, meant = of(both, each.subject.name, event), of(alone, each.subject.name, event)
            assert found.alike == meant.alike
            assert set(map(id, found.verdicts)) >= set(map(id, meant.verdicts))


@pytest.mark.parametrize(
    ("machine", "virtual", "words"),
    [
        ("none", False, (Word("drive", ("sda",)),)),
        ("none", True, (Word("drive", ("sda",)),)),
        ("kvm", False, (Word("drive", ("sda",)),)),
        ("kvm", True, (Word("hypervisor"),)),
        (None, True, (Word("drive", ("sda",)),)),
    ],
)
def test_for_a_drive_that_a_hypervisor_shows_the_hypervisor_must_keep_its_word(
    machine: str | None, virtual: bool, words: tuple[Word, ...]
) -> None:
    facts = host(virtual=virtual)
    facts.put(Fact(DISK, "keeps_acknowledged", Known(True, ())))
    facts.put(Fact(HOST, "virtualization", Known(machine, ()) if machine else unknown("not seen")))
    found = columns([failing(RULES["sync-disabled"], DISK, strikes=WORD)], facts)
    assert of(found, "tank/data", "power").parties == words


def test_a_rule_that_was_left_out_leaves_its_events_open() -> None:
    rule = RULES["sync-disabled"]
    left = LeftOut(rule.id, rule.severity, "--skip", strikes=rule.strikes)
    cell = of(columns([], host(), (left,)), "tank/data", "power")
    assert (cell.outcome, cell.rules) == ("unknown", ("sync-disabled",))
    milder = LeftOut(rule.id, rule.severity, "policy", "low", rule.strikes)
    assert of(columns([], host(), (milder,)), "tank/data", "power").outcome == "kept", "it was judged"


@pytest.mark.parametrize("zil_class", ["normal", "special"])
def test_events_that_cannot_happen_here_are_not_told(zil_class: str) -> None:
    """A special device that holds the log is a data drive: its loss takes the pool."""
    facts = host()
    for name, subject, value in (
        ("log_leaves", POOL, ()),
        ("zil_class", POOL, zil_class),
        ("virtualization", HOST, "none"),
    ):
        facts.put(Fact(subject, name, Known(value, ())))
    assert matter(facts) == ("process", "crash", "power", "power+drive", "drive")
    assert set(matter(host())) == set(EVENTS), "what was not seen may be there"


@pytest.mark.parametrize(
    "name",
    shared.briefly([("2.3-sync-disabled-local",), ("2.3-db-postgres-healthy",), ("2.3-consumer-ssd-log",)], quick=1),
)
def test_on_a_recorded_host_a_fact_that_is_lost_overturns_nothing(name: str) -> None:
    """Every fact in turn: without it no lost becomes kept, and no kept becomes lost."""
    past = shared.host(name)
    facts = audit.look(recording.ReplayHost(past), past.targets, audit.Options.from_words(past.options)).facts
    rules = [rule for rule in RULES.values() if any(strike.loses for strike in rule.strikes)]
    read = {(fact.subject, fact.name) for fact in facts if isinstance(fact.value, Known)}
    whole = _answers(rules, facts)
    tried = 0
    for subject, fact in sorted(read, key=str)[::7]:
        was = facts.get(subject, fact)
        facts.replace(Fact(subject, fact, unknown("lost")))
        for key, outcome in _answers(rules, facts).items():
            assert whole.get(key, outcome) in MAY_BECOME[outcome], (subject, fact, key)
        facts.replace(Fact(subject, fact, was))
        tried += 1
    assert tried > 50


def _answers(rules: list[Rule], facts: Facts) -> dict[tuple[str, Event], str]:
    found = columns(verdict.judge(rules, facts), facts)
    return {(name, event): cell.outcome for each in found for name in each.names for event, cell in each.cells.items()}


GONE = {"leaf.type": "disk", "leaf.state": "ONLINE", "leaf.device_present": False}
SHARED = {"leaf.allocation_class": "log", "leaf.type": "disk", "leaf.shares_disk_with_data": True}
EVERYSEC = {"database.engine": "redis", "database.appendonly": True, "database.appendfsync": "everysec"}


@pytest.mark.parametrize(
    ("rule", "given", "loses"),
    [
        # the pool that zpool status calls ONLINE has lost a leg: one more, and it is gone
        ("leaf-device-missing", GONE | {"leaf.allocation_class": "normal", "leaf.vdev": left(0)}, "drive"),
        ("leaf-device-missing", GONE | {"leaf.allocation_class": "normal", "leaf.vdev": left(1)}, ""),
        ("leaf-device-missing", GONE | {"leaf.allocation_class": "log", "leaf.vdev": left(0)}, "power+log"),
        # the data drive that does not come back is the log device, too
        ("slog-shared-with-data", SHARED | {"leaf.vdev": left(0)}, "power+drive"),
        ("slog-shared-with-data", SHARED | {"leaf.vdev": left(1)}, ""),
        ("slog-shared-with-data", SHARED | {"leaf.vdev": left(1, shares_disk_with_leg=True)}, "power+drive"),
        # Redis keeps what it has answered in its own memory while a flush is under way
        ("redis-acknowledges-early", EVERYSEC, "process"),
    ],
)
def test_the_mildest_event_at_which_it_goes(rule: str, given: dict[str, Any], loses: str) -> None:
    judged = example.run(RULES[rule], Example("", given, "fail", None), registry())
    assert [strike.loses for strike in judged.strikes] == [loses]
    assert judged.outcome == "fail"


def test_what_is_declared_rebuildable_rests_on_the_other_replicas() -> None:
    """And says so: this member does lose its last commits."""
    found = columns([failing(RULES["sync-disabled-rebuildable"], DATA)], host())
    cell = of(found, "tank/data", "crash")
    assert (cell.outcome, cell.parties) == ("word", (Word("replicas"),))
    assert RULES["sync-disabled-rebuildable"].severity == "low"


def test_without_any_dataset_nothing_is_said_to_be_kept() -> None:
    assert event_words.worst(()).outcome == "unknown"
    assert "CANNOT TELL" in event_words.headline(())


def test_for_what_a_hypervisor_shows_its_answer_counts_only_where_the_drive_must_keep_its_word() -> None:
    facts = host(virtual=True)
    facts.put(Fact(HOST, "virtualization", Known("kvm", ())))
    answered = Answer("hypervisor", "", "", "", "ann", "cache=none", date(2027, 1, 1), 1)
    answers = Answers(NONE._replace(answers=(answered,)), facts)
    bob = ANN._replace(owner="bob")
    ways: tuple[tuple[Party, dict[str, Any], Answer | Waiver | None], ...] = (
        ("drive", {"outcome": "unknown"}, answered),
        ("controller", {"outcome": "unknown"}, None),
        ("drive", {"outcome": "fail"}, None),  # what was seen needs a waiver
        ("drive", {"outcome": "waived", "was": "unknown", "waiver": bob}, bob),
    )
    for party, way, who in ways:
        found = failing(RULES["sync-disabled"], DISK, strikes=(Strike.at("power", party, ("commits",)),), **way)
        effect = outcomes._effect(found, facts, lambda subject: False, answers)
        assert effect
        assert effect.answer == who


def test_the_exit_code_counts_what_is_undecided_unless_it_is_asked_not_to() -> None:
    found: list[tuple[Severity, bool]] = [("critical", False), ("low", True)]
    assert exit_code(found, "low") == 14
    assert exit_code(found, "low", failed_only=True) == 11
    assert exit_code(found, "medium", failed_only=True) == 10
    assert exit_code([], "low") == exit_code(found[1:], "medium") == 0


def test_at_an_event_goes_what_goes_then_and_not_what_goes_at_a_graver_one() -> None:
    strikes = (Strike.at("crash", "", ("commits",)), Strike.at("power", "", ("pool",)))
    found = columns([failing(RULES["sync-disabled"], DATA, strikes=strikes)], host())
    assert of(found, "tank/data", "process").takes == ()
    assert of(found, "tank/data", "crash").takes == ("commits",)
    assert of(found, "tank/data", "power").takes == ("commits", "pool")
