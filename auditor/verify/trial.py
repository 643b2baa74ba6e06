"""A trial: everything that a verification saw, as text, and what its witnesses (kstats, devices, the kernel's log) say."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from auditor import codec
from auditor.facts import Facts, Known, Subject, Unknown, is_true
from auditor.host import builtin
from auditor.host.children.reader import Closing
from auditor.host.request import Run
from auditor.model.flushes import counted_elsewhere
from auditor.sources import kstat
from auditor.sources.kernel_log import KEEP
from auditor.sources.source import counter, first_object
from auditor.verify.result import Device, Txg, Zil

# A trial: everything that a verification saw, as text. A recording keeps it, to be judged again.

SCHEMA = "zaudit-trial/1"
UNSEEN = "unseen"  # scan: zpool status did not answer


class Reading(NamedTuple):
    """Counter files at one time. at: seconds since the epoch; up: since boot (kstats count from there). text: path ->
    content; errors: path -> why it could not be read."""

    at: float
    up: float
    text: Mapping[str, str]
    errors: Mapping[str, str]


class KernelLines(NamedTuple):
    """Lines of the kernel's log during a run that concern disks and pools. missing: why there may be others, or empty."""

    lines: tuple[str, ...]
    missing: str


UNLOGGED = KernelLines((), "what the kernel logged meanwhile is not in the recording")


class FioRun(NamedTuple):
    """One run of fio. began, ended: seconds since the epoch. exit: None where zaudit ended it, with a fault. strace: its
    output, None without it. txgs: the history of transaction groups from time to time. limited: ended at its limit of
    bytes. logged: by the kernel from before to after."""

    name: str
    purpose: str
    sections: tuple[str, ...]
    argv: tuple[str, ...]
    idle: Reading
    before: Reading
    after: Reading
    began: float
    ended: float
    exit: int | None
    stdout: str
    stderr: str
    fault: str = ""
    strace: str | None = None
    txgs: tuple[str, ...] = ()
    limited: bool = False
    logged: KernelLines = UNLOGGED


class Trial(NamedTuple):
    """One verification. target: asked for; dataset: written to, a scratch zvol for a zvol. landed: the file system of the
    files, empty where unknown. preload: what is preloaded into every program. job_file: text of the profile. scan: a scrub
    or resilver ran meanwhile, or UNSEEN. objectives: "p99=5ms,p99.9=25ms". size: what ${ZAUDIT_SIZE} stood for, in
    bytes."""

    target: str
    dataset: str
    landed: str
    place: str
    profile: str
    job_file: str
    length: str
    objectives: str
    size: int
    fio: str
    preload: str
    runs: tuple[FioRun, ...]
    scan: str = ""
    notes: tuple[str, ...] = ()


def to_text(trial: Trial) -> str:
    return codec.to_member(SCHEMA, trial)


def from_text(text: str) -> Trial:
    """Raises codec.CodecError for anything that is not a trial of this schema."""
    return codec.from_member(Trial, SCHEMA, text, "verification")


# The witnesses: which files are read before and after a run, and what they count.
#
# ZIL: objset kstats of the pool (2.2 and later, one a mounted dataset), the global ``zil`` kstat (2.1: all pools together).
# Devices: ``/sys/block/DISK/stat``, fields 5 (writes completed), 7 (sectors), 8 (ms), 16 (flushes), 17 (ms); each flush
# counts as a write too. (Linux Documentation/block/stat.rst; OpenZFS module/zfs/zil.c, dataset_kstats.c, spa_stats.c) Of
# multipath disks the kernel counts flushes elsewhere: :func:`counted_elsewhere`.

ZIL_PATH, DMU_TX = f"{kstat.ROOT}/zil", f"{kstat.ROOT}/dmu_tx"
ROWS = {
    "commits": "zil_commit_count",
    "writers": "zil_commit_writer_count",
    "slog_blocks": "zil_itx_metaslab_slog_count",
    "slog_bytes": "zil_itx_metaslab_slog_bytes",
    "slog_written": "zil_itx_metaslab_slog_write",
    "normal_blocks": "zil_itx_metaslab_normal_count",
    "normal_bytes": "zil_itx_metaslab_normal_bytes",
    "normal_written": "zil_itx_metaslab_normal_write",
    "indirect": "zil_itx_indirect_count",
    "indirect_bytes": "zil_itx_indirect_bytes",
    "errors": "zil_commit_error_count",
    "stalls": "zil_commit_stall_count",
}
COUNT = re.compile(r"[0-9]{1,20}")
Counts = dict[str, int]


def txgs_path(pool: str) -> str:
    return f"{kstat.ROOT}/{pool}/txgs"


def patterns(pool: str, disks: Sequence[str]) -> tuple[str, ...]:
    devices = map(stat_path, disks)
    return (f"{kstat.ROOT}/{pool}/objset-0x*", ZIL_PATH, DMU_TX, txgs_path(pool), *devices, f"{STATUS}{pool}")


# -- the ZIL ------------------------------------------------------------------------------------------------------


def objsets(reading: Reading) -> dict[str, Counts]:
    """Dataset -> the rows of its kstat that are counts."""
    found: dict[str, Counts] = {}
    for path, text in reading.text.items():
        if "/objset-" in path:
            rows = kstat.rows(text, path)
            name = rows.get("dataset_name", ("", ""))[1]
            found[name] = _counts(rows)
    return found


def _counts(rows: Mapping[str, tuple[str, str]]) -> Counts:
    return {row: number for row, cell in rows.items() if (number := kstat.count_of(*cell)) is not None}


def table(reading: Reading, path: str) -> Counts:
    """The counts of one named kstat; empty when it could not be read."""
    return _counts(kstat.rows(reading.text[path], path)) if path in reading.text else {}


def grown(before: Counts, after: Counts) -> Counts:
    """What grew. A counter that fell (the dataset was mounted again) is left out: nothing is known of it."""
    return {row: after[row] - before[row] for row in after if row in before and after[row] >= before[row]}


def zil(before: Reading, after: Reading, dataset: str) -> tuple[Zil | None, dict[str, int] | None]:
    """(the ZIL counters of the dataset, commits of the pool's others); where not counted apart (2.1) all pools', and
    None."""
    earlier, later, row = objsets(before), objsets(after), ROWS["commits"]
    if not any(row in counts for counts in (*earlier.values(), *later.values())):
        together = grown(table(before, ZIL_PATH), table(after, ZIL_PATH))
        return (_zil(together) if row in together else None), None
    own = grown(earlier.get(dataset, {}), later.get(dataset, {}))
    if row not in own:
        return None, None  # counted apart, but not this one: it is not mounted, or was mounted meanwhile
    others = {name: _since(earlier.get(name, {}), counts) for name, counts in later.items() if name != dataset}
    return _zil(own), {name: commits for name, commits in others.items() if commits}


def _since(earlier: Counts, later: Counts) -> int:
    """Commits of a dataset, at the least: it counts from 0 when it is mounted again."""
    row = ROWS["commits"]
    first, last = earlier.get(row, 0), later.get(row, 0)
    return last - first if last >= first else last


def _zil(counts: Counts) -> Zil:
    return Zil(**{field: counts.get(row) for field, row in ROWS.items() if row in counts})  # type: ignore[arg-type]


def commits(before: Reading, after: Reading) -> int | None:
    """Commits of everybody between two readings: of all datasets of the pool where they are counted, else of all pools."""
    earlier, later, row = objsets(before), objsets(after), ROWS["commits"]
    if any(row in counts for counts in later.values()):
        if not any(row in counts for counts in earlier.values()):
            return None
        return sum(_since(earlier.get(name, {}), counts) for name, counts in later.items())
    return grown(table(before, ZIL_PATH), table(after, ZIL_PATH)).get(row)


# -- devices ------------------------------------------------------------------------------------------------------


def devices(before: Reading, after: Reading, pool: Subject, facts: Facts) -> tuple[Device, ...]:
    """Every disk of the pool, in the order of its leaves. One whose counters cannot be read is left out."""
    zil_leaves = set(facts.linked(pool, "zil_leaves"))
    found: dict[str, Device] = {}
    for vdev in facts.linked(pool, "vdevs"):
        for leaf in facts.linked(vdev, "leaves"):
            for disk in facts.linked(leaf, "disks"):
                if each := found.get(disk.name) or _device(before, after, vdev, leaf, disk, facts):
                    leaves, zil = (*each.leaves, leaf.name), each.zil or leaf in zil_leaves
                    found[disk.name] = each._replace(leaves=leaves, zil=zil)
    return tuple(found.values())


def _device(
    before: Reading, after: Reading, vdev: Subject, leaf: Subject, disk: Subject, facts: Facts
) -> Device | None:
    """Without its leaves; None where its counters cannot be read."""
    delta = _delta(before, after, stat_path(disk.name))
    if where := counted_elsewhere(leaf, disk, facts):
        there = _delta(before, after, where)
        if there and "*" in where:
            delta = there  # of all paths of an NVMe disk; its head counts what the kernel likes
        elif len(there) > 16 and len(delta) > 16:
            delta[4] += there[15]  # each counts as a write, of the map
            delta[15], delta[16] = delta[15] + there[15], delta[16] + there[16]
    if not delta:
        return None
    volatile = facts.get(disk, "volatile_cache")
    return Device(
        disk=disk.name,
        leaves=(),
        top=vdev.name,
        zil=False,
        allocation_class=facts.get(leaf, "allocation_class").word(),
        writes=delta[4],
        bytes=delta[6] * 512,
        flushes=delta[15] if len(delta) > 16 else None,
        write_ms=delta[7],
        flush_ms=delta[16] if len(delta) > 16 else None,
        volatile=bool(volatile.value) if isinstance(volatile, Known) else None,
        why="; ".join(each.text for each in (volatile.reasons if isinstance(volatile, Unknown) else volatile.evidence)),
        virtual=is_true(facts.get(disk, "virtual")),
    )


def stat_path(disk: str) -> str:
    return f"/sys/block/{disk.replace('/', '!')}/stat"


def _delta(before: Reading, after: Reading, pattern: str) -> list[int]:
    """What the counters of these files grew by together; nothing where one is missing, or of another drive than before."""
    files = sorted(path for path in {*before.text, *after.text} if fnmatchcase(path, pattern))
    rows = [[_numbers(reading.text.get(path, "").split()) for reading in (before, after)] for path in files]
    if not rows or min(len(cells) for row in rows for cells in row) < 11:
        return []
    grown = [[later - earlier for earlier, later in zip(*row, strict=False)] for row in rows]
    if any(min(each[4], each[6], *each[15:16]) < 0 for each in grown):
        return []  # another drive has its name now
    return [sum(column) for column in zip(*grown, strict=False)]


def _numbers(cells: Sequence[str]) -> list[int]:
    """The counts that stand there; none where one of them is no count of 64 bits, for it may be any column."""
    return [int(each) for each in cells] if all(COUNT.fullmatch(each) for each in cells) else []


def disks(pool: Subject, facts: Facts) -> list[str]:
    leaves = (leaf for vdev in facts.linked(pool, "vdevs") for leaf in facts.linked(vdev, "leaves"))
    return sorted({disk.name for leaf in leaves for disk in facts.linked(leaf, "disks")})


def elsewhere(pool: Subject, facts: Facts) -> list[str]:
    """Files with counters of disks of the pool that the kernel does not keep at the disk."""
    leaves = [leaf for vdev in facts.linked(pool, "vdevs") for leaf in facts.linked(vdev, "leaves")]
    found = {counted_elsewhere(leaf, disk, facts) for leaf in leaves for disk in facts.linked(leaf, "disks")}
    return sorted(found - {""})


SMART, STATUS = "nvme smart-log ", "zpool status "


def question(key: str) -> Run | None:
    """The command behind one of the patterns; None where it is the pattern of a file."""
    if key.startswith(SMART):
        return Run(("nvme", "smart-log", f"/dev/{key.removeprefix(SMART)}", "-o", "json"))
    if key.startswith(STATUS):
        return Run(("zpool", "status", "-p", "-s", key.removeprefix(STATUS)))
    return None


HEAT = ("thm_temp1_trans_count", "thm_temp2_trans_count", "warning_temp_time", "critical_comp_time")


def heat(before: Reading, after: Reading) -> dict[str, int]:
    """Disk -> how much its counters of thermal throttling grew; disks without both SMART logs are left out."""
    found = {}
    for key in after.text:
        if key.startswith(SMART) and key in before.text:
            earlier, later = _heat(before.text[key]), _heat(after.text[key])
            if earlier is not None and later is not None and later >= earlier:
                found[key.removeprefix(SMART)] = later - earlier
    return found


def _heat(text: str) -> int | None:
    try:
        said = first_object(text) or {}
    except ValueError:  # nvme printed an error in place of it
        return None
    counted = [counter(said[name]) for name in HEAT if name in said]
    known = [each for each in counted if each is not None]
    return sum(known) if len(known) == len(HEAT) else None


# -- transaction groups -------------------------------------------------------------------------------------------


def syncing(texts: Sequence[str], up: float) -> tuple[int, float] | None:
    """The TXG that each of the texts shows as syncing (state S), and its seconds in that state at up; None where there is
    none. (OpenZFS module/zfs/spa_stats.c spa_txg_history_show())"""
    found = [{int(row[0]): row for row in map(_txg, text.splitlines()) if row and row[2] == "S"} for text in texts]
    for number in sorted(set.intersection(*map(set, found)) if found else ()):
        birth, opened, queued, waited = (int(found[-1][number][place]) for place in (1, 8, 9, 10))
        return number, up - (birth + opened + queued + waited) / 1e9
    return None


def _txg(line: str) -> list[str]:
    """The cells of one row of the history, of which all but the state are numbers; none of any other line."""
    cells = line.split()
    return cells if len(cells) == 12 and _numbers(cells[:2] + cells[3:]) else []


def txgs(texts: Sequence[str], boot: float, began: float, ended: float) -> tuple[Txg, ...]:
    """The TXGs that were born or synced between two times. boot: of the kernel's clock, seconds since the epoch. Columns:
    txg birth state ndirty nread nwritten reads writes otime qtime wtime stime, times in ns. The newest text with a TXG
    wins."""
    found: dict[int, Txg] = {}
    for text in texts:
        for cells in filter(None, map(_txg, text.splitlines())):
            numbers = _numbers(cells[:2] + cells[3:])
            number, birth, dirty, _, written = numbers[:5]
            born = boot + birth / 1e9
            opened, queued, waited, synced = (each / 1e9 for each in numbers[7:])
            if born <= ended and (
                born >= began or born + opened + queued + waited + synced >= began or cells[2] != "C"
            ):
                found[number] = Txg(number, round(born - began, 3), round(opened, 3), round(synced, 3), dirty, written)
    return tuple(found[number] for number in sorted(found))


# What the kernel logged during a run: the records after the newest one at its beginning. A separate reader keeps its place
# and learns when records were dropped before it read them: "nothing was logged" is seen, not assumed.

KEPT = 1000  # lines
_KEPT = re.compile(KEEP)


@contextlib.contextmanager
def listening() -> Iterator[Callable[[], KernelLines]]:
    """Gives a function that returns what was logged since it began, of what concerns disks and pools."""
    try:
        log = builtin.open_kmsg()
    except OSError as error:
        missing = _unread(error)
        yield lambda: KernelLines((), missing)
        return
    with Closing(log):
        os.lseek(log, 0, os.SEEK_END)
        yield lambda: _read(log)


def _read(log: int) -> KernelLines:
    lines: list[str] = []
    missing = ""
    try:
        for record in builtin.kmsg_records(log):
            if record is None:
                missing = "the kernel logged more than it keeps, and dropped a part before it could be read"
            elif _KEPT.search(line := record.text.decode("utf-8", "replace")):
                if len(lines) == KEPT:
                    return KernelLines(tuple(lines), f"the kernel logged more than {KEPT} lines of disks and pools")
                lines.append(line)
    except OSError as error:
        missing = _unread(error)
    return KernelLines(tuple(lines), missing)


def _unread(error: OSError) -> str:
    return f"the kernel's log could not be read: {builtin.KMSG_PATH}: {(error.strerror or 'no').lower()}"
