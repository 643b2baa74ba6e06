"""A database that is named and was not found is a hole, not a thing that does not apply."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, known, unknown
from auditor.model.database import database_seen

DATASET = Subject("dataset", "tank/db")
SERVER = Subject("database", "mariadb 812")


def derived(host: str, dataset: str, found: Judged, engine: str = "mariadb") -> tuple[Judged, Judged]:
    facts = Facts()
    facts.put(Fact(HOST, "database", known(host, f"--db {host}")))
    facts.put(Fact(DATASET, "database", known(dataset, "policy", "cat zaudit.toml")))
    facts.put(Fact(HOST, "databases", found))
    facts.put(Fact(SERVER, "engine", known(engine, "ps")))
    expected, seen = database_seen.derive(HOST, facts)
    return expected.value, seen.value


@pytest.mark.parametrize(
    ("host", "dataset", "found", "expected", "seen"),
    [
        ("", "", (), False, True),
        ("mysql", "", (SERVER,), True, True),
        ("mariadb", "", (SERVER,), True, True),
        ("", "mysql", (SERVER,), True, True),
        ("postgres", "", (SERVER,), True, None),
        ("postgres", "", (), True, None),
        ("mysql", "postgres", (SERVER,), True, None),
    ],
)
def test_what_is_named_must_be_found(
    host: str, dataset: str, found: tuple[Subject, ...], expected: bool, seen: bool | None
) -> None:
    named, looked = derived(host, dataset, Known(found, ()))
    assert isinstance(named, Known)
    assert named.value is expected
    if seen is None:
        assert isinstance(looked, Unknown)
        assert [each.remedy for each in looked.reasons] == [
            "start it, or name its data directory: --db postgres=DIR",
        ]
    else:
        assert isinstance(looked, Known)
        assert looked.value is seen


def test_processes_that_nobody_could_see() -> None:
    _, looked = derived("postgres", "", unknown("/proc: permission denied", "run as root"))
    assert looked == unknown("/proc: permission denied", "run as root")
