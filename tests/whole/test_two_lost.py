"""Two of the main answers refused together: nothing is said that is better (tests/law.py), and what failed does not vanish with
the list of what it was about: as severe as it was it is unknown at what contains it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import pytest

from auditor import audit
from auditor.facts import HOST
from auditor.judge.event import SEVERITIES
from auditor.judge.verdict import Verdict
from auditor.recording.recording import ReplayHost
from auditor.selftest import MAIN, NOT_PERMITTED, FaultyHost, Trials
from tests import shared
from tests.law import Audited, Key, broken

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


def refused(name: str) -> Iterator[tuple[str, Audited]]:
    """(which two, the host without these answers)."""
    past = shared.host(name)
    trials = Trials.of(shared.audited(), past)
    assert trials
    for first, second in combinations([each for each in MAIN if each in trials.asked], 2):
        host = FaultyHost(ReplayHost(past), NOT_PERMITTED, trials.questions(first) | trials.questions(second))
        try:
            seen = audit.look(host, past.targets, audit.Options.from_words(past.options))
        except audit.NothingToAudit:  # exit code 3: nothing is said to be fine
            continue
        yield f"{first} and {second}", Audited(seen.facts, audit.judge(seen, shared.audited(), past.targets, "low"))


def vanished(before: Mapping[Key, Verdict], after: Mapping[Key, Verdict]) -> Iterator[str]:
    """What failed, and is not there any more, nor unknown and as severe at the host, a pool or a leaf."""
    worst: dict[str, int] = {}
    for (rule, subject), each in after.items():
        if each.outcome == "unknown" and (subject == HOST or subject.kind in ("pool", "leaf")):
            worst[rule] = max(worst.get(rule, -1), SEVERITIES.index(each.severity))
    for (rule, subject), was in before.items():
        if (
            was.outcome == "fail"
            and (rule, subject) not in after
            and worst.get(rule, -1) < SEVERITIES.index(was.severity)
        ):
            yield f"{rule}, {subject}: {was.severity}, and now nothing as severe"


@pytest.mark.parametrize("name", HOSTS)
def test_nothing_vanishes_and_nothing_gets_better(name: str) -> None:
    before, wrong, tried = Audited.of(shared.host(name)), [], 0
    for which, after in refused(name):
        tried += 1
        wrong += [f"{which}: {each}" for each in (*vanished(before.verdicts, after.verdicts), *broken(before, after))]
    assert wrong == []
    assert tried >= 20
