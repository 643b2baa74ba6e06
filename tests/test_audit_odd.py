"""Hosts that are odd: a pool that goes while zaudit looks, pools of one name, a database over two pools, one that is nowhere.
Each has its sentence on the page. A circle of pools has its in tests/judge/test_event_table.py; twice as many datasets take
twice as many steps (tests/whole/test_growth.py), and 100,000 are a row of ``make bench``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from auditor import audit
from auditor.facts import HOST, Fact, Subject, known
from auditor.host.request import Capture
from auditor.recording.recording import Recording, ReplayHost
from auditor.report import audit_page as page
from auditor.report.model import Report
from tests.fake import CommandLine
from tests.fleet.fleets import fleet
from tests.judge.test_event_table import HEALTHY, changed
from tests.shared import HOSTS, audited, host, report_of

POSTGRES = "2.3-db-postgres-healthy"
GONE = Capture(1, b"", b"cannot open 'tank': no such pool\n")


def judged(past: Recording) -> Report:
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    return audit.judge(seen, audited(), past.targets, "low")


def text(report: Report) -> str:
    """The page, with its lines joined."""
    return " ".join(page.write_text(report, verbose=1, width=200).split())


@pytest.mark.parametrize("after", ["status", "list", "get", "history"])
def test_a_pool_that_is_gone_from_one_command_on_is_unknown_and_says_so(after: str) -> None:
    """zpool list shows it first; from this command on there is no such pool."""
    past = host(HEALTHY)
    asked = [argv for argv in past.commands if argv[0] in ("zpool", "zfs") and "tank" in argv]
    gone = {
        argv: GONE for argv in asked if asked.index(argv) >= next(i for i, each in enumerate(asked) if after in each)
    }
    assert gone
    report = judged(replace(past, commands={**past.commands, **gone}))
    assert report.exit_code >= 10
    assert report.standing not in ("kept", "on the word")
    assert "no such pool" in text(report)


def test_a_pool_that_is_renamed_between_two_commands_is_unknown_and_says_so() -> None:
    """What asks for it by its old name finds none; what asks for all finds the new one."""
    past = host(HEALTHY)
    renamed = {
        argv: GONE if "tank" in argv else capture._replace(stdout=capture.stdout.replace(b"tank", b"lake"))
        for argv, capture in past.commands.items()
        if argv[0] in ("zpool", "zfs") and argv[1] != "list"
    }
    report = judged(replace(past, commands={**past.commands, **renamed}))
    assert report.exit_code >= 10
    assert report.standing not in ("kept", "on the word")
    assert "no such pool" in text(report)


def test_two_pools_of_one_name_in_a_fleet_are_of_their_hosts(zaudit: CommandLine, tmp_path: Path) -> None:
    fleet(tmp_path, {"db1": "2.3-sync-disabled-local", "db2": HEALTHY})
    zaudit("fleet", "judge", tmp_path, "-o", tmp_path / "rows")
    found = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()]
    disabled = [row for row in found if row.get("rule") == "sync-disabled"]
    assert {row["name"] for row in disabled} == {"db1"}
    reports = {row["name"]: row for row in found if row["kind"] == "report"}
    assert (reports["db1"]["standing"], reports["db2"]["standing"]) == ("lost", "kept")
    done = zaudit("fleet", "report", tmp_path / "rows")
    assert "sync-disabled" in done.out
    assert "db1" in done.out


def test_a_database_over_two_pools_says_what_that_costs() -> None:
    facts = changed(POSTGRES)
    (database,) = facts.linked(HOST, "databases")
    log = Subject("dataset", "other/wal")
    for each in facts.of(facts.linked(database, "datasets")[0]).items():
        facts.replace(Fact(log, *each))
    facts.replace(Fact(database, "datasets", known((*facts.linked(database, "datasets"), log), "")))
    facts.replace(Fact(database, "one_pool", known(False, "")))
    report = audit.judge(audit.Look(facts, ()), audited(), ("tank",), "low")
    assert "its files lie on several pools, and no snapshot captures them at one moment" in text(report)


def test_a_dataset_without_a_database_relies_on_what_writes_there() -> None:
    """Where a database was named and none is to be found."""
    report = report_of(HOSTS / "2.1-properties-that-cost")
    assert "killing the database, a restart or a crash" not in text(report)
    assert "relies on the program calling fsync on single" in text(report)
