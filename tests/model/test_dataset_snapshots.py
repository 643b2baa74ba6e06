"""Whether a snapshot is mounted, by the table of mounts."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Known, Unknown, known
from auditor.model.dataset import snapshots_mounted

DATASET = "41 40 0:51 / /tank/a@b rw,relatime shared:1 - zfs tank/db rw,xattr,noacl"
SNAPSHOT = "42 41 0:52 / /tank/db/.zfs/snapshot/daily ro,relatime shared:2 - zfs tank/db@daily ro,xattr,noacl"


@pytest.mark.parametrize(
    ("table", "mounted"),
    [((), False), ((DATASET,), False), ((DATASET, SNAPSHOT), True), (("43 28 0:9 / /x rw - tmpfs a@b rw",), False)],
)
def test_snapshots(table: tuple[str, ...], mounted: bool) -> None:
    facts = Facts()
    facts.put(Fact(HOST, "mount_table", known(table, "")))
    (found,) = snapshots_mounted.derive(HOST, facts)
    assert isinstance(found.value, Known)
    assert found.value.value is mounted


def test_no_table() -> None:
    (found,) = snapshots_mounted.derive(HOST, Facts())
    assert isinstance(found.value, Unknown)
