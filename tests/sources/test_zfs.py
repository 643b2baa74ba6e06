"""What ``zfs get`` said before its time was over counts, and what it did not come to is unknown with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor import audit
from auditor.facts import Facts, Known, Subject, Unknown
from auditor.host.request import Capture
from auditor.recording.recording import ReplayHost
from tests import shared

LATE = "no answer within 30 s"
TANK, DB, WAL = (Subject("dataset", name) for name in ("tank", "tank/db", "tank/db/wal"))


def seen(cut: str, *, listed: bool = True) -> Facts:
    """A host on which sync=disabled is set on tank, and zfs get is given up behind these words. listed: whether zfs list
    answers."""
    past = shared.earlier("2.3-sync-disabled-inherited")
    commands = dict(past.commands)
    for argv, each in past.commands.items():
        if argv[:2] == ("zfs", "get"):
            text = each.stdout.decode()
            commands[argv] = Capture(None, text[: text.index(cut) + len(cut)].encode(), fault=LATE)
        elif argv[:2] == ("zfs", "list") and not listed:
            commands[argv] = Capture(None, fault=LATE)
    return audit.look(ReplayHost(replace(past, commands=commands)), past.targets, audit.Options()).facts


@pytest.mark.parametrize("cut", ["tank/db\tsync\tdis", "tank/db\tcreation\t"])
def test_what_came_counts_and_the_rest_is_unknown(cut: str) -> None:
    facts = seen(cut)
    assert isinstance(facts.get(TANK, "sync"), Known)
    for dataset in (DB, WAL):
        sync = facts.get(dataset, "sync")
        assert isinstance(sync, Unknown)
        assert LATE in sync.reasons[0].text
        assert sync.reasons[0].remedy == "--timeout"
    pool = facts.get(Subject("pool", "tank"), "datasets")
    assert isinstance(pool, Known)
    assert isinstance(pool.value, tuple)
    assert {TANK, DB, WAL} < set(pool.value)  # all that zfs list names


def test_a_part_is_not_taken_for_all_datasets() -> None:
    facts = seen("tank/db\tsync\tdis", listed=False)
    assert isinstance(facts.get(TANK, "sync"), Known)
    assert isinstance(facts.get(Subject("pool", "tank"), "datasets"), Unknown)


def test_a_failure_is_found_in_a_part() -> None:
    past = shared.earlier("2.3-sync-disabled-inherited")
    facts = seen("tank/db\tsync\tdis")
    report = audit.judge(audit.Look(facts, (TANK,)), shared.audited(), past.targets, "low")
    (found,) = (each for each in report.findings if each.rule.id == "sync-disabled" and each.failed)
    assert [str(each.subject) for each in found.verdicts] == ["tank"]
    assert report.standing != "kept"
