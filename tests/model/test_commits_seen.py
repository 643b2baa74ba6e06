"""How many commits a pool has seen: those of its busiest dataset, once they were counted for long enough."""

from __future__ import annotations

import pytest

from auditor.facts import Fact, Facts, Known, Subject, known, unknown
from auditor.model.intent_log import commits_seen

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
    found = next(each for each in commits_seen.derive(TANK, facts) if each.name == "commits_seen")
    assert isinstance(found.value, Known)
    assert found.value.value == most
    assert found.value.evidence


@pytest.mark.parametrize(
    ("exported", "used", "says"),
    [
        (False, (), ()),
        (True, (), ("tank/a: an NFS export",)),
        (False, ("guest db1 (process 4711)",), ("tank/a: guest db1 (process 4711)",)),
        (False, ("container 101", "pod volume pvc-1"), ("tank/a: pod volume pvc-1",)),
        (False, ("container 101",), ()),
        (None, None, ()),  # what was not seen decides nothing
        (None, ("target lio disk1",), ("tank/a: target lio disk1",)),
        (True, None, ("tank/a: an NFS export",)),
        (True, tuple("abcdef"), ("tank/a: an NFS export", *(f"tank/a: {each}" for each in "abcd"), "and 2 more")),
    ],
)
def test_who_is_known_to_commit(exported: bool | None, used: tuple[str, ...] | None, says: tuple[str, ...]) -> None:
    facts, dataset = Facts(), Subject("dataset", "tank/a")
    facts.put(Fact(TANK, "datasets", known((dataset,), "")))
    for name, value in (("nfs_exported_now", exported), ("used_by", used)):
        facts.put(Fact(dataset, name, unknown("not seen") if value is None else known(value, "")))
    found = next(each.value for each in commits_seen.derive(TANK, facts) if each.name == "committers_seen")
    assert isinstance(found, Known)
    assert found.value == says
