"""A kernel that is installed and has no zfs module: only newer ones count, and only where dkms builds them."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Unknown, unknown
from tests.derive.test_pool_facts import World

HERE, NEXT, OLD = "6.12.48+deb13-amd64", "6.12.57+deb13-amd64", "6.12.9+deb13-amd64"
UNSEEN = unknown("/var/lib/dkms: permission denied")


@pytest.mark.parametrize(
    ("built", "installed", "by_dkms", "without"),
    [
        ((HERE,), (HERE, NEXT), True, (NEXT,)),
        ((HERE,), (HERE, OLD), True, ()),
        ((HERE, NEXT), (HERE, NEXT), True, ()),
        ((), (HERE, NEXT), False, (NEXT,)),
        ((OLD,), (HERE, NEXT), False, (NEXT,)),
        ((HERE,), (), True, ()),
        (UNSEEN, (HERE, NEXT), None, None),
        ((HERE,), UNSEEN, True, None),
    ],
)
def test_which_have_none(
    built: tuple[str, ...] | Unknown,
    installed: tuple[str, ...] | Unknown,
    by_dkms: bool | None,
    without: tuple[str, ...] | None,
) -> None:
    world = World()
    names = built if isinstance(built, Unknown) else tuple(f"{each}-x86_64" for each in built)
    world.put(HOST, kernel_release=HERE, dkms_zfs_kernels=names, kernels_with_headers=installed)
    assert (world.get(HOST, "zfs_by_dkms"), world.get(HOST, "kernels_without_zfs")) == (by_dkms, without)
