"""Parity keeps a vdev whose one leaf lies in memory; two are too many for raidz1."""

from __future__ import annotations

import pytest

from auditor.facts import Fact, Facts, Judged, Known, Subject, unknown
from auditor.model.vdev import outlives_memory

VDEV = Subject("vdev", "raidz1-0", "tank")


def judged(left: int | None, *below: str | None) -> Judged:
    facts = Facts()
    leaves = tuple(Subject("leaf", f"l{number}", "tank") for number in range(len(below)))
    facts.put(Fact(VDEV, "leaves", Known(leaves, ())))
    facts.put(Fact(VDEV, "failures_left", unknown("not seen") if left is None else Known(left, ())))
    for leaf, each in zip(leaves, below, strict=True):
        facts.put(Fact(leaf, "below", unknown("not recorded") if each is None else Known(each, ())))
    (fact,) = outlives_memory.derive(VDEV, facts)
    return fact.value


@pytest.mark.parametrize(
    ("left", "below", "outlives"),
    [
        (1, ("tmpfs", "", ""), True),
        (1, ("tmpfs", "ramfs", ""), False),
        (2, ("tmpfs", "ramfs", "", ""), True),
        (0, ("tmpfs", "", ""), False),
        (0, ("tmpfs",), False),
        (0, ("tank/files",), True),
        (None, ("", ""), True),
        (1, ("tmpfs", None, ""), None),
        (1, ("tmpfs", "tmpfs", None), False),
        (2, ("tmpfs", None, ""), True),
        (0, (None,), None),
        (None, ("tmpfs", ""), None),
    ],
)
def test_what_is_left_after_a_crash(left: int | None, below: tuple[str | None, ...], outlives: bool | None) -> None:
    found = judged(left, *below)
    assert (found.value if isinstance(found, Known) else None) is outlives
