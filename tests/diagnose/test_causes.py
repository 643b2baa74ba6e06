"""From counters and histograms to one answer: each cause is found where it is, and none where nothing is."""

import json
import shlex
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.diagnose import causes as standing
from auditor.diagnose import diagnose_page, observation
from auditor.diagnose.conclusion import diagnose
from auditor.diagnose.diagnosis import Diagnosis
from auditor.diagnose.observation import KERNEL, Process, TraceTexts
from auditor.facts import HOST, Fact, Subject, known, unknown
from auditor.sources import kstat
from auditor.verify.trial import KernelLines
from tests.diagnose import worlds
from tests.shared import ROOT

DB = (100, "postgres", 1)
HEALTHY = {DB: (400, 400 * 5300)}  # queue 0.1, write 1, flush 4 ms


def test_a_healthy_load_names_no_cause_and_says_what_is_waited_for() -> None:
    seen = worlds.observation(worlds.load(), worlds.traced(HEALTHY), (Process(100, "postgres", "", "", 40_000_000),))
    found = diagnose(seen, worlds.facts())
    assert (found.outcome, found.causes, found.reasons) == ("NOTHING STANDS OUT", (), ())
    assert found.answer == "postgres waits 4 ms of each 5.3 ms commit for the flush of sdc"
    assert {each.what: round(each.ns / 1e6, 2) for each in found.shares} == {
        "queue": 0.1,
        "log write": 1.0,
        "flush": 4.0,
        "wake-up": 0.1,
        "unexplained": 0.1,
    }
    assert [(each.dataset, each.commits) for each in found.committers] == [("tank/db", 400)]


def test_data_that_is_written_before_its_log_block_is_a_part_of_the_commit() -> None:
    told = CASES["data before the log block"]
    found = diagnose(worlds.observation(worlds.load(**told.files), worlds.traced(told.trace)), worlds.facts())
    assert {each.what: each.ns / 1e6 for each in found.shares}["data write"] == pytest.approx(6)
    assert found.reasons == ()


def test_a_thread_of_the_kernel_waits_for_a_cpu_on_other_io_too() -> None:
    who = (Process(50, "zvol_tq-0", KERNEL, "", 4_000_000_000),)
    found = diagnose(
        worlds.observation(worlds.load(), worlds.traced({(50, "zvol_tq-0", 1): (400, 400 * 5300)}), who), worlds.facts()
    )
    assert "wake-up" not in {each.what for each in found.shares}


@pytest.mark.parametrize(("commits", "named"), [({"tank/db": 400}, True), ({"tank/db": 400, "tank/web": 90}, False)])
def test_sync_always_where_datasets_are_not_counted_apart(commits: dict[str, int], *, named: bool) -> None:
    """All commits are those of the one dataset that is written to; of two nobody knows whose they are."""
    files = worlds.together(worlds.load(commits=commits))
    trace = worlds.traced({DB: (sum(commits.values()), 400 * 5300)})
    found = diagnose(worlds.observation(files, trace), worlds.facts(sync={"tank/db": "always"}))
    assert found.commits == sum(commits.values())
    assert [each.text for each in found.causes if each.id == "sync-always"] == (
        ["sync=always makes each write to tank/db a commit: 400 for 400 writes"] if named else []
    )


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "tank/vol"),
        ({"commits": {"tank/vol": 400, "tank/db": 1}}, ""),
        ({"type": "filesystem"}, ""),
        ({"others": ("other",)}, ""),
        ({"rows": {"zil_itx_metaslab_slog_count": 100}}, ""),
        ({"zils": (1, 2)}, ""),
        ({"role": ""}, ""),
    ],
)
def test_a_volume_where_datasets_are_not_counted_apart(given: dict[str, Any], name: str) -> None:
    """The commits of threads of the kernel are those of the one volume that alone was written to, and that had log blocks."""
    written = {"commits": given.get("commits", {"tank/vol": 400}), "rows": given.get("rows", {})}
    files = worlds.together(worlds.load(**written, rows_of="tank/vol"))
    zils = given.get("zils", (1,))
    rows = {(50 + zil, "zvol", zil): (400 // len(zils), 400 // len(zils) * 5300) for zil in zils}
    who = tuple(Process(50 + zil, "zvol", given.get("role", KERNEL), "", None) for zil in zils)
    facts = worlds.facts(others=given.get("others", ()))
    facts.put(Fact(Subject("dataset", "tank/vol"), "type", known(given.get("type", "volume"), "")))
    found = diagnose(worlds.observation(files, worlds.traced(rows), who), facts)
    assert {each.dataset for each in found.committers} == {name}


@pytest.mark.parametrize("others", [(), ("other",)])
@pytest.mark.parametrize("foreign", [0, 300])
def test_pools_that_are_not_counted_apart(foreign: int, others: tuple[str, ...]) -> None:
    """Blocks that went past the SLOG may be those of another pool, which has none, unless the log devices wrote them all."""
    rows = {"zil_itx_metaslab_slog_count": 400, "zil_itx_metaslab_normal_count": foreign}
    files = worlds.together(worlds.load(rows=rows))
    found = diagnose(worlds.observation(files, worlds.traced(HEALTHY)), worlds.facts(others=others))
    causes = {each.id for each in found.causes}
    if foreign and others:
        assert (found.outcome, causes) == ("INCONCLUSIVE", set())
        assert found.reasons[0].endswith("all pools together, not those of tank alone (other)")
    else:
        assert (found.outcome, causes) == (("CAUSE", {"past-the-slog"}) if foreign else ("NOTHING STANDS OUT", set()))


@pytest.mark.parametrize(("pressed", "threads", "top"), [(8_000_000, 1, "cpu"), (4_000_000, 1, ""), (8_000_000, 2, "")])
def test_one_who_commits_alone_has_no_turn_to_wait_for(pressed: int, threads: int, top: str) -> None:
    """What looks like it is waiting for a CPU, where the thread did wait for one; behind other threads it may be their work."""
    trace = worlds.traced(
        {(100 + i, "load", 1): (400 // threads, 400 // threads * 18000) for i in range(threads)}, 12_000
    )
    who = tuple(Process(100 + i, "load", "", "", 400 * 11_000_000 // threads) for i in range(threads))
    files, more = worlds.load(more={PSI: psi(pressed)})
    found = diagnose(worlds.observation(({PSI: psi(0), **files}, more), trace, who), worlds.facts())
    assert [each.id for each in found.causes] == ([top] if top else [])
    if top:
        assert found.answer.startswith(
            "6% to 61% of the time of a commit is spent waiting for a CPU; load waits 12 ms of each 18 ms"
        )
    assert ("for its log block to be filled and issued" in found.answer) is (threads == 1)


def test_an_observation_comes_back_from_its_recording_as_it_was() -> None:
    seen = worlds.observation(worlds.load(), worlds.traced(HEALTHY), (Process(100, "postgres", "", "", 4),))
    again = observation.from_text(observation.to_text(seen))
    assert again == seen
    assert diagnose(again, worlds.facts()) == diagnose(seen, worlds.facts())


PSI = "/proc/pressure/cpu"


def psi(us: int) -> str:
    """What it says when something waited so long since the boot."""
    return f"some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\n"


@dataclass
class Told:
    """What is provoked, and what must come out."""

    files: dict[str, Any]
    facts: dict[str, Any]
    trace: dict[Any, Any]
    outcome: str
    top: str
    says: str


STILL = {f"/sys/block/{disk}/stat": worlds.stat(0, 0, 0, 0) for disk in ("sda", "sdb")}
CASES = {
    "slow log leg": Told(
        {"block_ms": {"sdd": (1, 24)}}, {}, {DB: (400, 400 * 25300)}, "CAUSE", "slow-log-leg", "postgres waits 24 ms of each "
        "25.3 ms commit for the flush of sdd: sdd is the slower leg of log mirror-1, 5.0 times as slow",
    ),
    "slow data leg": Told({"block_ms": {"sdb": (60, 4)}}, {}, HEALTHY, "CAUSE", "slow-data-leg", "sdb is the slower leg of"),
    "sync=disabled": Told(
        {"commits": {}, "rows": {"writes": 400}}, {"sync": {"tank/db": "disabled"}}, {DB: (400, 400 * 2)},
        "NOT DURABLE", "sync-disabled", "tank/db: 400 syncs returned after 2 µs each, without writing anything",
    ),
    "sync=disabled, fsync alone": Told(
        {"commits": {"tank/web": 100}, "rows": {"writes": 400}}, {"sync": {"tank/db": "disabled"}},
        {(200, "nginx", 1): (100, 100 * 5300)},
        "NOT DURABLE", "sync-disabled", "tank/db is written to, and a sync there returns without writing anything",
    ),
    "sync=always": Told({}, {"sync": {"tank/db": "always"}}, HEALTHY, "CAUSE", "sync-always", "400 for 400 writes"),
    "throttle": Told({"dmu_tx": {"dmu_tx_dirty_delay": 90}}, {}, HEALTHY, "CAUSE", "throttle", "held back 90 times"),
    "scrub": Told(
        {"status": "  scan: scrub in progress since x\nconfig:\n"}, {}, HEALTHY, "CAUSE", "scrub", "a scrub reads"
    ),
    "suspended": Told({"status": "  pool: tank\n state: SUSPENDED\n"}, {}, HEALTHY, "CAUSE", "suspended", "is suspended"),
    "errors": Told({"rows": {"zil_commit_error_count": 3}}, {}, HEALTHY, "CAUSE", "fallback", "3 commits waited for a whole"),
    "past the SLOG": Told(
        {"rows": {"zil_itx_metaslab_slog_count": 380, "zil_itx_metaslab_normal_count": 40}}, {}, HEALTHY,
        "CAUSE", "past-the-slog", "10% of the log blocks bypassed the SLOG",
    ),
    "shared log": Told(
        {"more": {"/sys/block/sdc/stat": worlds.stat(1900, 3500, 400, 1600)}}, {}, HEALTHY,
        "CAUSE", "log-device-shared", "sdc serves more than the log: 1,500 writes for at most 400",
    ),
    "no batching": Told(
        {"commits": {"tank/db": 1500}}, {}, {(100 + i, "mysqld", 1): (250, 250 * 5300) for i in range(6)},
        "CAUSE", "no-batching", "6 threads commit one after the other, and no two share",
    ),
    "many who seldom commit": Told(
        {"commits": {"tank/db": 600}}, {}, {(100 + i, "mysqld", 1): (100, 530000) for i in range(6)},
        "NOTHING STANDS OUT", "", "6 threads of mysqld wait",
    ),
    "a group that does not end": Told(
        {"commits": {}, "txgs": [(7, "C", 1.0), (9, "S", 20.0)], "more": STILL}, {}, {},
        "CAUSE", "txg-hangs", "transaction group 9 has been syncing for 30 s, and nothing is written",
    ),
    "a group that is written slowly": Told(
        {"txgs": [(7, "C", 1.0), (9, "S", 20.0)]}, {}, HEALTHY, "CAUSE", "long-txgs", "a transaction group took 30.0 s to sync",
    ),
    "a group that takes its time": Told(
        {"commits": {}, "rows": {"writes": 400}, "txgs": [(7, "C", 1.0), (9, "S", -6.0)]}, {}, {},
        "NOBODY COMMITS", "", "no program waits for one here",
    ),
    "hung": Told(
        {"commits": {}, "more": {"/sys/block/sdc/stat": worlds.stat(0, 0, 0, 0, flying=3)}, "flying": {"sdc": 2}}, {}, {},
        "CAUSE", "device-hung", "sdc completed nothing in 10 s, with 2 I/Os outstanding: commits wait for it",
    ),
    "discards": Told(  # as of zpool trim of a pool that nobody writes to
        {"commits": {}, "more": {"/sys/block/sdc/stat": "0 0 0 0 0 0 0 0 3 100 0 900 0 0 0 0 0\n"}, "flying": {"sdc": 2}},
        {}, {},
        "NOBODY COMMITS", "", "no program waits for one here",
    ),
    "full": Told({}, {"capacity": 93}, HEALTHY, "CAUSE", "full", "93% full"),
    "nobody": Told({"commits": {}, "rows": {"writes": 400}}, {}, {}, "NOBODY COMMITS", "", "no program waits for one here"),
    "two writers": Told(
        {"commits": {"tank/db": 360, "tank/web": 40}}, {}, {DB: (360, 360 * 5300), (200, "nginx", 2): (40, 40 * 5300)},
        "NOTHING STANDS OUT", "", "postgres waits 4 ms",
    ),
    "zvol": Told(
        {}, {}, {(50 + i, f"zvol_tq-{i}", 1): (100, 100 * 5300) for i in range(4)},
        "NOTHING STANDS OUT", "", "a zvol (tank/db) waits",
    ),
    "data before the log block": Told(
        {"rows": {"zil_itx_metaslab_slog_count": 400, "zil_itx_indirect_count": 400},
         "block_ms": {"sda": (6, 1), "sdb": (6, 1)}},
        {}, {DB: (400, 400 * 12000)}, "CAUSE", "past-the-slog", "the data of 100% of the commits bypassed the SLOG",
    ),
    "two writers of one name": Told(
        {"commits": {"tank/db": 360, "tank/web": 40}}, {},
        {DB: (360, 360 * 5300), (101, "postgres", 2): (40, 40 * 5300)}, "NOTHING STANDS OUT", "", "postgres waits 4 ms",
    ),
    "no CPU": Told(
        {"more": {PSI: psi(8_000_000)}}, {}, {DB: (400, 400 * 25300)}, "CAUSE", "cpu",
        "80% of the time of a commit is spent waiting for a CPU; postgres waits 20.2 ms of each 25.3 ms commit for a CPU",
    ),
    "no CPU between the commits": Told(
        {"more": {PSI: psi(8_000_000)}, "block_ms": {"sdc": (1, 24), "sdd": (1, 24)}}, {}, {DB: (400, 400 * 25300)},
        "NOTHING STANDS OUT", "", "postgres waits 24 ms of each 25.3 ms commit for the flush",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_cause_is_the_first_that_is_named(name: str) -> None:
    told = CASES[name]
    waited = 20_000_000_000 if PSI in told.files.get("more", {}) else None
    who = tuple(Process(pid, name, KERNEL if pid < 100 else "", "", waited) for pid, name, _ in told.trace)
    files, more = worlds.load(**told.files)
    seen = worlds.observation(({PSI: psi(0), **files}, more), worlds.traced(told.trace), who)
    found = diagnose(seen, worlds.facts(**told.facts))
    top = found.causes[0].id if found.causes else ""
    assert (found.outcome, top) == (told.outcome, told.top), found.reasons
    assert told.says in found.answer
    for cause in found.causes:
        assert cause.evidence
        assert cause.fix
        assert not cause.rule or (ROOT / "rules" / f"{cause.rule}.toml").exists(), cause.rule


def test_whose_writers_were_held_back_is_not_guessed_of_several_pools() -> None:
    told, facts = CASES["throttle"], worlds.facts(others=("other",))
    found = diagnose(worlds.observation(worlds.load(**told.files), worlds.traced(HEALTHY)), facts)
    assert found.answer.startswith("writers of tank or of another pool were held back 90 times")
    slow = diagnose(worlds.observation(worlds.load(**told.files), worlds.traced({DB: (400, 400 * 25300)})), facts)
    assert slow.outcome == "INCONCLUSIVE"


def test_writers_that_were_not_counted_are_not_called_unhindered() -> None:
    path, (before, after) = f"{kstat.ROOT}/dmu_tx", worlds.load(txgs=())
    without = [{name: text for name, text in each.items() if name != path} for each in (before, after)]
    found = diagnose(worlds.observation((without[0], without[1]), worlds.traced(HEALTHY)), worlds.facts())
    assert found.held is None
    assert diagnose_page.groups(found) == "not seen; writers held back: not seen."
    assert diagnose(worlds.observation((before, after), None), worlds.facts()).held == 0
    held = diagnose(
        worlds.observation(worlds.load(**CASES["throttle"].files, txgs=[(7, "C", 1.5)]), None), worlds.facts()
    )
    assert diagnose_page.groups(held).startswith("1 synced, in ")
    assert diagnose_page.groups(held).endswith("; writers held back: 90 times, all pools together.")


@pytest.mark.parametrize("name", ["slow log leg", "sync=disabled", "throttle", "scrub", "shared log", "errors"])
def test_counters_alone_find_what_they_count(name: str) -> None:
    told = CASES[name]
    found = diagnose(worlds.observation(worlds.load(**told.files), None), worlds.facts(**told.facts))
    assert found.causes[0].id == told.top
    assert found.outcome == told.outcome
    assert not found.shares
    assert found.mean_ns is None


@pytest.mark.parametrize(
    ("name", "logbias", "fix", "rule"),
    [
        ("data before the log block", "throughput", "zfs set logbias=latency tank/db", "logbias-throughput-log"),
        ("data before the log block", "latency", "zfs get logbias,direct tank/db", "direct-io-bypasses-slog"),
        ("past the SLOG", "throughput", "zpool list -v tank", "slog-unused"),
    ],
)
def test_what_brings_commits_back_to_the_slog_depends_on_what_bypassed_it(
    name: str, logbias: str, fix: str, rule: str
) -> None:
    told, facts = CASES[name], worlds.facts()
    facts.put(Fact(Subject("dataset", "tank/db"), "logbias", known(logbias, "")))
    found = diagnose(worlds.observation(worlds.load(**told.files), worlds.traced(told.trace)), facts)
    assert found.causes[0].fix.endswith(fix)
    assert found.causes[0].rule == rule


FLUSH = "I/O error, dev {}, sector 0 op 0x1:(WRITE) flags 0x800 phys_seg 0 prio class 0"
WRITE = "I/O error, dev {}, sector 99 op 0x1:(WRITE) flags 0x0 phys_seg 3 prio class 0"


def of_log(*lines: str, missing: str = "", **given: object) -> Diagnosis:
    """A healthy load, and what the kernel logged meanwhile."""
    logged = KernelLines(lines, missing)
    return diagnose(worlds.observation(worlds.load(), worlds.traced(HEALTHY), logged=logged), worlds.facts(**given))


def test_a_flush_that_fails_is_told_before_speed() -> None:
    found = of_log(*[FLUSH.format("sdc")] * 3)
    assert (found.outcome, found.causes[0].id, found.causes[0].rule) == (
        "NOT DURABLE",
        "flush-failed",
        "flush-failed-logged",
    )
    assert found.answer.startswith("sdc: at least 3 flushes that failed"), found.answer
    assert "fsync returned success" in found.answer


def test_a_drive_that_keeps_what_it_acknowledged_needs_no_flush() -> None:
    found = of_log(FLUSH.format("sdc"), keeps=["sdc"])
    assert (found.outcome, found.causes[0].id) == ("CAUSE", "device-fails")


def test_a_write_that_fails_is_a_cause_and_those_of_other_disks_are_none() -> None:
    found = of_log(WRITE.format("sdd"))
    assert (found.outcome, found.causes[0].id) == ("CAUSE", "device-fails")
    assert of_log(WRITE.format("sdz")).outcome == "NOTHING STANDS OUT"


def test_without_the_kernels_log_nobody_says_that_nothing_failed() -> None:
    found = of_log(missing="/dev/kmsg: Operation not permitted")
    assert (found.outcome, found.causes) == ("INCONCLUSIVE", ())
    assert found.reasons == ("whether a device failed was not seen: /dev/kmsg: Operation not permitted",)


def test_counters_alone_never_say_that_nothing_stands_out() -> None:
    found = diagnose(worlds.observation(worlds.load(), None), worlds.facts())
    assert (found.outcome, found.causes) == ("INCONCLUSIVE", ())
    assert found.reasons == ("how long a commit takes was not seen: only root may trace",)


def test_a_device_stacked_on_a_disk_is_judged_by_its_own_time() -> None:
    """What a device mapper delays shows in its counters, not in those of the disk below; its flushes count as writes there."""
    dm = {"/sys/block/dm-0/stat": worlds.stat(0, 0, 0, 0)}
    before, after = worlds.load()
    seen = worlds.observation(
        ({**before, **dm}, {**after, "/sys/block/dm-0/stat": worlds.stat(800, 400 * 45, 0, 0)}),
        worlds.traced({DB: (400, 400 * 45300)}),
    )
    found = diagnose(seen, worlds.facts(sdd="dm-0"))
    assert found.causes[0].id == "slow-log-leg"
    assert "dm-0 is the slower leg of log mirror-1, 9.0 times" in found.answer
    leg = next(each for each in found.devices if each.device == "dm-0")
    assert (leg.writes, leg.flushes, leg.write_ns, leg.flush_ns, leg.block_ns) == (400, 400, None, None, 45e6)
    # the other leg's write and flush, which end while it works, are not added to its own
    assert {each.what for each in found.shares} == {"queue", "log write and flush", "unexplained"}


def test_few_flushes_of_a_data_device_are_no_sign() -> None:
    """Ten of 90 ms among 400 writes, and a leg that takes 12 ms for each write: the second is the slow one."""
    stats = {"sda": worlds.stat(410, 400 * 1 + 900, 10, 900), "sdb": worlds.stat(410, 400 * 12 + 20, 10, 20)}
    files = worlds.load(more={f"/sys/block/{disk}/stat": text for disk, text in stats.items()})
    found = diagnose(worlds.observation(files, worlds.traced(HEALTHY)), worlds.facts())
    assert (found.causes[0].id, found.causes[0].text.split()[0]) == ("slow-data-leg", "sdb")


def test_what_is_not_explained_is_inconclusive() -> None:
    found = diagnose(worlds.observation(worlds.load(), worlds.traced({DB: (400, 400 * 20000)})), worlds.facts())
    assert found.outcome == "INCONCLUSIVE"
    assert "74% of the time of a commit is not explained" in found.answer
    assert found.shares


def test_a_counter_that_fell_is_inconclusive() -> None:
    before, after = worlds.load()
    path = next(path for path in after if "objset" in path)
    before[path] = worlds.objset("tank/db", zil_commit_count=10**6)
    found = diagnose(worlds.observation((before, after), worlds.traced(HEALTHY)), worlds.facts())
    assert found.outcome == "INCONCLUSIVE"
    assert "the counters of tank/db began again (it was mounted meanwhile)" in found.reasons


def test_a_dataset_that_was_mounted_meanwhile_counts_from_nothing() -> None:
    before, after = worlds.load()
    del before[next(path for path in after if "objset" in path)]
    found = diagnose(worlds.observation((before, after), worlds.traced(HEALTHY)), worlds.facts())
    assert (found.outcome, found.commits, found.reasons) == ("NOTHING STANDS OUT", 400, ())


def test_a_trace_that_missed_calls_or_dropped_entries_is_not_believed() -> None:
    for trace in (
        worlds.traced(HEALTHY, missed=3),
        worlds.traced(HEALTHY, missed=None),
        worlds.traced(HEALTHY)._replace(commits=worlds.threads(HEALTHY).replace("Dropped: 0", "Dropped: 1")),
        worlds.traced(HEALTHY)._replace(commits="{ x } hitcount: 1\n    Dropped: 0\n"),
    ):
        found = diagnose(worlds.observation(worlds.load(), trace), worlds.facts())
        assert (found.outcome, found.shares) == ("INCONCLUSIVE", ())


def test_a_thread_that_cannot_be_read_costs_no_other_and_is_told() -> None:
    """What is too little is not told as a number, and never as none."""
    text = worlds.threads({**HEALTHY, (300, "x", 1): (9, 90)}).replace("x               [       300]", "x" * 40)
    found = diagnose(worlds.observation(worlds.load(), worlds.traced(HEALTHY)._replace(commits=text)), worlds.facts())
    assert [each.pid for each in found.committers] == [pid for pid, _, _ in HEALTHY]
    assert (found.outcome, found.traced, found.commits, found.latency.samples) == ("INCONCLUSIVE", None, 400, 400)
    assert "1 entries of the kernel's histograms of threads could not be read" in found.reasons
    assert found.answer.startswith("40 commits/s")


def test_a_histogram_of_latencies_that_cannot_be_read_leaves_the_threads() -> None:
    trace = worlds.traced(HEALTHY)
    bad = (trace.ticks[0]._replace(commits=trace.ticks[0].commits.replace("2^", "2^x")),)
    found = diagnose(worlds.observation(worlds.load(), trace._replace(ticks=bad)), worlds.facts())
    assert (found.outcome, found.traced) == ("INCONCLUSIVE", 400)
    assert found.committers
    assert not found.latency.samples


def test_two_witnesses_that_disagree_are_told() -> None:
    found = diagnose(worlds.observation(worlds.load(), worlds.traced({DB: (300, 300 * 5300)})), worlds.facts())
    assert found.outcome == "INCONCLUSIVE"
    assert "the kernel traced 300 commits, those of other pools among them, and the ZIL counted 400" in found.reasons


def test_what_was_counted_after_the_trace_ended_is_no_disagreement() -> None:
    """84 of 10.6 s, of which the last look at the trace saw 78: 0.8 s lie between it and the counters."""
    seen = worlds.observation(worlds.load(commits={"tank/db": 84}), worlds.traced({DB: (78, 78 * 5300)}))
    assert seen.traced
    assert any("the ZIL counted 84" in each for each in diagnose(seen, worlds.facts()).reasons)
    ticks = (seen.traced.ticks[0]._replace(at=1000 + worlds.SECONDS - 0.8),)
    seen = seen._replace(traced=seen.traced._replace(ticks=ticks))
    assert diagnose(seen, worlds.facts()).reasons == ()


def test_without_transaction_groups_nobody_knows_that_no_commit_hangs() -> None:
    found = diagnose(worlds.observation(worlds.load(commits={}, txgs=()), worlds.traced({})), worlds.facts())
    assert (found.outcome, found.causes) == ("INCONCLUSIVE", ())
    assert found.reasons == ("no transaction group of tank was seen (zfs_txg_history)",)


def test_a_group_hangs_whatever_its_timeout() -> None:
    facts = worlds.facts()
    facts.replace(Fact(HOST, "zfs_txg_timeout", unknown("unreadable")))
    files = worlds.load(commits={}, txgs=[(9, "S", 20.0)], more=STILL)
    found = diagnose(worlds.observation(files, worlds.traced({})), facts)
    assert (found.outcome, found.causes[0].id) == ("CAUSE", "txg-hangs")


def test_which_dataset_a_thread_commits_to_is_not_guessed() -> None:
    """Two ZILs with the same count: nobody can tell which is which."""
    seen = worlds.observation(
        worlds.load(commits={"tank/db": 200, "tank/web": 200}),
        worlds.traced({DB: (200, 200 * 5300), (200, "nginx", 2): (200, 200 * 5300)}),
    )
    assert [each.dataset for each in diagnose(seen, worlds.facts()).committers] == ["", ""]


def test_a_process_that_calls_itself_as_the_kernel_does_is_called_by_its_name() -> None:
    seen = worlds.observation(worlds.load(), worlds.traced({(500, "zvol_tq-0", 1): (400, 400 * 5300)}))
    assert diagnose(seen, worlds.facts()).answer.startswith("zvol_tq-0 waits")


LEGS = st.lists(st.floats(0.1, 200), min_size=4, max_size=4)


@given(LEGS, st.integers(25, 5000))
def test_legs_that_are_alike_are_never_called_slow(times: list[float], commits: int) -> None:
    disks = dict(zip(("sda", "sdb", "sdc", "sdd"), ((0.2, each) for each in times), strict=True))
    files = worlds.load(commits={"tank/db": commits}, block_ms=disks)
    found = diagnose(worlds.observation(files, None), worlds.facts())
    named = {cause.id for cause in found.causes}
    slow = {"slow-data-leg": times[:2], "slow-log-leg": times[2:]}
    for id, pair in slow.items():
        low, high = sorted(each + 0.2 for each in pair)
        if high < 0.95 * standing.SLOWER * low or high - low < 0.95 * standing.SLOWER_NS / 1e6:
            assert id not in named
        if high > 1.05 * standing.SLOWER * low + 0.1 and high - low > 1.05 * standing.SLOWER_NS / 1e6 + 0.1:
            assert id in named


def test_an_observation_of_an_earlier_release_is_read() -> None:
    seen = worlds.observation(worlds.load(), worlds.traced(HEALTHY))
    document = json.loads(observation.to_text(seen))
    for later in observation.Observation._field_defaults:
        del document[later]
    assert observation.from_text(json.dumps(document)) == seen
    document["stacks"] = {
        "passes": 200,
        "threads": 9,
        "waits": [],
        "faults": [],
    }  # samples of stacks, which it once kept
    assert observation.from_text(json.dumps(document)) == seen


def test_a_trace_of_nothing_is_not_believed_where_commits_were_counted() -> None:
    seen = worlds.observation(worlds.load(), worlds.traced({}))
    assert seen.traced
    early = seen.traced._replace(ticks=(seen.traced.ticks[0]._replace(at=1000),))
    for each in (seen, seen._replace(traced=early)):
        found = diagnose(each, worlds.facts())
        assert found.outcome == "INCONCLUSIVE"
        assert "the kernel traced 0 commits" in found.answer


@pytest.mark.parametrize("trace", [None, worlds.traced({})])
def test_what_a_dataset_did_that_is_gone_at_the_end_is_not_nothing(trace: TraceTexts | None) -> None:
    """What it wrote to the log made the log device one that serves others, too."""
    before, after = worlds.load()
    left = {path: text for path, text in after.items() if "tank/db" not in text}
    found = diagnose(worlds.observation((before, left), trace), worlds.facts())
    assert found.outcome == "INCONCLUSIVE"
    assert found.reasons[0] == "what tank/db committed is not known (it was unmounted meanwhile)"


def test_a_dataset_whose_counters_cannot_be_read_is_not_nothing() -> None:
    seen = worlds.observation(worlds.load(commits={"tank/db": 0}), worlds.traced({}))
    path = f"{kstat.ROOT}/tank/objset-0x99"
    for why, outcome in (("no such file or directory", "NOBODY COMMITS"), ("input/output error", "INCONCLUSIVE")):
        found = diagnose(seen._replace(after=seen.after._replace(errors={path: why})), worlds.facts())
        assert found.outcome == outcome


@pytest.mark.parametrize(("waited", "pipeline"), [(-(2**62), None), (0, -(2**62))])
def test_no_part_of_a_commit_is_less_than_nothing(waited: int, pipeline: int | None) -> None:
    """As in a recording that somebody made up: a bar of so many characters would have filled the memory."""
    seen = worlds.observation(worlds.load(), worlds.traced(HEALTHY), (Process(100, "postgres", "", "", waited),))
    found = diagnose(seen._replace(pipeline=pipeline), worlds.facts())
    assert all(0 <= each.part <= 1 for each in found.shares)
    assert sum(each.part for each in found.shares) == pytest.approx(1)


def test_a_counter_is_shown_by_a_command_that_shows_how_it_grows() -> None:
    (shown,) = standing.cause("no-batching", committers=5, commits=40, blocks=40, pool="a b").evidence
    watch, differences, inner = shlex.split(shown.command)
    assert (watch, differences) == ("watch", "-d")
    assert shlex.split(inner) == ["grep", "-w", "zil_commit_count", "/proc/spl/kstat/zfs/a b/objset-0x*"]
    (shown,) = standing.cause("log-device-shared", device="sda", who="", writes=9, blocks=1, busy=0.5).evidence
    assert shown.command == "watch -d 'cat /sys/block/sda/stat'"
