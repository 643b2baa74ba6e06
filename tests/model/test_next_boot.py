"""Whether a pool comes back when the host starts: which units are reached, and what they import."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.model.next_boot import pool_at_boot

TANK = Subject("pool", "tank")
CHAIN = ("multi-user.target zfs.target", "zfs.target zfs-import.target", "zfs.target zfs-mount.service")
CACHE = (*CHAIN, "zfs-import.target zfs-import-cache.service")
SCAN = (*CHAIN, "zfs-import.target zfs-import-scan.service")
ROOT = "25 1 0:22 / / rw - zfs tank/ROOT/debian rw"


def derived(
    wanted: tuple[str, ...],
    masked: tuple[str, ...] = (),
    cached: tuple[str, ...] = ("rpool", "tank"),
    lists: tuple[str, ...] = (),
    mounts: tuple[str, ...] = (),
    *,
    systemd: bool = True,
    own: tuple[str, ...] = (),
    requires: tuple[str, ...] = (),
    commands: tuple[int | str, ...] = (2, 4, 4),
    lost: str = "",
    names: tuple[str, ...] = ("imported_at_boot", "mounted_at_boot"),
) -> list[bool | str]:
    """imported, mounted; a text where it is not known."""
    facts = Facts()
    values: dict[str, bool | tuple[int | str, ...]] = {
        "systemd": systemd,
        "zfs_units_wanted": wanted,
        "zfs_units_masked": masked,
        "cached_pools": cached,
        "generated_pools": lists,
        "mount_table": mounts,
        "zfs_units_changed": own,
        "fstab_requires": requires,
        "zfs_userland_version": commands,
    }
    for name, value in values.items():
        facts.put(Fact(HOST, name, unknown("lost") if name == lost else known(value, name)))
    found = [each.value for each in pool_at_boot.derive(TANK, facts) if each.name in names]
    return [bool(each.value) if isinstance(each, Known) else each.reasons[0].text for each in found]


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (derived(CACHE), [True, True]),
        (derived(CACHE, cached=("rpool",)), [False, True]),
        (derived(CACHE, cached=()), [False, True]),
        (derived(CACHE[1:]), [False, False]),  # nobody wants zfs.target
        (derived(CACHE, masked=("zfs-import-cache.service",)), [False, True]),
        (derived(CACHE, masked=("zfs-import.target",)), [False, True]),
        (derived(CACHE, masked=("zfs-mount.service",)), [True, False]),
        (derived(CACHE, masked=("zfs-mount.service",), lists=("tank",)), [True, True]),
        (derived(SCAN), [False, True]),  # it does not run beside a cache file
        (derived(SCAN, cached=()), [True, True]),
        (derived((*CHAIN, "zfs-import.target zfs-import@tank.service"), cached=()), [True, True]),
        (derived((*CHAIN, "zfs-import.target zfs-import-tank.service"), cached=()), [True, True]),
        (derived((), mounts=(ROOT,)), [True, False]),
        (derived(CACHE, systemd=False), ["systemd: what it starts is not looked at"] * 2),
        (derived(CACHE, lost="zfs_units_masked"), ["lost"] * 2),
        (derived(CACHE, lost="cached_pools"), ["lost", True]),
        (derived(CHAIN[:2], lost="generated_pools"), [False, "lost"]),
    ],
)
def test_what_brings_it_back(found: list[bool | str], says: list[bool | str]) -> None:
    assert found == says


OLD = (CHAIN[0], CHAIN[2], "zfs.target zfs-import-cache.service", "zfs-mount.service zfs-import-cache.service")
UNSEEN = "no link starts zfs-import.target, but "


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (derived(OLD), [True, False]),
        (derived((*CHAIN[::2], "zfs.target zfs-import-scan.service"), cached=()), [True, False]),
        (derived((*OLD, CHAIN[1])), [True, True]),
        (derived((*OLD, CHAIN[1]), masked=("zfs-import.target",)), [True, False]),
        (derived(OLD, commands=(0, 7, 3)), [True, True]),
        (derived(OLD, commands=(0, 7, 4)), [True, False]),
        (derived(OLD, commands=(2, 4, 0, "rc1")), [True, False]),
        (
            derived(OLD, cached=("rpool",)),
            [False, True],
        ),  # of a pool that nothing imports the rule about that one tells
        (derived(OLD, requires=("zfs-import.target",)), [True, True]),
        (derived(OLD, requires=("zfs-import.target",), masked=("zfs-import.target",)), [True, False]),
        (derived(OLD, mounts=(ROOT,)), [True, True]),
        (derived(OLD, lists=("tank",)), [True, True]),
        (derived(OLD, lists=("rpool",)), [True, f"{UNSEEN}zfs-mount-generator may start it, for rpool"]),
        (
            derived(OLD, own=("zfs-mount.service",)),
            [True, f"{UNSEEN}what zfs-mount.service says in /etc/systemd/system is not looked at"],
        ),
        (
            derived((*OLD, "zfs-mount.service zfs-load-key@tank.service")),
            [True, f"{UNSEEN}what zfs-load-key@tank.service does is not looked at"],
        ),
        (
            derived(OLD, mounts=(ROOT.replace("tank", "rpool"),)),
            [True, f"{UNSEEN}the initramfs may import all pools, as the root file system is on OpenZFS"],
        ),
        *((derived(OLD, lost=each), [True, "lost"]) for each in ("mount_table", "zfs_units_changed", "fstab_requires")),
        *((derived(OLD, lost=each), [True, "lost"]) for each in ("generated_pools", "zfs_userland_version")),
        (derived(OLD, lost="cached_pools"), ["lost", "lost"]),
    ],
)
def test_the_mounts_wait_for_the_import_where_something_starts_its_target(
    found: list[bool | str], says: list[bool | str]
) -> None:
    assert found == says


def test_the_scan_takes_all_pools_where_there_is_no_cache_file() -> None:
    scanned = ("scanned_at_boot",)
    assert derived(SCAN, cached=(), names=scanned) == [True]
    assert derived(SCAN, names=scanned) == [False]
    assert derived(CACHE, cached=(), names=scanned) == [False]
    assert derived(SCAN, masked=("zfs-import-scan.service",), cached=(), names=scanned) == [False]
    assert derived(SCAN, lost="cached_pools", names=scanned) == ["lost"]
    assert derived(CACHE, lost="cached_pools", names=scanned) == [False]
    assert derived(SCAN, lost="zfs_units_wanted", names=scanned) == ["lost"]


def test_nothing_known_says_nothing() -> None:
    assert all(isinstance(each.value, Unknown) for each in pool_at_boot.derive(TANK, Facts()))
