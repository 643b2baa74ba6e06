"""What the status: paragraph says of a pool, and what it hides."""

from __future__ import annotations

import pytest

from auditor.facts import Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.model.pool import status_paragraph

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
