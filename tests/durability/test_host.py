"""Kinds of hosts whose truth follows from source or was measured: each path is built by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from auditor.durability.host import Dataset, EventName, Host, Leg, Program, Question, Store, Use
from auditor.durability.table import Judge
from tests.durability.hosts import NAME, client, host, leg, losing, mirror, of, perfect, plp, pool, raidz, ranks

CRASH: set[EventName] = {"crash", "power"}
POWER: set[EventName] = {"power", "power+drive"}
KERNEL: set[EventName] = {"crash", "power", "power+drive"}
DATA = mirror("d0", "d1")
NEIGHBOURS = "relies on no other program flushing files of tank/db"


# -- the sketch's cases -------------------------------------------------------------------------------------------------


def test_healthy() -> None:
    assert set(ranks(perfect()).values()) == {"SAFE"}


@pytest.mark.parametrize("fields", [{"cache": "volatile"}, {"cache": "none"}, {"cache": "protected"}])
def test_drives_that_nobody_verified(fields: dict[str, Any]) -> None:
    """Also one that says it has no cache: a lie looks the same."""
    found = ranks(host(pool(DATA), *(client(name, **fields) for name in ("d0", "d1"))))
    assert found["power"] == "relies on d0 or d1"
    assert found["power+drive"] == "relies on d0 and d1"  # either may go
    assert {found[each] for each in ("process", "restart", "crash", "drive")} == {"SAFE"}


def test_flushes_that_nobody_counted() -> None:
    """They are configured to arrive, and matter where a cache is volatile."""
    path = Store("path", "layer", cache="none", counted=None)
    legs = (leg("d0", layers=("path",)), leg("d1", layers=("path",)))
    found = ranks(host(pool(mirror(*legs)), path, client("d0"), client("d1", honours=True)))
    assert found["power"] == "relies on flushes reaching the drives"
    assert found["crash"] == "SAFE"
    assert set(ranks(host(pool(mirror(*legs)), path)).values()) == {"SAFE"}


def test_sync_disabled_and_fsync_off() -> None:
    given = host(pool(DATA), dataset={"sync": "disabled"}, use={"asks": "never"})
    assert losing(given) == KERNEL
    assert of(given, "restart") == "relies on the shutdown unmounting tank/db"
    assert losing(given, "consistency") == set()


def test_fsync_off_under_sync_always() -> None:
    assert losing(host(pool(DATA), dataset={"sync": "always"}, use={"asks": "never"})) == set()


@pytest.mark.parametrize("broken", [{"asks": "never"}, {"asks": "later"}, {"passes": False}])
def test_page_cache_above_a_zvol_with_sync_always(broken: dict[str, Any]) -> None:
    above = {**broken, "reaches": False}
    assert losing(host(pool(DATA), dataset={"sync": "always"}, use=above)) == KERNEL
    assert losing(host(pool(DATA), dataset={"sync": "always"}, use=broken)) == set()


def test_single_log_device() -> None:
    given = host(pool(DATA, log=(mirror("s0"),)))
    assert losing(given) == losing(given, "pool") == {"power+log"}
    assert of(given, "log") == of(given, "log", "pool") == "SAFE"
    assert losing(given, "consistency") == set()  # all datasets come back as of one transaction group


def test_striped_log() -> None:
    assert losing(host(pool(DATA, log=(mirror("s0"), mirror("s1"))))) == {"power+log"}


def test_log_mirror_with_a_leg_that_gets_no_flush() -> None:
    log = (mirror("s0", "s1"),)
    assert losing(host(pool(DATA, log=log), client("s1", passes=False))) == {"power+log"}


def test_resilvering_log_mirror() -> None:
    """New log blocks go to both legs."""
    assert losing(host(pool(DATA, log=(mirror("s0", leg("s1", in_sync=False)),)))) == set()


@pytest.mark.parametrize(
    "state", [{"in_sync": False}, {"state": "OFFLINE"}, {"state": "FAULTED"}, {"state": "UNAVAIL"}]
)
def test_mirror_with_one_good_leg(state: dict[str, Any]) -> None:
    """Whatever the pool and the vdev call themselves: an attached leg that resilvers, or one that is gone."""
    given = host(pool(mirror("d0", leg("d1", **state))))
    assert losing(given) == losing(given, "pool") == {"drive", "power+drive"}
    assert not {"drive", "power+drive"} & ranks(given, "consistency").keys()  # of a lost pool nobody asks for it


def test_degraded_raidz() -> None:
    absent = leg("d0", state="OFFLINE")
    assert losing(host(pool(raidz(1, absent, "d1", "d2"))), "pool") == {"drive", "power+drive"}
    assert losing(host(pool(raidz(2, absent, "d1", "d2", "d3"))), "pool") == set()
    assert losing(host(pool(raidz(1, leg("d0", in_sync=False), "d1", "d2"))), "pool") == {"drive", "power+drive"}


def test_both_legs_absent() -> None:
    gone = (leg("d0", state="UNAVAIL"), leg("d1", state="REMOVED"))
    assert set(ranks(host(pool(mirror(*gone))), "pool").values()) == {"LOST"}


def test_throughput_without_flush_of_the_log() -> None:
    """The log has a pointer: the data block must have been flushed, too."""
    tank = pool(DATA, log=(mirror("s0", "s1"),), zil_flush=False)
    drives = [client(name, honours=True) for name in ("d0", "d1")]
    assert losing(host(tank, *drives, dataset={"indirect": True})) >= {"power", "power+drive", "power+log"}
    assert losing(host(tank, *drives)) == set()
    assert of(host(tank, *drives, dataset={"indirect": None}), "power") == "UNKNOWN"


# -- memory of this host under the pool ---------------------------------------------------------------------------------


def loop(**fields: Any) -> Host:
    """A pool on a loop device over a file on ext4."""
    queue = Store("loop0", "layer", "host", cache="volatile", **fields)
    return host(pool(mirror(Leg("loop0", ("d0",), layers=("loop0",)))), queue)


@pytest.mark.parametrize("setting", ["zil_flush", "txg_flush"])
def test_no_flush_above_memory_of_this_host(setting: str) -> None:
    healthy = loop()
    fields: dict[str, Any] = {setting: False}
    tank = replace(healthy.pools["tank"], **fields)
    given = replace(healthy, pools={"tank": tank})
    assert losing(healthy) == {"drive", "power+drive"}
    assert losing(given) >= {"crash", "power"}
    assert ("crash" in losing(given, "pool")) == (setting == "txg_flush")


def test_queue_of_a_loop_device_set_to_write_through() -> None:
    assert losing(loop(passes=False), "pool") >= {"crash", "power"}


def nested(below: dict[str, Any], tank: dict[str, Any] | None = None) -> Host:
    """A pool on a file of another pool."""
    lower = replace(pool(DATA), name="lower")
    upper = pool(mirror(Leg("file", on="lower/file")), **(tank or {}))
    return host(upper, pools=[lower], datasets=[Dataset("lower/file", "lower", **below)])


def test_file_vdev() -> None:
    assert losing(nested({})) == set()
    assert losing(nested({"sync": "disabled"})) >= CRASH
    assert losing(nested({"sync": "disabled"}), "pool") == set()
    assert losing(nested({}, {"zil_flush": False})) >= CRASH
    assert losing(nested({}, {"zil_flush": False}), "pool") == set()
    assert losing(nested({"sync": "always"}, {"zil_flush": False, "txg_flush": False})) == set()


def test_file_vdevs_without_sync_on_two_pools() -> None:
    """Two moments: an uberblock may be there before what it points to."""
    lower = [
        replace(pool(mirror(*drives)), name=name) for name, drives in (("lower", ("d0", "d1")), ("other", ("d2", "d3")))
    ]
    files = [Dataset(f"{each.name}/file", each.name, sync="disabled") for each in lower]
    upper = pool(*(mirror(Leg(each.name, on=each.name)) for each in files))
    assert losing(host(upper, pools=lower, datasets=files), "pool") >= CRASH


def test_pool_that_works_whatever_was_seen_of_its_legs() -> None:
    """A killed process takes nothing that has left it; what stops the kernel has to find it again."""
    unseen = mirror(leg("d0", state=None), leg("d1", state=None))
    questions: tuple[Question, ...] = ("commits", "pool")
    for question in questions:
        found = ranks(host(pool(unseen, works=True)), question)
        assert (found["process"], found["crash"]) == ("SAFE", "UNKNOWN")
        assert ranks(host(pool(unseen)), question)["process"] == "UNKNOWN"


@pytest.mark.parametrize("setting", [{"txg_flush": False, "zil_flush": False}, {}])
def test_restart_writes_back_what_a_loop_device_holds(setting: dict[str, Any]) -> None:
    """If the shutdown unmounts the file system below: at a crash it is gone."""
    given = loop() if setting else loop(passes=False)
    given = replace(given, pools={"tank": replace(given.pools["tank"], **setting)})
    assert of(given, "restart", "pool") == "relies on the shutdown unmounting the file system below loop0"
    assert of(loop(), "restart", "pool") == "SAFE"


def test_drive_below_a_file_vdev() -> None:
    """A physical drive, at any depth."""
    given = nested({})
    cells = Judge(given).table(given.programs[NAME])
    assert cells["drive", "pool"].rank.name == "SAFE"
    assert {each.device for each in Judge(given).choices(given.programs[NAME], "drive")} == {
        "d0",
        "d1",
    }
    lower = replace(given.pools["lower"], normal=(mirror("d0"),))
    assert losing(replace(given, pools={**given.pools, "lower": lower}), "pool") == {"drive", "power+drive"}


def test_circle_of_pools() -> None:
    one = replace(pool(mirror(Leg("a", on="other/a"))))
    other = replace(pool(mirror(Leg("b", on="tank/b"))), name="other")
    given = host(one, pools=[other], datasets=[Dataset("tank/b", "tank"), Dataset("other/a", "other")])
    assert losing(given, rank="UNKNOWN") == losing(given, "pool", "UNKNOWN") >= {"restart", "crash", "power"}


@pytest.mark.parametrize("on", ["nowhere/at-all", "lost/file"])
def test_dataset_below_that_nobody_saw(on: str) -> None:
    given = host(pool(mirror(Leg("file", on=on))), datasets=[Dataset("lost/file", "lost")])
    assert set(ranks(given, "pool").values()) == {"UNKNOWN"}


# -- flushes ------------------------------------------------------------------------------------------------------------


def test_no_flush_of_the_log_leaves_the_pool() -> None:
    drives = [client(name, honours=True) for name in ("d0", "d1")]
    given = host(pool(DATA, zil_flush=False), *drives)
    assert losing(given) == POWER
    assert losing(given, "pool") == set()
    both = host(pool(DATA, zil_flush=False, txg_flush=False), *drives)
    assert losing(both) == losing(both, "pool") == POWER


def test_no_flush_concerns_the_pool_with_volatile_drives_alone() -> None:
    assert losing(host(pool(DATA, zil_flush=False, txg_flush=False))) == set()


@pytest.mark.parametrize(("fields", "rank"), [({"completes": False}, "LOST"), ({"completes": None}, "UNKNOWN")])
def test_flush_that_failed(fields: dict[str, Any], rank: str) -> None:
    """ZFS acknowledges although it failed."""
    assert of(host(pool(mirror("d0")), client("d0", honours=True, **fields)), "power") == rank


def test_drive_that_lies() -> None:
    given = host(pool(mirror("d0")), client("d0", honours=False))
    assert losing(given) == losing(given, "pool") == {"power", "power+drive", "drive"}


def test_cache_that_nobody_saw() -> None:
    assert of(host(pool(mirror("d0")), client("d0", cache=None)), "power") == "relies on d0"
    assert of(host(pool(mirror("d0")), client("d0", cache=None, passes=None)), "power") == "UNKNOWN"
    assert of(host(pool(mirror("d0")), client("d0", cache=None, passes=False)), "power") == "UNKNOWN"


def test_layers_between() -> None:
    """A cache of a controller without a battery, and a layer that drops flushes, each over a drive with a cache."""
    stacked = pool(mirror(Leg("sda", ("d0",), layers=("raid",))))
    good, bad = client("d0", honours=True), Store("raid", "controller", cache="volatile", honours=None)
    assert of(host(stacked, good, bad), "power") == "relies on raid"
    assert of(host(stacked, good, replace(bad, cache="protected", honours=True)), "power") == "SAFE"
    assert of(host(stacked, good, replace(bad, passes=False)), "power") == "LOST"
    assert of(host(stacked, good, Store("raid", "layer", passes=False)), "power") == "LOST"
    assert of(host(stacked, plp("d0"), Store("raid", "layer", passes=False)), "power") == "SAFE"


def test_leg_on_several_drives() -> None:
    """A linear volume needs all of its drives, an md mirror one."""
    linear, md = Leg("lv", ("d0", "d1")), Leg("md0", ("d0", "d1"), needed=1)
    lies = client("d1", honours=False)
    assert of(host(pool(mirror(linear)), lies), "power") == "LOST"
    assert of(host(pool(mirror(md)), lies), "power") == "SAFE"
    assert losing(host(pool(mirror(md))), "pool") == set()


def test_two_legs_on_one_drive() -> None:
    twins = mirror(Leg("part1", ("d0",)), Leg("part2", ("d0",)))
    assert losing(host(pool(twins)), "pool") == {"drive", "power+drive"}
    shared = host(pool(DATA, mirror("d2", "d3"), log=(mirror(Leg("slog", ("d0",))),)))
    assert losing(shared) == {"power+log", "power+drive"}


# -- errors of a leg ----------------------------------------------------------------------------------------------------


def test_leg_with_errors() -> None:
    given = host(pool(mirror("d0", leg("d1", clean=False))))
    assert losing(given, "pool", "UNKNOWN") == {"drive", "power+drive"}
    three = host(pool(mirror("d0", "d2", leg("d1", clean=False))))
    assert losing(three, "pool", "UNKNOWN") == set()
    both = host(pool(mirror(leg("d0", clean=False), leg("d1", clean=False))))
    assert losing(both, "pool", "UNKNOWN") == {"drive", "power+drive"}
    elsewhere = host(pool(mirror("d0", "d1"), mirror(leg("d2", clean=False), leg("d3"))))
    reasons = Judge(elsewhere).table(elsewhere.programs[NAME])["drive", "pool"].why
    assert {(each.element, each.subject) for each in reasons} == {
        ("errors", "d2"),
        ("event", "d3"),
        ("redundancy", "d2+d3"),
    }


# -- log devices at the import ------------------------------------------------------------------------------------------

LOG_STATES: list[tuple[dict[str, Any], str]] = [
    ({"state": "UNAVAIL"}, "LOST"),
    ({"state": "REMOVED"}, "SAFE"),
    ({"state": "FORCED"}, "SAFE"),
    ({"state": "FAULTED", "answers": False}, "LOST"),
    ({"state": "FAULTED", "answers": None}, "UNKNOWN"),
    ({"state": "FAULTED", "answers": True}, "SAFE"),
    ({"state": "OFFLINE"}, "SAFE"),
    ({"opens": False}, "LOST"),
    ({"opens": None}, "UNKNOWN"),
    ({"state": None}, "UNKNOWN"),
]


@pytest.mark.parametrize(("state", "rank"), LOG_STATES)
def test_log_device_at_the_import(state: dict[str, Any], rank: str) -> None:
    given = host(pool(DATA, log=(mirror(leg("s0", **state)),)))
    assert of(given, "crash") == of(given, "crash", "pool") == rank
    assert of(given, "process") == of(given, "drive") == "SAFE"
    assert of(given, "restart", "pool") == rank
    assert of(given, "restart") == ("SAFE" if rank == "SAFE" else "relies on the shutdown unmounting tank/db")


@pytest.mark.parametrize(("state", "rank"), LOG_STATES)
def test_log_mirror_at_the_import(state: dict[str, Any], rank: str) -> None:
    """A mirror keeps no state of its own but OFFLINE: all FORCED or REMOVED, it cannot be opened. Measured on 2.1, 2.3, 2.4."""
    given = host(pool(DATA, log=(mirror(leg("s0", **state), leg("s1", **state)),)))
    missing = state.get("state") in ("FORCED", "REMOVED")
    assert of(given, "crash") == of(given, "restart", "pool") == ("LOST" if missing else rank)


@pytest.mark.parametrize(("state", "rank"), LOG_STATES)
def test_one_of_two_striped_log_devices(state: dict[str, Any], rank: str) -> None:
    """`zpool import -m` drops all logs, also those whose blocks are on the other one."""
    assert of(host(pool(DATA, log=(mirror("s1"), mirror(leg("s0", **state))))), "crash") == rank


@pytest.mark.parametrize(("state", "rank"), LOG_STATES)
def test_log_mirror_with_one_good_leg(state: dict[str, Any], rank: str) -> None:
    assert of(host(pool(DATA, log=(mirror("s1", leg("s0", **state)),))), "crash") == "SAFE"


def test_log_mirror_half_offline_half_gone_is_missing() -> None:
    legs = (leg("s0", state="OFFLINE"), leg("s1", state="UNAVAIL"))
    assert of(host(pool(DATA, log=(mirror(*legs),))), "crash") == "LOST"


def test_log_device_on_a_pool_that_is_lost() -> None:
    lower = replace(pool(mirror("d2")), name="lower")
    tank = pool(DATA, log=(mirror(Leg("zvol", on="lower/slog")),))
    given = host(tank, pools=[lower], datasets=[Dataset("lower/slog", "lower")])
    assert losing(given) == {"power+log"}


# -- where log blocks lie -----------------------------------------------------------------------------------------------


def test_classes_of_log_blocks() -> None:
    lies = client("s0", honours=True, passes=False)
    special = pool(DATA, special=(mirror("s0"),), zil_flush=True)
    assert of(host(special, lies), "power") == "LOST"
    only_log_unflushed = client("s0", honours=True)
    without = pool(DATA, special=(mirror("s0"),), zil_flush=False)
    assert of(host(without, only_log_unflushed), "power") == "LOST"
    assert of(host(replace(without, special_logs=False), only_log_unflushed), "power") == "SAFE"
    assert of(host(replace(without, special_logs=None), only_log_unflushed), "power") == "UNKNOWN"
    assert of(host(replace(without, log=(mirror("s2", "s3"),)), only_log_unflushed), "power") == "SAFE"


def test_class_that_can_fill() -> None:
    drives = [client(name, honours=True) for name in ("d0", "d1")]
    tank = pool(DATA, log=(mirror("s0", "s1"),), zil_flush=False)
    assert of(host(tank, *drives), "power") == "SAFE"
    assert of(host(replace(tank, log_room=None), *drives), "power") == "relies on room on the log devices of tank"
    assert of(host(replace(tank, log_room=False), *drives), "power") == "LOST"
    assert of(host(replace(tank, log_room=None)), "power") == "SAFE"


# -- the request --------------------------------------------------------------------------------------------------------


def test_commit_acknowledged_from_memory_of_the_process() -> None:
    given = host(pool(DATA), use={"asks": "later"}, leaves=False)
    assert losing(given) == {"process", *KERNEL}
    assert losing(host(pool(DATA), use={"asks": "later"}, leaves=False, dataset={"sync": "always"})) >= {"process"}
    assert losing(given, "consistency") == KERNEL  # pages.asks is later, too: a checkpoint that does not wait


def test_log_that_is_flushed_each_second() -> None:
    """The log is ahead of the pages: commits go, consistency stays."""
    later = Program(NAME, Use("tank/db", "later"), (Use("tank/db"),))
    given = host(pool(DATA), program=later)
    assert losing(given) == KERNEL
    assert losing(given, "consistency") == set()


def test_pages_that_nobody_syncs() -> None:
    """O_DIRECT_NO_FSYNC: a checkpoint discards the log of what is in no transaction group yet."""
    given = host(pool(DATA), program=Program(NAME, Use("tank/db"), (Use("tank/db", "never"),)))
    assert losing(given) == losing(given, "consistency") == KERNEL
    always = host(pool(DATA), program=given.programs[NAME], dataset={"sync": "always"})
    assert losing(always) == losing(always, "consistency") == set()


def test_replica_set_member() -> None:
    given = host(pool(DATA), use={"asks": "later"}, leaves=False, elsewhere=True)
    assert of(given, "process") == of(given, "power") == "relies on the replicas of db"
    assert of(replace_program(given, elsewhere=None), "process") == "UNKNOWN"


def test_engine_that_cannot_recover() -> None:
    """InnoDB without a redo log."""
    given = host(pool(DATA), recovers=False)
    assert losing(given) == losing(given, "consistency") == {"process", *KERNEL}


def test_orderly_stop() -> None:
    """It flushes what was acknowledged before; of an embedded engine that is up to the application."""
    given = host(pool(DATA), use={"asks": "later"}, leaves=False)
    assert of(given, "restart") == "SAFE"
    assert of(replace_program(given, closes=None), "restart") == "relies on the shutdown unmounting tank/db"


def test_client_that_outlives_the_server() -> None:
    """NFS async: the database runs on, on files that went back."""
    assert losing(host(pool(DATA), use={"passes": False, "remote": True}), "consistency") == KERNEL
    assert losing(host(pool(DATA), use={"passes": False}), "consistency") == set()
    assert losing(host(pool(DATA), dataset={"sync": "always"}, use={"passes": False, "remote": True})) == set()


def test_direct_io() -> None:
    """The log points to a block that nobody flushed."""
    drives = [client(name, honours=True) for name in ("d0", "d1")]
    assert losing(host(pool(DATA), *drives, dataset={"direct": True})) == POWER
    assert losing(host(pool(DATA), *drives, dataset={"direct": None}), rank="UNKNOWN") == POWER
    assert losing(host(pool(DATA), dataset={"direct": True})) == set()


def test_virtual_disks_that_may_share_a_drive() -> None:
    disks = [Store(name, "hypervisor", "hypervisor", honours=True, alone=None) for name in ("d0", "d1")]
    given = host(pool(DATA), *disks, virtual=True)
    assert losing(given, "pool", "relies on the hypervisor") == {"drive", "power+drive"}
    disks += [Store(name, "hypervisor", "hypervisor", honours=True, alone=None) for name in ("s0", "s1")]
    with_log = host(pool(DATA, log=(mirror("s0", "s1"),)), *disks, virtual=True)
    assert losing(with_log, "pool", "relies on the hypervisor") == {"drive", "log", "power+drive", "power+log"}
    drives = [Store(name, alone=None) for name in ("d0", "d1")]  # whose serial numbers nobody saw
    assert losing(host(pool(DATA), *drives), "pool", "UNKNOWN") == {"drive", "power+drive"}


@pytest.mark.parametrize(
    ("redundant", "rank"), [(False, "LOST"), (True, "SAFE"), (None, "relies on the storage behind d0")]
)
def test_death_of_a_drive_below_a_volume(redundant: bool | None, rank: str) -> None:
    """The drive that dies is one of the RAID, not the volume; of a LUN nobody sees whether there is any."""
    lun = Store("d0", "target", redundant=redundant)
    given = host(pool(mirror("d0"), log=(mirror("d1"),)), lun)
    assert of(given, "drive", "pool") == of(given, "power+drive", "pool") == rank


def test_database_that_was_named_and_is_none_that_was_found() -> None:
    unseen = Program(NAME, Use("tank/db", asks=None), assumed=True, leaves=None)
    given = host(pool(DATA), program=unseen)
    assert of(given, "process") == of(given, "crash") == "relies on the program calling fsync on tank/db"


def replace_program(given: Host, **fields: Any) -> Host:
    return replace(given, programs={NAME: replace(given.programs[NAME], **fields)})


def test_dataset_without_a_known_database() -> None:
    program = Program(NAME, Use("tank/db", asks=None), assumed=True)
    given = host(pool(DATA), program=program)
    assert of(given, "crash") == "relies on the program calling fsync on tank/db"
    assert of(given, "process") == of(given, "drive") == "SAFE"
    assert ranks(given, "consistency") == {}  # of whose database?
    assert losing(host(pool(DATA), program=program, dataset={"sync": "disabled"})) == KERNEL
    assert of(host(pool(DATA), program=program, dataset={"sync": "always"}), "crash") == "SAFE"
    assert of(host(pool(DATA), program=replace(program, assumed=False)), "crash") == "UNKNOWN"


def test_file_system_without_barriers_on_a_zvol() -> None:
    """The volume goes back to one moment; nobody else's files are in its log."""
    assert losing(host(pool(DATA), use={"passes": False}, dataset={"volume": True})) == KERNEL
    assert of(host(pool(DATA), use={"passes": False}, dataset={"volume": True}), "crash", "consistency") == "SAFE"
    assert of(host(pool(DATA), use={"passes": False}), "crash", "consistency") == NEIGHBOURS


def test_request_that_does_not_arrive() -> None:
    """NFS async, cache=unsafe, nobarrier; also unknown."""
    assert losing(host(pool(DATA), use={"passes": False})) == KERNEL
    assert losing(host(pool(DATA), use={"passes": None}), rank="UNKNOWN") == KERNEL


# -- recovery -----------------------------------------------------------------------------------------------------------


def test_replay() -> None:
    """It is read at the mount: what counts is the value of the next boot."""
    assert losing(host(pool(DATA), dataset={"replays": False})) == KERNEL
    assert losing(host(pool(DATA), dataset={"replays": False}), "pool") == set()
    assert losing(host(pool(DATA), dataset={"replays": False}), "consistency") == set()


def test_defect_of_one_dataset() -> None:
    """One that strikes volumes does not strike a file system of the same host."""
    volume = Program("vm", Use("tank/vm"))
    given = host(pool(DATA), datasets=[Dataset("tank/vm", "tank", sound=False)])
    given = replace(given, programs={**given.programs, "vm": volume})
    assert losing(given) == set()
    assert Judge(given).table(volume)["crash", "commits"].rank.name == "LOST"
    doubt = host(pool(DATA), dataset={"sound": None})
    assert losing(doubt, rank="UNKNOWN") == losing(doubt, "consistency", "UNKNOWN") == KERNEL


def test_key() -> None:
    kernel = {"restart", *KERNEL}
    assert losing(host(pool(DATA), dataset={"key": "behind itself"})) == kernel
    assert not kernel & ranks(host(pool(DATA), dataset={"key": "behind itself"}), "consistency").keys()
    assert of(host(pool(DATA), dataset={"key": "absent"}), "restart") == "relies on the key of tank/db"
    assert of(host(pool(DATA), dataset={"key": None}), "restart") == "UNKNOWN"


def test_pool_that_needs_force() -> None:
    given = host(pool(DATA, imports=False))
    assert losing(given, "pool") == {"restart", *KERNEL}
    assert losing(given) == set()


@pytest.mark.parametrize(
    ("unmounts", "rank"), [(True, "SAFE"), (False, "LOST"), (None, "relies on the shutdown unmounting tank/db")]
)
def test_restart_with_sync_disabled(unmounts: bool | None, rank: str) -> None:
    assert of(host(pool(DATA), dataset={"sync": "disabled", "unmounts": unmounts}), "restart") == rank
    assert of(host(pool(DATA), dataset={"unmounts": unmounts}), "restart") == "SAFE"


# -- a virtual machine --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("honours", "power", "below"), [(None, *["relies on the hypervisor"] * 2), (True, "SAFE", "SAFE")]
)
def test_virtual_disk(honours: bool | None, power: str, below: str) -> None:
    disk = Store("vda", "hypervisor", "hypervisor", "volatile", honours=honours)
    given = host(pool(mirror("vda")), disk, virtual=True)
    assert (of(given, "power"), of(given, "below")) == (power, below)
    unflushed = host(pool(mirror("vda"), zil_flush=False), disk, virtual=True)
    assert (of(unflushed, "power"), of(unflushed, "below")) == (power, "LOST")


def test_drive_of_the_hypervisor_that_is_passed_through() -> None:
    drive = client("d0", honours=True, passes=False)
    assert of(host(pool(mirror("d0")), drive, virtual=True), "power") == "SAFE"
    assert of(host(pool(mirror("d0")), drive, virtual=True), "below") == "LOST"
    assert of(host(pool(mirror("d0")), drive, virtual=None), "power") == "UNKNOWN"
    assert "below" not in ranks(host(pool(mirror("d0")), drive, virtual=False))


# -- consistency --------------------------------------------------------------------------------------------------------


def two(wal: dict[str, Any], data: dict[str, Any], log: Use | None = None, pages: Use | None = None) -> Host:
    """WAL and pages on two datasets of a pool."""
    program = Program(NAME, log or Use("tank/wal"), (pages or Use("tank/db"),))
    return host(pool(DATA), program=program, dataset=data, datasets=[Dataset("tank/wal", "tank", **wal)])


def test_log_and_pages_with_different_sync() -> None:
    off: dict[str, Any] = {"sync": "disabled"}
    assert losing(two(off, {}), "consistency") == losing(two({}, off), "consistency") == KERNEL
    assert losing(two(off, {})) == losing(two({}, off)) == KERNEL
    assert losing(two(off, off), "consistency") == set()
    assert losing(two(off, off)) == KERNEL


def test_sync_always_on_one_of_two_datasets() -> None:
    """Nobody asks: one moment in the past, until one of the two is logged. No repair of the model makes it so."""
    never = (Use("tank/wal", "never"), Use("tank/db", "never"))
    assert of(two({}, {}, *never), "crash", "consistency").startswith("relies on no other program flushing")
    assert losing(two({"sync": "always"}, {}, *never), "consistency") == KERNEL
    assert losing(two({}, {"sync": "always"}, *never), "consistency") == KERNEL
    assert losing(two({"sync": "always"}, {"sync": "always"}, *never), "consistency") == set()


def test_fsync_off_above_a_page_cache() -> None:
    """Of ZFS it is one moment in the past; a file system on a zvol writes its pages in no order."""
    assert losing(host(pool(DATA), use={"asks": "never"}), "consistency") == set()
    assert losing(host(pool(DATA), use={"asks": "never", "reaches": False}), "consistency") == KERNEL
    assert losing(host(pool(DATA), dataset={"sync": "disabled"}, use={"reaches": False}), "consistency") == set()


def test_log_and_pages_on_two_pools() -> None:
    """A lost log device of either pool parts them."""
    wal = replace(pool(mirror("w0", "w1"), log=(mirror("s0"),)), name="fast")
    program = Program(NAME, Use("fast/wal"), (Use("tank/db"),))
    given = host(pool(DATA), program=program, pools=[wal], datasets=[Dataset("fast/wal", "fast")])
    assert losing(given) == losing(given, "consistency") == {"power+log"}
    off = {"sync": "disabled"}
    apart = host(
        pool(DATA), program=program, pools=[wal], dataset=off, datasets=[Dataset("fast/wal", "fast", sync="disabled")]
    )
    assert losing(apart, "consistency") == {*KERNEL, "power+log"}


def test_two_chains_on_a_log_that_is_not_flushed() -> None:
    """Of one dataset it is the end that is lost, of two each loses another one."""
    drives = [client(name, honours=True) for name in ("d0", "d1")]
    one = host(pool(DATA, zil_flush=False), *drives)
    assert losing(one, "consistency") == set()
    both = two({}, {})
    both = replace(both, pools={"tank": pool(DATA, zil_flush=False)}, stores={each.name: each for each in drives})
    assert losing(both, "consistency") == POWER


TEARS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    ({"splits": True}, {}, {}, "LOST"),
    ({"splits": None}, {}, {}, "UNKNOWN"),
    ({"splits": False}, {}, {}, "SAFE"),
    ({"splits": False, "page_in_block": False}, {}, {}, "LOST"),
    ({"splits": True}, {}, {"sync": "disabled"}, "SAFE"),
    ({"splits": True, "page_in_block": False}, {}, {"sync": "disabled"}, "LOST"),
    ({"splits": True}, {"asks": "never"}, {}, NEIGHBOURS),
    ({"splits": True}, {"asks": "never"}, {"sync": "always"}, "LOST"),
    ({"splits": True}, {}, {"replays": False}, "SAFE"),
]


@pytest.mark.parametrize(("program", "use", "dataset", "rank"), TEARS)
def test_torn_pages(program: dict[str, Any], use: dict[str, Any], dataset: dict[str, Any], rank: str) -> None:
    """sync=always tears pages that were whole without it; sync=standard does where sync=disabled did not."""
    given = host(pool(DATA), use=use, dataset=dataset, guard=False, **program)
    assert of(given, "crash", "consistency") == rank
    assert of(given, "process", "consistency") == of(given, "drive", "consistency") == "SAFE"
    guarded = of(host(pool(DATA), use=use, dataset=dataset, guard=True, **program), "crash", "consistency")
    assert guarded == (NEIGHBOURS if rank == NEIGHBOURS else "SAFE")
    doubt = host(pool(DATA), use=use, dataset=dataset, guard=None, **program)
    assert of(doubt, "crash", "consistency") == ("UNKNOWN" if rank == "LOST" else rank)


def test_special_vdev_without_redundancy() -> None:
    assert losing(host(pool(DATA, special=(mirror("s0"),))), "pool") == {"drive", "power+drive"}
    raid = pool(mirror(Leg("lun", ("md",))), special=(mirror("s0", "s1"),))
    assert of(host(raid, client("md", party="layer")), "power", "pool") == "relies on md"
