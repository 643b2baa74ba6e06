"""Hosts and loads of which the truth is known: facts, two moments, and histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.diagnose.conclusion import diagnose
from auditor.diagnose.diagnosis import Diagnosis
from auditor.diagnose.observation import KERNEL, Observation, Process, Tick, TraceTexts
from auditor.facts import HOST, Fact, Facts, Subject, known
from auditor.sources import kstat
from auditor.verify import trial
from auditor.verify.trial import KernelLines, Reading
from tests.diagnose.test_commits import log2

POOL = Subject("pool", "tank")
SECONDS = 10.0
QUIET = KernelLines((), "")
BOOT = 900  # seconds since the epoch
UP = 1000 - BOOT  # seconds, before the look
COUNTS = ("writes", "zil_commit_count", "zil_commit_writer_count", "zil_itx_count", "zil_itx_indirect_count")
BLOCKS = ("zil_itx_metaslab_slog_count", "zil_itx_metaslab_normal_count")


def table(rows: Mapping[str, int | str]) -> str:
    """A named kstat."""
    body = "".join(f"{name:<31} {7 if isinstance(value, str) else 4}    {value}\n" for name, value in rows.items())
    return f"62 1 0x01 {len(rows)} 7600 70242878580 94664598240\nname                            type data\n{body}"


def stat(
    writes: int, write_ms: int, flushes: int, flush_ms: int, sectors: int = 0, busy: int = 100, flying: int = 0
) -> str:
    """/sys/block/X/stat; writes: those of flushes among them; flying: I/Os in flight."""
    return f"0 0 0 0 {writes} 0 {sectors} {write_ms} {flying} {busy} 0 0 0 0 0 {flushes} {flush_ms}\n"


def facts(**given: object) -> Facts:
    """A mirror of data and a mirror of log devices; properties of datasets as sync={...}."""
    found = Facts(1000.0)
    tops = {"mirror-0": ("sda", "sdb", "normal"), "mirror-1": ("sdc", "sdd", "log")}
    vdevs, leaves = [], []
    for top, (*disks, kind) in tops.items():
        vdev = Subject("vdev", top, "tank")
        vdevs.append(vdev)
        own = [Subject("leaf", disk, "tank") for disk in disks]
        leaves += own
        found.put(Fact(vdev, "leaves", known(tuple(own), "")))
        for leaf in own:
            found.put(Fact(leaf, "allocation_class", known(kind, "")))
            found.put(Fact(leaf, "disks", known((Subject("disk", leaf.name),), "")))
            found.put(Fact(leaf, "node", known(str(given.get(leaf.name, f"{leaf.name}1")), "")))
    found.put(Fact(POOL, "vdevs", known(tuple(vdevs), "")))
    found.put(Fact(POOL, "leaves", known(tuple(leaves), "")))
    found.put(Fact(POOL, "zil_class", known("log", "")))
    others = given.get("others", ())
    assert isinstance(others, tuple)
    found.put(Fact(HOST, "imported_pools", known((POOL, *(Subject("pool", each) for each in others)), "")))
    found.put(Fact(POOL, "capacity_percent", known(given.get("capacity", 10), "")))  # type: ignore[arg-type]
    found.put(Fact(HOST, "zfs_txg_timeout", known(5, "")))
    for disk in given.get("keeps", ()):  # type: ignore[attr-defined]
        found.put(Fact(Subject("disk", disk), "keeps_acknowledged", known(True, "")))
    sync = given.get("sync", {})
    assert isinstance(sync, dict)
    for name in ("tank/db", "tank/web"):
        found.put(Fact(Subject("dataset", name), "sync", known(sync.get(name, "standard"), "")))
    return found


def moment(at: float, files: Mapping[str, str]) -> Reading:
    return Reading(at, at - BOOT, dict(files), {})


def objset(name: str, **rows: int) -> str:
    return table({"dataset_name": name, **dict.fromkeys((*COUNTS, *BLOCKS), 0), **rows})


def load(
    *,
    commits: Mapping[str, int] = {"tank/db": 400},
    block_ms: Mapping[str, tuple[float, float]] = {},
    dmu_tx: Mapping[str, int] = {},
    rows: Mapping[str, int] = {},
    rows_of: str = "tank/db",
    status: str = "  pool: tank\n state: ONLINE\nconfig:\n",
    more: Mapping[str, str] = {},
    flying: Mapping[str, int] = {},
    txgs: Sequence[tuple[int, str, float]] = ((7, "O", 0.0),),
) -> tuple[dict[str, str], dict[str, str]]:
    """Files before and after SECONDS of such a load: each commit one log block on sdc and sdd. block_ms: by disk, what a
    write and what a flush took there, 1 and 4 ms where nothing is said. flying: I/Os in flight before, by disk. txgs: number,
    state, and for how many seconds before the look they had been synced, after one in which they were open."""
    total = sum(commits.values())
    before, after = {}, {}
    for number, name in enumerate(sorted({"tank/db", "tank/web", *commits})):
        path = f"{kstat.ROOT}/tank/objset-0x{number + 54:x}"
        count = commits.get(name, 0)
        new = rows if name == rows_of else {}
        before[path] = objset(name, **dict.fromkeys(new, 0))
        own = {"writes": count, "zil_commit_count": count, "zil_itx_count": count, "zil_itx_metaslab_slog_count": count}
        after[path] = objset(name, **{**own, **new})
    for disk in ("sda", "sdb", "sdc", "sdd"):
        write, flush = block_ms.get(disk, (1, 4))
        many = total if disk in ("sdc", "sdd") else 100
        path = f"/sys/block/{disk}/stat"
        before[path] = stat(0, 0, 0, 0, flying=flying.get(disk, 0))
        after[path] = stat(2 * many, round(many * (write + flush)), many, round(many * flush), 16 * many, 500)
    path = f"{kstat.ROOT}/dmu_tx"
    before[path] = table({"dmu_tx_assigned": 0, "dmu_tx_dirty_delay": 0})
    after[path] = table({"dmu_tx_assigned": 9, "dmu_tx_dirty_delay": 0, **dmu_tx})
    history = (
        f"{n} {round((UP - ago - 1) * 1e9)} {state} 0 0 0 0 0 1000000000 0 0 {0 if state == 'S' else round(ago * 1e9)}\n"
        for n, state, ago in txgs
    )
    before[f"{kstat.ROOT}/tank/txgs"] = after[f"{kstat.ROOT}/tank/txgs"] = "".join(history)
    before["zpool status tank"], after["zpool status tank"] = status, status
    return before, {**after, **more}


def together(files: tuple[dict[str, str], dict[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """The same as a release tells it that counts the commits of all datasets together (OpenZFS 2.1)."""
    for each in files:
        sums: dict[str, int] = {}
        for path in [path for path in each if "/objset-" in path]:
            kept: dict[str, int | str] = {}
            for name, kind, value in (row.split() for row in each[path].splitlines()[2:]):
                if name.startswith("zil_"):
                    sums[name] = sums.get(name, 0) + int(value)
                else:
                    kept[name] = value if kind == "7" else int(value)
            each[path] = table(kept)
        each[trial.ZIL_PATH] = table(sums)
    return files


def threads(rows: Mapping[tuple[int, str, int], tuple[int, int]]) -> str:
    """(pid, name, ZIL) -> (commits, microseconds together)."""
    body = "".join(
        f"{{ common_pid: {name:<16}[{pid:10}], zil: {zil:10} }} hitcount: {count:10}  us: {us:10}\n"
        for (pid, name, zil), (count, us) in rows.items()
    )
    return f"# event histogram\n#\n\n{body}\nTotals:\n    Hits: 1\n    Entries: {len(rows)}\n    Dropped: 0\n"


def traced(
    rows: Mapping[tuple[int, str, int], tuple[int, int]], queue_us: int = 100, missed: int | None = 0
) -> TraceTexts:
    """queue_us: that each commit waited for its turn."""
    total = sum(count for count, _ in rows.values())
    waits = {(pid, name, 0): (count, count * queue_us) for (pid, name, _), (count, _) in rows.items()}
    queue = threads(waits).replace(", zil:          0", "")
    return TraceTexts(threads(rows), (Tick(1000 + SECONDS, log2({13: total})),), queue, missed)


def observation(
    files: tuple[dict[str, str], dict[str, str]],
    trace: TraceTexts | None,
    processes: tuple[Process, ...] = (),
    target: str = "tank",
    logged: KernelLines = QUIET,
) -> Observation:
    before, after = files
    why = "" if trace else "only root may trace"
    return Observation(
        target, "tank", moment(1000, before), moment(1000 + SECONDS, after), trace, why, processes, None, logged
    )


def canonical() -> Diagnosis:
    """A mirrored SLOG, one leg of which is slow, on which PostgreSQL commits, ever slower."""
    rows = {(100, "postgres", 1): (400, 400 * 25300)}
    who = (Process(100, "postgres", "", "postgresql@17-main.service", 40_000_000),)
    steps = ({14: 60}, {14: 120, 15: 20}, {14: 150, 15: 150}, {14: 150, 15: 250})
    ticks = tuple(Tick(1000 + SECONDS * (i + 1) / len(steps), log2(step)) for i, step in enumerate(steps))
    files = load(block_ms={"sdd": (1, 24)})
    how = traced(rows)._replace(ticks=ticks)
    seen = observation(files, how, who)
    return diagnose(seen, facts())


def several() -> Diagnosis:
    """Those who commit in each way: a database, one that opens its log with O_DSYNC, a volume, and NFS."""
    each, unit = 5300, "postgresql@17-main.service"
    counts = {
        (100, "postgres", 1): 420, (101, "postgres", 1): 30, (110, "etcd-server", 2): 150, (120, "zvol_tq-0", 3): 90,
        (121, "zvol_tq-1", 3): 80, (122, "zvol_tq-2", 3): 70, (130, "nfsd", 4): 30, (131, "nfsd", 4): 25,
    }  # fmt: skip
    rows = {thread: (count, count * each) for thread, count in counts.items()}
    who = [Process(100, "postgres", "walwriter", unit, 4), Process(101, "postgres", "", unit, 4)]
    who += [Process(pid, name, KERNEL, "", 4) for pid, name, _ in counts if pid >= 120]
    steps = [
        log2({12: 9 * i, 13: 79 * i, 15: i * i // 16 + (4 if i == 10 else 0), 19: int(i > 7)}) for i in range(1, 11)
    ]
    ticks = tuple(Tick(1001.0 + i, text) for i, text in enumerate(steps))
    seen = traced(rows)._replace(ticks=ticks)
    files = load(commits={"tank/db": 450, "tank/kv": 150, "tank/vm/disk-1": 240, "tank/export": 55})
    return diagnose(observation(files, seen, tuple(who)), facts())
