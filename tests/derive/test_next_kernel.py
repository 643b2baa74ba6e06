"""A kernel that is installed and has no zfs module: only newer ones count, and only where dkms builds them."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Unknown, unknown
from tests.derive.test_pool_facts import World

HERE, NEXT, OLD = "6.12.48+deb13-amd64", "6.12.57+deb13-amd64", "6.12.9+deb13-amd64"
UNSEEN = unknown("/var/lib/dkms: permission denied")


@pytest.mark.parametrize(
    ("built", "installed", "without"),
    [
        ((HERE,), (HERE, NEXT), (NEXT,)),
        ((HERE,), (HERE, OLD), ()),
        ((HERE, NEXT), (HERE, NEXT), ()),
        ((), (HERE, NEXT), ()),
        ((OLD,), (HERE, NEXT), ()),
        ((HERE,), (), ()),
        (UNSEEN, (HERE, NEXT), None),
        ((HERE,), UNSEEN, None),
    ],
)
def test_which_have_none(
    built: tuple[str, ...] | Unknown, installed: tuple[str, ...] | Unknown, without: tuple[str, ...] | None
) -> None:
    world = World()
    names = built if isinstance(built, Unknown) else tuple(f"{each}-x86_64" for each in built)
    world.put(HOST, kernel_release=HERE, dkms_zfs_kernels=names, kernels_with_headers=installed)
    assert world.get(HOST, "kernels_without_zfs") == without
