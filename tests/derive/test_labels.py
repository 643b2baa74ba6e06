"""Pools whose labels are on drives of the host, and that are not imported."""

from __future__ import annotations

import pytest

from auditor.derive import labels
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, known, unknown

TANK = known((Subject("pool", "tank"),), "tank")
TWO = known(("old pool=sdc", "tank=sda1", "old pool=sdd1"), "seen")
MANY = known(tuple(f"san=dm-{number}" for number in range(6)), "seen")


def away(found: Judged, imported: Judged, *, loaded: bool = True) -> Judged:
    facts = Facts(0)
    facts.put(Fact(HOST, "zfs_labels", found))
    facts.put(Fact(HOST, "imported_pools", imported))
    facts.put(Fact(HOST, "zfs_loaded", known(loaded, "seen")))
    (fact,) = labels.derive(HOST, facts)
    assert fact.name in labels.FACTS
    return fact.value


@pytest.mark.parametrize(
    ("found", "imported", "loaded", "named"),
    [
        (TWO, TANK, True, ("old pool (sdc, sdd1)",)),
        (known(("tank=sda1", "tank=sdb1"), "seen"), TANK, True, ()),
        (known((), "none"), TANK, True, ()),
        (TWO, known((), "none"), True, ("old pool (sdc, sdd1)", "tank (sda1)")),
        (TWO, unknown("zpool does not run"), False, ("old pool (sdc, sdd1)", "tank (sda1)")),
        (MANY, TANK, True, ("san (dm-0, dm-1, dm-2, dm-3 and 2 more)",)),
    ],
)
def test_what_is_not_imported_is_named(found: Known, imported: Judged, loaded: bool, named: tuple[str, ...]) -> None:
    told = away(found, imported, loaded=loaded)
    assert isinstance(told, Known)
    assert told.value == named


def test_what_was_not_seen_is_not_told() -> None:
    assert isinstance(away(unknown("udevadm: not installed"), TANK), Unknown)
    assert isinstance(away(TWO, unknown("zpool list: timed out")), Unknown)
