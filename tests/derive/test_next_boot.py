"""Whether a pool comes back when the host starts: which units are reached, and what they import."""

from __future__ import annotations

import pytest

from auditor.derive import next_boot
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known, unknown

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
    lost: str = "",
    names: tuple[str, ...] = ("imported_at_boot", "mounted_at_boot"),
) -> list[bool | str]:
    """imported, mounted; a text where it is not known."""
    facts = Facts()
    values: dict[str, bool | tuple[str, ...]] = {
        "systemd": systemd,
        "zfs_units_wanted": wanted,
        "zfs_units_masked": masked,
        "cached_pools": cached,
        "generated_pools": lists,
        "mount_table": mounts,
    }
    for name, value in values.items():
        facts.put(Fact(HOST, name, unknown("lost") if name == lost else known(value, name)))
    found = [each.value for each in next_boot.derive(TANK, facts) if each.name in names]
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
    assert all(isinstance(each.value, Unknown) for each in next_boot.derive(TANK, Facts()))
