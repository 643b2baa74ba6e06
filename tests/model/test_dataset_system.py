"""Which datasets are of the system alone."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.model.dataset import of_the_system


def said(name: str, *, database: bool = False) -> object:
    facts, dataset, server = Facts(), Subject("dataset", name), Subject("database", "postgres 1")
    facts.put(Fact(HOST, "databases", known((server,), "")))
    facts.put(Fact(server, "datasets", known((dataset,) if database else (), "")))
    (fact,) = of_the_system.derive(dataset, facts)
    assert isinstance(fact.value, Known)
    assert fact.value.evidence[0].text
    return fact.value.value


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rpool/ROOT", True),
        ("rpool/ROOT/pve-1", True),
        ("boot-pool", True),
        ("boot-pool/ROOT/25.10.0/usr", True),
        ("bpool/BOOT/ubuntu_7x1k2p", True),
        ("rpool", False),
        ("rpool/data", False),
        ("tank/db/ROOT", False),
        ("tank/ROOTS/db", False),
        ("bpool2", False),
    ],
)
def test_names(name: str, expected: bool) -> None:
    assert said(name) is expected
    assert said(name, database=True) is False


@pytest.mark.parametrize("lost", ["databases", "datasets"])
def test_where_databases_were_not_seen_one_may_lie_there(lost: str) -> None:
    facts, dataset, server = Facts(), Subject("dataset", "rpool/ROOT/a"), Subject("database", "postgres 1")
    facts.put(Fact(HOST, "databases", unknown("hidden") if lost == "databases" else known((server,), "")))
    facts.put(Fact(server, "datasets", unknown("hidden")))
    (fact,) = of_the_system.derive(dataset, facts)
    assert isinstance(fact.value, Unknown)
