"""What snapshots hold, from what each dataset uses and refers to."""

from __future__ import annotations

from auditor.facts import Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.model.pool import SIZES as NAMES
from auditor.model.pool import snapshot_space

POOL = Subject("pool", "tank")
GIB = 1 << 30
SIZES = {  # used, referenced, refreservation; tank/home has 170 reserved
    "tank": (780, 0, 0),
    "tank/pg": (500, 200, 0),
    "tank/pg/wal": (40, 40, 0),
    "tank/clone": (10, 150, 0),
    "tank/vol": (100, 30, 100),
    "tank/home": (90, 80, 0),
}


def told(sizes: dict[str, tuple[int, int, int]], **unread: str) -> dict[str, object]:
    facts = Facts(0)
    datasets = tuple(Subject("dataset", name) for name in sizes)
    facts.put(Fact(POOL, "datasets", known(datasets, "")))
    for dataset, (used, referenced, reserved) in zip(datasets, sizes.values(), strict=True):
        row = {"used": used, "referenced": referenced, "refreservation": reserved, "available": 220}
        row["reservation"] = 170 if dataset.name == "tank/home" else 0
        clone = "tank/pg@monday" if dataset.name == "tank/clone" else ""
        seen = unread.get("origin") != dataset.name
        facts.put(Fact(dataset, "origin", known(clone, "") if seen else unknown("timed out")))
        for name, count in row.items():
            value = unknown("timed out") if unread.get(name) == dataset.name else known(count * GIB, "")
            facts.put(Fact(dataset, name, value))
    found = {fact.name: fact.value for fact in snapshot_space.derive(POOL, facts)}
    assert set(found) == set(snapshot_space.facts)
    return {name: each.value if isinstance(each, Known) else None for name, each in found.items()}


def test_what_is_used_and_neither_referred_to_nor_a_childs_is_held_by_snapshots() -> None:
    # tank/pg: 500 - 200 - 40; tank/home: 10; a clone tells nothing, and the volume may hold 70 at most
    assert told(SIZES) == {
        "snapshots_percent": 27,
        "snapshots_percent_most": None,
        "held_by_snapshots": ("tank/pg (260 GiB)", "tank/home (10 GiB)"),
    }


def test_a_volume_holds_at_least_what_its_reservation_cannot_be() -> None:
    found = told({"tank": (500, 0, 0), "tank/vol": (500, 50, 100)})
    assert (found["snapshots_percent"], found["held_by_snapshots"]) == (48, ("tank/vol (350 GiB)",))


def test_of_a_clone_it_is_not_known_what_its_snapshots_hold() -> None:
    found = told({"tank": (300, 0, 0), "tank/clone": (300, 290, 0)})
    assert (found["snapshots_percent"], found["snapshots_percent_most"]) == (1, None), "all 300 may be in snapshots"


def test_a_pool_without_snapshots() -> None:
    assert told({"tank": (100, 0, 0), "tank/pg": (100, 100, 0)}) == {
        "snapshots_percent": 0,
        "snapshots_percent_most": 0,
        "held_by_snapshots": (),
    }


def test_what_was_not_seen_is_not_told() -> None:
    assert told({"tank/pg": SIZES["tank/pg"]})["snapshots_percent"] is None, "the rest of the pool was not looked at"
    for name in ("origin", *NAMES):
        assert told(SIZES, **{name: "tank/home"})["snapshots_percent"] is None
    facts = Facts(0)
    facts.put(Fact(POOL, "datasets", unknown("zfs list: timed out")))
    assert all(isinstance(fact.value, Unknown) for fact in snapshot_space.derive(POOL, facts))
