"""How long commits waited for the devices that have the log, by what OpenZFS timed since the import."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from auditor.facts import HOST, Fact, Facts, Known, Subject, Value, known, unknown
from auditor.model.intent_log import commit_latency
from auditor.sources.zpool import quantile_ms

TANK, DB = Subject("pool", "tank"), Subject("dataset", "tank/db")
HOUR = 3600 * 10**9


class Leg(NamedTuple):
    """Of a device: writes and synchronous ones that were timed, 99 % of them (ms), flushes since boot and what they took."""

    ms: float = 0.262
    queue: float = 0.008
    synced: int = 100_000
    writes: int = 100_000
    flushes: int = 0
    flush_ms: int = 0


def found(*legs: Leg, commits: int | None = 90_000, lost: str = "", days: int = 12) -> dict[str, Value | str]:
    """Fact -> its value, or why it is not known."""
    facts = Facts()
    leaves = tuple(Subject("leaf", f"sd{'abcd'[i]}", "tank") for i in range(len(legs)))
    facts.put_all([Fact(TANK, "zil_leaves", known(leaves, "")), Fact(TANK, "datasets", known((DB,), ""))])
    facts.put(Fact(HOST, "zil_commit_count", known(5_000, "")))
    if commits is not None:
        facts.put(Fact(DB, "zil_commit_count", known(commits, "")))
    for name, ns in (("kstat_created_ns", HOUR), ("kstat_clock_ns", HOUR + days * 24 * HOUR)):
        facts.put(Fact(TANK, name, known(ns, "")))
    for leaf, leg in zip(leaves, legs, strict=True):
        disk = Subject("disk", leaf.name)
        timed: dict[str, Value] = {
            "type": "disk",
            "disks": (disk,),
            "writes_timed": leg.writes,
            "sync_writes_timed": leg.synced,
            "writes_over_1s": 3 if leg.ms > 1000 else 0,
            "write_ms_p99": leg.ms,
            "write_ms_p99_most": leg.ms * 2,
            "sync_queue_ms_p99": leg.queue,
            "sync_queue_ms_p99_most": leg.queue * 2,
        }
        facts.put_all(Fact(leaf, name, unknown("lost") if name == lost else known(timed[name], "")) for name in timed)
        facts.put(Fact(disk, "flushes", known(leg.flushes, "")))
        facts.put(Fact(disk, "flush_ms", known(leg.flush_ms, "")))
    told = {each.name: each.value for each in commit_latency.derive(TANK, facts)}
    return {name: each.value if isinstance(each, Known) else each.reasons[0].text for name, each in told.items()}


def test_the_leg_that_takes_longest_decides() -> None:
    assert found(Leg(), Leg(ms=268.435), Leg()) == {
        "commits_timed": 90_000,
        "commit_ms": 268.435,
        "commit_ms_most": 536.886,
        "commit_alone": True,
        "commit_waits_for": "sdb",
        "commit_cause": "leg",
        "commit_stalls": 0,
        "commit_took": "268.435 ms or longer at p99 since the import 12 days ago",
    }


def test_what_takes_the_time_is_named() -> None:
    assert found(Leg(ms=33.5), Leg(ms=16.7))["commit_cause"] == "drive"
    assert found(Leg(ms=33.5))["commit_cause"] == "drive"
    assert found(Leg(queue=67.1), Leg())["commit_cause"] == "queue"
    flushes = found(Leg(), Leg(flushes=100_000, flush_ms=1_200_000))
    assert (flushes["commit_cause"], flushes["commit_ms"], flushes["commit_waits_for"]) == ("flush", 12.0, "sdb")
    assert flushes["commit_took"] == "12 ms on average for a flush since boot", (
        "no quantile: one stall makes a mean, too"
    )


@pytest.mark.parametrize("synced", [0, 3, 999])
def test_a_leg_that_is_away_or_new_does_not_hide_that_the_others_are_slow(synced: int) -> None:
    slow = found(Leg(ms=268.435), Leg(ms=0.131, synced=synced, writes=synced))
    assert (slow["commits_timed"], slow["commit_ms"], slow["commit_waits_for"]) == (90_000, 268.435, "sda")
    fast = found(Leg(), Leg(ms=2147.5, synced=synced, writes=synced))
    assert (fast["commits_timed"], fast["commit_ms"], fast["commit_ms_most"]) == (90_000, 0.262, 0.54)


def test_where_no_leg_was_timed_often_the_number_says_so() -> None:
    assert found(Leg(synced=40, writes=40), Leg(synced=3, writes=3))["commits_timed"] == 3


def test_flushes_of_a_drive_that_hardly_had_any_do_not_count() -> None:
    assert found(Leg(flushes=999, flush_ms=999_000))["commit_ms"] == 0.262


def test_stalls_are_those_of_the_slowest_device() -> None:
    assert found(Leg(), Leg(ms=1073.7))["commit_stalls"] == 3


def test_slow_writes_of_others_are_not_called_commits() -> None:
    mixed = found(Leg(ms=134.2, writes=2_000_000))
    assert mixed["commit_ms"] == 0.008
    assert mixed["commit_ms_most"] == 268.416
    assert mixed["commit_alone"] == "sda: most writes that were timed are of no commit"


def test_labels_of_transaction_groups_are_no_commits() -> None:
    """Each group writes them synchronously, on a pool on which nobody commits as on any other."""
    idle = found(Leg(ms=134.2, synced=500_000, writes=600_000), commits=200)
    assert idle["commits_timed"] == 200
    assert idle["commit_ms"] == "sda: most writes that were timed are of no commit"


def test_commits_of_all_pools_count_where_those_of_datasets_are_not_counted() -> None:
    assert found(Leg(), commits=None)["commits_timed"] == 5_000


def test_a_leg_that_was_not_timed_makes_it_unknown() -> None:
    assert found(Leg(), Leg(), lost="write_ms_p99")["commit_ms"] == "lost"


def test_a_pool_that_was_imported_today() -> None:
    assert str(found(Leg(), days=0)["commit_took"]).endswith("since the import 0 minutes ago")
    assert found(Leg(), days=1)["commit_took"] == "0.262 ms or longer at p99 since the import 24 hours ago"


def test_the_bucket_of_a_quantile() -> None:
    counts = [0] * 37
    counts[20], counts[28] = 99, 1
    assert quantile_ms(counts, 99) == (1.049, 2.097)
    counts[28] = 2
    assert quantile_ms(counts, 99) == (268.435, 536.871)
