"""What counts as better, and that no answer that is lost makes anything so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from auditor import audit
from auditor.facts import HOST, Reason, Subject
from auditor.judge.event import EVENTS, KEPT, Cell, Outcome
from auditor.judge.event_table import Column
from auditor.judge.verdict import Verdict
from auditor.recording.recording import Recording, ReplayHost
from auditor.report import audit_page, report_json
from tests import law, shared
from tests.fuzz import loss
from tests.law import Audited, broken

FULL = "2.3-full-92"


def verdict(id: str, outcome: Any, severity: Any = "high", why: str = "") -> Verdict:
    rule: Any = type("Rule", (), {"id": id})
    subject = HOST if id.isupper() else Subject("leaf", "nvme0", "tank")
    return Verdict(rule, subject, outcome, severity, reasons=(Reason(why),))


def changes(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    """Of verdicts by rule, about a leaf, or about the host where the rule's name is in capital letters."""

    def keyed(words: dict[str, str]) -> dict[law.Key, Verdict]:
        each = [verdict(id, word.partition(": ")[0], why=word.partition(": ")[2]) for id, word in words.items()]
        return {(one.rule.id, one.subject): one for one in each}

    return (change for _, change in law.improved(keyed(before), keyed(after)))


def test_what_counts_as_better() -> None:
    assert list(changes({"r": "fail"}, {"r": "pass"})) == ["fail -> pass"]
    assert list(changes({"r": "unknown"}, {"r": "pass"})) == ["unknown -> pass"]
    assert list(changes({"r": "fail"}, {"r": "not applicable"})) == ["fail -> not applicable"]
    assert list(changes({"r": "fail"}, {})) == ["fail -> vanished"]
    assert list(changes({"r": "unknown"}, {"X": "unknown: of something else"})) == ["unknown -> vanished"]


def test_what_does_not() -> None:
    for before, after in (("fail", "unknown"), ("pass", "fail"), ("pass", "unknown"), ("not applicable", "pass")):
        assert not list(changes({"r": before}, {"r": after}))
    assert not list(changes({"r": "pass"}, {}))
    assert not list(changes({"r": "fail"}, {"X": "unknown: no leaf nvme0 any more"})), "the lost subject is named"


def test_a_severity_that_falls_is_seen_and_so_is_its_exit_code() -> None:
    for outcome in ("fail", "unknown"):
        before, after = verdict("r", "fail", "high"), verdict("r", outcome, "medium")
        key = ("r", before.subject)
        assert list(law.milder({key: before}, {key: after})) == ["r high -> medium"]
        assert not list(law.milder({key: after}, {key: before}))
        assert list(law.exit_codes([before], [after])) == [
            "--fail-on low 13 -> 12",
            "--fail-on medium 13 -> 12",
            "--fail-on high 13 -> 0",
        ]
    assert not list(law.exit_codes([verdict("r", "fail")], [verdict("r", "unknown"), verdict("s", "unknown", "low")]))


def of_cells(**outcomes: Outcome) -> Audited:
    """A host on which a power cut costs each dataset this."""
    base = loss.audited(FULL)
    columns = tuple(
        Column((name,) if name != "databases" else (), dict.fromkeys(EVENTS, KEPT) | {"power": Cell(outcome)})
        for name, outcome in outcomes.items()
    )
    return replace(base, report=base.report._replace(columns=columns))


@pytest.mark.parametrize(
    ("before", "after", "better"),
    [
        ("lost", "word", True), ("lost", "kept", True), ("lost", "unknown", False), ("unknown", "kept", True),
        ("unknown", "word", True), ("unknown", "lost", False), ("word", "kept", True), ("word", "unknown", False),
        ("kept", "lost", False),
    ],
)  # fmt: skip
def test_cells_of_the_table_that_become_better(before: Outcome, after: Outcome, better: bool) -> None:
    wanted = [f"dataset power {before} -> {after}"] if better else []
    assert list(law.events(of_cells(tank=before), of_cells(tank=after))) == wanted


def test_a_dataset_that_nobody_lists_fares_as_its_pool_does() -> None:
    before = replace(loss.audited(FULL), report=of_cells(tank="kept").report)
    column = before.report.columns[0]._replace(names=("tank/db",), cells=dict.fromkeys(EVENTS, Cell("lost")))
    before = replace(before, report=before.report._replace(columns=(column,)))
    assert not list(
        law.events(before, replace(before, report=before.report._replace(columns=(column._replace(names=("tank",)),))))
    )
    gone = law.events(before, replace(before, report=before.report._replace(columns=())))
    assert set(gone) == {f"dataset {event} lost -> kept (gone)" for event in before.report.events}


@pytest.mark.parametrize("after", ["kept", "one failure away", "on the word"])
def test_a_headline_that_becomes_better(after: Any) -> None:
    for before in ("lost", "cannot tell"):
        one, other = (
            replace(loss.audited(FULL), report=loss.audited(FULL).report._replace(standing=each))
            for each in (before, after)
        )
        assert list(broken(one, other)) == [f"headline {before} -> {after}"]
        assert not list(broken(other, one))


# -- one answer that is refused ------------------------------------------------------------------------------------------


def refused(past: Recording, question: tuple[str, ...]) -> Recording:
    steps = [["says", *loss.REFUSED]] if question in past.commands else [["all", loss.GONE[0]]]
    return loss.damaged(past, [[list(question), steps]])


@pytest.mark.parametrize(
    ("host", "rule", "command"),
    [
        (FULL, "pool-nearly-full", "zpool get"),
        ("2.3-slog-missing-at-import", "import-discards-commits", "zpool status"),
    ],
)
def test_an_exit_code_stays_where_nobody_could_see_how_bad_it_is(host: str, rule: str, command: str) -> None:
    """The failure of neither is brought about by an event; one is unknown then, the other fails and may be high."""
    past, chosen = loss.recorded(host), [each for each in shared.audited() if each.id == rule]
    for question in past.commands:
        if " ".join(question).startswith(command):
            past = refused(past, question)
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    report = audit.judge(seen, chosen, past.targets, "high")
    assert report.exit_code == 13
    (finding,) = report.findings
    assert (finding.severity, finding.least) == ("high", "medium")
    (shown,) = report_json.document(report)["findings"]
    assert (shown["severity"], shown.get("least")) == ("high", "medium" if finding.failed else None)
    certain = (
        "medium, or" in audit_page.write_text(report, verbose=2),
        "medium, or" in audit_page.write_html(report),
    )
    assert certain == (finding.failed, finding.failed)


@pytest.mark.slow
@pytest.mark.usefixtures("parsed_once")
@pytest.mark.parametrize("host", loss.hosts())
def test_no_answer_that_is_refused_makes_anything_better(host: str) -> None:
    """One question of each kind: no rule, severity, exit code, cell of the table or headline."""
    past, before = loss.recorded(host), loss.audited(host)
    wrong = []
    for kind, questions in loss.kinds(host).items():
        try:
            after = Audited.of(refused(past, questions[len(questions) // 2]))
        except audit.NothingToAudit:  # exit code 3
            continue
        wrong += [f"{kind}: {each}" for each in broken(before, after)]
    assert not wrong, "\n".join(wrong[:40])
