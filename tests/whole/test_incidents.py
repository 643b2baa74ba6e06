"""Public incidents: which rule catches them, held on a host that shows the sign."""

from __future__ import annotations

from functools import cache

import pytest

from auditor.recording.recording import load
from auditor.report.model import Report
from tests import incidents, shared
from tests.golden import HOSTS

ALL = incidents.everything()
SHOWN = [name for name, each in ALL.items() if each.edits]


def failed(report: Report) -> set[str]:
    """The rules that fail on a host, and the known bugs of its release."""
    return {verdict.rule.id for finding in report.findings if finding.failed for verdict in finding.verdicts}


@cache
def before(base: str) -> set[str]:
    return failed(incidents.report_of(load(HOSTS / base)))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_the_rules_catch_it_and_not_its_control(name: str) -> None:
    """The control is the same host without the sign. What the page shows is as it is written down."""
    incident = ALL[name]
    report = incidents.report_of(incidents.shown(incident))
    assert failed(report) - before(incident.base) >= set(incident.rules)
    assert incidents.pages()[name] == incidents.page_line(incident, report), "run: python -m tests.incidents"


def test_each_host_has_its_page() -> None:
    assert set(incidents.pages()) == set(SHOWN)


def test_rules_are_rules() -> None:
    assert incidents.AFTER | {rule for each in ALL.values() for rule in each.rules} <= {
        rule.id for rule in shared.rules()
    }


def test_none_is_dropped_over_all_groups() -> None:
    assert len(ALL) >= 182
    assert len({each.source for each in ALL.values()}) == len(ALL)
    assert {each.group for each in ALL.values()} == set(incidents.GROUPS)
    assert len([each for each in ALL.values() if each.first]) >= 146
