"""The model is filled from facts: each host is a healthy one with one thing set otherwise, and what is asked is a cell."""

from __future__ import annotations

import pytest

from auditor.durability.host import EventName, Host, Question
from auditor.durability.table import Judge
from auditor.facts import HOST, Fact, Facts, Subject, Value, unknown
from auditor.model.stores import Reading
from auditor.model.whole_host import read
from tests.model.whole_hosts import PROPERTIES, Made

KERNEL = {"crash", "power", "power+drive", "power+log"}
TANK = Subject("pool", "tank")
DB = Subject("dataset", "tank/db")
MIRROR = Subject("vdev", "mirror-0", "tank")
D0, S0 = Subject("disk", "d0"), Subject("disk", "s0")
L0, L1 = Subject("leaf", "d0", "tank"), Subject("leaf", "d1", "tank")
LOG = Subject("leaf", "s0", "tank")
PG = Subject("database", "postgres 1")
POSTGRES: dict[str, Value] = {
    "fsync": True,
    "synchronous_commit": "on",
    "asynchronous_roles": (),
    "torn_page_guard": True,
    "page_bytes": 8192,
    "page_within_block": True,
    "log_splits_page": True,
}
INNODB: dict[str, Value] = {
    "flush_log_at_commit": 1,
    "sync_binlog": 1,
    "flush_method": "FSYNC",
    "doublewrite": "ON",
    "torn_page_guard": True,
    "page_bytes": 16384,
    "page_within_block": True,
    "log_splits_page": True,
}


def observe(facts: Facts, next_boot: bool = False) -> Host:
    return read(Reading(facts, next_boot)).host


def next_boot(facts: Facts) -> Host:
    return observe(facts, next_boot=True)


def healthy(**host: Value) -> Made:
    """A mirror and a mirrored log of drives with power-loss protection."""
    made = Made(**host)
    made.pool("tank", made.vdev("tank", "mirror-0", "d0", "d1"), made.vdev("tank", "mirror-1", "s0", "s1", of="log"))
    return made


def postgres(made: Made, **settings: Value) -> Made:
    db = made.dataset("tank/db")
    made.database("postgres", db, db, **{**POSTGRES, **settings})
    return made


def mysql(made: Made, **settings: Value) -> Made:
    db = made.dataset("tank/db")
    made.database("mysql", db, db, **{**INNODB, **settings})
    return made


@pytest.mark.parametrize(
    ("single", "wal", "parts"), [("tank", "fast", True), ("fast", "fast", True), ("tank", "tank", False)]
)
def test_log_and_pages_on_two_pools(single: str, wal: str, parts: bool) -> None:
    """The lost log device of either takes one of them back alone; one pool goes back as a whole."""
    made = Made()
    for pool in ("tank", "fast"):
        legs = [f"{pool}-l{leg}" for leg in range(1 if pool == single else 2)]
        data = made.vdev(pool, "mirror-0", f"{pool}-d0", f"{pool}-d1")
        made.pool(pool, data, made.vdev(pool, "mirror-1", *legs, of="log"))
    made.database("postgres", made.dataset(f"{wal}/wal"), made.dataset("tank/db"), **POSTGRES)
    given = observe(made.facts)
    assert losing(given) == {"power+log"}
    assert losing(given, "consistency") == (losing(given) if parts else set())


def consumer(made: Made, *drives: str, **values: Value) -> Made:
    """Drives without power-loss protection, with a cache."""
    fields: dict[str, Value] = {"drive_class": "none", "plp_grade": 1, **values}
    for drive in drives:
        made.put(Subject("disk", drive), **fields)
    return made


def of(given: Host, event: EventName, question: Question = "commits") -> str:
    """Of the one program."""
    (program,) = given.programs.values()
    answer = Judge(given).table(program)[event, question]
    return str(answer) if answer.rank.name == "RELIES" else answer.rank.name


def losing(given: Host, question: Question = "commits", rank: str = "LOST") -> set[str]:
    (program,) = given.programs.values()
    return {
        event
        for (event, asked), cell in Judge(given).table(program).items()
        if asked == question and cell.rank.name == rank
    }


def without(facts: Facts, subject: Subject, *names: str) -> Facts:
    for name in names:
        facts.replace(Fact(subject, name, unknown("nobody looked")))
    return facts


def test_healthy() -> None:
    given = observe(postgres(healthy()).facts)
    (program,) = given.programs.values()
    assert {cell.rank.name for cell in Judge(given).table(program).values()} == {"SAFE"}
    assert not given.virtual


# -- settings of databases ----------------------------------------------------------------------------------------------

SETTINGS: list[tuple[dict[str, Value], set[str], set[str]]] = [  # settings, what loses commits, what loses consistency
    ({"fsync": False}, KERNEL, set()),
    ({"synchronous_commit": "off"}, {"process", *KERNEL}, set()),
    ({"asynchronous_roles": ("batch",)}, {"process", *KERNEL}, set()),
    ({"synchronous_commit": "remote_apply"}, set(), set()),
    ({"torn_page_guard": False}, set(), KERNEL),
    ({"torn_page_guard": False, "log_splits_page": False}, set(), set()),
    ({"torn_page_guard": False, "log_splits_page": False, "page_within_block": False}, set(), KERNEL),
    ({"eatmydata": True}, KERNEL, set()),
]


@pytest.mark.parametrize(("settings", "commits", "consistency"), SETTINGS)
def test_postgres(settings: dict[str, Value], commits: set[str], consistency: set[str]) -> None:
    given = observe(postgres(healthy(), **settings).facts)
    assert (losing(given), losing(given, "consistency")) == (commits, consistency)


MYSQL: list[tuple[dict[str, Value], set[str], set[str]]] = [
    ({"flush_log_at_commit": 2}, KERNEL, set()),
    ({"flush_log_at_commit": 0}, {"process", *KERNEL}, set()),
    ({"flush_log_at_commit": 3}, set(), set()),
    ({"sync_binlog": 0}, KERNEL, set()),
    ({"flush_method": "O_DIRECT_NO_FSYNC"}, KERNEL, KERNEL),
    ({"doublewrite": "FAST"}, KERNEL, KERNEL),
    ({"redo_log": False}, {"process", *KERNEL}, {"process", *KERNEL}),
    ({"torn_page_guard": False}, set(), KERNEL),
]


@pytest.mark.parametrize(("settings", "commits", "consistency"), MYSQL)
def test_innodb(settings: dict[str, Value], commits: set[str], consistency: set[str]) -> None:
    given = observe(mysql(healthy(), **settings).facts)
    assert (losing(given), losing(given, "consistency")) == (commits, consistency)


@pytest.mark.parametrize(
    "made",
    [
        postgres(healthy(), fsync=False),
        mysql(healthy(), flush_log_at_commit=2),
        mysql(healthy(), flush_method="NOSYNC"),
    ],
)
def test_sync_always_below_an_engine_that_does_not_ask(made: Made) -> None:
    made.put(DB, sync="always")
    assert losing(observe(made.facts)) == set()


def test_innodb_with_pointers_in_the_log() -> None:
    """Pages were lost, and nobody found how."""
    made = mysql(healthy())
    made.put(DB, logbias="throughput")
    assert losing(observe(made.facts), rank="UNKNOWN") == KERNEL
    postgres_there = postgres(healthy())
    postgres_there.put(DB, logbias="throughput")
    assert losing(observe(postgres_there.facts), rank="UNKNOWN") == set()


REPLICAS = "relies on the replicas of mongodb 1"
APPENDING: list[tuple[dict[str, Value], str, str]] = [
    ({"appendonly": False, "appendfsync": "everysec"}, "LOST", "LOST"),
    ({"appendonly": True, "appendfsync": "everysec"}, "LOST", "LOST"),
    ({"appendonly": True, "appendfsync": "no"}, "SAFE", "LOST"),
    ({"appendonly": True, "appendfsync": "always"}, "SAFE", "SAFE"),
]
OTHERS: list[tuple[str, dict[str, Value], str, str]] = [  # engine, settings, a kill, a crash
    ("mongodb", {"journal": True, "standalone": True}, "LOST", "LOST"),
    ("mongodb", {"journal": True, "standalone": False}, REPLICAS, REPLICAS),
    ("mongodb", {"journal": False, "standalone": True}, "LOST", "LOST"),
    *((engine, *case) for engine in ("redis", "valkey") for case in APPENDING),
    ("etcd", {"no_fsync": True}, "SAFE", "LOST"),
    ("etcd", {"no_fsync": False}, "SAFE", "SAFE"),
    ("etcd", {}, "SAFE", "UNKNOWN"),
    ("postgres", {}, "UNKNOWN", "UNKNOWN"),
    ("sqlite", {}, "UNKNOWN", "UNKNOWN"),
]


@pytest.mark.parametrize(("engine", "settings", "kill", "crash"), OTHERS)
def test_other_engines(engine: str, settings: dict[str, Value], kill: str, crash: str) -> None:
    made = healthy()
    db = made.dataset("tank/db")
    made.database(engine, db, db, **settings)
    given = observe(made.facts)
    assert (of(given, "process"), of(given, "crash")) == (kill, crash)


def test_database_whose_files_nobody_found() -> None:
    made = postgres(healthy(), synchronous_commit="off")
    without(made.facts, PG, "datasets", "log_datasets", "data_datasets")
    found = read(Reading(made.facts))
    program = found.host.programs["postgres 1"]
    cells = Judge(found.host).table(program)
    assert cells["process", "commits"].rank.name == "LOST"  # wherever it lies
    assert cells["crash", "pool"].rank.name == "UNKNOWN"
    assert found.programs["tank/db"] == ("what writes to tank/db",)


@pytest.mark.parametrize(("forgotten", "crash"), [((), "SAFE"), (("/data (tmpfs)",), "LOST")])
def test_database_that_is_not_on_zfs(forgotten: tuple[str, ...], crash: str) -> None:
    made = healthy()
    db = made.dataset("tank/db")
    where = forgotten or ("/data (ext4)",)
    made.database("postgres", db, db, **{**POSTGRES, "off_zfs": where, "forgotten": forgotten, "data_datasets": ()})
    given = observe(made.facts)
    assert of(given, "crash") == crash
    if not forgotten:
        assert of(given, "power") == "relies on what is below /data (ext4)"


# -- datasets -----------------------------------------------------------------------------------------------------------

DATASETS: list[tuple[dict[str, Value], str]] = [  # what a crash leaves of what writes to it
    ({}, "relies on the program calling fsync on tank/db"),
    ({"sync": "always"}, "SAFE"),
    ({"sync": "disabled"}, "LOST"),
    ({"sync": "disabled", "readonly": "on"}, "SAFE"),
    ({"nfs_async": True}, "LOST"),
    ({"nfs_async": True, "sync": "always"}, "SAFE"),
    ({"smb_flush_ignored": True}, "LOST"),
    ({"type": "volume", "flushes_lost": ("zd0 says write through",)}, "LOST"),
    (
        {"type": "volume", "flushes_lost": ("zd0 says write through",), "sync": "always"},
        "relies on the program calling fsync on tank/db",
    ),
    ({"type": "volume", "sync": "always"}, "relies on the program calling fsync on tank/db"),
    ({"type": "volume", "flushes_dropped": ("guest: cache=unsafe",), "sync": "always"}, "LOST"),
    ({"type": "filesystem", "flushes_dropped": ("guest: cache=unsafe",), "sync": "always"}, "SAFE"),
]


@pytest.mark.parametrize(("values", "crash"), DATASETS)
def test_what_writes_to_a_dataset(values: dict[str, Value], crash: str) -> None:
    made = healthy()
    made.dataset("tank/db", **values)
    assert of(observe(made.facts), "crash") == crash


@pytest.mark.parametrize(("kind", "crash"), [("filesystem", "SAFE"), ("volume", "LOST")])
def test_sync_always_below_a_page_cache(kind: str, crash: str) -> None:
    """What fsync=off leaves in the page cache of ext4 never came to the zvol."""
    made = postgres(healthy(), fsync=False)
    made.put(DB, type=kind, sync="always")
    assert of(observe(made.facts), "crash") == crash
    assert of(observe(made.facts), "crash", "consistency") == crash


@pytest.mark.parametrize("name", ["sync", "flushes_dropped", "nfs_async", "smb_flush_ignored"])
def test_what_nobody_saw_of_a_dataset(name: str) -> None:
    made = healthy()
    made.dataset("tank/db")
    without(made.facts, DB, name)
    assert of(observe(made.facts), "crash") == "UNKNOWN"


VOLUMES: list[tuple[tuple[int, ...], dict[str, Value], str]] = [
    ((2, 3, 1), {"type": "volume"}, "LOST"),
    ((2, 3, 1), {"type": "volume", "sync": "always"}, "relies on the program calling fsync on tank/db"),
    ((2, 3, 1), {}, "relies on the program calling fsync on tank/db"),
    ((2, 3, 2), {"type": "volume"}, "relies on the program calling fsync on tank/db"),
]


@pytest.mark.parametrize(("release", "values", "crash"), VOLUMES)
def test_release_that_drops_flushes_of_volumes(release: tuple[int, ...], values: dict[str, Value], crash: str) -> None:
    bugs = dict.fromkeys(("build_has_zvol_flush_lost", "build_has_zvol_blk_mq_sync"), True)
    made = healthy(release=release, zfs_version=release, **bugs)
    made.dataset("tank/db", **values)
    assert of(observe(made.facts), "crash") == crash


@pytest.mark.parametrize(
    ("values", "crash"),
    [
        ({"keylocation": "file:///tank/key", "key_inside": True}, "LOST"),
        ({"keylocation": "file:///root/key", "key_inside": False}, "SAFE"),
        ({"keylocation": "prompt", "key_inside": False}, "relies on the key of tank/db"),
    ],
)
def test_key(values: dict[str, Value], crash: str) -> None:
    made = postgres(healthy())
    made.put(DB, encryption="aes-256-gcm", **values)
    assert of(observe(made.facts), "crash") == crash


# -- legs ---------------------------------------------------------------------------------------------------------------

LEGS: list[tuple[dict[str, Value], str]] = [  # what the death of a drive leaves of the pool
    ({}, "SAFE"),
    ({"state": "OFFLINE"}, "LOST"),
    ({"state": "UNAVAIL"}, "LOST"),
    ({"device_present": False}, "LOST"),
    ({"resilvering": True}, "LOST"),
    ({"checksum_errors": 3}, "UNKNOWN"),
]


@pytest.mark.parametrize(("values", "drive"), LEGS)
def test_leg_of_a_mirror(values: dict[str, Value], drive: str) -> None:
    made = postgres(healthy())
    made.put(L1, **values)
    assert of(observe(made.facts), "drive", "pool") == drive


@pytest.mark.parametrize(
    ("kind", "parity", "drive"), [("raidz1", None, "LOST"), ("raidz2", None, "SAFE"), ("draid", 1, "LOST")]
)
def test_degraded_raidz(kind: str, parity: int | None, drive: str) -> None:
    made = Made()
    vdev = made.vdev("tank", "wide", "d0", "d1", "d2", "d3")
    made.put(vdev, type=kind, width=4, **({"parity": parity} if parity else {}))
    made.pool("tank", vdev)
    made.put(L0, state="OFFLINE")
    assert of(observe(postgres(made).facts), "drive", "pool") == drive


@pytest.mark.parametrize("kind", ["raidz1", "draid"])
def test_spare_in_the_place_of_a_disk(kind: str) -> None:
    """Five leaves, four columns. While the spare is filled, no restart loses anything."""
    made = Made()
    vdev = made.vdev("tank", "wide", "d0", "d1", "d2", "d3", "d4")
    made.put(vdev, type=kind, width=4, parity=1)
    made.pool("tank", vdev)
    made.put(L0, state="UNAVAIL")
    assert of(observe(postgres(made).facts), "drive", "pool") == "SAFE"
    made.put(L1, resilvering=True)
    assert of(observe(made.facts), "drive", "pool") == "LOST"
    assert of(observe(made.facts), "restart", "pool") == "SAFE"
    made.put(L1, resilvering=False, state="OFFLINE")
    assert of(observe(made.facts), "drive", "pool") == "LOST"


SCANS = [
    ({"scan_function": "resilver", "scan_state": "in progress"}, "UNKNOWN"),
    ({"scan_function": "resilver", "scan_state": "canceled"}, "UNKNOWN"),
    ({"scan_function": "resilver", "scan_state": "finished", "scan_errors": 5}, "UNKNOWN"),
    ({"scan_function": "resilver", "scan_state": "finished", "scan_errors": 0}, "SAFE"),
    ({"scan_function": "scrub", "scan_state": "finished", "scan_errors": 5}, "SAFE"),  # its leg has the errors
]


@pytest.mark.parametrize(("scan", "drive"), SCANS)
def test_resilver_of_which_nobody_says_what_it_fills(scan: dict[str, Value], drive: str) -> None:
    made = postgres(healthy())
    made.put(TANK, **scan)
    assert of(observe(made.facts), "drive", "pool") == drive
    assert of(observe(made.facts), "crash", "pool") == "SAFE"


def test_partitions_of_one_drive() -> None:
    made = postgres(healthy())
    made.put(Subject("disk", "d1"), serial="serial of d0")
    assert of(observe(made.facts), "drive", "pool") == "LOST"
    assert {each.name for each in observe(made.facts).stores.values() if each.party == "drive"} == {"d0", "s0", "s1"}


def test_drives_without_a_serial_number() -> None:
    made = postgres(healthy())
    for disk in ("d0", "d1"):
        without(made.facts, Subject("disk", disk), "serial")
    assert of(observe(made.facts), "drive", "pool") == "UNKNOWN"


# -- drives and layers --------------------------------------------------------------------------------------------------

DRIVES: list[tuple[dict[str, Value], str]] = [  # both legs of the data mirror; what a power cut leaves of the pool
    ({}, "relies on d0 or d1"),
    ({"volatile_cache": False, "sysfs_write_cache": "write through"}, "relies on d0 or d1"),
    ({"sysfs_write_cache": "write through"}, "LOST"),
    ({"logged_flush_errors": 1}, "LOST"),
    ({"drive_class": "plp-full", "plp_grade": 3}, "SAFE"),
    ({"drive_class": "plp-full", "plp_grade": 1, "plp_failed": True, "volatile_cache": False}, "LOST"),
    ({"transport": "usb"}, "relies on (d0 and the USB bridge of d0) or (d1 and the USB bridge of d1)"),
]


@pytest.mark.parametrize(("values", "power"), DRIVES)
def test_drives(values: dict[str, Value], power: str) -> None:
    made = consumer(postgres(healthy()), "d0", "d1", **values)
    assert of(observe(made.facts), "power", "pool") == power


@pytest.mark.parametrize(("fact", "power"), [("flushes_reach_disk", "LOST"), ("stack_write_cache", "LOST")])
def test_flushes_that_do_not_arrive(fact: str, power: str) -> None:
    made = consumer(postgres(healthy()), "d0", "d1")
    for leaf in (L0, L1):
        made.put(leaf, layers=("lvm",), stack_rearranges=False, stack_write_cache=("dm-0=write back",))
        made.put(leaf, **({fact: False} if fact == "flushes_reach_disk" else {fact: ("dm-0=write through",)}))
    assert of(observe(made.facts), "power", "pool") == power


def test_flushes_that_nobody_could_count() -> None:
    """Counters that were read and cannot tell are no sign of a loss; counters that were not read may hide one."""
    made = consumer(postgres(healthy()), "d0", "d1")
    for leaf in (L0, L1):
        made.facts.replace(Fact(leaf, "flushes_reach_disk", unknown("sda: 12 writes")))
        made.put(leaf, flushes_not_counted=True)
    assert (
        of(observe(made.facts), "power", "pool")
        == "relies on (d0 and flushes reaching the drives) or (d1 and flushes reaching the drives)"
    )
    for leaf in (L0, L1):
        made.facts.replace(Fact(leaf, "flushes_not_counted", unknown("/sys/block/sda/stat: permission denied")))
    assert of(observe(made.facts), "power", "pool") == "UNKNOWN"


RAID: list[tuple[dict[str, Value], str]] = [
    ({"raid_write_policy": "write back", "raid_cache_protected": False, "raid_drive_cache": "off"}, "LOST"),
    ({"raid_write_policy": "write back", "raid_cache_protected": True, "raid_drive_cache": "on"}, "LOST"),
    ({"raid_write_policy": "write through", "raid_drive_cache": "off"}, "relies on the RAID controller of d0"),
    ({"raid_drive_cache": "off"}, "UNKNOWN"),
]


@pytest.mark.parametrize(("values", "power"), RAID)
def test_volumes_of_a_raid_controller(values: dict[str, Value], power: str) -> None:
    made = Made()
    made.pool("tank", made.vdev("tank", "d0", "d0"))
    made.put(D0, raid_volume=True, raid_level="1", virtual=True, transport="scsi", **values)
    given = observe(postgres(made).facts)
    assert of(given, "power", "pool") == power
    assert of(given, "drive", "pool") == "SAFE"


@pytest.mark.parametrize(("special", "drive"), [(("s0",), "LOST"), (("s0", "s1"), "SAFE")])
def test_special_vdev_beside_a_volume_of_a_raid_controller(special: tuple[str, ...], drive: str) -> None:
    """RAID below the data does not help the special vdev."""
    made = Made()
    made.pool("tank", made.vdev("tank", "d0", "d0"), made.vdev("tank", "special", *special, of="special"))
    made.put(D0, raid_volume=True, raid_level="1", virtual=True, transport="scsi")
    assert of(observe(postgres(made).facts), "drive", "pool") == drive


def on_file(below: str, *on: Subject, **host: Value) -> Made:
    """A pool on a file."""
    made = Made(**host)
    made.pool("tank", made.vdev("tank", "d0", "d0", type="file", below=below, lies_on=on, disks=()))
    return postgres(made)


def test_file_on_another_file_system() -> None:
    assert of(observe(on_file("ext4").facts), "crash", "pool") == "SAFE"
    assert of(observe(on_file("ext4").facts), "power", "pool") == "relies on the ext4 below d0"
    guest = observe(on_file("ext4", virtualization="kvm").facts)  # the disk of that ext4 is the hypervisor's
    assert of(guest, "power", "pool") == of(guest, "below", "pool") == "relies on the ext4 below d0"
    assert of(guest, "crash", "pool") == "SAFE"
    assert losing(observe(on_file("ext4", zfs_nocacheflush=1).facts), "pool") >= {"crash", "power"}
    zil = observe(on_file("ext4", zil_nocacheflush=1).facts)
    assert losing(zil) >= {"crash", "power"}
    assert losing(zil, "pool") == set()
    assert losing(observe(on_file("tmpfs").facts), "pool") == {"restart", "crash", "power"}


@pytest.mark.parametrize(("subject", "fact"), [(L0, "disks"), (D0, "transport"), (L0, "below")])
def test_what_may_be_in_memory_may_be_gone_after_a_restart(subject: Subject, fact: str) -> None:
    """A loop device that nobody looked at may be one of a file on a tmpfs."""
    made = on_file("ext4") if fact == "below" else Made()
    if fact != "below":
        made.pool("tank", made.vdev("tank", "d0", "d0"))
        postgres(made)
    assert of(observe(made.facts), "restart", "pool") == "SAFE"
    without(made.facts, subject, *(("below", "lies_on") if fact == "below" else (fact,)))
    assert of(observe(made.facts), "restart", "pool") == "UNKNOWN"


def test_file_on_a_dataset() -> None:
    made = on_file("lower/file", Subject("dataset", "lower/file"))
    made.pool("lower", made.vdev("lower", "mirror-0", "e0", "e1"))
    made.dataset("lower/file", sync="disabled")
    given = observe(made.facts)
    program = given.programs["postgres 1"]
    cells = Judge(given).table(program)
    assert cells["crash", "commits"].rank.name == "LOST"
    assert cells["crash", "pool"].rank.name == "SAFE"
    made.put(Subject("dataset", "lower/file"), sync="standard")
    given = observe(made.facts)
    cells = Judge(given).table(given.programs["postgres 1"])
    assert cells["crash", "pool"].rank.name == "SAFE"
    assert {each.device for each in Judge(given).choices(program, "drive")} == {"e0", "e1"}


def shown(made: Made, *drives: str) -> Made:
    """Disks of a hypervisor."""
    return consumer(made, *drives, virtual=True, transport="virtio", drive_class="virtual")


def test_disks_of_a_hypervisor() -> None:
    made = shown(postgres(healthy(virtualization="kvm")), "d0", "d1", "s0", "s1")
    given = observe(made.facts)
    assert of(given, "crash", "pool") == "SAFE"
    assert of(given, "power", "pool") == of(given, "below", "pool") == "relies on the hypervisor"
    unflushed = observe(made.facts)
    made.put(HOST, zfs_nocacheflush=1)
    assert of(observe(made.facts), "below", "pool") == "LOST"  # it says that its cache is volatile
    assert of(unflushed, "drive", "pool") == "relies on the hypervisor"  # they may lie on one drive


def test_one_disk_of_a_hypervisor_relies_on_what_is_below() -> None:
    made = Made(virtualization="kvm")
    made.pool("tank", made.vdev("tank", "d0", "d0"))
    assert of(observe(shown(postgres(made), "d0").facts), "drive", "pool") == "relies on the hypervisor"
    mirrored = shown(postgres(healthy(virtualization="kvm")), "d0", "d1", "s0", "s1")
    mirrored.put(L1, state="UNAVAIL")
    assert of(observe(mirrored.facts), "drive", "pool") == "LOST"  # whoever mirrors them takes each for one that can go


# -- now, and from the next boot on -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["zil_nocacheflush", "zfs_nocacheflush"])
def test_parameters_of_the_next_boot(name: str) -> None:
    made = consumer(postgres(healthy(**{f"{name}_boot": 1})), "d0", "d1", "s0", "s1")
    assert losing(observe(made.facts)) == set()
    then = next_boot(made.facts)
    assert losing(then) == {"power", "power+drive", "power+log"}
    assert bool(losing(then, "pool")) == (name == "zfs_nocacheflush")


def test_replay_counts_as_the_next_import_finds_it() -> None:
    now = postgres(healthy(zil_replay_disable=1))
    assert losing(observe(now.facts)) == set()
    then = postgres(healthy(zil_replay_disable_boot=1))
    assert losing(observe(then.facts)) == losing(next_boot(then.facts)) == KERNEL


def test_files_of_a_database_that_runs() -> None:
    made = postgres(healthy(), live=True, configured=("fsync = off",))
    assert losing(observe(made.facts)) == set()
    assert losing(next_boot(made.facts)) == KERNEL
    unread = postgres(healthy(), live=True)
    assert losing(next_boot(unread.facts), rank="UNKNOWN") == {"process", *KERNEL}


def test_guest_that_is_set_to_drop_flushes() -> None:
    made = healthy()
    made.dataset("tank/db", type="volume", flushes_dropped_at_start=("guest 101",))
    assert of(observe(made.facts), "crash") != "LOST"
    assert of(next_boot(made.facts), "crash") == "LOST"


# -- growth -------------------------------------------------------------------------------------------------------------


def test_thousands_of_datasets_and_hundreds_of_drives() -> None:
    """One program a kind of dataset, and each leg a few times."""
    made = Made()
    vdevs = [made.vdev("tank", f"mirror-{each}", f"d{2 * each}", f"d{2 * each + 1}") for each in range(200)]
    made.pool("tank", *vdevs)
    kinds = [
        {"sync": sync, "logbias": bias}
        for sync in ("standard", "always", "disabled")
        for bias in ("latency", "throughput")
    ]
    names = [f"tank/{number}" for number in range(10_000)]
    for number, name in enumerate(names):
        made.put(Subject("dataset", name), **{**PROPERTIES, **kinds[number % len(kinds)]})
    made.put(TANK, datasets=tuple(Subject("dataset", name) for name in names))
    found = read(Reading(made.facts))
    assert len(found.host.programs) == len(found.host.datasets) == len(kinds)
    assert found.programs.keys() == set(names)
    judge = Judge(found.host)
    for program in found.host.programs.values():
        judge.table(program)
    assert judge.copies.legs.judged < 20 * 400
