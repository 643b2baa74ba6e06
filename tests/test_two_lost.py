"""Two of the main answers refused together: what failed stays, or is unknown; none of it vanishes with the list of what it was
about, and no cell of the table of events gets better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import pytest

from auditor.facts import HOST, Facts, Subject
from auditor.judge import verdict
from auditor.judge.cell import Outcome
from auditor.judge.event import EVENTS, SEVERITIES, Event
from auditor.judge.outcomes import columns
from auditor.judge.verdict import Verdict
from auditor.recording.recording import ReplayHost
from auditor.selftest.faults import NOT_PERMITTED, FaultyHost
from auditor.selftest.run import MAIN
from auditor.selftest.trials import Trials, look
from tests import shared

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("parsed_once")]

HOSTS = [
    *(
        "2.3-db-mariadb-doublewrite-off",
        "2.3-db-postgres-fsync-off",
        "2.3-db-postgres-healthy",
        "2.3-db-postgres-on-zvol",
    ),
    *("2.1-full-81", "2.3-shares-that-answer-early", "2.3-slog-shared-with-data", "2.4-special-single"),
]
Cells = Mapping[tuple[str, Event], Outcome]


def judged(facts: Facts) -> tuple[dict[tuple[str, Subject], Verdict], Cells]:
    verdicts = verdict.judge(shared.audited(), facts)
    cells = {
        (name, event): column.cells[event].outcome
        for column in columns(verdicts, facts)
        for name in column.names
        for event in EVENTS
    }
    return {(each.rule.id, each.subject): each for each in verdicts}, cells


def refused(name: str) -> Iterator[tuple[str, Facts, Facts]]:
    """(which two, the facts of a host, its facts without these answers)."""
    past = shared.host(name)
    trials = Trials.of(shared.audited(), past)
    assert trials
    for first, second in combinations([each for each in MAIN if each in trials.asked], 2):
        both = trials.questions(first) | trials.questions(second)
        facts = look(past, FaultyHost(ReplayHost(past), NOT_PERMITTED, both))
        if facts is not None:  # exit code 3: nothing is said to be fine
            yield f"{first} and {second}", trials.before.facts, facts


def lost(before: Mapping[tuple[str, Subject], Verdict], after: Mapping[tuple[str, Subject], Verdict]) -> Iterator[str]:
    """What failed, and now neither fails nor is unknown, at its subject or, as severe, at one that contains it."""
    holes: dict[str, list[Verdict]] = {}
    for (rule, subject), each in after.items():
        if each.outcome == "unknown" and (subject == HOST or subject.kind in ("pool", "leaf")):
            holes.setdefault(rule, []).append(each)
    for (rule, subject), was in before.items():
        if was.outcome != "fail":
            continue
        now = after.get((rule, subject))
        worst = max((SEVERITIES.index(each.severity) for each in holes.get(rule, ())), default=-1)
        if now is None and worst < SEVERITIES.index(was.severity):
            yield f"{rule}, {subject}: {was.severity}, and now nothing as severe"
        elif now is not None and now.outcome not in ("fail", "unknown"):
            yield f"{rule}, {subject}: now {now.outcome}"


def better(before: Cells, after: Cells) -> Iterator[str]:
    """A dataset that is not listed any more fares as its pool does."""
    for (name, event), was in before.items():
        now = after.get((name, event)) or after[name.partition("/")[0], event]
        if (was in ("lost", "unknown") and now in ("kept", "word")) or (was, now) == ("word", "kept"):
            yield f"{name}, {event}: {was} -> {now}"


@pytest.mark.parametrize("name", HOSTS)
def test_nothing_vanishes_and_no_cell_gets_better(name: str) -> None:
    wrong, tried, was = [], 0, None
    for which, facts, left in refused(name):
        was = was or judged(facts)
        now = judged(left)
        tried += 1
        wrong += [f"{which}: {each}" for each in (*lost(was[0], now[0]), *better(was[1], now[1]))]
    assert wrong == []
    assert tried >= 20
