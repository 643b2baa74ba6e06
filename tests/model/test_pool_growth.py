"""How long what is available lasts, and regular snapshots that stopped: by what snapshots refer to, and when they were made."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Unknown, Value
from auditor.model import pool
from auditor.model.derivation import run

DB = Subject("dataset", "tank/db")
DAY, GIB, NOW = 86400, 1 << 30, 1_763_812_800


def derived(name: str, rows: list[tuple[float, int]] | None, referenced: int = 0, available: int = 100 * GIB) -> Value:
    """A fact of a host whose dataset had these sizes so many days ago; None: its snapshots were not listed."""
    facts = Facts(NOW)
    server = Subject("database", "postgres 362")
    given: dict[tuple[Subject, str], Value] = {
        (HOST, "databases"): (server,),
        (server, "datasets"): (DB,),
        (DB, "referenced"): referenced,
        (DB, "available"): available,
    }
    if rows is not None:
        given[DB, "snapshots"] = tuple(f"{NOW - round(days * DAY)} {held}" for days, held in rows)
    facts.put_all(Fact(each, fact, Known(value, (Evidence("seen"),))) for (each, fact), value in given.items())
    run((pool.growth, pool.snapshots_late), facts)
    found = facts.get(HOST if name == "snapshots_late" else DB, name)
    return found.reasons[0].text if isinstance(found, Unknown) else found.value


def steady(days: int, daily: int = GIB) -> list[tuple[float, int]]:
    return [(each, (days - each) * daily) for each in range(1, days + 1)]


@pytest.mark.parametrize(
    ("rows", "referenced", "available", "left"),
    [
        (steady(30), 30 * GIB, 10 * GIB, 10),
        (steady(30), 30 * GIB, 61 * GIB, pool.NO_ESTIMATE),  # further ahead than twice the span
        (steady(5), 5 * GIB, 2 * GIB, pool.NO_ESTIMATE),  # six days, but not a week
        ([(20, 0), (10, 10 * GIB)], 20 * GIB, 2 * GIB, pool.NO_ESTIMATE),  # three days of a span
        (steady(30, 0), 0, GIB, pool.NO_ESTIMATE),  # it does not grow
        (steady(30, -GIB), 0, GIB, pool.NO_ESTIMATE),
        ([*steady(30, 0)[:29], (30, 0)], 500 * GIB, GIB, pool.NO_ESTIMATE),  # one bulk load today
        ([(each + 100, held) for each, held in steady(30)], 30 * GIB, GIB, pool.NO_ESTIMATE),  # of long ago
        (None, GIB, GIB, pool.NO_ESTIMATE),
    ],
)
def test_days_left(rows: list[tuple[float, int]] | None, referenced: int, available: int, left: int) -> None:
    assert derived("days_left", rows, referenced, available) == left


def test_many_snapshots_of_one_day_are_one_point() -> None:
    hourly = [(1 + hour / 1440, GIB) for hour in range(1000)]
    assert derived("growth_points", [*steady(8), *hourly]) == 9


def hourly(last: float, count: int = 30) -> list[tuple[float, int]]:
    return [(last + each / 24, GIB) for each in range(count)]


@pytest.mark.parametrize(
    ("rows", "late"),
    [
        (hourly(0.02), ()),
        (hourly(0.9), ()),  # half a day of maintenance
        (hourly(9), ("tank/db (one every 1 h, none for 9 days)",)),
        ([(each, GIB) for each in range(9, 30)], ("tank/db (one every 24 h, none for 9 days)",)),
        ([(each, GIB) for each in range(4, 30)], ()),
        (hourly(9, 5), ()),  # too few to be regular
        ([(9, GIB), (10, GIB), (11, GIB), (12, GIB), (13, GIB), (14, GIB), (30, GIB)], ()),  # by hand
        (hourly(200), ()),  # given up
        ([], ()),
    ],
)
def test_snapshots_that_stopped(rows: list[tuple[float, int]], late: tuple[str, ...]) -> None:
    assert derived("snapshots_late", rows) == late


def test_snapshots_that_nobody_listed_are_not_in_time() -> None:
    assert "snapshots" in str(derived("snapshots_late", None))
