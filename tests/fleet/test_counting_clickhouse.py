"""``contrib/clickhouse/questions.sql`` says what the report says. Its engine is run inside this process (pip install chdb);
skipped where that is not installed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor.fleet.counting import Line
from tests.fleet.fleets import CASES
from tests.fleet.test_counting_duckdb import NOW
from tests.fleet.test_fleet_page import fleet, lines, rows_of

SQL = (Path(__file__).parents[2] / "contrib/clickhouse/questions.sql").read_text()
VIEWS = re.findall(r"VIEW (\w+) AS", SQL)
INSERT = re.findall(r"--(\w+ \w+) --query \"(INSERT INTO line FORMAT JSONEachRow)\"", SQL)
OLDER = rows_of(CASES[1], "db2", -3)  # of which a newer look is there
Table = Callable[[str], list[dict[str, Any]]]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that gives the rows of a view."""
    chdb = pytest.importorskip("chdb.session")
    store = chdb.Session(str(tmp_path_factory.mktemp("clickhouse")))
    for statement in re.sub(r"--.*", "", SQL).split(";"):
        if statement.strip():
            store.query(statement)
    ((setting, insert),) = INSERT
    name, value = setting.split()
    rows = b"".join(lines(OLDER, *NOW)).decode()
    store.query(f"SET {name} = '{value}'")
    store.query(f"{insert}\n{rows}")
    yield lambda view: [
        json.loads(line) for line in str(store.query(f"SELECT * FROM {view}", "JSONEachRow")).splitlines()
    ]
    store.close()


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_gives_something(view: str, table: Table) -> None:
    assert table(view)


def test_the_views_say_what_the_report_says(table: Table) -> None:
    found = fleet(OLDER, *NOW)
    tables: dict[str, dict[tuple[str, str], Line]] = {
        "drives_by_finding": found.models,
        "releases_by_advisory": found.advisories,
        "rules_by_hosts": {(rule, line.severity): line for rule, line in found.rules.items()},
    }
    for view, counted in tables.items():
        rows = {tuple(row.values())[:2]: (int(row["fails_on"]), int(row["undecided_on"])) for row in table(view)}
        assert rows == {key: (len(line.failed), len(line.open)) for key, line in counted.items()}, view
    assert {row["standing"]: int(row["hosts"]) for row in table("standings")} == found.standings
    assert table("worst_hosts")[0]["name"] == found.hosts[0].seen.name == "db2"
    remedies = {remedy: len(line.open) for remedy, line in found.remedies.items()}
    assert {row["remedy"]: int(row["hosts"]) for row in table("undecided_by_remedy")} == remedies
    assert {row["kind"] for row in table("hosts_missing")} == {"missing", "unjudged"}
    assert [row["name"] for row in table("taken_in_the_future")] == ["db2"]
    news = fleet(*NOW, before=lines(OLDER)).news
    assert news
    assert {(row["name"], row["id"]) for row in table("new_since")} == {(each.key[0], each.id) for each in news.fresh}


def test_it_is_not_empty() -> None:
    assert len(VIEWS) >= 10
