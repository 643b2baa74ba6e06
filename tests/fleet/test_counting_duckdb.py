"""``contrib/duckdb/questions.sql`` says what the report says. Skipped where DuckDB is not installed (pip install duckdb)."""

from __future__ import annotations

import re
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from auditor.fleet.counting import FindingRow, Line
from auditor.fleet.workers import missing, unjudged
from tests.fleet.fleets import CASES
from tests.fleet.test_fleet_page import GUEST, KEEPS, LOSES, Row, fleet, lines, rows_of

SQL = (Path(__file__).parents[2] / "contrib/duckdb/questions.sql").read_text()
VIEWS = re.findall(r"VIEW (\w+) AS", SQL)


@pytest.fixture
def asked(tmp_path: Path) -> Any:
    """A function of two groups of rows that gives one of a view."""
    duckdb = pytest.importorskip("duckdb")

    def ask(now: list[list[Row]], before: list[list[Row]], view: str) -> list[tuple[Any, ...]]:
        store = duckdb.connect()
        for name, groups in (("rows", now), ("before", before)):
            (tmp_path / name).write_bytes(b"".join(lines(*groups)))
            store.execute(f"SET VARIABLE {name} = '{tmp_path / name}'")
        store.execute(SQL)
        found: list[tuple[Any, ...]] = store.execute(f"FROM {view}").fetchall()
        return found

    return ask


LATER = [{**row, "taken": "2105-01-01T00:00:00+00:00"} for row in rows_of(CASES[1], "db2")]
"""Of a host that loses commits, and says that it will keep all."""
NOW = [rows_of(CASES[0], "db2", 1), KEEPS, LATER, GUEST, rows_of("2.3-consumer-ssd-log", "db8"),
       rows_of("2.1-full-81", "db9"), [missing("db7"), unjudged("db6.tar.gz", "not whole")]]  # fmt: skip
BEFORE = [KEEPS, LATER, LOSES]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_gives_something(view: str, asked: Any) -> None:
    assert asked(NOW, BEFORE, view)


def test_the_views_say_what_the_report_says(asked: Any) -> None:
    found = fleet(*NOW, before=b"".join(lines(*BEFORE)).splitlines(keepends=True))
    tables: list[tuple[str, dict[tuple[str, str], Line]]] = [
        ("drives_by_finding", dict(found.models)),
        ("releases_by_advisory", dict(found.advisories)),
        ("rules_by_hosts", {(rule, line.severity): line for rule, line in found.rules.items()}),
    ]
    for view, table in tables:
        rows = {row[:2]: row[-2:] for row in asked(NOW, BEFORE, view)}
        assert rows == {key: (len(line.failed), len(line.open)) for key, line in table.items()}, view
    assert {row[0]: row[1] for row in asked(NOW, BEFORE, "undecided_by_remedy")} == {
        remedy: len(line.open) for remedy, line in found.remedies.items()
    }
    assert dict(asked(NOW, BEFORE, "standings")) == found.standings
    assert next(row[0] for row in asked(NOW, BEFORE, "worst_hosts")) == found.hosts[0].seen.name == "db2"
    assert found.news
    fresh: list[FindingRow] = list(found.news.fresh)
    assert {(row[0], row[-1]) for row in asked(NOW, BEFORE, "new_since")} == {(each.key[0], each.id) for each in fresh}
    assert {row[0] for row in asked(NOW, BEFORE, "hosts_missing")} == {"missing", "unjudged"}
    assert [row[0] for row in asked(NOW, BEFORE, "taken_in_the_future")] == list(found.ahead) == ["db2"]


def test_a_look_in_the_future_counts_where_there_is_no_other(asked: Any) -> None:
    assert [row[0] for row in asked([LATER], [LATER], "worst_hosts")] == ["db2"]


@pytest.mark.slow
def test_of_ten_thousand_hosts_they_say_what_the_report_says(asked: Any) -> None:
    cases = cycle((KEEPS, LOSES, GUEST))
    hosts = [
        [{**row, "name": f"db{number:05}"} for row in rows] for number, rows in zip(range(10_000), cases, strict=False)
    ]
    found = fleet(*hosts)
    assert len(found.hosts) == 10_000
    assert dict(asked(hosts, [], "standings")) == found.standings
    rules = {row[:2]: row[-2:] for row in asked(hosts, [], "rules_by_hosts")}
    assert rules == {(rule, line.severity): (len(line.failed), len(line.open)) for rule, line in found.rules.items()}
    lose = {f"db{number:05}" for number in range(1, 10_000, 3)}
    assert {row[0] for row in asked(hosts, [], "worst_hosts")[: len(lose)]} == lose


def test_it_is_not_empty() -> None:
    assert len(VIEWS) >= 9
