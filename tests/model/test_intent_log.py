"""How far back a crash reaches without a log: by the TXGs of the pool itself."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Subject, Unknown, unknown
from tests.model.test_model_pools import MIRROR, POOL, World

OTHER = Subject("pool", "backup")
INNODB = Subject("database", "mariadb 388")
EMPTY = unknown("/proc/spl/kstat/zfs/tank/txgs: empty")


@pytest.mark.parametrize(
    ("timeout", "life_ms", "sync_ms", "window"),
    [
        (5, 7_312.4, 900.0, "up to 7.4 s"),  # rounded up
        (5, 900_000.0, 899_000.0, "up to 904 s"),
        (5, 412.0, 302.0, "up to 5.4 s"),  # something forced the TXGs that it remembers
        (5, EMPTY, EMPTY, None),
        (unknown("not in the recording"), 7_312.4, 900.0, None),
    ],
)
def test_loss_window_of_a_pool(
    timeout: int | Unknown, life_ms: float | Unknown, sync_ms: float | Unknown, window: str | None
) -> None:
    world = World(MIRROR)
    world.put(HOST, zfs_txg_timeout=timeout)
    world.put(POOL, txg_life_ms_max=life_ms, txg_sync_ms_max=sync_ms)
    assert world.get(POOL, "loss_window") == window


@pytest.mark.parametrize(("life_ms", "window"), [(11_000.0, "up to 11 s"), (6_000.0, "up to 7.4 s"), (EMPTY, None)])
def test_loss_window_of_a_host_is_that_of_its_slowest_pool(life_ms: float | Unknown, window: str | None) -> None:
    world = World(MIRROR)
    world.facts.add(OTHER)
    world.put(HOST, zfs_txg_timeout=5, pools=(POOL, OTHER))
    world.put(POOL, txg_life_ms_max=7_312.4, txg_sync_ms_max=900.0)
    world.put(OTHER, txg_life_ms_max=life_ms, txg_sync_ms_max=100.0)
    assert world.get(HOST, "loss_window") == window
    assert world.get(POOL, "loss_window") == "up to 7.4 s"


@pytest.mark.parametrize(
    ("at_commit", "every_s", "window"),
    [
        (0, 2700, "about 2700 s"),
        (2, 1, "about 1 s"),
        (2, 2700, "up to 7.4 s"),  # it has written its log: the next TXG takes it along
        (2, EMPTY, None),
    ],
)
def test_loss_window_of_a_log_that_is_flushed_late(at_commit: int, every_s: int | Unknown, window: str | None) -> None:
    world = World(MIRROR)
    world.facts.add(INNODB)
    world.put(HOST, zfs_txg_timeout=5, pools=(POOL,))
    world.put(POOL, txg_life_ms_max=7_312.4, txg_sync_ms_max=900.0)
    world.put(INNODB, flush_log_at_commit=at_commit, flush_log_every_s=every_s)
    assert world.get(INNODB, "loss_window") == window
