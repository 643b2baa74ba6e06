"""What a page opens with: damage that is done, then what the next event loses, then what is relied on."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor import audit
from auditor.facts import HOST, Fact, Facts, Subject, unknown
from auditor.judge.event import Cell, Event
from auditor.judge.event_table import Column
from auditor.judge.finding import RANK, Finding, findings, opening
from auditor.judge.verdict import Verdict
from auditor.recording.recording import ReplayHost
from auditor.report import audit_page, phrases
from tests import incidents, shared
from tests.folded import for_each
from tests.renamed import passed_through
from tests.report.test_phrases import RULES
from tests.shared import HOSTS, briefly, name_of, report_of

POOL = Subject("pool", "tank")


def failed(rule: str) -> Verdict:
    """As severe as the rule is where none of its cases holds."""
    return Verdict(RULES[rule], POOL, "fail", RULES[rule].gravest, event="crash" if RULES[rule].elements else "")


@pytest.mark.parametrize(
    ("rules", "cut", "other", "opens"),
    [
        (("pool-data-errors", "sync-disabled"), True, True, "pool-data-errors"),
        (("vdev-errors-nonzero", "sync-disabled"), True, True, ""),
        (("vdev-errors-nonzero", "no-redundancy"), False, True, "vdev-errors-nonzero"),
        (("disk-smart-failed", "no-redundancy"), False, True, ""),
        (("disk-smart-failed",), False, False, "disk-smart-failed"),
        (("vdev-errors-nonzero", "disk-smart-failed"), False, False, "vdev-errors-nonzero"),
        (("atime-on", "autotrim-none"), False, False, ""),
    ],
)
def test_damage_then_the_next_event_then_other_severe_faults(
    rules: tuple[str, ...], cut: bool, other: bool, opens: str
) -> None:
    found = opening(findings([*map(failed, rules)], Facts()), cut=cut, other=other)
    assert (found.rule.id if found else "") == opens


def test_within_a_severity_damage_comes_first_then_the_whole_and_the_id_last() -> None:
    rules = ("disk-smart-failed", "leaf-open-in-guest", "no-redundancy", "scrub-errors", "pool-data-errors")
    ordered = [each.rule.id for each in findings([*map(failed, rules)], Facts())]
    assert ordered == [
        "pool-data-errors",
        "scrub-errors",
        "no-redundancy",
        "leaf-open-in-guest",
        "disk-smart-failed",
    ]


@pytest.mark.parametrize("case", briefly(((each,) for each in HOSTS.cases()), 12), ids=name_of)
def test_no_severe_failure_lies_below_a_headline_that_calms(case: Path) -> None:
    report = report_of(case)
    high = [each for each in report.findings if each.failed and RANK[each.severity] >= RANK["high"]]
    severe = [each.rule.id for each in high if each.rule.id != "known-bugs"]
    assert not (severe and report.standing in ("kept", "on the word"))
    if report.standing in ("damaged", "stalled", "at risk"):
        assert report.lead is not None
        assert phrases.first(report) is not None
        assert (report.lead.message.partition(" (")[0] or report.lead.rule.title).upper() in report.headline


def test_the_release_of_a_recording_is_harmless_in_the_headline() -> None:
    report = report_of(HOSTS / "2.1-degraded-mirror")
    assert report.lead is not None
    hostile = report._replace(lead=report.lead._replace(message="OpenZFS 2\x1b[2J\u202e has 3 known bugs (1)"))
    assert "\x1b" not in hostile.headline
    assert "\u202e" not in hostile.headline
    assert "KNOWN BUGS" in hostile.headline


@pytest.mark.parametrize(
    ("name", "headline", "first"),
    [
        ("2.3-path-that-hangs", "DATA DRIVE FAILURE LOSES THE POOL UNLESS", "no-redundancy"),
        ("2.1-properties-that-cost", "DATA DRIVE FAILURE LOSES THE POOL UNLESS", "no-redundancy"),
        ("2.3-drives-that-warn", "DATA DRIVE FAILURE LOSES THE POOL UNLESS", "raid-volume-hides-disks"),
        ("2.3-rescue-parameters", "SCRUBS WITHOUT DATA READS", "zfs-no-scrub-io"),
        ("2.1-full-81", "NO LOSS FOUND, BUT SURVIVING A POWER CUT", "container-or-vm-blind"),
    ],
)
def test_one_copy_comes_before_what_no_event_causes_and_known_bugs_last(name: str, headline: str, first: str) -> None:
    report = incidents.report_of(passed_through(shared.host(name)))
    assert report.headline.startswith(headline)
    assert (found := phrases.first(report)) is not None
    assert found[1].rule.id == first


def test_what_a_power_cut_may_take_is_said_behind_the_one_copy() -> None:
    assert (
        "; UNKNOWN WHETHER A POWER CUT OF THE PHYSICAL HOST OR STORAGE LOSES"
        in report_of(HOSTS / "2.3-drives-that-warn").headline
    )


@for_each("case", {
    "2.3-healthy-mirrored-slog-nobody": "Look first Run this again as root: 11 rules have no answer without it",
    "2.3-suspended-wait": "What each event would lose is unknown while the pool does not work.",
    "2.3-network-attached": "a power cut of the physical host or storage no loss, relies on the storage behind nvme1n1",
    "2.4-checksum-errors": "Next: zpool status -v tank",
    "2.3-db-postgres-healthy": "Next: zaudit verify tank (writes a test load to the pool: pick a quiet hour)",
    "2.3-db-mariadb-doublewrite-off": "a crash or a power cut of this machine alone CORRUPTS the database",
    "2.3-permanent-errors": "zpool status -v tank [safe] Names the files. Restore them from a replica or a backup",
    "2.3-drives-that-warn": "relies on redundancy in sdd (not verified)",
}.items())  # fmt: skip
def test_a_page_says_what_its_first_step_needs(case: tuple[str, str]) -> None:
    """Rights, a quiet hour, which power cut is meant, whom an answer relies on for what, and what a look is for."""
    host, says = case
    assert says in " ".join(audit_page.write_text(report_of(HOSTS / host), width=100).split())


def loses(event: Event, *rules: str, datasets: int = 1) -> Column:
    cell = Cell("lost", ("commits",), verdicts=tuple(map(failed, rules)))
    return Column(tuple(f"tank/{number}" for number in range(datasets)), {event: cell})


def alone(rule: str) -> Finding:
    (found,) = findings([failed(rule)], Facts())
    return found._replace(severity="critical")


def test_the_first_step_improves_most_at_the_mildest_event_and_settings_come_before_hardware() -> None:
    file, parameter, replay = map(alone, ("file-vdev", "zfs-nocacheflush", "zil-replay-disabled"))
    both = [loses("crash", "file-vdev", "zfs-nocacheflush"), loses("crash", "zfs-nocacheflush")]
    assert phrases.by_gain([file, parameter], both) == [parameter, file]
    assert phrases.by_gain([file, parameter], [*both, loses("restart", "file-vdev")]) == [file, parameter]
    assert (
        phrases.by_gain(
            [parameter, replay], [loses("crash", "zfs-nocacheflush"), loses("crash", "zil-replay-disabled", datasets=2)]
        )[0]
        == replay
    )
    later = [Column(("tank",), {}, next_boot=loses("power", "zil-replay-disabled").cells)]
    assert phrases.by_gain([parameter, replay], later) == [replay, parameter]


def test_known_bugs_come_first_only_where_nothing_else_explains_a_loss() -> None:
    bug, fault = map(alone, ("known-bugs", "sync-disabled"))
    lesser = alone("atime-on")._replace(severity="low")
    assert phrases.by_gain([bug, fault, lesser], [loses("crash", "known-bugs", "sync-disabled")]) == [
        fault,
        lesser,
        bug,
    ]
    assert phrases.by_gain([bug, lesser], [loses("crash", "known-bugs")]) == [bug, lesser]
    assert phrases.by_gain([bug, lesser], []) == [lesser, bug]


def test_where_the_headline_is_unknown_the_first_step_says_what_would_decide_it() -> None:
    """The only failure is about the hypervisor; what is unknown are the databases."""
    past = shared.host("2.3-db-postgres-healthy")
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    seen.facts.replace(Fact(HOST, "databases", unknown("/proc/1/stat: permission denied", "run as root")))
    report = audit.judge(seen, shared.audited(), past.targets, "low")
    assert report.standing == "cannot tell"
    assert (found := phrases.first(report)) is not None
    assert (found[0], found[1].failed) == ("Look first", False)
    assert found[1].rule.id in phrases.of_a_cut(report.columns).rules
    first = " ".join(audit_page.write_text(report, width=100).split()).partition("Look first ")[2]
    assert "because /proc/1/stat: permission denied (run as root)" in first.partition(found[1].rule.id)[0]
