"""Databases that leave out flushes, by their settings: sync=always keeps their commits, and is no waste there."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Subject, Unknown, Value, unknown
from tests.model.test_model_pools import MIRROR, World

DATA, OTHER = Subject("dataset", "tank/db"), Subject("dataset", "tank/home")
HIDDEN = unknown("permission denied")
INNODB: dict[str, Value | Unknown] = {
    "engine": "mysql",
    "flush_log_at_commit": 1,
    "flush_method": "FSYNC",
    "doublewrite": "ON",
    "sync_binlog": 1,
}


def omitted(name: str, given: dict[str, Value | Unknown]) -> list[bool | None]:
    """Of the dataset that it lies on, and of another one: whether a database leaves out flushes; None: unknown."""
    world, database = World(MIRROR), Subject("database", name)
    for each in (DATA, OTHER, database):
        world.facts.add(each)
    world.put(HOST, databases=(database,))
    world.put(database, **{"datasets": (DATA,), "process": name.split()[1], "eatmydata": False, **given})
    found = [world.get(each, "flushes_omitted") for each in (DATA, OTHER)]
    return [None if each is None else bool(each) for each in found]


@pytest.mark.parametrize(
    ("name", "given", "here"),
    [
        ("postgres 612", {"engine": "postgres", "fsync": True}, False),
        ("postgres 612", {"engine": "postgres", "fsync": False}, True),
        ("postgres 612", {"engine": "postgres", "fsync": HIDDEN}, None),
        ("postgres 612", {"engine": "postgres", "fsync": True, "eatmydata": True}, True),
        ("mysql 700", INNODB, False),
        ("mysql 700", INNODB | {"flush_log_at_commit": 2, "sync_binlog": HIDDEN}, True),
        ("mysql 700", INNODB | {"flush_log_at_commit": 0}, False),  # acknowledged before it is written
        ("mysql 700", INNODB | {"flush_method": "O_DIRECT_NO_FSYNC"}, True),
        ("mysql 700", INNODB | {"sync_binlog": 0}, True),
        ("mysql 700", INNODB | {"sync_binlog": HIDDEN}, None),
        ("mariadb 700", INNODB | {"engine": "mariadb", "doublewrite": "FAST"}, True),
        ("redis 8", {"engine": "redis", "appendfsync": "everysec"}, True),
        ("etcd 9", {"engine": "etcd", "no_fsync": True}, True),
        ("etcd 9", {"engine": "etcd", "no_fsync": False}, False),
    ],
)
def test_settings_that_leave_out_flushes(name: str, given: dict[str, Value | Unknown], here: bool | None) -> None:
    assert omitted(name, given) == [here, False]


def test_a_database_whose_place_or_presence_is_not_known_may_be_anywhere() -> None:
    assert omitted("postgres 612", {"engine": "postgres", "fsync": False, "datasets": HIDDEN}) == [None, None]
    world = World(MIRROR)
    world.facts.add(DATA)
    world.put(HOST, databases=HIDDEN)
    assert world.get(DATA, "flushes_omitted") is None
