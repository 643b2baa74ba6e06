"""Public incidents: which rule catches them, held on a host that shows the sign."""

from __future__ import annotations

from functools import cache

import pytest

from auditor import audit
from auditor.recording.recording import Recording, ReplayHost, load
from tests import incidents, shared
from tests.golden import HOSTS

ALL = incidents.everything()
SHOWN = [name for name, each in ALL.items() if each.edits]


def failed(past: Recording) -> set[str]:
    """The rules that fail on a host, and the known bugs of its release."""
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    report = audit.judge(seen, shared.audited(), past.targets, "low")
    return {verdict.rule.id for finding in report.findings if finding.failed for verdict in finding.verdicts}


@cache
def before(base: str) -> set[str]:
    return failed(load(HOSTS / base))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_the_rules_catch_it(name: str) -> None:
    incident = ALL[name]
    new = failed(incidents.shown(incident)) - before(incident.base)
    assert new >= set(incident.rules)


def test_rules_are_rules() -> None:
    assert {rule for each in ALL.values() for rule in each.rules} <= {rule.id for rule in shared.rules()}


def test_none_is_dropped_over_all_groups() -> None:
    assert len(ALL) >= 182
    assert len({each.source for each in ALL.values()}) == len(ALL)
    assert {each.group for each in ALL.values()} == set(incidents.GROUPS)
    assert len([each for each in ALL.values() if each.first]) >= 146
