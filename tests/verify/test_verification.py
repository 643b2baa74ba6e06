"""What a run adds to the facts: from what was seen, and unknown with a reason where nothing was."""

from __future__ import annotations

import pytest

from auditor import rulebook
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, known, unknown
from auditor.judge.verdict import judge_one
from auditor.model.write_cache import keeps_acknowledged
from auditor.registry import RUN_FACTS
from auditor.verify import chain, profile, verification
from auditor.verify.profile import FILE_FORMAT, Profile
from auditor.verify.result import Histogram, Run, Txg, Zil
from auditor.verify.trial import UNSEEN
from auditor.verify.verification import THROTTLE
from tests.verify.worlds import DATA, FAILED, LEG_A, LEG_B, MIRRORED, SYNCS, World, world

OURS = profile.load("postgres")


def of(what: World, asked: Profile = OURS, *runs: Run) -> Facts:
    """The facts of all runs."""
    seen = Facts()
    everything = runs or what.runs
    followed = chain.follow(what.trial, everything, what.section, what.facts)
    for fact in verification.run_facts(what.trial, everything, asked, followed, what.facts):
        seen.put(fact)
    return seen


def log(what: World, name: str, asked: Profile = OURS) -> Judged:
    return of(what, asked).get(Subject("run", "log"), name)


def value(what: World, name: str, asked: Profile = OURS) -> object:
    found = log(what, name, asked)
    assert isinstance(found, Known), found
    return found.value


def why(what: World, name: str) -> str:
    found = log(what, name)
    assert isinstance(found, Unknown), found
    assert found.reasons
    return "; ".join(reason.text for reason in found.reasons)


def mine(options: str) -> Profile:
    return profile.parse(f"[log]\nfilename_format={FILE_FORMAT}\nrw=write\nfdatasync=1\n{options}\n", "mine.fio")


def test_every_fact_of_every_run_but_the_watched_one() -> None:
    seen = of(world())
    assert seen.linked(HOST, "runs") == (Subject("run", "log"),)
    assert set(seen.of(Subject("run", "log"))) == set(RUN_FACTS) - {"objectives_met"}


def test_what_fio_counted() -> None:
    what = world()
    counted = {name: value(what, name) for name in ("syncs", "writes", "reads", "seconds", "sync", "purpose", "p50_us")}
    assert counted == {
        "syncs": SYNCS,
        "writes": SYNCS,
        "reads": 0,
        "seconds": 36.0,
        "sync": "fdatasync",
        "purpose": "log",
        "p50_us": 10_000.0,
    }


@pytest.mark.parametrize("name", ["log", "together", "group"])
def test_a_run_of_which_fio_said_nothing(name: str) -> None:
    silent = world().log._replace(name=name, purpose=name, jobs=(), faults=("fio ended with exit code 1: no space",))
    found = of(world(), OURS, silent).of(Subject("run", name))
    for fact in ("syncs", "writes", "seconds", "p50_us", "samples_beyond"):
        judged = found[fact]
        assert isinstance(judged, Unknown)
        assert "no space" in judged.reasons[0].text
    ended = found["fio_ended_well"]
    assert isinstance(ended, Known)
    assert ended.value is False


def test_followed() -> None:
    assert value(world(), "followed") is True
    assert value(world(landed="tank/other"), "followed") is False
    assert "strace is not installed" in why(world(traced=False), "followed")
    other = world().log._replace(name="data", purpose="data")
    found = of(world(), OURS, *world().runs, other).get(Subject("run", "data"), "followed")
    assert isinstance(found, Unknown)


@pytest.mark.parametrize(
    ("what", "disks"),
    [
        (world(), ()),
        (world(landed="tank/other"), ()),
        (world(sync="disabled", zil=Zil(0, 0, 0, 0, 0, 0, 0, 0, 0)), ()),
        (world((*DATA, LEG_A._replace(flushes=0), LEG_B)), ("nvme2n1",)),
        (world(logged=[FAILED.format("nvme2n1")]), ("nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1")),
        (world((*DATA, LEG_A._replace(flushes=0), LEG_B), landed="tank/other"), ()),
    ],
    ids=range(6),
)
def test_which_disks_lost_flushes_where_nothing_above_them_lost_a_sync(what: World, disks: tuple[str, ...]) -> None:
    assert value(what, "unflushed") == tuple(Subject("disk", disk) for disk in disks)


@pytest.mark.parametrize(
    ("what", "keeps", "severity"),
    [
        (world((*DATA, LEG_A._replace(flushes=0), LEG_B)), False, "critical"),
        (world((*DATA, LEG_A._replace(flushes=0), LEG_B)), True, "medium"),
        (world(sync="disabled", zil=Zil(0, 0, 0, 0, 0, 0, 0, 0, 0)), True, "critical"),
        (world(landed="tank/other"), True, "critical"),
    ],
    ids=["drive", "drive with power-loss protection", "ZIL", "dataset"],
)
def test_what_a_lost_sync_survives(what: World, keeps: bool, severity: str) -> None:
    """A drive keeps its power over a crash of the host: only what never reached it is lost then."""
    found = of(what)
    for device in what.log.devices:
        disk = Subject("disk", device.disk)
        found.put(Fact(disk, "keeps_acknowledged", known(keeps, "")))
        found.put(Fact(disk, "transport", known("nvme", "")))
    verdict = judge_one(rulebook.find((), "fsync-not-followed"), Subject("run", "log"), found)
    assert verdict.outcome == "fail"
    assert (verdict.severity, verdict.least) == (severity, severity)


def test_remedies() -> None:
    remedies = [
        reason.remedy
        for what in (world(traced=False), world(others={"tank/b": 500}))
        for reason in getattr(log(what, "followed"), "reasons", ())
    ]
    assert remedies == ["install strace", "repeat when the pool is quiet"]


def test_whether_fio_ended_well() -> None:
    job = world().log.log
    assert value(world(), "fio_ended_well") is True
    assert value(world().changed(jobs=(job._replace(error=5),)), "fio_ended_well") is False
    assert value(world().changed(jobs=(job._replace(short_writes=1),)), "fio_ended_well") is False
    assert value(world().changed(faults=("x",)), "fio_ended_well") is False


def test_others_and_scans() -> None:
    assert (value(world(), "foreign_load"), value(world(), "scan_ran")) == (False, False)
    assert value(world(others={"tank/b": 500}), "foreign_load") is True
    assert "no kstat" in why(world().changed(zil=None, others=None), "foreign_load")
    assert "could not be seen" in why(world().changed(idle_commits=None), "foreign_load")
    assert "zpool status did not say" in why(world(scan=UNSEEN), "scan_ran")
    assert value(world(scan="resilver"), "scan_ran") is True


@pytest.mark.parametrize(
    ("options", "name", "is_"),
    [
        ("zero_buffers", "zero_buffers", True),
        ("buffer_compress_percentage=70", "compressible_percent", 70),
        ("direct=1", "direct", True),
        ("buffered=0", "direct", True),
        ("numjobs=4\nsize=1m", "file_bytes", 4 << 20),
        ("iodepth=8", "depth", 8),
        ("fallocate=none", "fallocate", False),
        ("", "fallocate", True),
        ("", "repeats_buffers", False),
        ("scramble_buffers=0", "repeats_buffers", True),
        ("scramble_buffers=0\nrefill_buffers", "repeats_buffers", False),
    ],
)
def test_options(options: str, name: str, is_: object) -> None:
    assert value(world(), name, mine(options)) == is_


def test_throttle() -> None:
    assert value(world(), "throttled") == 0
    assert value(world().changed(counters={"dmu_tx_dirty_delay": 3, "dmu_tx_dirty_over_max": 4}), "throttled") == 7
    for seen, unseen in (THROTTLE, THROTTLE[::-1]):
        assert f"{unseen} of /proc/spl/kstat/zfs/dmu_tx" in why(world().changed(counters={seen: 3}), "throttled")
    assert all(each in why(world().changed(counters={}), "throttled") for each in THROTTLE)


def test_heat() -> None:
    both = {"nvme2n1": 0, "nvme3n1": 0}
    assert value(world().changed(heat=both), "thermal_throttled") is False
    assert value(world().changed(heat={**both, "nvme3n1": 2}), "thermal_throttled") is True
    assert "nvme3n1" in why(world().changed(heat={"nvme2n1": 0}), "thermal_throttled")
    assert "no drive of the log counts" in why(world().changed(devices=()), "thermal_throttled")


def test_what_transaction_groups_wrote() -> None:
    asked = 8192 * SYNCS
    groups = tuple(Txg(i, float(i), 1.0, 0.1, 1, asked // 4) for i in range(4))
    assert value(world().changed(txgs=groups), "written_share") == 1.0
    assert "fewer than three" in why(world().changed(txgs=groups[:2]), "written_share")


def test_the_share_of_the_slog() -> None:
    zil = Zil(SYNCS, 1, SYNCS, slog_bytes=300, normal_blocks=0, normal_bytes=100)
    assert value(world(zil=zil), "slog_share") == 0.75
    assert "not counted" in why(world(zil=Zil(SYNCS)), "slog_share")
    assert "not counted" in why(world().changed(zil=None), "slog_share")


def disks(**said: object) -> World:
    what = world()
    for disk in MIRRORED:
        for name, each in said.items():
            what.facts.replace(Fact(Subject("disk", disk.name), name, known(each, "")))  # type: ignore[arg-type]
        what.facts.put_all(list(keeps_acknowledged.derive(Subject("disk", disk.name), what.facts)))
    return what


def test_the_floor_of_a_class_of_devices() -> None:
    assert value(disks(virtual=False, hdd=False, plp_grade=1), "floor_us") == verification.FLOOR_US["volatile flash"]
    assert value(disks(virtual=False, hdd=False, plp_grade=3), "floor_us") == verification.FLOOR_ANY_US, (
        "its cache is safe"
    )
    assert "plp_grade" in why(disks(virtual=False, hdd=False), "floor_us"), "it may be protected"
    assert value(disks(virtual=False, hdd=False, volatile_cache=False), "floor_us") == verification.FLOOR_ANY_US
    assert value(disks(virtual=False, hdd=True), "floor_us") == verification.FLOOR_US["platter"]
    assert "nvme2n1 is virtual" in why(disks(virtual=True, hdd=True), "floor_us")
    assert "virtual" in why(disks(hdd=True), "floor_us"), "it may be virtual"
    assert "hdd" in why(disks(virtual=False), "floor_us")


def test_one_device_of_unknown_class_leaves_the_floor_unknown() -> None:
    what = disks(virtual=False, hdd=True)
    what.facts.replace(Fact(Subject("disk", "nvme3n1"), "hdd", unknown("rotational was not read")))
    assert "rotational was not read" in why(what, "floor_us")
    what = disks(virtual=False, hdd=False, plp_grade=1)
    what.facts.replace(Fact(Subject("disk", "nvme3n1"), "volatile_cache", unknown("run as root")))
    assert "run as root" in why(what, "floor_us")
    what.facts.replace(Fact(Subject("leaf", "nvme3n1", "tank"), "disks", unknown("no such link")))
    assert "which disk nvme3n1 lies on" in why(what, "floor_us")
    what.facts.replace(Fact(Subject("pool", "tank"), "zil_leaves", unknown("nobody looked")))
    assert "on which devices of tank" in why(what, "floor_us")


def test_the_samples_beyond_are_those_that_there_are_whatever_the_run_is_for() -> None:
    what = world()
    data = what.log._replace(
        name="data", purpose="data", jobs=(what.log.log._replace(latency=Histogram(((10**6, 200),))),)
    )
    found = of(what, mine(""), *what.runs, data).get(Subject("run", "data"), "samples_beyond")
    assert isinstance(found, Known)
    assert found.value == 2


def test_samples_beyond_the_highest_objective() -> None:
    assert value(world(), "samples_beyond") == 3, "3000 samples, p99.9"
    assert value(world(), "samples_beyond", mine("")) == 30, "p99 where no objective is given"
