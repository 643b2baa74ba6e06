"""The plan of a verification, and what speaks against it: every refusal, what overrides it, and that not to know is one."""

from __future__ import annotations

from itertools import product

import pytest

from auditor.facts import HOST, Fact, Facts, Scalar, Subject, known, unknown
from auditor.verify import fio, profile
from auditor.verify.fio import Plan
from auditor.verify.ledger import CALLER, Actor
from auditor.verify.profile import FILE_FORMAT, Profile, ProfileError
from tests.folded import for_each

POOL, DATASET = Subject("pool", "tank"), Subject("dataset", "tank/db")
GIB = 1 << 30
HEALTHY: dict[tuple[Subject, str], Scalar] = {
    (POOL, "suspended"): False,
    (POOL, "readonly"): "off",
    (POOL, "state"): "ONLINE",
    (POOL, "scan_state"): "finished",
    (POOL, "scan_function"): "scrub",
    (POOL, "capacity_percent"): 40,
    (DATASET, "type"): "filesystem",
    (DATASET, "readonly"): "off",
    (DATASET, "mounted"): True,
    (DATASET, "available"): 100 * GIB,
    (HOST, "zfs_txg_timeout"): 5,
    (HOST, "zfs_dirty_data_max"): GIB,
}


def facts(**changes: Scalar | None) -> Facts:
    """Those of a healthy pool, but for what is named (pool_state="DEGRADED"); None: nobody could tell."""
    found = Facts()
    for (subject, name), value in HEALTHY.items():
        given = changes.pop(f"{subject.kind}_{name}", value)
        judged = unknown(f"{name} was not seen") if given is None else known(given, "")
        found.put(Fact(subject, name, judged))
    assert not changes
    return found


def made(seen: Facts | None = None, length: fio.Length = "quick", size: str = "", name: str = "postgres") -> Plan:
    return fio.make(DATASET, seen or facts(), profile.load(name), length, size, fio.LIMIT)


def refusals(**changes: Scalar | None) -> list[tuple[str, str]]:
    seen = facts(**changes)
    return [(each.override, each.text) for each in fio.refusals(made(facts()), seen)]


def test_nothing_speaks_against_a_healthy_pool() -> None:
    assert refusals() == []


@pytest.mark.parametrize(
    ("changes", "override", "says"),
    [
        ({"pool_suspended": True}, "", "pool tank is suspended"),
        ({"pool_suspended": None}, "", "pool tank may be suspended (suspended was not seen)"),
        ({"pool_readonly": "on"}, "", "pool tank is read-only"),
        ({"dataset_readonly": "on"}, "", "dataset tank/db is read-only"),
        ({"pool_readonly": None}, "", "pool tank may be read-only (readonly was not seen)"),
        ({"dataset_readonly": None}, "", "dataset tank/db may be read-only (readonly was not seen)"),
        ({"dataset_mounted": False}, "", "tank/db is not mounted"),
        ({"dataset_mounted": None}, "", "tank/db may not be mounted"),
        ({"pool_state": "DEGRADED"}, "degraded", "pool tank is DEGRADED"),
        ({"pool_state": None}, "degraded", "pool tank is in an unknown state"),
        ({"pool_scan_state": "in progress"}, "scrub", "a scrub is running"),
        ({"pool_scan_state": "in progress", "pool_scan_function": "resilver"}, "scrub", "a resilver is running"),
        ({"pool_scan_state": None, "pool_scan_function": None}, "scrub", "a scrub or resilver may be running"),
        ({"pool_capacity_percent": 91}, "full", "91 % full"),
        ({"pool_capacity_percent": None}, "full", "of unknown fullness"),
        ({"dataset_available": 1000}, "space", "has 1,000 bytes left"),
        ({"dataset_available": None}, "space", "an unknown amount left"),
    ],
)
def test_what_is_refused_and_what_overrides_it(changes: dict[str, Scalar | None], override: str, says: str) -> None:
    ((by, text),) = refusals(**changes)
    assert by == override
    assert says in text
    assert by in ("", *fio.OVERRIDES)


def test_ninety_percent_is_not_over_ninety() -> None:
    assert refusals(pool_capacity_percent=90) == []


def test_twice_the_files_have_to_fit() -> None:
    needed = 2 * made().bytes_on_disk
    assert refusals(dataset_available=needed) == []
    assert [by for by, _ in refusals(dataset_available=needed - 1)] == ["space"]


def test_of_what_nobody_knows_anything_everything_is_refused() -> None:
    found = list(fio.refusals(made(), Facts()))
    assert {each.override for each in found} == {"", *fio.OVERRIDES}


# -- the plan -----------------------------------------------------------------------------------------------------


@for_each("name, length, timeout", product(profile.names(), ["quick", "standard", "long"], [1, 5, 30, 120, None]))
def test_each_run_sees_six_transaction_groups(name: str, length: fio.Length, timeout: int | None) -> None:
    planned = made(facts(host_zfs_txg_timeout=timeout), length, name=name)
    measured = [step for step in planned.steps if step.purpose not in ("warm", "calls")]
    assert measured[0].purpose == "log"
    for step in measured:
        assert step.seconds >= fio.TXGS_LEAST * (timeout or 5)
        assert step.seconds >= fio.SECONDS[length]
    assert [step.purpose for step in planned.steps[:2]] == ["warm", "calls"]
    assert planned.steps[0].sections == planned.steps[1].sections == measured[0].sections


def test_quick_is_the_log_alone_and_the_rest_has_everything() -> None:
    assert [step.name for step in made().steps] == ["warm", "calls", "log"]
    everything = ["warm", "calls", "log", "group", "fresh", "recycled", "open_datasync", "data", "together"]
    assert [step.name for step in made(length="standard").steps] == everything
    assert made(length="standard").steps[-1].sections == ("log", "data")


def test_sizes() -> None:
    jobs = 4  # of [data]
    assert made().bytes_on_disk == 256 << 20
    assert made(length="standard").size == 2 * GIB // jobs
    assert made(length="standard").bytes_on_disk == 4 * (256 << 20) + 3 * GIB
    assert made(size="1m").size == 1 << 20
    assert made(facts(host_zfs_dirty_data_max=1)).size * jobs == fio.SIZE_LEAST
    assert made(facts(host_zfs_dirty_data_max=1 << 40)).size * jobs == fio.SIZE_MOST
    assert made(facts(host_zfs_dirty_data_max=None)).size * jobs == min(2 * fio.DIRTY_DEFAULT, fio.SIZE_MOST)
    with pytest.raises(ProfileError, match="not a size"):
        made(size="much")


def test_every_step_has_the_limit() -> None:
    planned = fio.make(DATASET, facts(), profile.load("postgres"), "long", "", 12345)
    assert {step.limit for step in planned.steps} == {planned.most_bytes} == {12345}


def test_a_zvol_has_the_log_alone() -> None:
    planned = made(facts(dataset_type="volume"), "standard")
    assert planned.kind == "zvol"
    assert [step.name for step in planned.steps] == ["warm", "calls", "log"]


def user(options: str, section: str = "log", name: str = FILE_FORMAT) -> Profile:
    return profile.parse(f"[{section}]\nfilename_format={name}\nrw=write\nfsync=1\n{options}\n", "mine.fio")


@pytest.mark.parametrize(
    "mine",
    [user("", "wal"), user("numjobs=2"), user("nrfiles=2"), user("", name="zaudit.$jobname"), profile.load("mongodb")],
)
def test_what_would_be_written_beside_a_zvol_is_refused(mine: Profile) -> None:
    with pytest.raises(ProfileError, match="on a zvol: one job named log"):
        fio.make(DATASET, facts(dataset_type="volume"), mine, "quick", "", fio.LIMIT)
    assert fio.make(DATASET, facts(), mine, "quick", "", fio.LIMIT).kind == "directory"


def two(common: str, log: str, data: str) -> Profile:
    sections = f"[log]\n; purpose: log\n{log}\n[data]\n; purpose: data\n{data}\n"
    return profile.parse(
        f"[global]\nfilename_format={FILE_FORMAT}\nrw=write\nfsync=1\n{common}\n{sections}", "mine.fio"
    )


@pytest.mark.parametrize(
    ("mine", "says"),
    [
        (two("", "", "stonewall"), r"\[data\] stonewall: it would run after \[log\]"),
        (two("stonewall", "", ""), r"\[data\] stonewall"),
        (two("group_reporting", "", ""), r"\[data\] group_reporting: .* put new_group into it"),
        (two("group_reporting=1", "new_group", ""), "put new_group"),
    ],
)
def test_what_would_not_run_at_once_or_not_be_told_apart_is_refused(mine: Profile, says: str) -> None:
    with pytest.raises(ProfileError, match=says):
        fio.make(DATASET, facts(), mine, "standard", "", fio.LIMIT)
    assert fio.make(DATASET, facts(), mine, "quick", "", fio.LIMIT).steps


@pytest.mark.parametrize(
    "mine",
    [
        two("", "stonewall", ""),
        two("group_reporting", "", "new_group"),
        two("", "group_reporting", ""),
        two("stonewall=0", "", "group_reporting"),
    ],
)
def test_what_runs_at_once_and_is_told_apart(mine: Profile) -> None:
    assert fio.make(DATASET, facts(), mine, "standard", "", fio.LIMIT).steps[-1].sections == ("log", "data")


def test_a_job_that_writes_nothing_is_refused() -> None:
    with pytest.raises(ProfileError, match="writes nothing"):
        fio.make(DATASET, facts(), user("rw=read"), "quick", "", fio.LIMIT)


def test_commands() -> None:
    warm, calls, log = (fio.command(made(), step, CALLER) for step in made().steps)
    assert log == (
        *("setpriv", "--pdeathsig", "KILL", "--no-new-privs"),
        *("env", "ZAUDIT_DIRECTORY=.", "ZAUDIT_RUNTIME=36", f"ZAUDIT_SIZE={made().size}"),
        *("fio", "--thread", "--output-format=json+", "--eta=never"),
        *("--status-interval=1", "--section=log", "-"),
    )
    assert "strace" in calls
    assert "strace" not in warm + log, "the latency is never that of a process that is watched"
    assert "--status-interval=1" not in warm + calls
    planned = made(size="1m")
    assert fio.environment(planned, planned.steps[2]) == {
        "ZAUDIT_DIRECTORY": ".",
        "ZAUDIT_RUNTIME": "36",
        "ZAUDIT_SIZE": "1048576",
    }
    assert planned.seconds == 36 + 2 + 2 + 3 * fio.IDLE_S


def test_of_root_nothing_is_left_before_anything_of_others_is_loaded() -> None:
    for step in made().steps:
        argv = fio.command(made(), step, Actor("26", "27"), ("LD_PRELOAD=./x.so",))
        ids = ("--reuid", "26", "--regid", "27", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all")
        assert argv[:11] == ("setpriv", "--pdeathsig", "KILL", "--no-new-privs", *ids)
        assert argv[argv.index("LD_PRELOAD=./x.so") + 1] == "fio"
        assert "strace" not in argv or argv.index("strace") > 10
