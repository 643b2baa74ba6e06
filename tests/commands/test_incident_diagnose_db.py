"""A whole ``zaudit diagnose --db`` on a recorded host: whom the connection is told, and where it is refused."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from auditor.diagnose import database_counters, watch
from auditor.diagnose.observation import Observation
from auditor.host import sql
from auditor.host.sql_watch import Connection
from auditor.recording import recording
from tests.diagnose import databases
from tests.fake import CommandLine
from tests.golden import HOSTS

DSN = "host=/run/postgresql user=postgres"
PAST = HOSTS / "2.3-db-postgres-healthy"


class Recorded(recording.ReplayHost):
    """In the place of this machine."""

    def __init__(self, *_: float) -> None:
        super().__init__(recording.load(PAST))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Connection | None]:
    """The host is a recorded one, and the time is not looked at: what was seen of it is made up."""
    found: list[Connection | None] = []

    def look(*words: Any, database: Connection | None = None, **_: Any) -> Observation:
        found.append(database)
        seen: Observation = databases.observed(databases.answer())
        return seen._replace(target=words[1], pool=words[2].name)

    monkeypatch.setattr(watch, "LiveHost", Recorded)
    monkeypatch.setattr(watch, "observe", look)
    return found


def test_neither_the_recording_nor_a_report_has_the_connection(
    zaudit: CommandLine, tmp_path: Path, asked: list[Connection | None]
) -> None:
    kept = tmp_path / "seen.tar.gz"
    done = zaudit("diagnose", "tank/pg", "--db", f"postgres={DSN}", "--record", kept, "--format", "json")
    assert asked == [Connection("postgres", DSN)]
    document = json.loads(done.out)
    view = document["diagnosis"]["database"]
    assert view["server"].startswith("postgres ")
    assert view["rows"][0] == {"what": "WAL syncs", "counted": 400, "mean_ns": 5200000.0, "why": ""}
    with tarfile.open(kept) as archive:
        members = [archive.extractfile(each) for each in archive]
        texts = [each.read().decode("utf-8", "replace") for each in members if each]
    assert [text for text in (*texts, done.out, done.err) if DSN in text] == []
    past = recording.load(kept)
    assert past.options["connection"] == sql.REDACTED
    again = zaudit("diagnose", "--replay", kept, "--format", "json")
    replayed = json.loads(again.out)
    assert replayed["diagnosis"] == document["diagnosis"]
    keys = (
        "id",
        "outcome",
        "severity",
    )  # a question that the past host was not asked has another reason in its recording
    before, after = (
        [[each[key] for key in keys] for each in said["report"]["findings"]] for said in (document, replayed)
    )
    assert after == before


def test_a_database_of_another_pool_is_refused_before_anything_is_looked_at(
    zaudit: CommandLine, asked: list[Connection | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = database_counters.elsewhere
    monkeypatch.setattr(database_counters, "elsewhere", lambda facts, pool: real(facts, "flash"))
    done = zaudit("diagnose", "tank", "--db", f"postgres={DSN}")
    assert (done.code, asked) == (2, [])
    assert "keeps its files on tank/pg" in done.err
    assert "and none on flash" in done.err


@pytest.mark.parametrize("words", ["postgres=postgresql://u:hunter2@db1/app", "postgres=here", "oracle"])
def test_what_check_refuses_is_refused_here(zaudit: CommandLine, asked: list[Connection | None], words: str) -> None:
    done = zaudit("diagnose", "tank", "--db", words)
    assert (done.code, asked) == (2, [])
    assert "hunter2" not in done.err


def test_a_recording_is_not_asked_again(zaudit: CommandLine) -> None:
    done = zaudit("diagnose", "--replay", "x", "--db", f"postgres={DSN}")
    assert done.code == 2
    assert "a recording has what the database said" in done.err


def test_without_db_nothing_is_asked(zaudit: CommandLine, asked: list[Connection | None]) -> None:
    zaudit("diagnose", "tank/pg", "--format", "json")
    assert asked == [None]
