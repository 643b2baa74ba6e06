"""What a process of anybody may invent without end takes no longer than reading it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from auditor.databases import paths
from auditor.databases.configuration import Tree
from auditor.databases.paths import SymbolicLink
from auditor.databases.postgres import ENGINE
from auditor.host.request import Files
from auditor.sources import mounts

ROOT = "/proc/9/root"
SOON_S = 30.0  # of a slow machine; each takes many minutes or more where it grows with the square


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    began = time.thread_time()
    yield
    assert time.thread_time() - began < SOON_S


def test_mounts_on_each_other_are_not_walked_without_end() -> None:
    stack = "".join(f"{at} {at - 1} 0:{at} / /d rw - tmpfs t rw\n" for at in range(2, 30_000))
    table = mounts.mounts(f"1 0 0:1 / / rw - ext4 /dev/sda rw\n{stack}")
    assert mounts.mount_of(table, "/d/x") is None
    assert all(mounts.mount_of(table, f"/e/{each}") == table[0] for each in range(1000))


@pytest.mark.slow
def test_files_that_include_the_next_a_hundred_times_are_read_to_a_bound() -> None:
    names = [*(f"{each}.conf" for each in range(8)), ""]
    text = {
        f"{ROOT}/d/{name}": f"include '{after}'\n" * 100 if after else "fsync = on\n" for name, after in pairwise(names)
    }
    with pytest.raises(ValueError, match="more is included than zaudit reads"):
        ENGINE.settings_of(Tree(Files(text), ROOT), "/d/0.conf")


def test_links_that_lead_through_a_thousand_folders_are_not_followed() -> None:
    far = tuple(SymbolicLink(f"/d/pg_tblspc/{at}", f"/{'a/' * 2040}{at}") for at in range(900))
    root = ("1 0 0:1 / / rw - ext4 /dev/sda rw",)
    with pytest.raises(ValueError, match="more folders on the way"):
        paths.unseen(("data:/d",), far, root)
    many = tuple(SymbolicLink(f"/d/pg_tblspc/{at}", "/x") for at in range(1800))
    with pytest.raises(ValueError, match="1,800 of its folders are links"):
        paths.unseen(("data:/d",), many, root)


@pytest.mark.parametrize("path", ["/./l/x", "/../l/x", "/d/../../l/x"])
def test_a_way_through_the_root_ends_where_the_kernel_ends_it(path: str) -> None:
    assert Tree(Files({}, {f"{ROOT}/l": "/m"}), ROOT).real(path) == "/m/x"
