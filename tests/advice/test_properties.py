"""``zaudit advise``: the table is sound, and what is set is compared with it; nothing is ever set, or said without counters."""

from __future__ import annotations

import re

import pytest

from auditor import data
from auditor.advice import log_device, properties
from auditor.advice.properties import Layout, Pool, chosen
from auditor.commands.golive import PARTS
from auditor.databases import ENGINES
from auditor.facts import HOST, Fact, Facts, Known, Reason, Subject, Unknown
from auditor.report import terminal
from tests.fake import CommandLine
from tests.golden import HOSTS, OLDER


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", ["filesystem", "volume"])
def test_each_engine_is_told_what_decides(engine: str, part: str, kind: str) -> None:
    found = {each.property: each for each in properties.of(engine, part, kind)}
    size = found["recordsize" if kind == "filesystem" else "volblocksize"]
    assert isinstance(size.value, int)
    assert {"sync", "logbias", "primarycache", "checksum"} <= set(found)
    assert found["sync"].value == "standard"
    assert "disabled" not in found["sync"].also


def test_engines_of_the_table_are_engines() -> None:
    assert {name for each in properties.load() for name in each.engines} <= set(ENGINES)


def test_each_reason_is_one_line() -> None:
    """At 80 columns, after the word why."""
    assert [each.reason for each in (*properties.load(), properties.MIRRORS) if len(each.reason) > 69] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_the_size_of_records_has_a_dispute_with_a_source(engine: str) -> None:
    (size,) = (each for each in properties.of(engine, "data", "filesystem") if each.property == "recordsize")
    assert "Holds" in size.dispute or "not hold" in size.dispute


def test_what_differs_is_told_with_its_command(zaudit: CommandLine) -> None:
    done = zaudit(
        "advise", "db", "mysql", "tank/db", "--part", "data", "--replay", str(OLDER / "2.3-sync-disabled-local")
    )
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("MySQL InnoDB on tank/db: its data. Nothing is changed.")
    assert "sync: disabled, inherited from tank; advised: standard\n" in done.out
    assert "logbias: latency (default): as advised\n  why      Commits use the log device" in done.out
    assert "  zfs set recordsize=16K tank/db\n" in done.out
    assert "  zfs set sync=standard tank\n" in done.out


def told_of(zaudit: CommandLine, engine: str, name: str, *options: str, dataset: str = "tank/db") -> str:
    done = zaudit("advise", "db", engine, dataset, *options, "--replay", str(HOSTS / name))
    assert (done.code, done.err) == (0, "")
    return done.out


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("engine", ENGINES)
def test_each_property_has_its_reason_cost_source_and_dispute(
    zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch, engine: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for name in ("2.4-healthy-raidz1", "2.4-healthy-draid", "2.4-healthy-mirrored-slog"):
        text = told_of(zaudit, engine, name)
        assert max(map(len, text.splitlines())) <= columns
        entries = [each for each in text.split("\n\n")[1:-1] if not each.startswith("layout")]
        for each in entries:
            assert [word for word in ("why", "cost", "source", "dispute") if f"\n  {word:8} " not in each] == [], each
        assert "zfs set sync=disabled" not in text
        assert "advised: disabled" not in text


@pytest.mark.parametrize("name", ["2.4-healthy-raidz1", "2.4-healthy-draid"])
def test_on_raidz_and_draid_the_next_size_is_advised(zaudit: CommandLine, name: str) -> None:
    text = told_of(zaudit, "mysql", name)
    assert "recordsize: 128K (default); advised: 32K here, 16K on mirrors" in text
    assert "  zfs set recordsize=32K tank/db\n" in text
    assert "a pool of mirrors is the better answer" in " ".join(text.split())
    assert " block     8K   16K   32K   64K  128K\n" in text


def test_on_mirrors_the_page_is_advised(zaudit: CommandLine) -> None:
    text = told_of(zaudit, "mysql", "2.4-healthy-mirrored-slog")
    assert "recordsize: 16K (local): as advised\n" in text
    assert "recordsize: 16K (local): as good as 32K\n" in told_of(zaudit, "postgres", "2.4-healthy-mirrored-slog")
    assert "layout" not in text


def test_where_the_vdevs_are_not_known_no_size_is_set() -> None:
    facts, db = Facts(), Subject("dataset", "tank/db")
    facts.put_all([Fact(db, "recordsize", Known(16384, ()))])
    (size,) = (each for each in properties.compare("mysql", db, "data", facts) if each.advice.property == "recordsize")
    assert size.stand == "not known"
    assert size.said.startswith("16K; not compared, for what the pool is made of is not known (")
    assert size.said.endswith("advised on mirrors: 16K")
    assert properties.commands([size], db, facts) == []


def test_a_dataset_that_is_not_there(zaudit: CommandLine) -> None:
    done = zaudit("advise", "db", "mysql", "tank/dbx", "--replay", str(OLDER / "2.3-sync-disabled-local"))
    assert done.code == 3


@pytest.mark.parametrize(
    ("more", "says", "why"),
    [
        ({}, "8K; advised: 16K", "It is InnoDB's page"),
        (
            {"db_engine": "mariadb", "db_page_bytes": 65536},
            "8K; advised: 64K",
            "The server's pages are larger than 16K",
        ),
        ({"ashift": 14}, "8K; advised: 32K", "The sectors are of 16K"),
        ({"special_small_blocks": 32768}, "8K; advised: 64K", "Blocks up to 32K would go to the special vdevs"),
        ({"special_small_blocks": 131072}, "8K; no size of 16K to 128K fits", ""),
        (
            {"type": "raidz2", "width": 6},
            "8K; advised: 32K here, 16K on mirrors",
            "Each block costs the disks of a raidz",
        ),
        (
            {"type": "raidz2", "width": 5, "ashift": 13},
            "8K; advised: 64K here, 16K on mirrors",
            "Blocks of 16K lose space on",
        ),
    ],
)
def test_why_another_size(more: dict[str, object], says: str, why: str) -> None:
    facts, pool, vdev, db = (
        Facts(),
        Subject("pool", "tank"),
        Subject("vdev", "v-0", "tank"),
        Subject("dataset", "tank/db"),
    )
    of_vdev = {"type": "mirror", "ashift": 12} | {key: more[key] for key in ("type", "width", "ashift") if key in more}
    of_db = {"recordsize": 8192, "special_small_blocks": 0} | {key: more[key] for key in more if key not in of_vdev}
    values = {pool: {"data_vdevs": (vdev,), "special_vdevs": (vdev,)}, vdev: of_vdev, db: of_db}
    facts.put_all(Fact(each, name, Known(value, ())) for each, of in values.items() for name, value in of.items())  # type: ignore[attr-defined]
    (size,) = (each for each in properties.compare("mysql", db, "data", facts) if each.advice.property == "recordsize")
    assert size.said == says
    assert size.advice.reason.startswith(why)
    assert len(size.advice.reason) <= 69
    assert properties.commands([size], db, facts) == (
        [] if "no size" in says else [f"zfs set recordsize={says.split()[2]} tank/db"]
    )


def raidz(disks: int, parity: int, sector: int = 4096) -> Layout:
    return Layout("raidz-0", False, disks, disks - parity, parity, sector)


def draid(data: int, parity: int, sector: int = 4096) -> Layout:
    return Layout("draid-0", True, data + parity, data, parity, sector)


@pytest.mark.parametrize(
    ("layout", "block", "takes"),
    [
        (raidz(3, 1), 8, 16), (raidz(3, 1), 16, 24), (raidz(6, 2), 8, 24), (raidz(6, 2), 16, 24), (raidz(6, 2), 128, 192),
        (raidz(8, 2), 128, 180), (raidz(9, 3), 32, 64), (raidz(12, 2), 32, 48), (raidz(6, 2, 512), 8, 12),
        (draid(8, 1), 4, 36), (draid(8, 1), 32, 36), (draid(8, 2), 36, 80), (draid(16, 2), 64, 72), (draid(2, 1), 16, 24),
    ],
)  # fmt: skip
def test_what_a_block_takes(layout: Layout, block: int, takes: int) -> None:
    """KiB, by hand: parity for each row, rounded up to parity + 1 sectors (vdev_raidz_psize_to_asize()); whole stripes
    (vdev_draid_psize_to_asize()). zpoolconcepts.7: with D=8 and 4 KiB sectors the minimum allocation is 32 KiB of data."""
    assert layout.takes(block << 10) == takes << 10


@pytest.mark.parametrize(
    ("wanted", "page", "pool", "best"),
    [
        (16, 16, Pool((), 4096, 0), 16),
        (16, 32, Pool((), 4096, 0), 32),
        (16, 16, Pool((), 16384, 0), 32),
        (16, 16, Pool((), 4096, 32 << 10), 64),
        (16, 16, Pool((), 4096, 128 << 10), 0),
        (16, 16, Pool((raidz(3, 1),), 4096, 0), 32),
        (16, 16, Pool((raidz(12, 2),), 4096, 0), 64),
        (16, 16, Pool((draid(16, 2),), 4096, 0), 64),
        (32, 8, Pool((draid(32, 3),), 4096, 0), 128),
        (64, 4, Pool((raidz(6, 2),), 4096, 0), 64),
        (16, 16, Pool((draid(64, 3),), 4096, 0), 128),
    ],
)
def test_the_size_that_is_chosen(wanted: int, page: int, pool: Pool, best: int) -> None:
    assert chosen(wanted << 10, (32 << 10, 64 << 10), page << 10, pool)[0] == best << 10


def test_a_draid_without_its_width_is_not_known() -> None:
    facts, pool, vdev = Facts(), Subject("pool", "tank"), Subject("vdev", "draid-0", "tank")
    values = {pool: {"data_vdevs": (vdev,), "special_vdevs": ()}, vdev: {"type": "draid", "ashift": 12}}
    facts.put_all(Fact(each, name, Known(value, ())) for each, of in values.items() for name, value in of.items())  # type: ignore[attr-defined]
    found = properties.pool_of(Subject("dataset", "tank/db"), facts)
    assert isinstance(found, Unknown)
    assert "does not say how many data disks" in found.reasons[0].text


def test_what_a_rule_would_set_is_not_said_again() -> None:
    """One value for each property: that of the rule."""
    commands = [table["fix"].get("command", "") for table in data.rules().values() if "fix" in table]
    by_rules = {
        each.split("=")[0].removeprefix("zfs set ") for each in commands if re.fullmatch(r"zfs set [\w]+=\w+ .*", each)
    }
    entries = data.table("advice.toml")["advice"]
    assert {each["property"] for each in entries} & by_rules >= {
        "sync",
        "logbias",
        "primarycache",
        "redundant_metadata",
    }
    assert [each for each in entries if each["property"] in by_rules and not each["value"].startswith("rule:")] == []
    values = {each.property: each.value for each in properties.load()}
    assert (values["sync"], values["redundant_metadata"]) == ("standard", "most")


def counted(
    mine: dict[str, object],
    *,
    disk: dict[str, object],
    logs: tuple[Subject, ...] = (),
    pool_facts: dict[str, object] | None = None,
    now: float = 0.0,
) -> Facts:
    """A pool of one dataset and one drive with these facts."""
    facts, pool, leaf, drive = (
        Facts(now),
        Subject("pool", "tank"),
        Subject("leaf", "sda", "tank"),
        Subject("disk", "sda"),
    )
    dataset = Subject("dataset", "tank/db")
    of_pool: dict[str, object] = {
        "datasets": (dataset,),
        "data_leaves": (leaf,),
        "log_vdevs": logs,
        "txg_dirty_bytes_max": 10 << 20,
    }
    of_pool |= {"txg_open_ms_p95": 5000.0, "txg_sync_ms_p95": 500.0, "log_bytes": 16 << 30}
    of_pool |= {"zil_class": "log" if logs else "normal", "zil_leaves": (leaf,), "guid": "1"} | (pool_facts or {})
    values = {
        pool: of_pool,
        dataset: mine,
        leaf: {"disks": (drive,)},
        drive: disk,
        HOST: {"zfs_wrlog_data_max": 1 << 30},
    }
    facts.put_all(Fact(each, name, Known(value, ())) for each, of in values.items() for name, value in of.items())  # type: ignore[attr-defined]
    return facts


def told(facts: Facts, before: Facts | None = None) -> str:
    """In one line: where lines are broken is not what these tests are about."""
    return " ".join(terminal.fragment(log_device.page(Subject("pool", "tank"), facts, before), width=100).split())


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
        ({"hdd": False, "keeps_acknowledged": False}, "Would one help? Yes, if it has power-loss protection"),
        ({"hdd": False, "keeps_acknowledged": True}, "Would one help? Hardly: the data drives need not empty a cache"),
        ({"hdd": False}, "Would one help? Not known: what the data drives are"),
    ],
)
def test_a_log_device_helps_by_what_the_data_drives_are(disk: dict[str, object], says: str) -> None:
    text = told(counted(BUSY, disk=disk))
    assert says in text
    assert "commits 10 a second on 1 dataset, the mean since the mount, at least 24 h ago" in text
    assert "bursts The mean hides them" in text


def test_how_large_a_log_device_must_be() -> None:
    """1 MiB a second for an open group of 5 s and two that are written in 0.5 s; three groups of 10 MiB."""
    text = told(counted(BUSY, disk={"hdd": True}))
    assert "6 MiB on average: 1 MiB/s for 6 s" in text
    assert "30 MiB if all that was written had been synced" in text
    assert "1 GiB zfs_wrlog_data_max" in text
    assert "each rated for at least 30.1 TiB of writes a year" in text
    assert "zpool add tank log mirror" in text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"zil_commit_count": 0}, "Would one help? No: in 24 h nothing that was counted has asked for a commit."),
        ({"zil_commit_count": 0, "sync": "disabled"}, "Would one help? Not known: what would be committed"),
        (
            {"zil_commit_count": 864},
            "Would one help? Hardly: in 24 h on average there was a commit every 100 s. Each still",
        ),
        ({"zil_counted_s": 60.0}, "Too short to judge"),
        ({"logbias": "throughput"}, "bypassing tank/db"),
        (
            {"zil_counted_s": 60.0, "zil_commit_count": 0},
            "Not known: nothing that was counted has asked for a commit, but 60 s",
        ),
        (
            {"zil_counted_s": 60.0, "zil_commit_count": 1},
            "Not known: on average there was a commit every 60 s, but 60 s are",
        ),
        ({"zil_commit_count": 86400 * 3420}, "commits 3,420 a second"),
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
    assert "a second on 3 datasets, the mean since" in done.out


def test_a_counter_that_was_not_seen_is_no_zero() -> None:
    with pytest.raises(log_device.NotMeasured):
        told(counted({key: value for key, value in BUSY.items() if key != "zil_commit_count"}, disk={"hdd": True}))


def test_where_the_log_lies_on_special_vdevs_these_decide() -> None:
    """OpenZFS 2.4: hard disks for the data, and a special vdev with power-loss protection."""
    facts = counted(BUSY, disk={"hdd": True}, pool_facts={"zil_class": "special"})
    leaf, drive = Subject("leaf", "nvme0n1", "tank"), Subject("disk", "nvme0n1")
    of_drive = {"hdd": False, "keeps_acknowledged": True}
    facts.replace(Fact(Subject("pool", "tank"), "zil_leaves", Known((leaf,), ())))
    facts.put(Fact(leaf, "disks", Known((drive,), ())))
    facts.put_all(Fact(drive, name, Known(value, ())) for name, value in of_drive.items())
    text = told(facts)
    assert "Would one help? Hardly: the special vdevs, where the log lies without a log vdev since OpenZFS 2.4," in text
    assert "hard disks" not in text
    assert "zpool add" not in text
    facts.replace(Fact(drive, "keeps_acknowledged", Known(False, ())))
    assert "Would one help? Yes, if it has power-loss protection: the special vdevs" in told(facts)


def test_where_the_log_lies_is_not_known() -> None:
    facts = counted(BUSY, disk={"hdd": True})
    facts.replace(Fact(Subject("pool", "tank"), "zil_class", Unknown((Reason("no release"),))))
    assert "Would one help? Not known: no release" in told(facts)


def test_between_two_looks_only_what_came_in_between_counts() -> None:
    before = counted({**BUSY, "zil_counted_s": 80000.0, "zil_commit_count": 0}, disk={"hdd": True}, now=1e9)
    later = {**BUSY, "zil_counted_s": 83600.0, "zil_commit_count": 36000}
    text = told(counted(later, disk={"hdd": True}, now=1e9 + 3602), before)
    assert "commits 10 a second on 1 dataset, in the 60 min since the earlier look" in text
    assert "bursts" not in text


@pytest.mark.parametrize(
    ("then", "pool", "now", "says"),
    [
        ({"zil_counted_s": 90000.0}, "1", 80000.0, "without a remount in between"),
        ({"zil_commit_count": 900000}, "1", 80000.0, "without a remount in between"),
        ({"zil_counted_s": 1000.0}, "1", 0.0, "without a remount in between"),
        ({}, "2", 80000.0, "at another pool"),
    ],
)
def test_two_looks_that_do_not_compare(then: dict[str, object], pool: str, now: float, says: str) -> None:
    """The third: by its clocks it was mounted in between, though more was counted than before."""
    before = counted({**BUSY, "zil_counted_s": 80000.0, **then}, disk={"hdd": True}, pool_facts={"guid": pool}, now=now)
    with pytest.raises(log_device.NotMeasured, match=says):
        told(counted(BUSY, disk={"hdd": True}, now=86400.0), before)


def test_two_recordings(zaudit: CommandLine) -> None:
    name = str(HOSTS / "2.3-db-postgres-healthy")
    done = zaudit("advise", "log", "tank", "--since", name, "--replay", name)
    assert done.code == 10
    assert "no dataset was counted at both times" in done.out


def test_settings_of_the_server_are_compared_where_one_keeps_files_there(zaudit: CommandLine) -> None:
    here = told_of(zaudit, "postgres", "2.3-db-postgres-fsync-off", dataset="tank/pg")
    assert "full_page_writes: on (server, default): as advised\n" in here
    assert "wal_recycle: on (server, default); advised: off\n" in here
    assert "ALTER SYSTEM" not in here
    assert "wal_recycle" not in told_of(zaudit, "postgres", "2.4-healthy-physical-protected-cache")
