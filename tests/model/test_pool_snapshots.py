"""What snapshots hold and will take, from what each dataset uses and refers to."""

from __future__ import annotations

from auditor.facts import Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.model.pool import SIZES as NAMES
from auditor.model.pool import next_snapshot, snapshot_space, thin_volumes

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
    found = {fact.name: fact.value for fact in snapshot_space.derive(POOL, facts) if fact.subject == POOL}
    assert set(found) == {name for name in snapshot_space.facts if "." not in name}
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


VOLUME = Subject("dataset", "tank/vol")


def next_one(used: int, available: int, referenced: int, reserved: int, origin: str = "") -> list[object]:
    """Room for the next snapshot of a volume, what it takes of that at most, and what it takes; in GiB, None: not known."""
    facts = Facts(0)
    row = {"used": used, "available": available, "referenced": referenced, "refreservation": reserved}
    facts.put_all(Fact(VOLUME, name, known(count * GIB, "")) for name, count in row.items())
    facts.put(Fact(VOLUME, "origin", known(origin, "")))
    found = {fact.name: fact.value for fact in next_snapshot.derive(VOLUME, facts)}
    each = [found[name] for name in ("snapshot_room", "snapshot_takes_most", "snapshot_takes")]
    return [int(one.number()) // GIB if isinstance(one, Known) else None for one in each]


def test_a_snapshot_of_a_thick_volume_has_the_reservation_promised_again() -> None:
    assert next_one(used=100, available=270, referenced=30, reserved=100) == [200, 30, 30], "70 are its own"
    assert next_one(used=120, available=200, referenced=120, reserved=100) == [200, 100, 100]
    assert next_one(used=30, available=200, referenced=30, reserved=0) == [200, 0, 0]


def test_what_earlier_snapshots_or_an_origin_hold_it_does_not_take_again() -> None:
    assert next_one(used=130, available=270, referenced=30, reserved=100) == [200, 30, None]
    assert next_one(used=100, available=270, referenced=30, reserved=100, origin="tank/a@b") == [200, 30, None]


def test_thin_volumes_are_added_up_over_the_whole_pool() -> None:
    volumes = {  # size, reserved, referenced, readonly
        "tank/thin": (100, 0, 30, "off"),
        "tank/half": (100, 60, 30, "off"),
        "tank/thick": (100, 101, 30, "off"),
        "tank/replica": (100, 0, 30, "on"),
    }

    def promised(*datasets: str) -> object:
        facts = Facts(0)
        facts.put(Fact(POOL, "datasets", known(tuple(Subject("dataset", name) for name in datasets), "")))
        for name, (whole, reserved, held, readonly) in volumes.items():
            row = {"volsize": whole, "refreservation": reserved, "referenced": held}
            volume = Subject("dataset", name)
            facts.put_all(Fact(volume, fact, known(value, "")) for fact, value in row.items())
            facts.put(Fact(volume, "type", known("volume", "")))
            facts.put(Fact(volume, "readonly", known(readonly, "")))
        for fact, value in (("type", "filesystem"), ("readonly", "off")):
            facts.put(Fact(Subject("dataset", "tank"), fact, known(value, "")))
        (found,) = thin_volumes.derive(POOL, facts)
        return found.value.value if isinstance(found.value, Known) else None

    assert promised("tank", *volumes) == 70 + 40
    assert promised(*volumes) is None, "what else is thin nobody knows"
