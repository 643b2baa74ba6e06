"""Versions that are of no release: what their numbers tell, and what follows from them."""

from __future__ import annotations

import pytest

from auditor.data import releases
from auditor.facts import HOST, Fact, Facts, Known, Unknown, known
from auditor.judge import verdict
from auditor.model.kernels import untested
from auditor.model.next_boot import parameters
from auditor.model.release import BUGS, known_bugs, release
from auditor.sources.zfs import versions
from tests.shared import rules

NO_RELEASES = ("2.1.99-1", "2.2.99-1", "2.3.99-0", "2.3.0-rc3", "2.4.0-rc1", "2.2.5-12_g0123abcde", "2.3.0-1-g0123abcd")


def host(text: str) -> Facts:
    """One with this version, of which nothing else is known."""
    facts = Facts()
    facts.put_all(versions("zfs_version", text, "cat /sys/module/zfs/version"))
    facts.put(Fact(HOST, "kernel_release", known("6.12.33", "6.12.33")))
    facts.put(Fact(HOST, "zfs_boot_options", known((), "none")))
    for each in (release, known_bugs, untested, parameters):
        facts.put_all(each.derive(HOST, facts))
    return facts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.3.9-1", (2, 3, 9)),
        ("2.1.5-1ubuntu6~22.04.7", (2, 1, 5)),
        ("2.1.11-1+deb12u1", (2, 1, 11)),
        ("2.2.99-1", (2, 2, 99)),
        ("2.2.99-423_g0123abcde", (2, 2, 99)),
        ("2.4.0-rc1", (2, 4, 0, "rc1")),
        ("2.2.0-0ubuntu1~rc3", (2, 2, 0, "rc3")),
        ("2.3.0-rc3_12_g0123abcde", (2, 3, 0, "rc3")),
        ("2.3.0-1-g0123abcd", (2, 3, 0, "1-g0123abcd")),
        ("2.2.5-12_g0123abcde", (2, 2, 5, "12_g0123abcde")),
        ("2.3.4-arch1", (2, 3, 4)),
    ],
)
def test_a_mark_stands_behind_the_numbers_of_what_is_no_release(text: str, expected: tuple[int | str, ...]) -> None:
    numbers, _ = versions("zfs_version", text, "zfs version")
    assert isinstance(numbers.value, Known)
    assert numbers.value.value == expected


@pytest.mark.parametrize(
    ("version", "told", "untold"),
    [
        ((2, 3, 9), [(2, 3), (2, 3, 9), (2, 4, 0)], []),
        # of a snapshot the lines before it are sure, fixes in releases of the line before it are not
        ((2, 2, 99), [(0, 8), (2, 1), (2, 2), (2, 0, 7), (2, 4), (2, 4, 1)], [(2, 3), (2, 3, 0), (2, 2, 0)]),
        ((2, 2, 99), [(2, 5)], [(2, 1, 13), (2, 2, 8), (2, 3, 4)]),
        ((0, 8, 99), [(0, 8), (0, 6, 5), (2, 1)], [(2, 0), (0, 8, 6)]),
        # a candidate was made of what was called 2.3.99 until then
        ((2, 4, 0, "rc1"), [(2, 3), (2, 2, 8), (2, 5)], [(2, 4), (2, 4, 0), (2, 4, 1), (2, 3, 9)]),
        # this one has all that 2.2.5 has
        ((2, 2, 5, "12_g0123abcde"), [(2, 2), (2, 2, 4), (2, 3), (2, 1, 13)], [(2, 2, 5), (2, 2, 6), (2, 2, 11)]),
    ],
)
def test_which_releases_are_near(
    version: tuple[int | str, ...], told: list[tuple[int, ...]], untold: list[tuple[int, ...]]
) -> None:
    assert [each for each in told if releases.untold(version, each) or releases.untold(each, version)] == []
    assert [each for each in untold if not releases.untold(version, each) or not releases.untold(each, version)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.1.0- 2.2.0- 2.3.0-2.3.3", "all of 2.1, all of 2.2, 2.3.0 to 2.3.3"),
        ("2.2.1-", "2.2.1 and later of 2.2"),
        ("2.2.7-2.2.7 2.3.0-2.3.1", "2.2.7, 2.3.0 to 2.3.1"),
    ],
)
def test_ranges_as_people_read_them(text: str, expected: str) -> None:
    assert releases.in_words(releases.ranges(text)) == expected


@pytest.mark.parametrize("text", NO_RELEASES)
def test_what_follows_from_a_number_is_not_known_of_what_is_no_release(text: str) -> None:
    facts = host(text)
    for name in ("bugs_fixed_later", "bugs_fixed_later_told", "bugs_in_the_log"):
        found = facts.get(HOST, name)
        assert isinstance(found, Unknown)
        assert "its number does not say" in found.reasons[0].text


@pytest.mark.parametrize("text", NO_RELEASES[:5])
def test_kernels_and_defaults_that_changed_near_it_are_not_known(text: str) -> None:
    facts = host(text)
    assert isinstance(facts.get(HOST, "untested"), Unknown)
    changed = facts.get(HOST, "tunables_changed")
    assert isinstance(changed, Unknown)


def surely_outside(version: tuple[object, ...], first: releases.Release, last: releases.Release) -> bool:
    """last: a line where no release of it has the fix."""
    numbers = tuple(each for each in version if isinstance(each, int))
    end = last if len(last) == 3 else (last[0], last[1] + 1)
    before = numbers < first and not releases.untold(version, first)
    return before or (numbers > end and not releases.untold(version, end))


@pytest.mark.parametrize("text", NO_RELEASES)
def test_no_advisory_passes_by_a_release_that_is_near(text: str) -> None:
    facts = host(text)
    version = facts.get(HOST, "zfs_version")
    assert isinstance(version, Known)
    assert isinstance(version.value, tuple)
    for rule in rules():
        if not rule.id.startswith("advisory-"):
            continue
        bounds = releases.ranges(BUGS[rule.id.removeprefix("advisory-")]["affected"])
        near = not all(surely_outside(version.value, *each) for each in bounds)
        outcome = verdict.judge_one(rule, HOST, facts).outcome
        assert outcome == "unknown" or (outcome == "pass" and not near), rule.id


@pytest.mark.parametrize(
    ("text", "ended"), [("2.2.99-1", None), ("2.0.7-1", True), ("2.4.0-rc1", False), ("2.1.5-1", False)]
)
def test_of_a_snapshot_nobody_says_that_its_line_is_maintained(text: str, ended: bool | None) -> None:
    found = host(text).get(HOST, "line_ended")
    assert (found.value if isinstance(found, Known) else None) is ended
