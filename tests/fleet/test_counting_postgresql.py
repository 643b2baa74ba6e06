"""``contrib/postgresql/questions.sql`` on a server of its own. Skipped where PostgreSQL is not installed, or without root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.fleets import CASES
from tests.fleet.test_counting_duckdb import NOW
from tests.fleet.test_fleet_page import fleet, lines, rows_of

SQL = Path(__file__).parents[2] / "contrib/postgresql/questions.sql"
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not BINARIES or os.geteuid() != 0, reason="no PostgreSQL here (apt install postgresql), or not root"
    ),
]


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the socket of a server, which ends with the test."""
    folder = tmp_path_factory.mktemp("pg")
    for each in (folder, *list(folder.parents)[:-2]):
        each.chmod(0o755)
    os.chown(folder, *as_postgres())
    run("initdb", "-D", folder / "data", "-A", "trust", "-E", "UTF8", "--no-sync")
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    run("pg_ctl", "-D", folder / "data", "-l", folder / "log", "-o", options, "-w", "start")
    yield folder
    run("pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")


def as_postgres() -> tuple[int, int]:
    import pwd

    found = pwd.getpwnam("postgres")
    return found.pw_uid, found.pw_gid


def run(name: str, *words: object, **more: bytes) -> str:
    uid, gid = as_postgres()
    done = subprocess.run(
        [BINARIES[-1] / name, *map(str, words)],
        user=uid, group=gid, extra_groups=(), cwd="/", capture_output=name == "psql", check=False, input=more.get("input"),
        stdout=None if name == "psql" else subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.decode() if done.stdout else ""


def test_the_views_say_what_the_report_says(server: Path, tmp_path: Path) -> None:
    psql = ("-h", server, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-At", "-F", "\t", "postgres")
    sql = server / "questions.sql"
    sql.write_bytes(SQL.read_bytes())
    older = rows_of(CASES[1], "db2")  # of which a newer look is there
    run("psql", "-f", sql, *psql, input=b"".join(lines(older)))
    run("psql", "-f", sql, *psql, input=b"".join(lines(*(group for group in NOW if group[0].get("taken") != older[0]["taken"]
                                                         or group[0]["name"] != "db2"))))  # fmt: skip
    found = fleet(*NOW)

    def table(view: str) -> list[list[str]]:
        return [line.split("\t") for line in run("psql", "-c", f"TABLE {view}", *psql).splitlines()]

    assert {row[0]: (int(row[1]), int(row[2])) for row in table("rules_by_hosts")} == {
        rule: (len(line.failed), len(line.open)) for rule, line in found.rules.items()
    }
    for view, counted in (("drives_by_finding", found.models), ("releases_by_advisory", found.advisories)):
        assert {(row[0], row[1]): (int(row[2]), int(row[3])) for row in table(view)} == {
            key: (len(line.failed), len(line.open)) for key, line in counted.items()
        }
    assert {row[0]: int(row[1]) for row in table("standings")} == found.standings
    assert [row[0] for row in table("hosts_missing")] == ["missing", "unjudged"]
    assert [row[0] for row in table("taken_in_the_future")] == ["db2"]
