"""``zaudit advise``: the table is sound, and what is set is compared with it; nothing is ever set, or said without counters."""

from __future__ import annotations

import pytest

from auditor.commands import _log_advice
from auditor.commands.advise import share
from auditor.data import TableError, advice
from auditor.databases import ENGINES
from auditor.facts import HOST, Fact, Facts, Known, Subject
from tests.fake import CommandLine
from tests.golden import HOSTS, OLDER

ENTRY = """[[advice]]
engines = []
parts = ["data"]
type = "any"
property = "recordsize"
value = "16K"
also = []
reason = "a"
cost = "b"
source = "c"
dispute = ""
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", advice.PARTS)
@pytest.mark.parametrize("kind", ["filesystem", "volume"])
def test_each_engine_is_told_what_decides(engine: str, part: str, kind: str) -> None:
    found = {each.property: each for each in advice.of(engine, part, kind)}
    size = found["recordsize" if kind == "filesystem" else "volblocksize"]
    assert isinstance(size.value, int)
    assert {"sync", "logbias", "primarycache", "checksum"} <= set(found)
    assert found["sync"].value == "standard"
    assert "disabled" not in found["sync"].also


def test_engines_of_the_table_are_engines() -> None:
    assert {name for each in advice.load() for name in each.engines} <= set(ENGINES)


def test_what_differs_is_told_with_its_command(zaudit: CommandLine) -> None:
    done = zaudit(
        "advise", "db", "mysql", "tank/db", "--part", "data", "--replay", str(OLDER / "2.3-sync-disabled-local")
    )
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("MySQL InnoDB on tank/db: its data. Nothing is changed by this.")
    assert (
        "sync: sync=disabled, inherited from tank; advised: standard\n  do       zfs set sync=standard tank/db\n"
        in done.out
    )
    assert "logbias: logbias=latency (default): as advised" in done.out
    assert "  do       zfs set recordsize=16K tank/db" in done.out


def test_a_dataset_that_is_not_there(zaudit: CommandLine) -> None:
    done = zaudit("advise", "db", "mysql", "tank/dbx", "--replay", str(OLDER / "2.3-sync-disabled-local"))
    assert done.code == 3


def test_the_share_of_a_raidz_is_told(zaudit: CommandLine) -> None:
    done = zaudit("advise", "db", "postgres", "tank/db", "--replay", str(HOSTS / "2.4-healthy-raidz1"))
    assert "of the raw space blocks hold 8K" in done.out


@pytest.mark.parametrize(
    ("block", "disks", "parity", "ashift", "part"),
    [(8192, 3, 1, 12, 1 / 2), (16384, 6, 2, 12, 2 / 3), (8192, 6, 2, 12, 1 / 3), (131072, 6, 2, 12, 32 / 48)],
)
def test_share(block: int, disks: int, parity: int, ashift: int, part: float) -> None:
    """By hand, after vdev_raidz_psize_to_asize(): parity for each row, and rounded up to parity + 1 sectors."""
    assert share(block, disks, parity, ashift) == pytest.approx(part)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('value = "16K"', 'value = "16X"'), "invalid literal"),
        (('type = "any"', 'type = "pool"'), "type is one of"),
        (('reason = "a"', 'reason = ""'), "not empty"),
        (("also = []", "also = 1"), "lists of words"),
        (('cost = "b"\n', ""), "missing or unknown cost"),
    ],
)
def test_a_wrong_table_is_an_error(change: tuple[str, str], says: str) -> None:
    assert advice.parse(ENTRY)
    with pytest.raises(TableError, match=says):
        advice.parse(ENTRY.replace(*change))


def counted(mine: dict[str, object], *, disk: dict[str, object], logs: tuple[Subject, ...] = ()) -> Facts:
    """A pool of one dataset and one drive with these facts."""
    facts, pool, leaf, drive = Facts(), Subject("pool", "tank"), Subject("leaf", "sda", "tank"), Subject("disk", "sda")
    dataset = Subject("dataset", "tank/db")
    of_pool = {"datasets": (dataset,), "data_leaves": (leaf,), "log_vdevs": logs, "txg_dirty_bytes_max": 10 << 20}
    of_pool |= {"txg_open_ms_p95": 5000.0, "txg_sync_ms_p95": 500.0, "log_bytes": 16 << 30}
    values = {
        pool: of_pool,
        dataset: mine,
        leaf: {"disks": (drive,)},
        drive: disk,
        HOST: {"zfs_wrlog_data_max": 1 << 30},
    }
    facts.put_all(Fact(each, name, Known(value, ())) for each, of in values.items() for name, value in of.items())  # type: ignore[attr-defined]
    return facts


def told(facts: Facts) -> str:
    return "\n".join(_log_advice.page(Subject("pool", "tank"), facts))


BUSY = {
    "sync": "standard",
    "logbias": "latency",
    "zil_counted_s": 86400.0,
    "zil_commit_count": 864000,
    "zil_itx_metaslab_normal_alloc": 86400 << 20,
    "zil_itx_metaslab_slog_alloc": 0,
}


@pytest.mark.parametrize(
    ("disk", "says"),
    [
        ({"hdd": True}, "Would one help? Yes: each commit waits for a write and a flush on hard disks"),
        ({"hdd": False, "plp_grade": 1}, "Would one help? Yes, if it has power-loss protection"),
        ({"hdd": False, "plp_grade": 4}, "Would one help? Hardly: the data drives need not empty a cache"),
        ({"hdd": False}, "Would one help? Not known: what the data drives are"),
    ],
)
def test_a_log_device_helps_by_what_the_data_drives_are(disk: dict[str, object], says: str) -> None:
    text = told(counted(BUSY, disk=disk))
    assert says in text
    assert "commits      10 a second, on 1 dataset, counted over 24 h and more" in text


def test_how_large_a_log_device_must_be() -> None:
    """1 MiB a second for an open group of 5 s and two that are written in 0.5 s; three groups of 10 MiB."""
    text = told(counted(BUSY, disk={"hdd": True}))
    assert "     6 MiB  on average: 1 MiB/s for 6 s" in text
    assert "    30 MiB  if all that was written had been synced" in text
    assert "     1 GiB  zfs_wrlog_data_max" in text
    assert "each rated for 30.1 TiB of writes a year" in text
    assert "zpool add tank log mirror" in text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"zil_commit_count": 0}, "Would one help? No: nothing that was counted has asked for a commit."),
        ({"zil_commit_count": 0, "sync": "disabled"}, "Would one help? Not known: what would be committed"),
        ({"zil_commit_count": 864}, "Would one help? Hardly: on average there is a commit every 100 s."),
        ({"zil_counted_s": 60.0}, "This is a short time to judge by"),
        ({"logbias": "throughput"}, "bypassing    tank/db"),
    ],
)
def test_what_is_not_counted_is_not_claimed(change: dict[str, object], says: str) -> None:
    assert says in told(counted({**BUSY, **change}, disk={"hdd": True}))


def test_a_pool_with_a_log_is_told_what_it_has() -> None:
    text = told(counted(BUSY, disk={"hdd": True}, logs=(Subject("vdev", "mirror-1", "tank"),)))
    assert "The pool has log devices: mirror-1, 16 GiB." in text
    assert "zpool add" not in text


def test_without_counters_nothing_is_said(zaudit: CommandLine) -> None:
    done = zaudit("advise", "log", "tank", "--replay", str(HOSTS / "2.1-healthy-single-slog"))
    assert done.code == 10
    assert done.out.startswith("Nothing can be said of a log device for tank: no counters of the log of tank")
    assert "GiB" not in done.out


def test_a_recorded_host_is_counted(zaudit: CommandLine) -> None:
    done = zaudit("advise", "log", "tank", "--replay", str(HOSTS / "2.3-db-postgres-healthy"))
    assert (done.code, done.err) == (0, "")
    assert "The pool has log devices: mirror-1" in done.out
    assert "a second, on 3 datasets, counted over" in done.out


def test_a_counter_that_was_not_seen_is_no_zero() -> None:
    with pytest.raises(_log_advice.NotMeasured):
        told(counted({key: value for key, value in BUSY.items() if key != "zil_commit_count"}, disk={"hdd": True}))
