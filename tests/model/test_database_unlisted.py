"""Which databases the audit is about, where the datasets of a pool could not be listed."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.model.database import databases

TANK, OTHER = Subject("pool", "tank"), Subject("pool", "other")
SERVER = Subject("database", "postgres 7")


@pytest.mark.parametrize(
    ("dataset", "tank", "about"),
    [
        ("tank/pg", (Subject("dataset", "tank/pg"),), True),
        ("tank/else", (Subject("dataset", "tank/pg"),), False),
        ("tank/pg", None, True),  # what is audited of its pool is not known
        ("other/pg", None, False),
        ("tanker/pg", None, False),
    ],
)
def test_a_database_stays_where_what_is_audited_of_its_pool_is_not_known(
    dataset: str, tank: tuple[Subject, ...] | None, about: bool
) -> None:
    facts = Facts()
    refused = unknown("zfs get: permission denied")
    facts.put_all(
        [
            Fact(HOST, "pools", Known((TANK, OTHER), ())),
            Fact(TANK, "datasets", refused if tank is None else Known(tank, ())),
            Fact(OTHER, "datasets", Known((), ())),
            Fact(HOST, "database_processes", Known((SERVER,), ())),
            Fact(SERVER, "process", known("7", "")),
            Fact(SERVER, "datasets", Known((Subject("dataset", dataset),), ())),
        ]
    )
    (found,) = databases.derive(HOST, facts)
    assert not isinstance(found.value, Unknown)
    assert found.value.value == ((SERVER,) if about else ())
