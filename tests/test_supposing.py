"""``zaudit check --as openzfs=X``: which known bugs go, come and stay with another release."""

from __future__ import annotations

import json

import pytest

from auditor.commands._supposing import WORDS
from tests.fake import CommandLine
from tests.golden import HOSTS
from tests.shared import rules


def supposed(zaudit: CommandLine, host: str, release: str) -> tuple[str, dict[str, list[str]]]:
    """The first line, and word -> advisories."""
    done = zaudit("check", "--replay", str(HOSTS / host), "--as", f"openzfs={release}")
    assert (done.code, done.err) == (0, "")
    first, *lines, last = done.out.splitlines()
    assert "zpool upgrade" in last
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line.split()[0], []).append(line.split()[1])
    return first, found


def test_an_upgrade_brings_bugs_of_its_own(zaudit: CommandLine) -> None:
    first, found = supposed(zaudit, "2.3-sync-disabled-local", "2.4.1")
    assert "With OpenZFS 2.4.1, as it was published, in place of 2.3.9" in first
    assert "advisory-clone-after-truncate" in found["comes"]
    assert not any(each.startswith("advisory-") for each in found["goes"])


def test_an_upgrade_takes_bugs_away(zaudit: CommandLine) -> None:
    _, found = supposed(zaudit, "2.1-sync-disabled-inherited", "2.4.4")
    assert {"advisory-mmap-read-race", "advisory-line-not-maintained"} <= {*found["goes"]}
    done = zaudit("check", "--replay", str(HOSTS / "2.1-sync-disabled-inherited"), "--as", "openzfs=2.4.4")
    comes = [line for line in done.out.splitlines() if line.startswith("comes")]
    assert all("no release up to 2.4.4 fixes it" in line for line in comes), "what newer lines brought, and still have"


def test_bugs_without_a_rule_of_their_own_are_told_too(zaudit: CommandLine) -> None:
    done = zaudit("check", "--replay", str(HOSTS / "2.1-sync-disabled-inherited"), "--as", "openzfs=2.3.4")
    lines = done.out.splitlines()
    reclaims = "panics on Linux 6.7 and later when memory is reclaimed from a dataset that is being unmounted"
    lacks = "known-bugs (low): OpenZFS"
    assert f"goes   {lacks} 2.1.11-1+deb12u1 {reclaims}; fixed in 2.2.7" in lines
    assert any(line.startswith(f"comes  {lacks} 2.3.4 panics on a pool with damaged space maps") for line in lines)
    assert any(
        line.startswith(f"stays  {lacks} 2.3.4 does not import pools at boot where systemd-udev-settle")
        for line in lines
    )


def test_what_no_release_fixes_stays_or_goes_with_a_release_that_has_it_not_yet(zaudit: CommandLine) -> None:
    past = str(HOSTS / "2.3-sync-disabled-local")
    bug = "leaves a pool that is hard to import when the host crashes just as a RAIDZ expansion starts"
    freed = "panics when a file is freed, often in zfs receive, as a check of its blocks is too strict"
    ahead = zaudit("check", "--replay", past, "--as", "openzfs=2.4.4").out.splitlines()
    lacks = "known-bugs (low): OpenZFS"
    assert f"stays  {lacks} 2.4.4 {freed}; no release up to 2.4.4 fixes it" in ahead
    assert not any(line.startswith("goes") and "no release" in line for line in ahead)
    mounts = "lets any user who may make user namespaces stop all zfs and zpool commands, by a mount without a source"
    back = zaudit("check", "--replay", past, "--as", "openzfs=2.1.16").out.splitlines()
    assert f"goes   {lacks} 2.3.9-0+deb13u1 {mounts}" in back
    assert not any(bug in line and not line.startswith("goes") for line in back)


def test_the_same_release_changes_nothing(zaudit: CommandLine) -> None:
    _, found = supposed(zaudit, "2.4-healthy-physical-no-cache", "2.4.4")
    assert "goes" not in found
    assert "comes" not in found


def test_of_a_release_after_the_table_nothing_is_called_clean(zaudit: CommandLine) -> None:
    done = zaudit("check", "--replay", str(HOSTS / "2.4-healthy-physical-no-cache"), "--as", "openzfs=2.4.9")
    assert "none of them concerns" not in done.out
    assert "open   known-bugs (low): which bugs a release after 2.4.9 fixes" in done.out
    assert (
        "the newest release of this line that zaudit knows is 2.4.4; whether there is 2.4.9 it does not know"
        in done.out
    )


def test_every_row_names_a_rule_that_explain_takes(zaudit: CommandLine) -> None:
    done = zaudit("check", "--replay", str(HOSTS / "2.1-sync-disabled-inherited"), "--as", "openzfs=2.2.0")
    names = {rule.id for rule in rules()}
    assert {line.split()[1] for line in done.out.splitlines() if line.split()[0] in WORDS} <= names


def test_a_kernel_that_is_too_new_for_the_release_is_told(zaudit: CommandLine) -> None:
    done = zaudit("check", "--replay", str(HOSTS / "2.3-sync-disabled-local"), "--as", "openzfs=2.2.0")
    (line,) = (each for each in done.out.splitlines() if "kernel-unsupported" in each)
    assert line.startswith("comes  ")
    assert "OpenZFS 2.2.0 supports up to 6.5" in line


def test_a_snapshot_of_development_is_no_release(zaudit: CommandLine) -> None:
    done = zaudit("check", "--replay", str(HOSTS / "2.3-sync-disabled-local"), "--as", "openzfs=2.4.99")
    assert done.code == 2
    assert "2.4.99 is no release, but a snapshot" in " ".join(done.err.split())


def test_programs_read_it_as_json(zaudit: CommandLine) -> None:
    past = str(HOSTS / "2.3-sync-disabled-local")
    done = zaudit("check", "--replay", past, "--as", "openzfs=2.4.1", "--format", "json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert (found["schema"], found["release"], found["now"]) == ("zaudit-supposed/1", "2.4.1", "2.3.9-0+deb13u1")
    assert {
        "what": "comes",
        "rule": "advisory-clone-after-truncate",
        "severity": "high",
        "text": "Blocks that were cloned over a truncation read as zeros",
        "undecided_now": False,
    } in found["changes"]


@pytest.mark.parametrize("words", ["2.4.4", "openzfs=2.4", "openzfs=2.4.x", "zfs=2.4.4", "openzfs=2.4.99999"])
def test_what_is_no_release_is_a_usage_error(words: str, zaudit: CommandLine) -> None:
    done = zaudit("check", "--replay", str(HOSTS / "2.3-sync-disabled-local"), "--as", words)
    assert done.code == 2
    assert "openzfs=2.4.4" in done.err


def test_it_is_no_report(zaudit: CommandLine) -> None:
    past = str(HOSTS / "2.3-sync-disabled-local")
    done = zaudit("check", "--replay", past, "--as", "openzfs=2.4.4", "--format", "sarif")
    assert done.code == 2
