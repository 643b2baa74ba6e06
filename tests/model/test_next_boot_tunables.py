"""tunables.toml against real hosts, and the values that the next boot sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor import registry
from auditor.data import releases
from auditor.facts import HOST, Fact, Facts, Judged, Known, Unknown, known, unknown
from auditor.model.next_boot import LOSES_COMMITS, parameters
from auditor.model.release import release
from auditor.recording import recording
from auditor.sources import kernel_module
from tests.shared import HOSTS, name_of

HEALTHY = [case for case in HOSTS.cases() if name_of(case).endswith("-healthy-mirrored-slog")]


def on(options: tuple[str, ...] | None, version: str = "2.3.9-1", **now: int | str) -> dict[str, Judged]:
    """What is derived of a host with these options for the next boot (None: not readable) and these values now."""
    facts = Facts()
    numbers = tuple(map(int, version.partition("-")[0].split(".")))
    facts.put(Fact(HOST, "zfs_version", known(numbers, version)))
    facts.put(Fact(HOST, "mount_table", known(("28 1 259:1 / / rw - ext4 /dev/sda1 rw",), "mounts")))
    facts.put(Fact(HOST, "zfs_version_text", known(version, version)))
    facts.put(Fact(HOST, "platform", known("debian", "")))
    facts.put_all(release.derive(HOST, facts))
    for name, each in releases.load_tunables().items():
        if default := each.default(numbers):
            facts.put(Fact(HOST, name, known(now.get(name, default), f"{name}={now.get(name, default)}")))
    if options is None:
        facts.put(Fact(HOST, "zfs_boot_options", unknown("/etc/modprobe.d/zfs.conf: permission denied")))
    else:
        seen = tuple(known(each, f"options zfs {each}").evidence[0] for each in options)
        facts.put(Fact(HOST, "zfs_boot_options", Known(options, seen)))
    return {fact.name: fact.value for fact in parameters.derive(HOST, facts)}


@pytest.mark.parametrize("case", HEALTHY, ids=name_of)
def test_the_defaults_are_those_of_real_hosts(case: Path) -> None:
    """Every parameter of the table, on a guest that set none of them."""
    there = {path: text for each in recording.load(case).files.values() for path, text in each.text.items()}
    numbers = {"2.1": (2, 1, 11), "2.2": (2, 2, 11), "2.3": (2, 3, 9), "2.4": (2, 4, 4)}[name_of(case)[:3]]
    for name, each in releases.load_tunables().items():
        assert there.get(f"/sys/module/zfs/parameters/{name}", "").strip() == each.default(numbers), name


def test_the_table_is_of_parameters_that_are_read() -> None:
    assert set(releases.load_tunables()) <= set(kernel_module.parameters.facts)
    assert set(LOSES_COMMITS) <= set(releases.load_tunables())
    assert len(HEALTHY) == 4
    assert all(("host", f"{name}_boot") in registry.registry() for name in LOSES_COMMITS)


def test_a_default_holds_from_a_release_on() -> None:
    bulk, gone = releases.load_tunables()["zil_slog_bulk"], releases.load_tunables()["zfs_sync_taskq_batch_pct"]
    assert [bulk.default(each) for each in ((2, 1, 16), (2, 2, 0), (2, 2, 1), (2, 4, 9))] == ["786432"] * 2 + [
        "67108864"
    ] * 2
    assert (gone.default((2, 2, 11)), gone.default((2, 3, 0)), gone.default((2, 0, 7))) == ("75", "", "")


def test_the_next_boot() -> None:
    found = on(("zfs_txg_timeout=0x1e", "zil_replay_disable=1"))
    assert isinstance(found["zil_replay_disable_boot"], Known)
    assert found["zil_replay_disable_boot"].value == 1
    assert found["zil_replay_disable_boot"].evidence[0].text == "options zfs zil_replay_disable=1"
    assert getattr(found["zfs_nocacheflush_boot"], "value", None) == 0
    assert getattr(found["tunables_drifting"], "value", None) == ("zfs_txg_timeout=5 becomes 0x1e",)
    assert getattr(found["tunables_changed"], "value", None) == ()


def test_what_cannot_be_read_is_unknown() -> None:
    found = on(None)
    unread = [name for name in found if name.endswith("_boot")]
    assert len(unread) == len(LOSES_COMMITS)
    assert all(isinstance(found[name], Unknown) for name in (*unread, "tunables_drifting"))
    assert isinstance(on(("zil_replay_disable=yes",))["zil_replay_disable_boot"], Unknown)
    other = on((), version="2.9.0-1")
    assert isinstance(other["tunables_changed"], Unknown)
    assert isinstance(other["zfs_nocacheflush_boot"], Unknown)


def test_what_is_not_at_its_default() -> None:
    found = on((), zfs_send_corrupt_data=1, zfs_arc_max=1 << 30, zfs_recover=1, zfs_delay_scale=1)
    assert getattr(found["tunables_changed"], "value", None) == ("zfs_send_corrupt_data=1", "zfs_delay_scale=1")
    assert getattr(found["tunables_risky"], "value", None) == ("zfs_send_corrupt_data=1",)
    assert isinstance(found["tunables_risky"], Known)
    assert "by default 0 (1: zfs send replaces" in found["tunables_risky"].evidence[0].text
    assert len(getattr(found["tunables_drifting"], "value", ())) == 4


@pytest.mark.parametrize(
    ("text", "published"),
    [("2.3.9", True), ("2.3.9-1", True), ("2.3.9-2", None), ("2.1.11-1+deb12u9", None), ("2.2.2-0ubuntu9.4", True)],
)
def test_a_distribution_may_have_changed_a_release(text: str, published: bool | None) -> None:
    facts = Facts()
    facts.put(Fact(HOST, "zfs_version_text", known(text, text)))
    facts.put(Fact(HOST, "platform", known("any", "")))
    found = {fact.name: fact.value for fact in release.derive(HOST, facts)}["build_has_zil_prune"]
    assert (found.value if isinstance(found, Known) else None) == published
