"""The slow leg of a vdev, by what its drives took for their writes and flushes since boot."""

from __future__ import annotations

from auditor.facts import Fact, Facts, Known, Subject, Value, known, unknown
from auditor.model.vdev import slow_leg

VDEV = Subject("vdev", "mirror-0", "tank")
GOOD = {"writes": 200_000, "write_ms": 200_000, "flushes": 50_000, "flush_ms": 50_000}


def found(*legs: dict[str, int], kind: str = "mirror", lost: str = "") -> dict[str, Value | str]:
    """Fact -> its value, or why it is not known."""
    facts = Facts()
    leaves = tuple(Subject("leaf", f"sd{i}", "tank") for i in range(len(legs)))
    facts.put_all([Fact(VDEV, "type", known(kind, "")), Fact(VDEV, "leaves", known(leaves, ""))])
    for leaf, leg in zip(leaves, legs, strict=True):
        disk = Subject("disk", leaf.name)
        facts.put(Fact(leaf, "disks", known((disk,), "")))
        facts.put_all(Fact(disk, name, unknown("lost") if name == lost else known(leg[name], "")) for name in leg)
    told = {each.name: each.value for each in slow_leg.derive(VDEV, facts)}
    return {name: each.value if isinstance(each, Known) else each.reasons[0].text for name, each in told.items()}


def test_the_slow_leg_is_named() -> None:
    slow = {**GOOD, "write_ms": 1_600_000, "flush_ms": 400_000}
    assert found(GOOD, slow) == {
        "legs_worked": True,
        "slowest_leg": "sd1",
        "slowest_leg_ms": 8.0,
        "slowest_leg_times": 8.0,
    }


def test_flushes_count_as_writes_do() -> None:
    """A drive that writes as fast and takes its time to empty its cache."""
    assert found(GOOD, {**GOOD, "flush_ms": 2_050_000})["slowest_leg_times"] == 9.0


def test_legs_alike() -> None:
    assert found(GOOD, GOOD)["slowest_leg_times"] == 1.0


def test_too_few_writes_say_nothing() -> None:
    assert found(GOOD, {**GOOD, "writes": 99_999}) == {"legs_worked": False}


def test_legs_of_raidz_and_draid_are_compared_as_those_of_a_mirror() -> None:
    for kind in ("raidz2", "draid"):
        slow = found(GOOD, {**GOOD, "write_ms": 1_600_000}, GOOD, kind=kind)
        assert (slow["slowest_leg"], slow["legs_worked"]) == ("sd1", True)


def test_what_has_one_leg_is_not_compared() -> None:
    assert found(GOOD, kind="disk") == {"legs_worked": False}


def test_legs_that_did_other_work_are_not_compared() -> None:
    told = found(GOOD, {**GOOD, "writes": 500_000})
    assert told["legs_worked"] is True
    assert "did not do the same work" in str(told["slowest_leg_times"])


def test_a_counter_that_is_not_there() -> None:
    assert set(found(GOOD, GOOD, lost="flush_ms").values()) == {"lost"}
