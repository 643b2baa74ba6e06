"""For how long a TXG has been on its way to the disks, by one clock."""

from __future__ import annotations

import pytest

from auditor.facts import Unknown, unknown
from tests.model.test_model_pools import MIRROR, POOL, World

NO_CLOCK = unknown("iostats: permission denied")


@pytest.mark.parametrize(
    ("since", "now", "ms"),
    [
        (0, NO_CLOCK, 0.0),
        (500_793_315_800, 511_840_011_740, 11046.696),
        (500_793_315_800, 500_000_000_000, 0.0),
        (500_793_315_800, NO_CLOCK, None),
        (unknown("txgs: empty"), 511_840_011_740, None),
    ],
)
def test_txg_unfinished(since: int | Unknown, now: int | Unknown, ms: float | None) -> None:
    world = World(MIRROR)
    world.put(POOL, txg_unfinished_since_ns=since, kstat_clock_ns=now)
    assert world.get(POOL, "txg_unfinished_ms") == ms
