"""Whole hosts, recorded live: the findings are those that were written down, in both formats."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from auditor.recording import recording
from auditor.report import audit_page
from auditor.report import report_json as json_report
from tests import shared
from tests.edited import HOSTS_OF
from tests.golden import (
    ALLOWED,
    CANONICAL,
    EXPECTED,
    GREEN,
    HOSTS,
    NARROW,
    PROVOKED,
    REPORTS,
    WHOLE,
    allowed,
    cases,
    expectation,
    narrow_pages,
    others,
    page_report,
    provoked,
    provoked_by,
    report_anew,
    report_of,
)
from tests.shared import name_of

CASES = cases()
LINES = ("2.1", "2.2", "2.3", "2.4")
LONGEST = 66  # lines of a report, of a host with several pools that fare differently
# true of every guest of the lab: its disks are QEMU's; and the build of Debian 12 lacks this fix of 2.1.12
TRUE_IN_A_VIRTUAL_MACHINE = {"container-or-vm-blind", "advisory-mmap-read-race"}
ONE_LOG_DEVICE = ("-single-slog", "-draid")


@pytest.mark.parametrize("name", WHOLE)
def test_all_that_is_found_on_a_host(name: str) -> None:
    blocks = [each.rstrip() for each in EXPECTED.read_text().split("\n\n")]
    assert expectation(HOSTS / name).rstrip() in blocks, "run: python -m tests.golden"
    assert len(blocks) == len(WHOLE) == 12


@pytest.mark.parametrize("case", others(), ids=name_of)
def test_what_a_host_provokes_and_nothing_else_of_medium_or_more(case: Path) -> None:
    place = provoked_by(case)
    lines = [line for line in PROVOKED.read_text().splitlines() if line.startswith(f"{place}: ")]
    assert provoked(case) == lines, "run: python -m tests.golden"


def test_the_table_is_of_recorded_hosts() -> None:
    assert {line.partition(": ")[0] for line in PROVOKED.read_text().splitlines()} <= set(map(provoked_by, others()))


def test_sixteen_states_over_four_lines() -> None:
    assert len(CASES) >= 16
    lines = Counter(name_of(case).split("-")[0] for case in CASES if not name_of(case).startswith("composed-"))
    assert set(lines) == set(LINES)
    assert min(lines.values()) >= 4


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if "-healthy" in case.name and "raidz1" not in case.name],
    ids=name_of,
)
def test_a_healthy_host_has_no_finding_above_low_that_is_not_true(case: Path) -> None:
    verdicts = [verdict for finding in report_of(case).findings if finding.failed for verdict in finding.verdicts]
    failed = {verdict.rule.id for verdict in verdicts if verdict.severity != "low"}
    assert failed <= TRUE_IN_A_VIRTUAL_MACHINE | (
        {"slog-no-redundancy"} if name_of(case).endswith(ONE_LOG_DEVICE) else set()
    )


def test_golden_reports() -> None:
    report = page_report(CANONICAL)
    assert audit_page.write_text(report, width=100) == (REPORTS / "terminal.txt").read_text()
    assert json_report.render(report) == (REPORTS / "json.json").read_text()


@pytest.mark.parametrize("case", [case for case in CASES if "-physical-" in case.name], ids=name_of)
def test_a_healthy_physical_host_is_green(case: Path) -> None:
    """Nothing failed, nothing undecided: what no guest of the lab can show. The recording says that it is edited."""
    report = report_of(case)
    assert (report.exit_code, report.findings, report.unasked) == (0, (), ())
    assert (report.standing, report.coverage.undecided) == ("kept", 0)
    assert report.coverage.passed > 100
    assert name_of(case) in recording.load(case).edited
    assert "not a real host: " + name_of(case) in " ".join(audit_page.write_text(report).split())
    assert json.loads(json_report.render(report))["recording"]["edited"] == recording.load(case).edited


@pytest.mark.parametrize("case", HOSTS_OF)
def test_an_edited_host_has_nothing_of_the_guest(case: str) -> None:
    assert b"QEMU" not in b"".join(each.stdout for each in shared.host(case).commands.values())


def test_golden_green_report() -> None:
    assert audit_page.write_text(page_report(GREEN), width=100) == (REPORTS / "green.txt").read_text()


def test_a_report_is_the_same_in_every_run() -> None:
    first, second = report_anew(HOSTS / CANONICAL), report_anew(HOSTS / CANONICAL)
    assert json_report.render(first, passed=True) == json_report.render(second, passed=True)


@pytest.mark.parametrize("width", [80, 120])
def test_the_page_says_what_where_and_how_to_fix_it(width: int) -> None:
    lines = audit_page.write_text(report_of(HOSTS / CANONICAL), width=width).splitlines()
    page = "\n".join(lines)
    assert len(lines) <= (27 if width >= 100 else 40)
    assert all(len(line) <= width for line in lines)
    assert "A CRASH OR POWER CUT LOSES ACKNOWLEDGED COMMITS" in page
    assert "CRITICAL  sync-disabled" in page
    assert "sync=disabled" in page
    assert "zfs set sync=standard tank" in " ".join(page.split())  # its condition stands before it, and may wrap


@pytest.mark.parametrize("case", CASES, ids=[name_of(case) for case in CASES])
def test_the_first_twelve_lines_answer_and_give_the_first_fix(case: Path) -> None:
    report = report_of(case)
    lines = audit_page.write_text(report, width=100).splitlines()
    assert len(lines) <= LONGEST
    assert report.headline in " ".join(" ".join(lines[:5]).split())
    failed = [each for each in report.findings if each.failed and each.severity != "low"]
    assert any(line.startswith(("Fix first", "Look first")) for line in lines[:12]) == bool(failed)
    assert any("power cut" in line for line in lines[:12]) == bool(report.columns)
    narrow = audit_page.write_text(report, width=40).splitlines()
    assert all(len(line) <= 40 for line in narrow if not re.search(r"\S{30}", line))


@pytest.mark.parametrize("name", sorted(path.name for path in NARROW.iterdir()))
def test_narrow_pages(name: str) -> None:
    """Where 40 or 60 columns are all that there is no word of a sentence is broken."""
    assert narrow_pages()[name] == (NARROW / name).read_text(), "run: python -m tests.golden"
    assert sorted(each.name for each in NARROW.iterdir()) == sorted(narrow_pages())


def test_every_command_that_may_run_is_listed() -> None:
    assert allowed() == ALLOWED.read_text(), "run: python -m tests.golden"


def test_each_event_is_told_with_what_goes_at_it() -> None:
    """Killing PostgreSQL takes commits of a role. Without fsync a crash takes those of all, and what comes back is of one
    transaction group, which is consistent."""
    report = report_of(HOSTS / "2.3-db-postgres-fsync-off")
    assert report.headline == "KILLING THE DATABASE LOSES ACKNOWLEDGED COMMITS, A CRASH OR POWER CUT LOSES MORE OF THEM"
    (column,) = [each for each in report.columns if "tank/pg" in each.names]
    assert column.cells["crash"].takes == ("commits",)


def test_dots_within_a_fix_do_not_end_it() -> None:
    page = audit_page.write_text(report_of(HOSTS / "2.3-db-postgres-fsync-off"), width=100)
    assert "Fix     ALTER ROLE NAME RESET synchronous_commit for" in page


@pytest.mark.parametrize("case", CASES, ids=[name_of(case) for case in CASES])
def test_what_an_event_costs_stands_apart_from_its_name(case: Path) -> None:
    """However long the list of events is that share a line."""
    for width in (80, 100, 120):
        page = audit_page.write_text(report_of(case), width=width)
        assert not re.search(r"[a-z](no loss|LOSES|CORRUPTS|unknown, may)", page)
