"""Modules of kernels that may start next: of an older release."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Unknown, unknown
from tests.model.test_model_pools import World

HERE, NEXT, OLD = "6.8.0-31-generic", "6.8.0-90-generic", "6.8.0-9-generic"
UNSEEN = unknown("modinfo: not installed")


def path(kernel: str) -> str:
    return f"/usr/lib/modules/{kernel}/extra/zfs.ko"


def world(running: str, modules: dict[str, str]) -> World:
    """modules: the version of each kernel's."""
    made = World()
    said = tuple(f"{path(each)} {modules[each]} {each}" for each in modules)
    listed = tuple(f"{each} {path(each)}" for each in modules)
    made.put(HOST, kernel_release=running, zfs_modules=listed, zfs_module_versions=said, zfs_version=(2, 3, 4))
    return made


@pytest.mark.parametrize(
    ("modules", "older", "gap"),
    [
        ({HERE: "2.3.4-1"}, (), "none"),
        ({HERE: "2.3.4-1", NEXT: "2.3.4-1"}, (), "none"),
        ({HERE: "2.3.4-1", NEXT: "2.4.0-1"}, (), "none"),
        ({HERE: "2.3.4-1", NEXT: "2.3.10-1"}, (), "none"),
        ({HERE: "2.3.4-1", NEXT: "2.2.2-0ubuntu9.4"}, (f"{NEXT} (2.2.2-0ubuntu9.4)",), "line"),
        ({HERE: "2.3.4-1", NEXT: "2.3.3-1"}, (f"{NEXT} (2.3.3-1)",), "patch"),
        ({HERE: "2.3.4-1", OLD: "2.2.2-0ubuntu9.4"}, (), "none"),  # does not start next
        ({HERE: "2.2.2-0ubuntu9.4"}, (), "none"),  # the loaded one was built since: that of another rule
        ({HERE: "2.3.4-1", NEXT: "2.2.99-1"}, None, None),  # of development: it may have what 2.3.4 has
        ({HERE: "2.3.4-1", NEXT: "2.1.99-1"}, (f"{NEXT} (2.1.99-1)",), "line"),
        ({HERE: "2.3.4-1", NEXT: "v2.2-rc"}, None, None),
    ],
)
def test_of_an_older_release(modules: dict[str, str], older: tuple[str, ...] | None, gap: str | None) -> None:
    made = world(HERE, modules)
    assert (made.get(HOST, "kernels_with_older_zfs"), made.get(HOST, "older_zfs_ahead")) == (older, gap)


@pytest.mark.parametrize("lost", ["kernel_release", "zfs_modules", "zfs_module_versions", "zfs_version"])
def test_what_is_not_known(lost: str) -> None:
    made = world(HERE, {HERE: "2.3.4-1", NEXT: "2.2.2-1"})
    made.put(HOST, **{lost: UNSEEN})
    assert made.get(HOST, "kernels_with_older_zfs") is None


def test_a_module_that_modinfo_did_not_tell_of() -> None:
    made = world(HERE, {HERE: "2.3.4-1", NEXT: "2.3.4-1"})
    listed: tuple[str, ...] | Unknown = (f"{HERE} {path(HERE)}", f"{NEXT} {path(OLD)}")
    made.put(HOST, zfs_modules=listed)
    assert made.get(HOST, "kernels_with_older_zfs") is None
