"""Cache devices and hot spares that OpenZFS cannot use, while the pool is ONLINE."""

from __future__ import annotations

import pytest

from auditor.derive import idle_leaves
from auditor.facts import Fact, Facts, Known, Subject, Unknown, Value, known, unknown

TANK = Subject("pool", "tank")
DATA, CACHE, OTHER, SPARE = (Subject("leaf", name, "tank") for name in ("sda", "nvme0n1", "nvme1n1", "sdx"))
ONLINE: dict[str, Value] = {"type": "disk", "state": "ONLINE", "device_present": True, "path": "/dev/nvme0n1p1"}


def derived(name: str, *leaves: tuple[Subject, dict[str, Value]], lost: tuple[str, ...] = ()) -> object:
    """The value of a fact, or why it is not known."""
    facts = Facts()
    pool: dict[str, Value] = {
        "leaves": (DATA,),
        "cache_leaves": tuple(leaf for leaf, _ in leaves if leaf in (CACHE, OTHER)),
        "spare_leaves": tuple(leaf for leaf, _ in leaves if leaf == SPARE),
    }
    for subject, values in ((TANK, pool), *leaves):
        for fact, value in values.items():
            facts.put(Fact(subject, fact, unknown(f"{fact}: lost") if fact in lost else known(value, str(value))))
    found = next(each.value for each in idle_leaves.derive(TANK, facts) if each.name == name)
    return found.value if isinstance(found, Known) else found.reasons[0].text


@pytest.mark.parametrize(
    ("own", "lost", "says"),
    [
        ({}, (), ()),
        ({"state": "DEGRADED"}, (), ()),
        ({"state": "UNAVAIL"}, (), ("nvme0n1 is UNAVAIL",)),
        ({"state": "OFFLINE", "note": ""}, (), ("nvme0n1 is OFFLINE",)),
        ({"state": "FAULTED", "note": "corrupted data"}, (), ("nvme0n1 is FAULTED (corrupted data)",)),
        ({"state": "UNAVAIL", "taken_by": ()}, (), ("nvme0n1 is UNAVAIL",)),
        ({"state": "UNAVAIL", "taken_by": ("md1",)}, (), ("nvme0n1 is UNAVAIL; ('md1',)",)),  # its evidence
        ({"state": "UNAVAIL", "taken_by": ("md1",)}, ("taken_by", "device_present"), ("nvme0n1 is UNAVAIL",)),
        ({"device_present": False}, (), ("nvme0n1 is ONLINE, but /dev/nvme0n1p1 does not exist",)),
        ({"device_present": False, "type": "file"}, (), ()),
        ({"state": "UNKNOWN"}, (), "nvme0n1: zpool status does not know its state"),
        ({}, ("state",), "state: lost"),
        ({}, ("device_present",), "device_present: lost"),
        ({}, ("cache_leaves",), "cache_leaves: lost"),
    ],
)
def test_a_cache_device(own: dict[str, Value], lost: tuple[str, ...], says: object) -> None:
    assert derived("cache_gone", (CACHE, ONLINE | own), lost=lost) == says


def test_one_that_is_gone_is_told_beside_one_that_was_not_seen() -> None:
    gone = derived("cache_gone", (CACHE, ONLINE | {"state": "REMOVED"}), (OTHER, {"type": "disk"}))
    assert gone == ("nvme0n1 is REMOVED",)
    assert isinstance(derived("cache_gone", (CACHE, ONLINE), (OTHER, {"type": "disk"})), str)


def test_no_cache_device() -> None:
    assert derived("cache_gone") == ()


@pytest.mark.parametrize("state", ["AVAIL", "INUSE", "ONLINE"])
def test_a_spare_that_waits_or_stands_in(state: str) -> None:
    facts = Facts()
    for name, value in (ONLINE | {"state": state}).items():
        facts.put(Fact(SPARE, name, known(value, "")))
    assert idle_leaves.fault(SPARE, facts) == ""


def test_every_leaf() -> None:
    beside = ((CACHE, ONLINE), (SPARE, ONLINE))
    assert derived("every_leaf", *beside) == (DATA, CACHE, SPARE)
    assert derived("every_leaf", (CACHE, ONLINE), (SPARE, {"type": "dspare"})) == (DATA, CACHE)  # has no path
    assert derived("every_leaf", *beside, lost=("spare_leaves",)) == "spare_leaves: lost"
    assert isinstance(idle_leaves.fault(SPARE, Facts()), Unknown)
