"""Known bugs of releases as rules: where a range begins and ends, and what a distribution's build comes to."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from auditor import rulebook
from auditor.data import releases
from auditor.facts import HOST, Fact, Facts, known
from auditor.judge import known_bugs
from auditor.judge.rule import RuleError
from auditor.judge.verdict import Verdict, judge_one
from auditor.model.release import BUGS, release
from auditor.registry import registry
from auditor.sources.zfs import versions

RULES = {rule.id: rule for rule in rulebook.advisories()}
NEARBY = (
    *("2.0.7-1", "2.1.0-1", "2.1.13-1", "2.1.14-1", "2.2.0", "2.2.1-1", "2.2.7-pve1", "2.1.11-1+deb12u1"),
    *("2.3.1-1", "2.3.8-1", "2.4.1-1", "2.4.5-1", "2.9.0"),
)
ENTRY = """
[zil-prune]
title      = 'Something goes wrong'
severity   = 'high'
harm       = 'commits'
affected   = '2.1.0- 2.2.3-2.2.5'
impact     = 'It hurts.'
why        = 'Because.'
until      = 'Wait.'
references = ['somewhere']
"""


def verdict(rule: Any, text: str, platform: str = "debian") -> Verdict:
    """What a host with this release comes to; nothing else is known of it but its platform, where that is not empty."""
    facts = Facts()
    if platform:
        facts.put(Fact(HOST, "platform", known(platform, "")))
    facts.put_all(versions("zfs_version", text, "cat /sys/module/zfs/version"))
    facts.put_all(release.derive(HOST, facts))
    return judge_one(rule, HOST, facts)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("2.1.0-1", "fail"),
        ("2.1.98", "fail"),
        ("2.1.99-1", "unknown"),  # of development: it may have the fix that 2.2.0 has, and the bug that came with 2.2.3
        ("2.2.99-1", "unknown"),
        ("2.2.99-423_g0123abcde", "unknown"),
        ("2.3.99-1", "unknown"),
        ("2.4.99-1", "pass"),
        ("2.2.0-rc1", "unknown"),
        ("2.3.0-rc5", "unknown"),
        ("2.3.0-0ubuntu1~rc5", "unknown"),
        ("2.2.2-12_g0123abcde", "unknown"),
        ("2.2.5-12-g0123abcde", "unknown"),
        ("2.2.6-12_g0123abcde", "pass"),
        ("2.2.0-1", "pass"),
        ("2.2.2-1", "pass"),
        ("2.2.3-1", "fail"),
        ("2.2.5", "fail"),
        ("2.2.6-1", "pass"),
        ("2.2.6-0ubuntu1", "pass"),
        ("2.2.5-0ubuntu1", "unknown"),
        ("2.1.11-1+deb12u1", "fail"),
        ("2.1.11-1+deb12u9", "unknown"),
        ("2.2.4-2", "unknown"),
        ("2.4.4-1~bpo13+1", "pass"),
        ("2.0.7-1", "unknown"),
        ("2.9.0-1", "unknown"),
    ],
)
def test_ranges_and_builds(text: str, outcome: str) -> None:
    for examples in (True, False):
        (rule,) = known_bugs.load("a.toml", tomllib.loads(ENTRY), registry(), examples=examples)
        assert verdict(rule, text).outcome == outcome


def test_one_release_is_a_range() -> None:
    (rule,) = known_bugs.load(
        "a.toml", tomllib.loads(ENTRY.replace("2.1.0- 2.2.3-2.2.5", "2.2.5-2.2.5")), registry(), examples=True
    )
    assert [verdict(rule, text).outcome for text in ("2.2.4-1", "2.2.5-1", "2.2.6-1")] == ["pass", "fail", "pass"]


EXPOSED = """
exposed  = 'host.zfs_recover == 1'
exposing = { 'host.zfs_recover' = 1 }
spared   = { 'host.zfs_recover' = 0 }
"""


@pytest.mark.parametrize(
    ("text", "name", "release", "given"),
    [
        (ENTRY, "an affected release, and the host is exposed", [2, 1, 0], {}),
        (ENTRY, "a release of another line", [2, 2, 6], {}),
        (ENTRY.replace(" 2.2.3-2.2.5", ""), "a release of another line", [2, 2, 0], {}),
        (ENTRY.replace("2.1.0- ", ""), "the release that fixes it", [2, 2, 6], {}),
        (ENTRY + EXPOSED, "an affected release, and the host is exposed", [2, 1, 0], {"host.zfs_recover": 1}),
        (ENTRY + EXPOSED, "an affected release, and the host is not exposed", [2, 1, 0], {"host.zfs_recover": 0}),
    ],
)
def test_an_example_differs_from_the_affected_host_in_what_its_name_says(
    text: str, name: str, release: list[int], given: dict[str, Any]
) -> None:
    (rule,) = known_bugs.load("a.toml", tomllib.loads(text), registry(), examples=True)
    example = next(each for each in rule.examples if each.name == name)
    assert example.given == {"host.release": release, f"host.{releases.build_fact('zil-prune')}": True, **given}


@pytest.mark.parametrize(
    "text",
    [
        "2.0.7-1",
        "2.1.0-1",
        "2.1.13-1",
        "2.1.14-1",
        "2.2.0",
        "2.2.1-1",
        "2.2.7-pve1",
        "2.3.1-1",
        "2.3.8-1",
        "2.4.1-1",
        "2.4.5-1",
        "2.9.0",
    ],
)
def test_at_a_glance_it_is_the_same(text: str) -> None:
    """What a check judges by, and the condition that the page shows: outcome, evidence and reasons."""
    quick = {rule.id: rule for rule in rulebook.advisories(examples=False)}
    for id, rule in RULES.items():
        one, other = verdict(rule, text), verdict(quick[id], text)
        assert one[2:] == other[2:], id
        assert quick[id].expect.source == rule.expect.source


def test_what_the_rule_says() -> None:
    (rule,) = known_bugs.load("a.toml", tomllib.loads(ENTRY), registry(), examples=True)
    assert (rule.id, rule.severity, rule.harm, rule.fix.cost) == (
        "advisory-zil-prune",
        "high",
        "commits",
        "needs restart",
    )
    assert rule.fix.text == "Upgrade to OpenZFS 2.2.6, or later; no release of 2.1 fixes it. Until then: Wait."
    assert rule.outside == known_bugs.OUTSIDE
    assert [(each.verdict) for each in rule.examples] == ["fail", "pass", "unknown", "pass"]
    (open_,) = known_bugs.load("a.toml", tomllib.loads(ENTRY.replace(" 2.2.3-2.2.5", "")), registry(), examples=True)
    assert open_.fix.text == "Wait. No release is known to fix it."
    (mended,) = known_bugs.load("a.toml", tomllib.loads(ENTRY.replace("2.1.0- ", "")), registry(), examples=True)
    assert mended.fix.text == "Upgrade to OpenZFS 2.2.6, or later. Until then: Wait."
    fixing = next(each for each in mended.examples if each.name == "the release that fixes it")
    assert fixing.given == {"host.release": [2, 2, 6], f"host.{releases.build_fact('zil-prune')}": True}, (
        "it passes by its number"
    )
    reasons = [each.text for each in verdict(rule, "2.1.11-1+deb12u9").reasons]
    assert reasons == ["2.1.11-1+deb12u9 is a separate build: fixes of later releases may be in it"]


@pytest.mark.parametrize(
    ("text", "bug", "outcome"),
    [
        ("2.1.11-1", "dirty-dnode-holes", "fail"),
        ("2.1.11-1+deb12u1", "dirty-dnode-holes", "pass"),
        ("2.1.11-1+deb12u1", "mmap-read-race", "fail"),
        ("2.1.11-1+deb12u1", "line-not-maintained", "fail"),
        ("2.1.11-1+deb12u2", "dirty-dnode-holes", "unknown"),
        ("2.1.5-1ubuntu6~22.04.2", "dirty-dnode-holes", "fail"),
        ("2.1.5-1ubuntu6~22.04.3", "dirty-dnode-holes", "pass"),
        ("2.1.5-1ubuntu6~22.04.7", "dirty-dnode-holes", "pass"),
        ("2.1.5-1ubuntu6~22.04.7", "line-not-maintained", "pass"),
        ("2.1.5-1ubuntu6~22.04.7", "mmap-read-race", "fail"),
        ("2.2.2-0ubuntu9.4", "mmap-flush", "fail"),
        ("2.2.2-0ubuntu9.6", "mmap-flush", "unknown"),
        ("2.2.0-pve3", "dirty-dnode-holes", "fail"),
        ("2.2.0-pve4", "dirty-dnode-holes", "pass"),
        ("2.2.7-pve2", "mapped-file-stall", "unknown"),
        ("2.3.9-0+deb13u1", "free-range-race", "pass"),
        ("2.3.2-2", "free-range-race", "unknown"),
    ],
)
def test_builds_of_distributions(text: str, bug: str, outcome: str) -> None:
    assert verdict(RULES[f"advisory-{bug}"], text).outcome == outcome


@pytest.mark.parametrize(
    ("text", "system", "remedy"),
    [
        ("2.2.7-pve2", "Debian GNU/Linux 12 (bookworm)", "pveupgrade"),
        ("2.1.13-1", "nixos", "nixos-rebuild boot --upgrade"),
        ("2.2.2-0ubuntu9.99", "Ubuntu 24.04 LTS", "apt full-upgrade"),
        ("2.1.11-1+deb12u9", "Debian GNU/Linux 12 (bookworm)", "apt full-upgrade"),
        ("2.1.13-r3", "", "its maintainer's changelog"),
    ],
)
def test_what_to_do_about_a_build_that_nobody_has_read(text: str, system: str, remedy: str) -> None:
    found = verdict(RULES["advisory-mapped-file-stall"], text, system)
    assert found.outcome == "unknown"
    assert remedy in found.reasons[0].remedy


def test_a_build_that_is_called_as_a_release_is_that_only_where_the_platform_is_known() -> None:
    """Of NixOS or TrueNAS it may be, which give releases fixes of later ones."""
    rule = RULES["advisory-mapped-file-stall"]
    assert (verdict(rule, "2.1.13-1").outcome, verdict(rule, "2.1.13-1", "").outcome) == ("fail", "unknown")


def test_the_build_says_which_commit_it_carries() -> None:
    found = verdict(RULES["advisory-trim-overlap"], "2.1.11-1+deb12u1")
    assert found.outcome == "pass"
    texts = " ".join(each.text for each in found.evidence)
    assert "newer" not in texts
    assert "carries 'Zpool can start allocating from metaslab before TRIMs have completed'" in texts


def test_a_host_whose_build_lacks_a_fix_is_told_how_its_distribution_has_a_newer_one() -> None:
    found = verdict(RULES["advisory-mmap-read-race"], "2.1.11-1+deb12u1")
    assert found.outcome == "fail"
    assert "newer: apt install -t bookworm-backports" in " ".join(each.text for each in found.evidence)


def test_a_build_carries_what_those_of_its_release_before_it_carry() -> None:
    carried = [["2.1.1-1", ["x"]], ["2.1.1-2", ["y"]], ["2.1.2-1", ["z"]]]
    series = {"name": "A", "source": "s", "newer": "n", "fixes": [], "builds": carried}
    table = releases.parse_builds({"a": series})
    assert [each.carries for each in table.values()] == [("x",), ("x", "y"), ("z",)]


def test_what_a_distribution_mends_is_a_known_bug() -> None:
    assert {bug for build in releases.load_builds().values() for bug in build.fixes} <= set(BUGS)


@pytest.mark.parametrize("text", ["2.1.16-1", "2.2.11-1", "2.3.9-1", "2.4.4-1"])
def test_the_newest_release_of_each_line(text: str) -> None:
    """Nothing that is not tied to a condition, but for what no release of the old lines mends."""
    failed = {id for id, rule in RULES.items() if verdict(rule, text).outcome == "fail"}
    open_ = {"advisory-mapped-file-stall", "advisory-redacted-send"}
    expected = {"2.1": open_ | {"advisory-line-not-maintained"}, "2.2": open_}
    assert failed == expected.get(text[:3], set())


def test_releases_that_lose_the_syncs_of_volumes() -> None:
    lost = RULES["advisory-zvol-flush-lost"]
    outcomes = {text: verdict(lost, text).outcome for text in ("2.2.6-1", "2.2.7-1", "2.2.8-1", "2.3.1-1", "2.3.2-1")}
    assert outcomes == {
        "2.2.6-1": "pass",
        "2.2.7-1": "unknown",
        "2.2.8-1": "pass",
        "2.3.1-1": "unknown",
        "2.3.2-1": "pass",
    }
    assert (lost.gravest, lost.elements, lost.harm) == ("critical", ("defect",), "commits")


def test_a_known_bug_that_does_not_touch_this_host_is_no_question_of_the_build() -> None:
    """Without a volume nobody has to look into the changelog."""
    facts = Facts()
    for name, value in (("zfs_version", (2, 2, 7)), ("zfs_version_text", "2.2.7-0ubuntu1"), ("zvol_use_blk_mq", 0)):
        facts.put(Fact(HOST, name, known(value, str(value))))
    facts.put_all(release.derive(HOST, facts))
    assert judge_one(RULES["advisory-zvol-blk-mq-sync"], HOST, facts).outcome == "pass"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("'2.1.0- 2.2.3-2.2.5'", "'2.1.0'"), "is not FIRST-LAST"),
        (("'2.1.0- 2.2.3-2.2.5'", "'2.1.0-2.2.5'"), "of one line"),
        (("'2.1.0- 2.2.3-2.2.5'", "'2.2.5-2.2.3'"), "is not FIRST-LAST"),
        (("'2.1.0- 2.2.3-2.2.5'", "'2.1.x-'"), "is not FIRST-LAST"),
        (("'2.1.0- 2.2.3-2.2.5'", "''"), "affected must be text"),
        (("'2.1.0- 2.2.3-2.2.5'", "2.1"), "affected must be text"),
        (("'high'", "'urgent'"), "it is one of low"),
    ],
)
def test_a_wrong_entry_is_an_error_that_names_it(change: tuple[str, str], says: str) -> None:
    text = ENTRY.replace(*change)
    assert text != ENTRY
    with pytest.raises(RuleError, match=r"^a\.toml: ") as error:
        known_bugs.load("a.toml", tomllib.loads(text), registry(), examples=True)
    assert says in str(error.value)
