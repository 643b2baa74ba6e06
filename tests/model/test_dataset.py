"""The kind of mount point."""

from __future__ import annotations

import pytest

from auditor.facts import Fact, Facts, Known, Subject, known, unknown
from auditor.model.dataset import mounts_at

DATASET = Subject("dataset", "tank/db")


@pytest.mark.parametrize(
    ("point", "kind"),
    [
        ("/", "root"),
        ("legacy", "legacy"),
        ("none", "none"),
        ("/var/lib/pg", "path"),
        ("/none", "path"),
        ("/a\tb", "path"),
    ],
)
def test_kinds(point: str, kind: str) -> None:
    facts = Facts()
    facts.put(Fact(DATASET, "mountpoint", known(point, f"mountpoint={point}")))
    (fact,) = mounts_at.derive(DATASET, facts)
    assert isinstance(fact.value, Known)
    assert fact.value.value == kind
    assert fact.value.evidence[0].command == "zfs get mountpoint {subject}"


def test_what_was_not_read_stays_a_hole() -> None:
    facts = Facts()
    facts.put(Fact(DATASET, "mountpoint", unknown("zfs get failed")))
    (fact,) = mounts_at.derive(DATASET, facts)
    assert fact.value == unknown("zfs get failed")
