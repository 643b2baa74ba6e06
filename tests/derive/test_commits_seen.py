"""How many commits a pool has seen: those of its busiest dataset, once they were counted for long enough."""

from __future__ import annotations

import pytest

from auditor.derive import commits_seen
from auditor.facts import Fact, Facts, Known, Subject, known, unknown

TANK = Subject("pool", "tank")


@pytest.mark.parametrize(
    ("counted", "most"),
    [
        ([], 0.0),
        ([(9000, 900.0), (100, 900.0)], 10.0),
        ([(9000, 100.0)], 0.0),  # since it was mounted a moment ago
        ([(None, 900.0), (450, 900.0)], 0.5),
        ([(5, None)], 0.0),
    ],
)
def test_busiest(counted: list[tuple[int | None, float | None]], most: float) -> None:
    facts = Facts()
    datasets = [Subject("dataset", f"tank/{number}") for number in range(len(counted))]
    facts.put(Fact(TANK, "datasets", known(tuple(datasets), "")))
    for dataset, (count, seconds) in zip(datasets, counted, strict=True):
        facts.put(
            Fact(dataset, "zil_commit_count", unknown("none") if count is None else known(count, "zil_commit_count"))
        )
        facts.put(Fact(dataset, "zil_counted_s", unknown("none") if seconds is None else known(seconds, "")))
    (found,) = commits_seen.derive(TANK, facts)
    assert isinstance(found.value, Known)
    assert found.value.value == most
    assert found.value.evidence
