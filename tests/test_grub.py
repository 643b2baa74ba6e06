"""Whether GRUB reads the pool at /boot: the features that it does not know, and what a snapshot leaves."""

from __future__ import annotations

import pytest

from auditor.collect.grub_version import pools_of_boot
from auditor.data import grub
from auditor.derive import grub_features
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, unknown
from auditor.host.request import Skip

BPOOL = Subject("pool", "bpool")
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
    ("mounts", "pools"),
    [
        ((ROOT, BOOT), ("bpool",)),
        ((ROOT, GRUB), ("bpool",)),
        ((ROOT, BOOT, GRUB), ("bpool",)),
        ((ROOT, PLAIN, GRUB), ("bpool",)),
        ((ROOT, BOOT, PLAIN), ()),
        ((ROOT,), ()),
        ((ROOT, AUTO), None),
        ((ROOT, BOOT.replace("bpool", "my\\040pool")), ("my pool",)),
    ],
)
def test_where_grub_looks(mounts: tuple[str, ...], pools: tuple[str, ...] | None) -> None:
    found = pools_of_boot(host(*mounts))
    assert isinstance(found, Skip) if pools is None else found == pools


@pytest.mark.parametrize(
    ("mounts", "at_boot"),
    [((ROOT, BOOT), True), ((ROOT, BOOT, PLAIN), False), ((ROOT,), False), ((ROOT, AUTO), None)],
)
def test_whether_it_is_at_boot(mounts: tuple[str, ...], at_boot: bool | None) -> None:
    (found,) = (each.value for each in grub_features.derive(BPOOL, host(*mounts)) if each.name == "at_boot")
    assert (found.value if isinstance(found, Known) else None) is at_boot


def test_the_table_has_each_feature_once() -> None:
    assert not grub.READ & grub.READ_ONLY_COMPATIBLE
    assert not (grub.READ | grub.READ_ONLY_COMPATIBLE) & grub.BEYOND


def judged(*active: str, grub: tuple[int, int] | None = (2, 12), top: str | None = "") -> object:
    facts = host(ROOT, BOOT)
    facts.put(Fact(BPOOL, "active_features", known(active, "")))
    facts.put(Fact(HOST, "grub_version", known(grub, "") if grub else unknown("no GRUB")))
    facts.put(Fact(BPOOL, "top_dataset_extended", unknown("not asked") if top is None else known(top, "")))
    (found,) = (each.value for each in grub_features.derive(BPOOL, facts) if each.name == "unread_by_grub")
    return found.value if isinstance(found, Known) else found.reasons[0].text


GUIDE = ("async_destroy", "embedded_data", "extensible_dataset", "lz4_compress", "userobj_accounting")
SNAPSHOT = "before GRUB 2.12 its top dataset is none with snapshots_changed=1"


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (judged(*GUIDE), ""),
        (judged(*GUIDE, grub=(2, 6)), ""),
        (judged(*GUIDE, grub=(2, 6), top="snapshots_changed=1"), SNAPSHOT),
        (judged(*GUIDE, top="snapshots_changed=1"), ""),
        (judged("lz4_compress", grub=(2, 6), top="snapshots_changed=1"), ""),  # where nothing can be extended
        (judged(*GUIDE, grub=(2, 6), top=None), "not asked"),
        (judged(*GUIDE, top=None), ""),
        (judged(*GUIDE, grub=None), "no GRUB"),
        (judged(*GUIDE, "head_errlog", "vdev_zaps_v2", grub=(2, 6)), "it uses head_errlog, vdev_zaps_v2"),
        (judged(*GUIDE, "head_errlog", grub=None), "no GRUB"),  # and something else starts the host
        (judged(*GUIDE, "head_errlog", "of_tomorrow"), "it uses head_errlog"),
        (judged(*GUIDE, "of_tomorrow"), "whether GRUB reads of_tomorrow is not known here"),
        (judged(*GUIDE, "zstd_compress"), "it uses zstd_compress"),
        (judged(*GUIDE, "zstd_compress", grub=(2, 14)), ""),
        (judged(*GUIDE, "zstd_compress", grub=None), "no GRUB"),
        (judged(*GUIDE, "zstd_compress", "sha512", grub=(2, 14)), "it uses sha512"),
        (judged(*GUIDE, grub=(2, 11), top="snapshots_changed=1"), SNAPSHOT),
    ],
)
def test_what_it_does_not_read(found: object, why: str) -> None:
    assert found == why
