"""Whether GRUB reads the pool at /boot: what it says itself, and the features that it does not know."""

from __future__ import annotations

import pytest

from auditor.collect import grub_probe
from auditor.data import grub
from auditor.derive import grub_features
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known
from auditor.host.request import Skip

BPOOL, TANK = Subject("pool", "bpool"), Subject("pool", "tank")
ROOT = "41 28 0:51 / / rw - zfs rpool/ROOT rw"
BOOT = "42 41 0:52 / /boot rw - zfs bpool/BOOT rw"
GRUB = "43 42 0:53 / /boot/grub rw - zfs bpool/grub rw"
AUTO = "42 41 0:52 / /boot rw - autofs systemd-1 rw"
PLAIN = "42 41 8:1 / /boot rw - ext4 /dev/sda1 rw"


def host(*mounts: str) -> Facts:
    facts = Facts()
    facts.put(Fact(HOST, "mount_table", known(mounts, "")))
    return facts


@pytest.mark.parametrize(
    ("mounts", "of_bpool", "of_tank"),
    [
        ((ROOT, BOOT), "/boot", ""),
        ((ROOT, GRUB), "/boot/grub", ""),
        ((ROOT, BOOT, GRUB), "/boot", ""),
        ((ROOT, PLAIN, GRUB), "/boot/grub", ""),
        ((ROOT, BOOT, PLAIN), "", ""),
        ((ROOT,), "", ""),
        ((ROOT, AUTO), None, None),
    ],
)
def test_where_grub_looks(mounts: tuple[str, ...], of_bpool: str | None, of_tank: str | None) -> None:
    for pool, place in ((BPOOL, of_bpool), (TANK, of_tank)):
        found = grub_probe.place(pool, host(*mounts))
        if place:
            assert found == place
        else:
            assert isinstance(found, Skip)
            assert found.applies is (place is None)


def test_the_table_has_each_feature_once() -> None:
    assert not grub.READ & grub.READ_ONLY_COMPATIBLE
    assert not (grub.READ | grub.READ_ONLY_COMPATIBLE) & grub.BEYOND


def judged(*active: str) -> Known | Unknown:
    facts = host(ROOT, BOOT)
    facts.put(Fact(BPOOL, "active_features", known(active, "")))
    (found,) = (each for each in grub_features.derive(BPOOL, facts) if each.name == "features_beyond_grub")
    return found.value


def test_features_beyond_it() -> None:
    ours = ("async_destroy", "lz4_compress", "large_blocks", "livelist")
    fine = judged(*ours)
    assert isinstance(fine, Known)
    assert fine.value == ""
    found = judged(*ours, "head_errlog", "vdev_zaps_v2", "of_tomorrow")
    assert isinstance(found, Known)
    assert found.value == "head_errlog, vdev_zaps_v2"
    later = judged(*ours, "of_tomorrow")
    assert isinstance(later, Unknown)
    assert "of_tomorrow" in later.reasons[0].text
