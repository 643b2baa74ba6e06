"""Hosts of platforms that the lab does not boot: a healthy one has no finding, and what is missing is said in its own words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from auditor import audit
from auditor.facts import HOST, KINDS, Unknown
from auditor.host.request import WITNESS, Capture, Files
from auditor.recording import recording
from auditor.recording.recording import Recording, ReplayHost
from auditor.report import audit_page
from auditor.report.model import Report
from auditor.sources.zfs import CHANGELOGS
from tests import shared
from tests.composed import NAMES, PLATFORMS, composed, main
from tests.data.test_platforms import others
from tests.edited import BASE, VIRTUAL
from tests.judge.test_policy import judged
from tests.judge.test_waivers_answers import ADOPTED, HYPERVISOR
from tests.shared import name_of

NEED = {
    "proxmox-ve-9": "apt install nvme-cli",
    "truenas-25.10": "nvme-cli (TrueNAS takes no packages)",
    "ubuntu-zsys-26.04": "apt install nvme-cli",
    "rocky-9": "dnf install nvme-cli",
    "nixos-25.11": "nvme-cli in environment.systemPackages",
}


ASIDE = {  # from its release: builds of the other platforms of docs/platforms.md that are up to date, on a host like theirs
    "2.3.9-0+deb13u1": "proxmox-ve-9",
    "2.4.4-1~bpo13+1": "proxmox-ve-9",
    "2.4.4-pve1": "proxmox-ve-9",
    "2.3.9-1": "rocky-9",
}


def host(name: str) -> Recording:
    return shared.host(f"composed-{name}")


def report(past: Recording) -> Report:
    seen = audit.look(ReplayHost(past), (), audit.Options())
    return audit.judge(seen, shared.audited(), (), "low")


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_healthy_host_has_no_finding(name: str) -> None:
    found = report(composed(shared.host(name_of(BASE)), name, "2.4.4-1"))
    assert [(each.rule.id, each.severity) for each in found.findings] == []
    assert (found.exit_code, found.standing, found.unasked) == (0, "kept", ())
    assert found.coverage.passed > 100
    assert f"composed as {name}" in found.edited
    assert len(audit_page.write_text(found, width=100).splitlines()) <= 15


@pytest.mark.parametrize(("zfs", "name"), [*(("", each) for each in PLATFORMS), *ASIDE.items()])
def test_with_the_release_that_it_has_it_is_quiet_without_a_policy(zfs: str, name: str) -> None:
    found = report(composed(shared.host(name_of(BASE)), name, zfs) if zfs else host(name))
    assert [each.rule.id for each in found.findings] == []
    assert (found.exit_code, found.standing, found.unasked) == (0, "kept", ())


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_healthy_guest_is_quiet_once_somebody_answers_for_its_hypervisor(name: str) -> None:
    past = composed(shared.host(name_of(BASE)), name, like=VIRTUAL)
    assert [(each.rule.id, each.failed) for each in judged("", past).findings] == [("container-or-vm-blind", True)]
    for policy in (ADOPTED, HYPERVISOR.replace("2026-11-21", "2027-11-21")):
        found = judged(policy, past)
        assert (found.exit_code, [each.rule.id for each in found.findings]) == (0, [])


@pytest.mark.parametrize("name", ["proxmox-ve-9", "ubuntu-zsys-26.04"])
def test_a_fix_that_the_changelog_does_not_name_is_unknown(name: str) -> None:
    """The same host without the changelog, and with one that names another fix alone."""
    whole = host(name)
    (key,) = (patterns for patterns in whole.files if CHANGELOGS[0] in patterns)
    text = whole.files[key].text[CHANGELOGS[0]]
    entry = text.splitlines()[0]
    for other in ({}, {CHANGELOGS[0]: f"{entry}\n  * cherry-pick 'Reduce minimal scrub/resilver times'\n"}):
        errors = {each: "no such file or directory" for each in CHANGELOGS if each not in other}
        witness = {WITNESS: whole.files[key].text[WITNESS]}
        found = report(replace(whole, files={**whole.files, key: Files({**witness, **other}, errors=errors)}))
        assert found.exit_code == 13
        assert not any(each.failed for each in found.findings)
        assert "known-bugs" in {each.rule.id for each in found.findings}


def test_all_of_them_can_be_written(tmp_path: Path) -> None:
    main(tmp_path)
    assert {each.name: recording.load(each) for each in tmp_path.iterdir()} == {
        f"{name}.zaudit": shared.host(name) for name in NAMES
    }


@pytest.mark.parametrize("name", PLATFORMS)
def test_what_is_missing_is_said_in_words_of_the_platform(name: str) -> None:
    past = host(name)
    gone = {argv: Capture(None, fault="not installed") for argv in past.commands if argv[0] in ("nvme", "smartctl")}
    assert len(gone) > 10
    page = " ".join(audit_page.write_text(report(replace(past, commands={**past.commands, **gone})), verbose=2).split())
    assert NEED[name] in page
    ways = {each for each in ("apt install", "dnf install", "systemPackages", "TrueNAS takes") if each in page}
    assert ways == {each for each in ways if each in NEED[name]}


@pytest.mark.parametrize("name", PLATFORMS)
def test_no_reason_is_in_words_of_another_platform(name: str) -> None:
    """Where none of its tools is there."""
    past = host(name)
    gone = {argv: Capture(None, fault="not installed") for argv in past.commands if argv[0] not in ("zfs", "zpool")}
    facts = audit.look(ReplayHost(replace(past, commands={**past.commands, **gone})), (), audit.Options()).facts
    values = (value for kind in KINDS for subject in facts.subjects(kind) for value in facts.of(subject).values())
    said = {
        word
        for value in values
        if isinstance(value, Unknown)
        for reason in value.reasons
        for word in (reason.text, reason.remedy)
    }
    assert len(said) > 20
    foreign = others(facts.get(HOST, "platform").word())
    # why a question is put to one platform alone is never shown
    assert [each for each in said if foreign.search(each) and not each.startswith("this is not ")] == []


def test_what_is_wrong_with_a_database_is_found_beside_the_system() -> None:
    """The same host with sync=disabled on the pool of the data."""
    past = host("truenas-25.10")
    commands = {
        argv: each._replace(
            stdout=each.stdout.replace(b"tank/db\tsync\tstandard\tdefault", b"tank/db\tsync\tdisabled\tlocal")
        )
        for argv, each in past.commands.items()
    }
    found = report(replace(past, commands=commands))
    assert [each.rule.id for each in found.findings if each.severity == "critical"] == ["sync-disabled"]
    assert {str(each.subject) for finding in found.findings if finding.failed for each in finding.verdicts} <= {
        "tank",
        "tank/db",
        "tank/db/wal",
    }
    assert found.next_step == "zaudit explain sync-disabled", "the command has a condition"


@pytest.mark.parametrize(
    ("name", "old", "new", "rule"),
    [
        ("nixos-25.11", "zpool-trim.timer", "", "autotrim-none"),
    ],
)
def test_a_host_without_its_job_is_told(name: str, old: str, new: str, rule: str) -> None:
    """The schedules of these platforms are seen, not taken for granted."""
    past = host(name)
    files = {
        patterns: each._replace(
            text={path: text.replace(old, new) for path, text in each.text.items() if new or old not in path},
            errors={
                **each.errors,
                **{path: "no such file or directory" for path in each.text if not new and old in path},
            },
        )
        for patterns, each in past.files.items()
    }
    assert [each.rule.id for each in report(replace(past, files=files)).findings] == [rule]


def test_nothing_writes_into_the_pool_of_the_system() -> None:
    assert report(host("truenas-25.10")).next_step == "zaudit verify tank"
