"""Bugs that a later release fixes: in which build they are, what they need to strike, and their mark in the kernel's log."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from auditor.data import releases
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.model.release import _used, known_bugs

TABLE: dict[str, dict[str, object]] = {
    "opens-snapshot": {
        "bug": "panics when a snapshot is opened",
        "does": "panic",
        "uses": ["snapshots"],
        "affected": "2.3.0-2.3.9 2.4.0-2.4.1",
        "subject": "Fix it",
        "issues": [1],
        "panic": ["zil_async_to_sync"],
    },
    "loses-keys": {
        "bug": "hangs where encrypted volumes are sent",
        "does": "hang",
        "uses": ["encryption", "volumes"],
        "affected": "2.2.0-2.2.3 2.3.0-2.3.4",
        "subject": "Fix keys",
        "issues": [],
        "hung": [["zil_close", "zil_commit"]],
        "fault": ["zvol_read"],
    },
}
OPEN: dict[str, object] = {
    "bug": "stops what mounts nothing",
    "does": "hang",
    "uses": ["encryption"],
    "affected": "2.2.0- 2.3.0- 2.4.0-",
    "subject": "Reject it",
    "issues": [2],
    "panic": ["zpl_get_tree"],
    "unreleased": True,
    "until": "mount nothing",
}
REAL = releases.load_fixes()
POOL, ROOT, DATASET = Subject("pool", "tank"), Subject("dataset", "tank"), Subject("dataset", "tank/db")
OTHER = Subject("pool", "other")
PLAIN = {"encryption": "off", "type": "filesystem"}
BOTH = {"encryption": "aes-256-gcm", "type": "volume"}
LOG = ("zfs_stopped_in", "zfs_oopses", "hung_traces")


@pytest.fixture(autouse=True)
def of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "load_fixes", lambda: releases.parse_fixes(TABLE))


def told(
    release: str,
    *,
    properties: Mapping[str, str] | None = None,
    seen: bool = True,
    part: str = "",
    log: Mapping[str, tuple[str, ...] | None] | None = None,
) -> dict[str, Known | Unknown]:
    """What is derived on a host with one dataset, none of whose log shows anything but what is given."""
    facts = Facts()
    facts.put(Fact(HOST, "zfs_version_text", known(release, release)))
    facts.put(Fact(HOST, "platform", known("debian", "")))
    facts.put(Fact(HOST, "pools", known((POOL,), "zpool list")))
    facts.put(Fact(HOST, "imported_pools", known((POOL, OTHER) if part == "pool" else (POOL,), "zpool list")))
    datasets = (DATASET,) if part == "dataset" else (ROOT, DATASET)
    facts.put(Fact(POOL, "datasets", known(datasets, "zfs get") if seen else unknown("nobody may ask")))
    for name, given in PLAIN.items():
        facts.put(Fact(ROOT, name, known(given, given)))
    for name, given in (properties or {}).items():
        facts.put(Fact(DATASET, name, known(given, given)))
    for name in LOG:
        value = (log or {}).get(name, ())
        facts.put(Fact(HOST, name, unknown("not asked") if value is None else known(value, "dmesg")))
    return {fact.name: fact.value for fact in known_bugs.derive(HOST, facts)}


SNAPSHOT = "panics when a snapshot is opened (2.3.10)"
KEYS = "hangs where encrypted volumes are sent (2.3.5)"


@pytest.mark.parametrize(
    ("release", "properties", "bugs"),
    [
        ("2.3.4-1", PLAIN, [SNAPSHOT]),
        ("2.3.4-1", BOTH, [SNAPSHOT, KEYS]),
        ("2.3.4-1", {**BOTH, "type": "filesystem"}, [SNAPSHOT]),
        ("2.3.4-1", {**BOTH, "encryption": "off"}, [SNAPSHOT]),
        ("2.3.5-1", BOTH, [SNAPSHOT]),
        ("2.2.3", BOTH, ["hangs where encrypted volumes are sent (2.2.4)"]),
        ("2.2.4", BOTH, []),
        ("2.4.2-1", BOTH, []),
        ("2.1.11-1", BOTH, []),
    ],
)
def test_in_which_release_and_with_what_in_use(release: str, properties: dict[str, str], bugs: list[str]) -> None:
    found = told(release, properties=properties)
    assert list(found["bugs_fixed_later"].words()) == bugs
    said = found["bugs_fixed_later_told"]
    assert isinstance(said, Known)
    assert str(said.value).startswith(str(len(bugs)))
    assert all(bug in str(said.value) for bug in bugs)


def test_what_only_another_line_fixes_is_no_finding_in_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"opens-snapshot": {**TABLE["opens-snapshot"], "affected": "2.3.0- 2.4.0-2.4.1"}}
    monkeypatch.setattr(releases, "load_fixes", lambda: releases.parse_fixes(table))
    found = told("2.3.9-1", properties=PLAIN)
    assert found["bugs_fixed_later"].words() == ()
    assert found["bugs_not_fixed"].words() == ("panics when a snapshot is opened (2.4.2)",)
    assert told("2.4.1-1", properties=PLAIN)["bugs_fixed_later"].words() == found["bugs_not_fixed"].words()


def test_a_build_of_which_nothing_is_read_lacks_nothing_where_no_bug_can_strike() -> None:
    """Of a release without encryption in use."""
    table = {"loses-keys": TABLE["loses-keys"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(releases, "load_fixes", lambda: releases.parse_fixes(table))
        assert told("2.3.4-1ubuntu9", properties=PLAIN)["bugs_fixed_later"].words() == ()
        found = told("2.3.4-1ubuntu9", properties=PLAIN)["bugs_fixed_later"], told("2.3.4-1ubuntu9", properties=BOTH)
    assert isinstance(found[0], Known)
    assert isinstance(found[1]["bugs_fixed_later"], Unknown)


@pytest.mark.parametrize("part", ["pool", "dataset"])
def test_where_a_part_was_looked_at_the_rest_may_use_it(part: str) -> None:
    assert told("2.3.4", properties=PLAIN, part=part)["bugs_fixed_later"].words() == (SNAPSHOT, KEYS)
    assert told("2.3.4", properties=PLAIN)["bugs_fixed_later"].words() == (SNAPSHOT,)


def test_volumes_are_shared_by_no_nfs() -> None:
    facts = Facts()
    for name in ("pools", "imported_pools"):
        facts.put(Fact(HOST, name, known((POOL,), "zpool list")))
    facts.put(Fact(POOL, "datasets", known((ROOT, DATASET), "zfs get")))
    facts.put_all([Fact(ROOT, "type", known("filesystem", "")), Fact(ROOT, "sharenfs", known("off", ""))])
    facts.put(Fact(DATASET, "type", known("volume", "")))
    found = _used("nfs", facts)
    assert isinstance(found, Known)
    assert found.value is False


def test_who_builds_it_under_the_same_number_is_not_debian() -> None:
    """2.1.11-1 is what OpenZFS tags, and what Debian built once."""
    assert "2.1.11-1" in releases.load_builds()
    found = told("2.1.11-1", properties=PLAIN)["bugs_fixed_later"]
    assert isinstance(found, Known)
    assert not any("Debian" in each.text for each in found.evidence)


def test_what_was_not_seen_leaves_it_open() -> None:
    assert isinstance(told("2.3.4", properties={})["bugs_fixed_later"], Unknown)
    assert isinstance(told("2.3.4", properties=PLAIN, seen=False)["bugs_fixed_later"], Unknown)
    assert told("2.3.5", properties={}, seen=False)["bugs_fixed_later"].words() == (SNAPSHOT,), "it needs neither"


@pytest.mark.parametrize("release", ["2.4.99", "2.5.0", "2.3.4-1ubuntu9"])
def test_of_a_release_after_the_table_and_of_a_build_with_patches_nothing_is_known(release: str) -> None:
    assert isinstance(told(release, properties=PLAIN)["bugs_fixed_later"], Unknown)


@pytest.mark.parametrize("release", ["0.6.4-184-g6bec435", "0.8.0-rc3", "2.0.0-rc1"])
def test_a_line_has_ended_whatever_was_built_of_it(release: str) -> None:
    found = told(release, properties=PLAIN)
    assert isinstance(found["bugs_fixed_later"], Unknown)
    assert (
        found["bugs_fixed_later_told"].or_none() == "not counted of what is no release; no release of this line follows"
    )
    assert isinstance(told("2.3.0-rc1", properties=PLAIN)["bugs_fixed_later_told"], Unknown)


@pytest.mark.parametrize("use", ["cache", "spares"])
def test_what_a_pool_has_besides_its_vdevs_is_seen(use: str) -> None:
    facts = Facts()
    leaf = Subject("leaf", "nvme9n1", "tank")
    for name in ("pools", "imported_pools"):
        facts.put(Fact(HOST, name, known((POOL,), "zpool list")))
    facts.put(Fact(POOL, "datasets", known((ROOT,), "zfs get")))
    links = {"cache": "cache_leaves", "spares": "spare_leaves"}
    for each in links.values():
        facts.put(Fact(POOL, each, known((leaf,) if each == links[use] else (), "zpool status")))
    facts.put(Fact(leaf, "allocation_class", known({"cache": "cache", "spares": "spare"}[use], "zpool status")))
    used = {each: _used(each, facts) for each in links}
    assert {each for each, found in used.items() if isinstance(found, Known) and found.value is True} == {use}


def test_a_build_with_patches_of_a_release_without_bugs_has_none_to_carry() -> None:
    assert told("2.4.4-1~bpo13+1")["bugs_fixed_later"].words() == ()
    assert isinstance(told("2.4.4-1~bpo13+1")["bugs_fixed_later"], Known)


def test_what_a_known_build_carries_it_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    build = releases.Build("Debian 13", "its changelog", "a newer one", frozenset(), ("Fix keys",))
    monkeypatch.setattr(releases, "load_builds", lambda: {"2.3.4-1+deb13u1": build})
    assert told("2.3.4-1+deb13u1", properties=BOTH)["bugs_fixed_later"].words() == (SNAPSHOT,)


@pytest.mark.parametrize(
    ("release", "log", "marked"),
    [
        ("2.3.4", {"zfs_stopped_in": ("zil_async_to_sync",)}, [SNAPSHOT]),
        ("2.3.4-1ubuntu9", {"zfs_stopped_in": ("zil_async_to_sync",)}, [SNAPSHOT]),
        ("2.4.2", {"zfs_stopped_in": ("zil_async_to_sync",)}, []),
        ("2.3.4", {"zfs_oopses": ("zil_async_to_sync=1",)}, []),
        ("2.3.4", {"zfs_oopses": ("zvol_read=2",)}, [KEYS]),
        ("2.3.4", {"hung_traces": ("cv_wait zil_commit", "cv_wait zil_close")}, []),
        ("2.3.4", {"hung_traces": ("cv_wait zil_commit zil_close",)}, [KEYS]),
        ("2.3.4", {}, []),
    ],
)
def test_the_mark_of_a_bug_in_the_log(release: str, log: Mapping[str, tuple[str, ...]], marked: list[str]) -> None:
    assert list(told(release, log=log)["bugs_in_the_log"].words()) == marked


@pytest.mark.parametrize("missing", LOG)
def test_where_a_part_of_the_log_was_not_seen_none_is_not_said(missing: str) -> None:
    assert isinstance(told("2.3.4", log={missing: None})["bugs_in_the_log"], Unknown)


def test_a_mark_counts_where_a_part_of_the_log_was_not_seen() -> None:
    found = told("2.3.4", log={"zfs_stopped_in": ("zil_async_to_sync",), "hung_traces": None})["bugs_in_the_log"]
    assert found.words() == (SNAPSHOT,)


@pytest.mark.parametrize("version", [unknown("not loaded"), known("v2", "v2")])
def test_nothing_without_a_release(version: Known | Unknown) -> None:
    facts = Facts()
    facts.put(Fact(HOST, "zfs_version_text", version))
    assert all(isinstance(fact.value, Unknown) for fact in known_bugs.derive(HOST, facts))


@pytest.fixture
def of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "load_fixes", lambda: releases.parse_fixes({**TABLE, "open": OPEN}))


NONE = "stops what mounts nothing (no release up to 2.4.4 fixes it; until then: mount nothing)"


@pytest.mark.parametrize(
    ("release", "properties", "bugs"),
    [
        ("2.4.4-1", BOTH, (NONE,)),
        ("2.4.4-1", PLAIN, ()),
        ("2.2.11-1", BOTH, (NONE,)),
        ("2.1.16-1", BOTH, ()),
    ],
)
def test_what_no_release_fixes_is_told_apart(
    release: str, properties: dict[str, str], bugs: tuple[str, ...], of_three: None
) -> None:
    found = told(release, properties=properties)
    assert found["bugs_not_fixed"].words() == bugs
    assert NONE not in found["bugs_fixed_later"].words(), "an upgrade does not mend it"


@pytest.mark.parametrize(("release", "named"), [("2.4.4-1", (NONE,)), ("2.3.4-1ubuntu9", (NONE,)), ("2.1.16-1", ())])
def test_the_mark_of_what_no_release_fixes(release: str, named: tuple[str, ...], of_three: None) -> None:
    assert told(release, log={"zfs_stopped_in": ("zpl_get_tree",)})["bugs_in_the_log"].words() == named


@pytest.mark.parametrize("release", ["2.4.5-1", "2.5.0-1"])
def test_a_release_after_the_table_may_have_fixed_it(release: str, of_three: None) -> None:
    found = told(release, properties=BOTH, log={"zfs_stopped_in": ("zpl_get_tree",)})
    assert isinstance(found["bugs_not_fixed"], Unknown)
    assert found["bugs_in_the_log"].words() == ()


def test_what_no_release_fixes_and_a_build_carries(monkeypatch: pytest.MonkeyPatch, of_three: None) -> None:
    build = releases.Build("Debian 13", "its changelog", "a newer one", frozenset(), ("Reject it",))
    monkeypatch.setattr(releases, "load_builds", lambda: {"2.3.4-1+deb13u1": build})
    assert told("2.3.4-1+deb13u1", properties=BOTH)["bugs_not_fixed"].words() == ()
    assert isinstance(told("2.3.4-1ubuntu9", properties=BOTH)["bugs_not_fixed"], Unknown)


def test_no_newer_build_is_offered_where_none_helps(monkeypatch: pytest.MonkeyPatch, of_three: None) -> None:
    build = releases.Build("Debian 13", "its changelog", "a newer one", frozenset(), ())
    monkeypatch.setattr(releases, "load_builds", lambda: {"2.3.4-1+deb13u1": build})
    found = told("2.3.4-1+deb13u1", properties=BOTH)["bugs_not_fixed"]
    assert isinstance(found, Known)
    assert found.words() == (NONE,)
    assert not any("a newer one" in each.text for each in found.evidence)


OLD = TABLE["loses-keys"] | {"affected": "0.6.5-0.6.5.1 0.8.0- 2.0.0-2.0.3", "uses": ["encryption"]}
FLUSHES = {**TABLE["opens-snapshot"], "affected": "2.0.0- 2.1.0-2.1.13", "subject": "Fix buffered/direct/mmap I/O race"}


@pytest.mark.parametrize(
    ("release", "mended"),
    [
        ("0.6.5-1", "0.6.5.2"),
        ("0.6.5.1-1", "0.6.5.2"),
        ("0.6.5.2-1", ""),
        ("0.8.3-1ubuntu12.14", "2.0.4"),
        ("2.0.3-9", "2.0.4"),
        ("2.0.4-1", ""),
    ],
)
def test_of_a_line_that_has_ended_whoever_built_it(monkeypatch: pytest.MonkeyPatch, release: str, mended: str) -> None:
    found = releases.parse_fixes({"ended": OLD})
    monkeypatch.setattr(releases, "load_fixes", lambda: found)
    wanted = (f"{OLD['bug']} ({mended})",) if mended else ()
    assert told(release, properties=BOTH)["bugs_fixed_later"].words() == wanted
    assert told(release, properties=PLAIN)["bugs_fixed_later"].words() == (), "it needs encryption"
    assert told(release, seen=False)["bugs_fixed_later"].words() == wanted, "the release is a finding as it is"


def test_what_has_an_advisory_is_named_of_lines_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    found = releases.parse_fixes({"flushes": FLUSHES})
    monkeypatch.setattr(releases, "load_fixes", lambda: found)
    assert told("2.0.7-1")["bugs_fixed_later"].words() == (f"{FLUSHES['bug']} (2.1.14)",)
    assert told("2.1.5-1")["bugs_fixed_later"].words() == ()


@pytest.mark.parametrize(
    ("release", "bug", "there"),
    [
        ("0.6.2-1", "msync", True),
        ("0.6.3-1", "msync", False),
        ("0.6.5.1-1", "one after the other", True),
        ("0.6.5.2-1", "one after the other", False),
        ("0.7.6-1", "files vanish", False),
        ("0.7.7-1", "files vanish", True),
        ("0.7.8-1", "files vanish", False),
        ("0.8.3-1ubuntu12.14", "raw stream", True),
        ("2.0.1-1", "writers hang", True),
        ("2.0.2-1", "writers hang", False),
        ("2.0.7-1", "can hold zeros", True),
        ("2.1.16-1", "with AMX", True),
        ("2.2.0-1", "with AMX", False),
        ("0.6.5.1-1", "snapshot that is mounted already", False),
        ("0.6.5.3-1", "snapshot that is mounted already", True),
        ("0.7.13-1", "zero-length read", True),
        ("0.6.4.2-1", "mount that gives no options", False),
        ("0.6.5-1", "mount that gives no options", True),
        ("0.6.5.1-1", "mount that gives no options", False),
        ("0.7.13-1", "by a cache file what another host", False),
        ("2.0.7-1", "by a cache file what another host", True),
        ("2.1.16-1", "by a cache file what another host", True),
        ("2.2.0-1", "by a cache file what another host", False),
        ("2.4.4-1", "mount without a source", True),
        ("2.1.16-1", "mount without a source", False),
    ],
)
def test_which_old_release_has_it(release: str, bug: str, there: bool) -> None:
    numbers = releases.of(release)
    assert numbers
    assert any(bug in fix.bug for fix in REAL if fix.strikes(numbers)) is there


@pytest.mark.parametrize("release", ["0.6.0", "0.6.5.11-1", "0.7.13-1", "0.8.6-1", "2.0.7-1"])
def test_every_release_that_has_ended_has_a_bug_that_needs_nothing(release: str) -> None:
    numbers = releases.of(release)
    assert numbers
    assert [fix for fix in REAL if fix.strikes(numbers) and not fix.uses]


def test_every_bug_has_a_release_without_it_or_is_said_to_have_none() -> None:
    assert all(
        (releases.without(fix.affected, bounds[0]) is None) is fix.unreleased for fix in REAL for bounds in fix.affected
    )
