"""Several devices with checksum errors, and a pace of wear: what is told where a part of it was not seen."""

from __future__ import annotations

import pytest

from auditor.facts import Subject, Unknown, unknown
from tests.model.test_model_pools import MIRROR, POOL, World, leaf

UNSEEN = unknown("zpool status: no answer")
DISK = Subject("disk", "a")


@pytest.mark.parametrize(
    ("counts", "wrong"),
    [
        ((0, 0), ()),
        ((3, 0), ("a",)),
        ((3, 3), ("a", "b")),
        ((3, UNSEEN), None),
        ((0, UNSEEN), None),
    ],
)
def test_which_have_had_checksum_errors(counts: tuple[int | Unknown, ...], wrong: tuple[str, ...] | None) -> None:
    world = World(MIRROR)
    for name, count in zip("ab", counts, strict=True):
        world.put(leaf(name), checksum_errors=count)
    assert world.get(POOL, "leaves_with_checksum_errors") == wrong


def test_two_are_several_though_a_third_was_not_seen() -> None:
    world = World(("mirror-0", "mirror", "normal", ("a", "b", "c")))
    for name, count in (("a", 1), ("b", 1), ("c", UNSEEN)):
        world.put(leaf(name), checksum_errors=count)
    assert world.get(POOL, "leaves_with_checksum_errors") == ("a", "b")


@pytest.mark.parametrize(
    ("kind", "errors", "resilvering", "beyond"),
    [
        ("mirror", (0, 0, 0), "", ()),
        ("mirror", (0, 3, 3), "", ()),
        ("mirror", (3, 3, 3), "", ("top",)),
        ("mirror", (3, 3, 0), "c", ("top",)),
        ("raidz1", (3, 0, 0), "", ()),
        ("raidz1", (3, 3, 0), "", ("top",)),
        ("raidz2", (3, 3, 0), "", ()),
        ("raidz1", (3, 0, 0), "b", ("top",)),
        ("mirror", (UNSEEN, 0, 0), "", None),
        ("raidz1", (UNSEEN, 3, 3), "", ("top",)),
    ],
)
def test_errors_on_more_legs_than_a_vdev_can_lose(
    kind: str, errors: tuple[int | Unknown, ...], resilvering: str, beyond: tuple[str, ...] | None
) -> None:
    world = World(("top", kind, "normal", ("a", "b", "c")))
    for name, count in zip("abc", errors, strict=True):
        world.put(leaf(name), read_errors=count, write_errors=0, checksum_errors=0, resilvering=name == resilvering)
        world.put(leaf(name), state="ONLINE", device_present=True)
    assert world.get(POOL, "errors_beyond") == beyond


@pytest.mark.parametrize(
    ("states", "errors", "beyond"),
    [
        (("FAULTED", "ONLINE", "ONLINE"), (37, 0, 0), ()),
        (("FAULTED", "ONLINE", "ONLINE"), (37, 3, 0), ("top",)),
        (("FAULTED", "ONLINE", "ONLINE"), (0, 3, 0), ("top",)),
        (("DEGRADED", "ONLINE", "ONLINE"), (37, 0, 0), ()),
    ],
)
def test_a_leg_that_is_gone_is_counted_once(
    states: tuple[str, ...], errors: tuple[int, ...], beyond: tuple[str, ...]
) -> None:
    """It is FAULTED for its errors, and the others are whole."""
    world = World(("top", "raidz1", "normal", ("a", "b", "c")))
    for name, state, count in zip("abc", states, errors, strict=True):
        world.put(leaf(name), read_errors=0, write_errors=count, checksum_errors=0, resilvering=False)
        world.put(leaf(name), state=state, device_present=True)
    assert world.get(POOL, "errors_beyond") == beyond


@pytest.mark.parametrize(
    ("used", "hours", "days"),
    [
        (2, 24, 49),
        (60, 8760, 243),
        (100, 1000, 0),
        (130, 1000, 0),
        (1, 24, None),
        (0, 0, None),
        (50, UNSEEN, None),
        (UNSEEN, 24, None),
    ],
)
def test_how_long_the_rest_of_the_endurance_lasts(used: int | Unknown, hours: int | Unknown, days: int | None) -> None:
    world = World(MIRROR)
    world.put(DISK, nvme_percent_used=used, nvme_power_on_hours=hours)
    assert world.get(DISK, "endurance_left_days") == days
