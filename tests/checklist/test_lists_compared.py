"""Two looks of one host and target, and what changed between them."""

from __future__ import annotations

from auditor.checklist import lists
from auditor.facts import HOST, Fact, Facts, Subject, known
from tests.checklist import worlds

AUDIT = worlds.seen().audit


def other(*changed: Fact, without: tuple[str, ...] = ()) -> Facts:
    found = worlds.facts(without=without)
    for each in changed:
        found.replace(each)
    return found


def test_the_same_host_and_target() -> None:
    assert lists.why_not(AUDIT, other(), worlds.TARGET) == ""
    assert list(lists.changes(AUDIT, other())) == []


def test_another_target() -> None:
    why = lists.why_not(AUDIT, other(), Subject("dataset", "tank/db"))
    assert why == "it is of tank/db, and the audit of tank/db/wal"


def test_another_host_or_a_pool_of_the_same_name() -> None:
    renamed = other(Fact(HOST, "hostname", known("db2", "")))
    assert lists.why_not(AUDIT, renamed, worlds.TARGET) == "it is of host db2, and the audit of host db1"
    audit = AUDIT._replace(facts=other(Fact(worlds.POOL, "guid", known("17", ""))))
    twin = other(Fact(worlds.POOL, "guid", known("18", "")))
    assert lists.why_not(audit, twin, worlds.TARGET) == "it is of pool 18, and the audit of pool 17"


def test_a_host_that_nobody_knows_is_not_the_same() -> None:
    assert "may be of another host" in lists.why_not(AUDIT, other(without=("hostname",)), worlds.TARGET)


def test_what_a_measurement_rests_on() -> None:
    then = other(
        Fact(worlds.TARGET, "logbias", known("throughput", "")),
        Fact(worlds.POOL, "log_leaves", known((Subject("leaf", "sdx", "tank"),), "")),
        Fact(HOST, "zfs_version_text", known("2.2.7", "")),
    )
    assert list(lists.changes(AUDIT, then)) == [
        "logbias was throughput then, is latency now",
        "log_leaves was sdx then, is nvme2n1p1 now",
        "zfs_version_text was 2.2.7 then, is 2.3.9 now",
    ]


def test_the_order_of_devices_and_what_is_not_known_are_no_change() -> None:
    two = (Subject("leaf", "sda", "tank"), Subject("leaf", "sdb", "tank"))
    audit = AUDIT._replace(facts=other(Fact(worlds.POOL, "log_leaves", known(two, ""))))
    assert list(lists.changes(audit, other(Fact(worlds.POOL, "log_leaves", known(two[::-1], ""))))) == []
    assert list(lists.changes(AUDIT, other(without=("logbias", "zil_class")))) == []
