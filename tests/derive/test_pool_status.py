"""What the status: paragraph says of a pool, and what it hides."""

from __future__ import annotations

import pytest

from auditor.derive import pool_status
from auditor.facts import Fact, Facts, Known, Subject, Unknown, known, unknown

TANK = Subject("pool", "tank")
HIDDEN = "hidden"


@pytest.mark.parametrize(
    ("text", "sequential", "hostid", "errata"),
    [
        ("", False, False, 0),
        ("One or more devices is currently being resilvered. The pool will", HIDDEN, HIDDEN, HIDDEN),
        (
            "One or more devices have been sequentially resilvered, scrubbing the pool is recommended.",
            True,
            HIDDEN,
            HIDDEN,
        ),
        ("Mismatch between pool hostid and system hostid on imported pool. This pool was", False, True, HIDDEN),
        ("One or more devices has been removed by the administrator.", False, False, HIDDEN),
        ("Errata #4 detected. Existing encrypted snapshots and bookmarks contain", False, False, 4),
        ("Some supported and requested features are not enabled on the pool.", False, False, 0),
    ],
)
def test_one_thing_at_a_time(text: str, sequential: object, hostid: object, errata: object) -> None:
    facts = Facts()
    facts.put(Fact(TANK, "status_text", known(text, text)))
    found = {each.name: each.value for each in pool_status.derive(TANK, facts)}
    said = {name: each.value if isinstance(each, Known) else HIDDEN for name, each in found.items()}
    assert said == {"sequential_unverified": sequential, "hostid_mismatch": hostid, "errata": errata}


def test_not_read() -> None:
    facts = Facts()
    facts.put(Fact(TANK, "status_text", unknown("zpool status: timed out")))
    assert all(isinstance(each.value, Unknown) for each in pool_status.derive(TANK, facts))
