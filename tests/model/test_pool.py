"""What the status: paragraph says of a pool, and what it hides."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, known, unknown
from auditor.model.pool import copied, status_paragraph

TANK = Subject("pool", "tank")
HIDDEN = "hidden"


@pytest.mark.parametrize(
    ("text", "sequential", "hostid", "unexplained"),
    [
        ("", False, False, False),
        ("One or more devices is currently being resilvered. The pool will", HIDDEN, HIDDEN, False),
        (
            "One or more devices have been sequentially resilvered, scrubbing the pool is recommended.",
            True,
            HIDDEN,
            False,
        ),
        ("Mismatch between pool hostid and system hostid on imported pool. This pool was", False, True, False),
        ("One or more devices has been removed by the administrator.", False, False, True),
        ("Errata #4 detected. Existing encrypted snapshots and bookmarks contain", False, False, True),
        ("Some supported and requested features are not enabled on the pool.", False, False, False),
        ("This pool has a compatibility list specified, but it could not be read/parsed", False, False, True),
        ("A paragraph that no release has today.", False, False, True),
    ],
)
def test_one_thing_at_a_time(text: str, sequential: object, hostid: object, unexplained: object) -> None:
    facts = Facts()
    facts.put(Fact(TANK, "status_text", known(text, text)))
    found = {each.name: each.value for each in status_paragraph.derive(TANK, facts)}
    said = {name: each.value if isinstance(each, Known) else HIDDEN for name, each in found.items()}
    assert said == {
        "sequential_unverified": sequential,
        "hostid_mismatch": hostid,
        "unexplained_status": said["unexplained_status"],
    }
    assert bool(said["unexplained_status"]) is unexplained


def test_not_read() -> None:
    facts = Facts()
    facts.put(Fact(TANK, "status_text", unknown("zpool status: timed out")))
    assert all(isinstance(each.value, Unknown) for each in status_paragraph.derive(TANK, facts))


@pytest.mark.parametrize("fault", [{"state": "OFFLINE"}, {"state": "ONLINE", "write_errors": 3}])
def test_a_paragraph_about_a_device_that_a_rule_speaks_of_is_explained(fault: dict[str, str | int]) -> None:
    facts, leaf = Facts(), Subject("leaf", "sda", "tank")
    text = "One or more devices has been taken offline by the administrator."
    facts.put(Fact(TANK, "status_text", known(text, text)))
    facts.put(Fact(TANK, "leaves", known((leaf,), "sda")))
    for name, value in fault.items():
        facts.put(Fact(leaf, name, known(value, name)))
    found = {each.name: each.value for each in status_paragraph.derive(TANK, facts)}
    assert isinstance(found["unexplained_status"], Known)
    assert found["unexplained_status"].value == ""


@pytest.mark.parametrize(
    ("mode", "archived", "newest"),
    [
        ("off", known(500, "pg_stat_archiver"), 400),
        ("on", known(300, "pg_stat_archiver"), 400),
        ("on", known(500, "pg_stat_archiver"), 500),
        ("on", unknown("nobody asked the server"), None),
    ],
)
def test_archived_wal_may_be_newer_than_what_was_sent(mode: str, archived: Judged, newest: int | None) -> None:
    """What the server archives is a copy of the datasets of this server alone, and unknown where nobody asked it."""
    facts, server = Facts(), Subject("database", "postgres 612")
    place, other = Subject("dataset", "tank/pg"), Subject("dataset", "tank/www")
    facts.put(Fact(TANK, "bookmarks", known(("tank/pg#a 100", "tank/pg#b 400", "tank/www#a 200"), "3 bookmarks")))
    facts.put(Fact(HOST, "databases", known((server,), "ps")))
    said = {"engine": known("postgres", "ps"), "archive_mode": known(mode, "conf"), "archived_s": archived}
    for name, value in {**said, "datasets": known((place,), "data")}.items():
        facts.put(Fact(server, name, value))
    for dataset, expected in ((place, newest), (other, 200)):
        (found,) = copied.derive(dataset, facts)
        assert found.value.or_none() == expected
