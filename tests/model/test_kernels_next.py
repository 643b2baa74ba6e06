"""A kernel that is installed and has no zfs module: only newer ones count, and only where dkms builds them."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Unknown, unknown
from tests.model.test_model_pools import World

HERE, NEXT, OLD = "6.12.48+deb13-amd64", "6.12.57+deb13-amd64", "6.12.9+deb13-amd64"
UNSEEN = unknown("/var/lib/dkms: permission denied")


@pytest.mark.parametrize(
    ("built", "installed", "by_dkms", "without"),
    [
        ((HERE,), (HERE, NEXT), True, (NEXT,)),
        ((HERE,), (HERE, OLD), True, ()),
        ((HERE, NEXT), (HERE, NEXT), True, ()),
        ((), (HERE, NEXT), False, None),  # of packages, and what depmod lists is not known
        ((OLD,), (HERE, NEXT), False, None),
        ((HERE,), (), True, None),  # nothing seen, as where kernels are in a /lib that is no link: not fine
        ((HERE,), (NEXT,), True, None),
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


@pytest.mark.parametrize(
    ("listed", "with_zfs", "built", "by_depmod", "without"),
    [
        ((HERE, NEXT), (HERE,), (), True, (NEXT,)),
        ((HERE, NEXT), (HERE, NEXT), (), True, ()),
        ((HERE, OLD), (HERE,), (), True, ()),
        ((HERE, NEXT), (HERE,), (HERE,), True, (NEXT,)),  # without headers, of which dkms says nothing
        ((HERE, NEXT), (HERE, NEXT), (HERE,), True, ()),
        ((HERE, NEXT), (), (), False, ()),  # built in
        ((), (), (), False, ()),
        ((NEXT,), (), (), None, None),
        (UNSEEN, UNSEEN, (), None, None),
    ],
)
def test_what_depmod_has_listed(
    listed: tuple[str, ...] | Unknown,
    with_zfs: tuple[str, ...] | Unknown,
    built: tuple[str, ...],
    by_depmod: bool | None,
    without: tuple[str, ...] | None,
) -> None:
    world = World()
    names = tuple(f"{each}-x86_64" for each in built)
    world.put(HOST, kernel_release=HERE, dkms_zfs_kernels=names, kernels_with_headers=(HERE,))
    world.put(HOST, kernels_listed=listed, kernels_with_zfs=with_zfs)
    assert (world.get(HOST, "zfs_by_depmod"), world.get(HOST, "kernels_without_zfs")) == (by_depmod, without)


@pytest.mark.parametrize(
    ("listed", "with_zfs", "removed", "loaded", "of_removed", "without"),
    [
        ((NEXT,), (), (HERE,), True, True, (NEXT,)),
        ((NEXT, OLD), (), (HERE,), True, True, (NEXT, OLD)),
        ((NEXT, OLD), (OLD,), (HERE,), True, True, None),  # which of them starts next is not known
        ((NEXT,), (), (HERE,), False, False, None),
        ((NEXT,), (), (OLD,), True, False, None),  # of another kernel
        ((NEXT,), (), (), True, False, None),  # its folder is gone: built in, or of another place, for all that is seen
        ((NEXT,), (), (HERE,), UNSEEN, None, None),
        ((NEXT,), (), UNSEEN, True, None, None),
        (UNSEEN, (), (HERE,), True, True, None),
        ((NEXT,), UNSEEN, (HERE,), True, True, None),
    ],
)
def test_the_running_kernel_was_removed(
    listed: tuple[str, ...] | Unknown,
    with_zfs: tuple[str, ...] | Unknown,
    removed: tuple[str, ...] | Unknown,
    loaded: bool | Unknown,
    of_removed: bool | None,
    without: tuple[str, ...] | None,
) -> None:
    world = World()
    world.put(HOST, kernel_release=HERE, dkms_zfs_kernels=(), kernels_with_headers=(), zfs_loaded=loaded)
    world.put(HOST, kernels_listed=listed, kernels_with_zfs=with_zfs, kernels_removed_with_zfs=removed)
    found = world.get(HOST, "zfs_of_removed_kernel"), world.get(HOST, "kernels_without_zfs")
    assert found == (of_removed, without)


@pytest.mark.parametrize(
    ("running", "other", "newer"),
    [
        ("4.18.0-80.el8.x86_64", "4.18.0-80.1.2.el8_0.x86_64", True),
        ("3.10.0-1160.el7.x86_64", "3.10.0-1160.2.1.el7.x86_64", True),
        ("3.10.0-1160.2.1.el7.x86_64", "3.10.0-1160.el7.x86_64", False),
        ("6.12.74+deb13-amd64", "6.12.74+deb13+1-amd64", True),
        ("6.1.0-13-amd64", "6.1.0-130-amd64", True),
        ("6.1.0-13-amd64", "6.10.0-2-amd64", True),
        ("6.1.0-13-cloud-amd64", "6.1.0-13-amd64", False),
        ("6.8.0-40-generic", "6.8.0-40-lowlatency", False),
        ("6.18.0-rc1-amd64", "6.18.0-1-amd64", True),
        ("6.6.31+rpt-rpi-v8", "6.6.31+rpt-rpi-2712", False),  # another kind of the same release
        ("6.6.31+rpt-rpi-v8", "6.6.51+rpt-rpi-2712", True),
        ("5.14.0-570.el9.x86_64", "5.14.0-570.el9.x86_64+rt", False),
        ("6.11.3-300.fc40.x86_64", "6.11.3-300.fc41.x86_64", True),
    ],
)
def test_which_is_newer(running: str, other: str, newer: bool) -> None:
    world = World()
    world.put(
        HOST, kernel_release=running, dkms_zfs_kernels=(f"{running}-x86_64",), kernels_with_headers=(running, other)
    )
    assert world.get(HOST, "kernels_without_zfs") == ((other,) if newer else ())


@pytest.mark.parametrize(
    ("listed", "with_zfs", "is_module", "gone", "without"),
    [
        ((HERE, NEXT), (), True, True, (HERE, NEXT)),
        ((HERE, NEXT), (), False, False, ()),  # built in
        ((HERE, NEXT), (NEXT,), True, False, ()),  # it was loaded from elsewhere, and the next one has its own
        ((HERE, NEXT, OLD), (OLD,), True, True, (HERE, NEXT)),
        ((NEXT,), (), True, False, None),  # where modules of the running kernel are is not seen
        ((HERE,), UNSEEN, True, None, None),
        ((HERE,), (), UNSEEN, None, ()),
    ],
)
def test_the_file_of_the_loaded_module_is_gone(
    listed: tuple[str, ...],
    with_zfs: tuple[str, ...] | Unknown,
    is_module: bool | Unknown,
    gone: bool | None,
    without: tuple[str, ...] | None,
) -> None:
    world = World()
    world.put(HOST, kernel_release=HERE, dkms_zfs_kernels=(), kernels_with_headers=(HERE,), kernels_listed=listed)
    world.put(HOST, kernels_with_zfs=with_zfs, zfs_is_module=is_module)
    assert (world.get(HOST, "zfs_file_gone"), world.get(HOST, "kernels_without_zfs")) == (gone, without)
