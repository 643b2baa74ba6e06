"""What the changelog of a distribution's package says of fixes: named is fixed, all else stays unknown."""

from __future__ import annotations

import gzip
import re

import pytest

from auditor.data import releases
from auditor.facts import HOST, Fact, Facts, Known, known, unknown
from auditor.host.request import WITNESS, Files, Read
from auditor.model import release
from auditor.model.release import BUGS, Changelog, Commit, commits
from auditor.sources import zfs
from auditor.sources.zfs import CHANGELOG_BYTES, changelog, keep_changelog

RUNS = "2.2.2-0ubuntu9.3"
SUBJECT = "dnode_is_dirty: check dnode and its data for dirtiness"
COMMIT = Commit(frozenset({"9b9b09f452"}), SUBJECT)
PATCH = "4701-dnode_is_dirty-check-dnode-and-its-data-for-dirtine.patch"
APART = unknown("a build", "zless changelog; or upgrade")


def of(*changes: str, runs: str = RUNS) -> Changelog:
    """changes: rows of the fact, or of the running version where they name none."""
    rows = tuple(each if each[:1].isdigit() else f"{RUNS} {each}" for each in changes)
    facts = Facts()
    facts.put(Fact(HOST, "zfs_changes", known(rows, "", "zless changelog")))
    return Changelog.of(known_text(runs), facts)


def known_text(text: str) -> Known:
    return known(text, text)


@pytest.mark.parametrize(
    "change",
    [
        f"Cherry-pick '{SUBJECT}'",
        f"Fix data corruption (LP: #2044657) - d/p/u/{PATCH}",
        "backport 9b9b09f452",
        f"d/p: add {SUBJECT.replace('_', ' ').upper()}",
    ],
)
def test_a_change_that_names_the_commit(change: str) -> None:
    assert of("rebuild", change).names(COMMIT) == change
    assert of("2.2.2-0ubuntu9.4 rebuild", change).names(COMMIT) == change, "of an older entry of what runs"


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("Fix data corruption",),
        (f"Revert '{SUBJECT}'",),
        (f"Drop {PATCH}",),
        (f"Commented out: d/p/u/{PATCH}",),
        (f"d/p/u/{PATCH}: no longer applied",),
        (f"Undo '{SUBJECT}'", f"add {PATCH}"),
        (f"Roll back {PATCH}",),
        (f"Skip '{SUBJECT}' for now",),
        (f"This is affected by '{SUBJECT}', not yet in",),
        (f"Revert: d/p/u/{PATCH}", f"2.2.2-0ubuntu9.1 add {PATCH}"),
        ("d/p/4701-dnode.patch",),
        (f"2.2.1-1 add {PATCH}",),  # of another release: what became of it nobody says
    ],
)
def test_a_change_that_does_not(changes: tuple[str, ...]) -> None:
    assert of("rebuild", *changes).names(COMMIT) == ""


@pytest.mark.parametrize("runs", ["2.2.2-0ubuntu9.4", "2.2.2-0ubuntu9", "2.2.2-1"])
def test_of_a_build_that_it_does_not_have_it_says_nothing(runs: str) -> None:
    assert of(f"add {PATCH}", runs=runs).changes == ()


def test_what_came_after_the_build_that_runs_is_not_in_it() -> None:
    """The package was upgraded, and the module of before still runs."""
    assert of("2.2.2-0ubuntu9.4 add " + PATCH, "rebuild").names(COMMIT) == ""


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("cherry-pick fix for #15571", True),
        ("pull in the fix of openzfs/zfs/pull/15571", True),
        ("Fix build (Closes: #15571)", False),
        ("Fix build (LP: #2044657, #15571)", False),
        ("Note #15571", False),
        ("do not apply #15571", False),
        ("cherry-pick fix for #155710", False),
    ],
)
def test_a_pull_request(change: str, *, named: bool) -> None:
    assert bool(of(change).pulls("15571")) is named


def decided(bug: str, *changes: str) -> object:
    found = of(*changes).judge(bug, APART)
    return found.value if isinstance(found, Known) else None


def test_a_bug_is_fixed_only_by_all_of_its_commits() -> None:
    first, second = (f"cherry-pick '{each.subject}'" for each in commits("multihost-claim")[0])
    assert decided("multihost-claim", first) is decided("multihost-claim", second) is None
    assert decided("multihost-claim", first, second) is False


@pytest.mark.parametrize("bug", [name for name in BUGS if commits(name)[0]])
def test_every_advisory_with_a_commit_can_be_named(bug: str) -> None:
    fixes = commits(bug)[0]
    patches = [f"add 0001-{re.sub(r'[^A-Za-z0-9.]+', '-', each.subject)}.patch" for each in fixes if each.subject]
    hashes = [f"backport {min(each.hashes)}" for each in fixes]
    assert decided(bug, *hashes) is False
    assert decided(bug, *patches) is (False if len(patches) == len(fixes) else None)
    assert decided(bug, "Fix build") is None


def test_a_commit_that_brought_a_bug_is_no_fix() -> None:
    assert decided("unlock-regression", "backport e257bd481b") is None


def test_what_is_known_without_it_stays() -> None:
    alike = known(value=True, text="a release as it was published")
    assert of(f"add {PATCH}").judge("dirty-dnode-holes", alike) is alike


def test_the_reason_says_that_the_changelog_was_read() -> None:
    found = of("rebuild").judge("dirty-dnode-holes", APART)
    assert not isinstance(found, Known)
    assert [each.text for each in found.reasons] == [
        f"{RUNS} is a separate build whose changelog does not name the fix"
    ]
    assert of().judge("dirty-dnode-holes", APART) is APART


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ("Linux 6.14 compat: META", True),
        ("Add support for kernel 6.14", True),
        ("Add support for linux 6.1", False),
        ("Linux 6.140 compat", False),
        ("Revert 'Linux 6.14 compat'", False),
        ("see Linux 6.14", False),
    ],
)
def test_for_which_kernel_it_was_made(change: str, *, fits: bool) -> None:
    assert bool(of(change).supports("6.14")) is fits


# -- what is kept of the file -----------------------------------------------------------------------------------------

TEXT = f"""zfs-linux ({RUNS}) noble; urgency=medium

  [ A Person ]
  * Add {PATCH}
    Thanks to <a.person@example.org>

 -- A Person <a.person@example.org>  Thu, 07 Nov 2024 10:00:00 +0000

"""


def raw(data: bytes) -> str:
    """As a file is read."""
    return data.decode("utf-8", "surrogateescape")


def test_no_person_is_kept() -> None:
    kept = keep_changelog(raw(gzip.compress(TEXT.encode())))
    assert kept == f"zfs-linux ({RUNS})\n  * Add {PATCH}\n    Thanks to <>\n"
    assert keep_changelog(kept) == kept


# what rpm 4.18 prints of a package with such entries: of ALT, of OpenZFS itself before 2.0, and of SUSE
RPM = """* Thu Dec 06 2018 Anton Farygin <rider@altlinux.ru> 2.2.4-3.site
- fixed buffer overflow during zfs replication (thanks shrek@) (closes: #35730)
- Revert
  "sys/zfs_context: make ddi_time_* macros visible for build kernel- modules"

* Mon Dec 03 2018 somebody@example.org
- of no version

* Thu Feb 01 2018 Tony Hutter <hutter2@llnl.gov> - 2.2.4-1.el9
- Released 0.7.6-1, thanks to <hutter2@llnl.gov>

"""


def test_what_rpm_prints_is_kept_in_the_same_form() -> None:
    kept = keep_changelog(RPM)
    assert kept.splitlines() == [
        "zfs (2.2.4-3.site)",
        "  * fixed buffer overflow during zfs replication (thanks shrek@) (closes: #35730)",
        "  * Revert",
        '    "sys/zfs_context: make ddi_time_* macros visible for build kernel- modules"',
        "zfs (2.2.4-1)",
        "  * Released 0.7.6-1, thanks to <>",
    ]
    assert keep_changelog(kept) == kept
    long = keep_changelog(RPM + "- it\n" * 5_000_000)
    assert len(long) <= CHANGELOG_BYTES
    assert keep_changelog(long) == long
    assert keep_changelog("* Thu Dec 06 2018 " + "x" * 5_000_000) == ""


def test_only_the_build_that_runs_is_judged_by_what_rpm_prints() -> None:
    """A package that is newer than the loaded module says nothing of it."""
    reply = Files({WITNESS: "nodev\tsysfs\n", zfs.RPM: keep_changelog(RPM.replace("fixed buffer overflow", SUBJECT))})
    (fact,) = changelog.parse(reply, HOST)
    facts = Facts()
    facts.put(fact)
    assert Changelog.of(known_text("2.2.4-3.site"), facts).names(COMMIT).startswith(SUBJECT)
    assert Changelog.of(known_text("2.2.4-2.site"), facts).names(COMMIT) == ""
    assert isinstance(fact.value, Known)
    assert fact.value.evidence[0].command == f"zless {zfs.RPM}"


def test_a_file_that_others_could_have_changed_names_no_fix() -> None:
    facts = Facts()
    facts.put(Fact(HOST, "zfs_version_text", known("2.4.3-pve1", "2.4.3-pve1")))
    assert changelog.request(HOST, facts) == Read((*zfs.CHANGELOGS, WITNESS), trusted=True)


def test_a_file_that_swells_is_cut() -> None:
    swollen = gzip.compress(TEXT.encode() + b"  * more of it\n" * 5_000_000)
    assert len(keep_changelog(raw(swollen))) <= CHANGELOG_BYTES
    assert keep_changelog(raw(swollen)).startswith("zfs-linux")
    assert len(keep_changelog(TEXT + "  * more of it\n" * 5_000_000)) <= CHANGELOG_BYTES


@pytest.mark.parametrize("data", [b"", b"\x1f\x8b", b"\x1f\x8bnonsense", b"\0\xff", gzip.compress(b"\xff\0", mtime=0)])
def test_what_is_none_has_nothing(data: bytes) -> None:
    assert keep_changelog(raw(data)) == ""


def test_it_is_asked_of_a_build_that_nobody_has_read() -> None:
    def asked(text: str) -> bool:
        facts = Facts()
        facts.put(Fact(HOST, "zfs_version_text", known(text, text)))
        return hasattr(changelog.request(HOST, facts), "patterns")

    assert [asked(each) for each in ("2.3.9-1", next(iter(releases.load_builds())), RUNS)] == [False, False, False]
    assert asked("2.4.3-pve1")


def test_a_long_word_is_looked_at_once() -> None:
    """A host that somebody else recorded may say anything: tried from each of its characters, this word takes an hour."""
    long = "a" * CHANGELOG_BYTES
    assert of(long, f"add {PATCH}").names(COMMIT) == f"add {PATCH}"


def test_a_changelog_is_read_once_for_all_fixes(monkeypatch: pytest.MonkeyPatch) -> None:
    changelog = of(*(f"change {each}" for each in range(50)))
    read = list[str]()
    monkeypatch.setattr(release, "_plain", lambda text: read.append(text) or text)  # type: ignore[func-returns-value]
    assert [changelog.names(COMMIT) for _ in range(10)] == [""] * 10
    assert read == [SUBJECT] * 10
