"""How the files of a database lie to each other."""

from __future__ import annotations

import pytest

from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, Value, known, unknown
from auditor.model.database import placement

SERVER = Subject("database", "postgres 812")


def derived(log: Judged, data: Judged) -> Judged:
    facts = Facts()
    facts.put(Fact(SERVER, "log_datasets", log))
    facts.put(Fact(SERVER, "data_datasets", data))
    return next(fact.value for fact in placement.derive(SERVER, facts) if fact.name == "log_apart")


def on(*names: str) -> Known:
    return Known(tuple(Subject("dataset", name) for name in names), ())


@pytest.mark.parametrize(
    ("log", "data", "apart"),
    [
        (on("tank/wal"), on("tank/pg"), True),
        (on("tank/pg"), on("tank/pg"), False),
        (on("tank/wal"), on("tank/pg", "fast/ts"), True),
        (on("tank/pg"), on("fast/ts", "tank/pg"), False),
        (on(), on("tank/pg"), True),
    ],
)
def test_log_apart(log: Known, data: Known, apart: bool) -> None:
    found = derived(log, data)
    assert isinstance(found, Known)
    assert found.value is apart
    assert found.evidence[0].text.startswith("log in ")


@pytest.mark.parametrize(
    ("log", "data"), [(unknown("pg_wal: denied"), on("tank/pg")), (on("tank/pg"), unknown("denied")), (on(), on())]
)
def test_what_was_not_seen_decides_nothing(log: Judged, data: Judged) -> None:
    assert isinstance(derived(log, data), Unknown)


def test_what_is_declared_rebuildable_does_not_spread_a_database_over_pools() -> None:
    facts = Facts()
    facts.put(Fact(SERVER, "datasets", on("tank/pg", "tank/wal", "fast/tmp")))

    def one_pool() -> Value:
        found = next(fact.value for fact in placement.derive(SERVER, facts) if fact.name == "one_pool")
        assert isinstance(found, Known)
        return found.value

    assert one_pool() is False
    facts.put(Fact(Subject("dataset", "fast/tmp"), "role", known("rebuildable", "policy")))
    assert one_pool() is True
    for name in ("tank/pg", "tank/wal"):
        facts.put(Fact(Subject("dataset", name), "role", known("rebuildable", "policy")))
    assert one_pool() is False
