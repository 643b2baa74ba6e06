"""A line is yes only where everything that it names was seen and passed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.checklist import lists, responses
from auditor.checklist.lists import Checklist, Line, LineAnswer, Statement
from auditor.diagnose.conclusion import diagnose
from auditor.facts import HOST, Fact, Subject, known, unknown
from auditor.judge.policy import LeftOut, Waiver
from tests import shared
from tests.checklist import worlds
from tests.checklist.worlds import Outcome
from tests.diagnose import worlds as diagnosed
from tests.verify import samples

LINES = {line.id: line for each in lists.load() for line in each.lines}
PEOPLE = {id for id, line in LINES.items() if line.ask}
NAMED = [(id, rule) for id, line in LINES.items() for rule in (*line.rules, *line.against)]


def line(found: Checklist, id: str) -> LineAnswer:
    return next(each for each in found.lines if each.id == id)


def with_rule(rule: str, outcome: Outcome) -> Checklist:
    return worlds.listed(worlds.whole(worlds.report({rule: outcome})))


def test_where_everything_was_seen_and_passed_all_is_yes_but_what_a_person_must_answer() -> None:
    found = worlds.listed(worlds.whole())
    assert {each.id: each.answer for each in found.lines} == {id: "open" if id in PEOPLE else "yes" for id in LINES}
    assert all(each.person for each in found.of("open"))
    assert (found.exit_code, found.next) == (0, "zaudit checklist tank/db/wal --format html -o checklist.html")


@pytest.mark.parametrize(("id", "rule"), NAMED)
def test_each_rule_that_a_line_names_decides_it(id: str, rule: str) -> None:
    failed = line(with_rule(rule, "fail"), id)
    assert (failed.answer, failed.deciding[0].rule) == ("no", rule)
    assert failed.deciding[0].severity == worlds.by_id()[rule].gravest
    undecided = line(with_rule(rule, "unknown"), id)
    assert undecided.answer == "open"
    assert f"{rule}: not seen" in {each.text for each in undecided.deciding}


@pytest.mark.parametrize(("id", "rule"), [(id, rule) for id, each in LINES.items() for rule in each.rules])
def test_a_rule_that_answers_a_line_and_does_not_apply_leaves_it_open(id: str, rule: str) -> None:
    alternatives = [each for each in LINES[id].rules if worlds.by_id()[each].subject == "database"]
    for outcome in ("not applicable", "none"):
        answer = line(with_rule(rule, outcome), id).answer
        assert answer == ("yes" if len(alternatives) > 1 else "open")


def each_proof() -> Iterator[tuple[str, str, str]]:
    for id, each in LINES.items():
        yield from ((id, "links", name) for name in each.links)
        yield from ((id, "verify", name) for name in each.verify)
        yield from ((id, "diagnose", name) for name in each.diagnose)
        yield from ((id, "facts", name) for name in each.facts)


@pytest.mark.parametrize(("id", "kind", "name"), list(each_proof()))
def test_each_link_part_and_fact_that_a_line_names_has_to_be_seen(
    id: str, kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = worlds.whole()
    match kind:
        case "links":
            chain = worlds.verification().chain
            hidden = tuple(
                each._replace(status="unseen") if each.name == name or name == "devices" else each
                for each in chain.links
            )
            blind = worlds.verification()._replace(chain=chain._replace(outcome="INCONCLUSIVE", links=hidden))
            seen = worlds.seen(measured=blind, watched=worlds.diagnosis())
        case "verify":
            monkeypatch.setitem(responses.VERIFY_PARTS, name, lambda _: Statement("open", "verify", "hidden"))
        case "diagnose":
            monkeypatch.setitem(responses.DIAGNOSE_PARTS, name, lambda _: Statement("open", "diagnose", "hidden"))
        case _:
            without = worlds.facts(without=(name.partition(".")[2],))
            seen = worlds.whole()._replace(audit=worlds.seen(known_=without).audit)
    assert line(worlds.listed(seen), id).answer == "open"


def needs(each: Line) -> set[str]:
    """Of what kind the evidence is that a line cannot do without."""
    runs = any(worlds.by_id()[rule].subject == "run" for rule in (*each.rules, *each.against))
    kinds = (("verify", runs or each.links or each.verify), ("diagnose", each.diagnose))
    return {kind for kind, needed in kinds if needed}


@pytest.mark.parametrize("id", LINES)
def test_without_a_verification_or_a_diagnosis_what_rests_on_it_is_open(id: str) -> None:
    by = {
        "verify": worlds.listed(worlds.seen(watched=worlds.diagnosis())),
        "diagnose": worlds.listed(worlds.seen(measured=worlds.verification())),
    }
    for kind, found in by.items():
        of = line(found, id)
        assert of.answer == ("open" if kind in needs(LINES[id]) or id in PEOPLE else "yes")
        if kind in needs(LINES[id]):
            assert of.deciding[0].do.startswith(f"zaudit {kind} tank/db/wal")


def test_what_nobody_looked_at_is_no_yes() -> None:
    nothing: dict[str, Outcome] = dict.fromkeys(worlds.named(), "none")
    found = worlds.listed(worlds.seen(worlds.report(nothing), known_=worlds.facts(without=("sync", "zil_class"))))
    assert found.of("yes") == ()
    assert found.exit_code == 10


def test_what_can_only_speak_against_a_line_answers_nothing() -> None:
    of = LINES["benchmark-log"]
    assert responses.decide(of, [Statement("yes", "check", "slog-unused passes", "", "slog-unused")]) == "open"
    assert responses.decide(of, []) == "open"
    assert responses.decide(of, [Statement("yes", "check", "the pool has a SLOG")]) == "yes"


OUTCOMES = st.sampled_from(("pass", "pass", "pass", "fail", "unknown", "not applicable", "none"))


@given(
    outcomes=st.fixed_dictionaries(dict.fromkeys(worlds.named(), OUTCOMES)),
    verified=st.booleans(),
    watched=st.booleans(),
)
@shared.examples(60, deadline=None)
def test_never_yes_without_a_pass_and_never_beside_a_failure(
    outcomes: dict[str, Outcome], verified: bool, watched: bool
) -> None:
    found = worlds.listed(
        worlds.seen(
            worlds.report(outcomes),
            measured=worlds.verification() if verified else None,
            watched=worlds.diagnosis() if watched else None,
        )
    )
    for each in found.lines:
        of = LINES[each.id]
        said = {outcomes[rule] for rule in (*of.rules, *of.against)}
        if each.answer == "yes":
            assert not said & {"fail", "unknown"}
            keys = [rule for rule in of.rules if worlds.by_id()[rule].subject != "database"]
            assert all(outcomes[rule] == "pass" for rule in keys)
            assert needs(of) <= {kind for kind, there in (("verify", verified), ("diagnose", watched)) if there}
        checked = {
            outcomes[rule] for rule in (*of.rules, *of.against) if verified or worlds.by_id()[rule].subject != "run"
        }
        assert (each.answer == "no") == ("fail" in checked)


# -- what the lines about log devices are about -------------------------------------------------------------------


def test_without_a_log_device_its_list_does_not_apply() -> None:
    found = worlds.listed(worlds.whole()._replace(audit=worlds.seen(known_=worlds.facts(log=False)).audit))
    assert {each.list for each in found.of("does not apply")} == {"log"}
    assert len(found.of("does not apply")) == 6
    assert {each.answer for each in found.lines if each.list == "log"} == {"does not apply"}


def test_whether_there_is_a_log_device_has_to_be_known() -> None:
    blind = worlds.facts()
    blind.replace(Fact(worlds.POOL, "log_vdevs", unknown("zpool status: timed out", "run as root")))
    found = worlds.listed(worlds.whole()._replace(audit=worlds.seen(known_=blind).audit))
    assert {each.answer for each in found.lines if each.list == "log"} == {"open"}


def test_what_fails_on_a_data_drive_says_nothing_of_the_log() -> None:
    data = Subject("leaf", "sda1", "tank")
    found = worlds.listed(worlds.whole(worlds.report({}, worlds.verdict("stack-drops-flushes", "fail", data))))
    assert line(found, "log-protected").answer == "yes"
    log = worlds.listed(worlds.whole(worlds.report({}, worlds.verdict("stack-drops-flushes", "fail", worlds.LEAF))))
    assert line(log, "log-protected").answer == "no"


def test_a_rule_that_passes_on_one_log_device_and_says_nothing_of_another_does_not_answer() -> None:
    found = worlds.listed(
        worlds.whole(worlds.report({}, worlds.verdict("no-power-loss-protection", "not applicable", worlds.LEAF)))
    )
    assert line(found, "log-protected").answer == "open"


def test_a_log_device_that_was_not_counted_keeps_up_with_nothing() -> None:
    """Beside a cause that stands by itself."""
    files = diagnosed.load(commits={"tank/db": 2000}, dmu_tx={"dmu_tx_dirty_delay": 50})
    for moment in files:
        del moment["/sys/block/sdd/stat"]
    rows = {(pid, "postgres", 1): (1000, 1000 * 5300) for pid in (100, 101)}
    watched = diagnose(diagnosed.observation(files, diagnosed.traced(rows)), diagnosed.facts())
    assert (watched.outcome, len(watched.reasons)) == ("CAUSE", 1)
    found = line(worlds.listed(worlds.seen(watched=watched)), "log-keeps-up")
    assert (found.answer, found.deciding[0].text) == ("open", "sdd: its device has no counters that could be read")


@pytest.mark.parametrize(
    ("disk", "part", "keeps_up", "figures"),
    [
        ("sdc", "phys_seg 0", "open", ("no", "critical")),  # a flush: NOT DURABLE, and no sync=disabled
        ("sdc", "phys_seg 1", "open", ("no", "medium")),
    ],
)
def test_a_device_that_fails_under_the_load_is_no_yes(
    disk: str, part: str, keeps_up: str, figures: tuple[str, str]
) -> None:
    logged = f"I/O error, dev {disk}, sector 0 op 0x1:(WRITE) flags 0x800 {part} prio class 2"
    found = worlds.listed(worlds.seen(watched=worlds.diagnosis(logged)))
    assert line(found, "log-keeps-up").answer == keeps_up
    tail = line(found, "figures-tail")
    assert (tail.answer, tail.deciding[0].severity) == figures
    assert logged in tail.deciding[0].text


def test_the_gravest_subject_is_named_first_and_the_others_after_it() -> None:
    low = worlds.verdict("atime-on", "fail", Subject("dataset", "tank/a"))
    high = worlds.verdict("atime-on", "fail", Subject("dataset", "tank/b"))._replace(severity="high")
    more = worlds.verdict("atime-on", "fail", Subject("dataset", "tank/c"))
    found = worlds.listed(worlds.whole(worlds.report({"atime-on": "none"}, low, high, more)))
    wrong = line(found, "benchmark-properties").deciding[0]
    assert wrong.text == "atime-on: tank/b fails atime-on (also tank/a, tank/c)"
    assert (wrong.severity, found.exit_code) == ("high", 13)


# -- people, policies, databases ----------------------------------------------------------------------------------


def test_what_somebody_answers_for_is_accepted_and_no_yes() -> None:
    waiver = Waiver(
        "no-power-loss-protection", "host", "db1", "dba@example.org", "replaced in June", date(2027, 6, 30), 3
    )
    waived = worlds.verdict("no-power-loss-protection", "fail")._replace(outcome="waived", was="fail", waiver=waiver)
    found = worlds.listed(worlds.whole(worlds.report({"no-power-loss-protection": "none"}, waived)))
    of = line(found, "log-protected")
    assert of.answer == "accepted"
    assert "dba@example.org answers for it until 2027-06-30: replaced in June" in of.deciding[0].text


def test_a_rule_that_was_left_out_leaves_its_lines_open() -> None:
    left_out = (LeftOut("sync-disabled", "critical", "--skip"),)
    found = worlds.listed(worlds.whole(worlds.report({"sync-disabled": "none"})._replace(left_out=left_out)))
    assert {line(found, id).answer for id in ("figures-settings", "benchmark-properties")} == {"open"}
    assert "sync-disabled was left out by --skip" in line(found, "figures-settings").deciding[0].text


def test_a_database_has_to_be_seen_and_read() -> None:
    none: dict[str, Outcome] = {id: "none" for id in worlds.named() if worlds.by_id()[id].subject == "database"}
    read = worlds.listed(worlds.whole(worlds.report(none)))
    assert "no rule reads how postgres 364 commits" in line(read, "benchmark-commits").deciding[0].text
    blind = worlds.facts()
    blind.replace(Fact(HOST, "databases", known((), "")))
    unseen = worlds.seen(worlds.report(none), known_=blind)
    for id in ("benchmark-commits", "figures-settings"):
        of = line(worlds.listed(unseen), id)
        assert (of.answer, of.deciding[0].do) == ("open", "zaudit checklist tank/db/wal --db NAME=DIR")


@pytest.mark.parametrize("fact", ["live", "datasets"])
def test_a_server_that_was_not_asked_or_may_be_elsewhere_is_not_known(fact: str) -> None:
    seen = worlds.whole()._replace(audit=worlds.seen(known_=worlds.facts(without=(fact,))).audit)
    assert line(worlds.listed(seen), "benchmark-commits").answer == "open"


def test_of_two_servers_of_a_kind_both_have_to_be_asked() -> None:
    second, third = Subject("database", "postgres 900"), Subject("database", "postgres DSN")
    facts = worlds.facts()
    for each in (second, third):
        facts.put(Fact(each, "engine", known("postgres", "")))
    facts.replace(Fact(HOST, "databases", known((worlds.DATABASE, second), "")))
    seen = worlds.whole()._replace(audit=worlds.seen(known_=facts).audit)
    assert line(worlds.listed(seen), "benchmark-commits").answer == "yes"  # the one that was asked, and its process
    facts.replace(Fact(HOST, "databases", known((worlds.DATABASE, second, third), "")))
    of = line(worlds.listed(seen), "benchmark-commits")
    assert (of.answer, of.deciding[0].do) == ("open", "zaudit checklist tank/db/wal --db postgres=DSN")


# -- age ----------------------------------------------------------------------------------------------------------


def test_what_was_seen_before_a_change_answers_nothing() -> None:
    changed = ("logbias was throughput then, is latency now",)
    for by, parts in (("verify", "verify"), ("diagnose", "diagnose")):
        found = worlds.listed(worlds.whole()._replace(stale=((by, changed),)))
        for id, each in LINES.items():
            if parts in needs(each):
                assert line(found, id).answer == "open"
                assert changed[0] in line(found, id).deciding[0].text
        failed = worlds.whole(worlds.report({"commit-latency": "fail"}))._replace(stale=(("verify", changed),))
        assert line(worlds.listed(failed), "benchmark-decided").answer == "open"


# -- exit codes and the next step ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "code"), [("sync-disabled", 14), ("slog-no-redundancy", 13), ("commit-latency", 12), ("atime-on", 11)]
)
def test_the_exit_code_is_the_worst_that_a_no_rests_on(rule: str, code: int) -> None:
    assert with_rule(rule, "fail").exit_code == code


def test_what_a_command_would_answer_is_10() -> None:
    found = worlds.listed(worlds.seen())
    assert (found.exit_code, found.next.split()[:2]) == (10, ["zaudit", "verify"])


def test_the_gravest_is_the_next_step() -> None:
    found = worlds.listed(worlds.whole(worlds.report({"atime-on": "fail", "sync-disabled": "fail"})))
    wrong = next(said for said in line(found, "figures-settings").deciding)
    assert found.next == wrong.do


def test_ten_thousand_datasets_are_looked_at_once() -> None:
    many = [worlds.verdict("atime-on", "pass", Subject("dataset", f"tank/d{n}")) for n in range(10_000)]
    report = worlds.report({}, *many)
    assert len(lists.by_rule(report)["atime-on"]) == 10_001
    found = responses.checklist(lists.load(), worlds.whole(report), (), samples.BEGAN)
    assert max(len(said.text) for each in found.lines for said in each.said) < 1000
