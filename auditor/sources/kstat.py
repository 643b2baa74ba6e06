"""``/proc/spl/kstat/zfs``: what the kernel counts of OpenZFS.

A named kstat is a header (kstat number, type 1, flags, number of rows, size, creation time, snapshot time), the titles
``name type data``, and one row each. (OpenZFS module/os/linux/spl/spl-kstat.c)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from auditor.facts import HOST, Fact, Facts, Known, Spec, Subject, known
from auditor.host.request import Files, Read
from auditor.sources.source import integer, source
from auditor.text import argument, quoted

ROOT = "/proc/spl/kstat/zfs"
INT64 = "3"
IMPOSSIBLE = 1 << 63  # an unsigned counter that was decremented below 0 (seen: 18446744073709537686)


def lines(text: str, path: str) -> list[str]:
    """The rows as they are printed; raises ValueError when the text is no named kstat or not all of it."""
    if not text.endswith("\n"):
        raise ValueError(f"{path} is cut off")
    top, *printed = text.strip("\n").split("\n")
    header, titles = top.split(), printed.pop(0).split() if printed else []
    if len(header) != 7 or header[1] != "1" or not header[3].isdigit() or titles != ["name", "type", "data"]:
        raise ValueError(f"{path} is not a named kstat")
    if len(printed) < int(header[3]):
        raise ValueError(f"{path} has {len(printed)} of {header[3]} rows")
    return printed


def clocks(text: str, path: str) -> tuple[Known, Known]:
    """When it was created and when it was printed. Raises ValueError as :func:`lines`."""
    lines(text, path)
    made, now = _nanoseconds(text)
    command = f"head -1 {quoted(path)}"
    return known(made, f"created at {made} ns", command), known(now, f"read at {now} ns", command)


def _nanoseconds(text: str) -> tuple[int, int]:
    made, now = text.split(None, 7)[5:7]
    return integer(made), integer(now)


def row_of(line: str, path: str) -> tuple[str, str, str]:
    fields = line.split(None, 2)
    if len(fields) != 3:
        raise ValueError(f"{path}: a row without a value")
    return fields[0], fields[1], fields[2]


def rows(text: str, path: str) -> dict[str, tuple[str, str]]:
    """name -> (type, value); raises ValueError when the text is no named kstat or not all of it."""
    printed = lines(text, path)
    found = {name: (kind, value) for name, kind, value in (row_of(line, path) for line in printed)}
    if len(found) < len(printed):
        raise ValueError(f"{path}: a row comes twice")
    return found


def counts(reply: Files, path: str, subject: Subject, names: Mapping[str, str]) -> Iterator[Fact]:
    """The rows named of one file, where it was there; names: row -> fact. A row that this release does not have is left out."""
    found = rows(reply.text[path], path) if path in reply.text else {}
    for row, fact in names.items():
        if row in found and (value := count_of(*found[row])) is not None:
            yield Fact(subject, fact, known(value, f"{row} {value}", f"grep -w {row} {quoted(path)}"))


def only(reply: Files, path: str) -> Iterator[str]:
    if path in reply.text:
        yield reply.text[path]


def count_of(kind: str, value: str) -> int | None:
    digits = value.removeprefix("-") if kind == INT64 else value
    if not (digits.isascii() and digits.isdigit()):
        return None
    return int(value) if int(digits) < IMPOSSIBLE else None


PATH = f"{ROOT}/arcstats"
ROWS = {"size": "arc_size_bytes", "c_max": "arc_max_bytes"}


@source(
    "kstat_arcstats",
    "host",
    ask=Read((PATH,)),
    facts={
        "arc_size_bytes": Spec.number("memory the ARC takes"),
        "arc_max_bytes": Spec.number("the most the ARC grows to"),
    },
)
def arcstats(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/proc/spl/kstat/zfs/arcstats``: how much memory the ARC has and may have. (OpenZFS include/sys/arc_impl.h)"""
    return counts(reply, PATH, HOST, ROWS)


DMU_TX_PATH = f"{ROOT}/dmu_tx"


@source(
    "kstat_dmu_tx",
    "host",
    ask=Read((DMU_TX_PATH,)),
    facts={
        "dmu_tx_assigned": Spec.number("transactions that got into a TXG"),
        "dmu_tx_dirty_delay": Spec.number("transactions delayed by the write throttle"),
        "dmu_tx_dirty_over_max": Spec.number("transactions that met zfs_dirty_data_max"),
        "dmu_tx_wrlog_delay": Spec.number("transactions that met zfs_wrlog_data_max"),
        "dmu_tx_quota": Spec.number("transactions that met a quota"),
    },
)
def dmu_tx(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/proc/spl/kstat/zfs/dmu_tx``: how often writes of any pool were held back. (OpenZFS include/sys/dmu_tx.h)"""
    return counts(reply, DMU_TX_PATH, HOST, {row: row for row in dmu_tx.facts})


ZIL_PATH = f"{ROOT}/zil"


@source(
    "kstat_zil",
    "host",
    ask=Read((ZIL_PATH,)),
    facts={
        "zil_commit_count": Spec.number("commits that were asked for (fsync and the like)"),
        "zil_commit_writer_count": Spec.number("commits after merging"),
        "zil_commit_error_count": Spec.number("commits that a failed log write or flush sent to the next TXG"),
        "zil_commit_stall_count": Spec.number("commits that found no space for a log block and waited for the TXG"),
        "zil_commit_suspend_count": Spec.number("commits while the ZIL was suspended, which waited for the TXG"),
        "zil_commit_crash_count": Spec.number("commits while the ZIL was crashed (pool suspended)"),
        "zil_itx_indirect_count": Spec.number("writes whose data is on the data vdevs; the log holds a pointer"),
        "zil_itx_indirect_bytes": Spec.number("bytes of those writes"),
        "zil_itx_copied_bytes": Spec.number("bytes of those writes"),
        "zil_itx_needcopy_bytes": Spec.number("bytes of those writes"),
        "zil_itx_metaslab_normal_count": Spec.number("log blocks on the data (in 2.4 also special) vdevs"),
        "zil_itx_metaslab_normal_alloc": Spec.number("bytes allocated for them"),
        "zil_itx_metaslab_slog_count": Spec.number("log blocks on log vdevs"),
        "zil_itx_metaslab_slog_alloc": Spec.number("bytes allocated for them"),
    },
)
def zil(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/proc/spl/kstat/zfs/zil``: what the ZIL of all pools together has done since the module was loaded.

    2.1 has the counts only; ``*_write`` and ``*_alloc`` came with 2.2, error, stall and suspend with 2.3, crash with 2.4.
    (OpenZFS include/sys/zil.h, zil_stats)"""
    return counts(reply, ZIL_PATH, HOST, {row: row for row in zil.facts})


@source(
    "kstat_pools",
    "host",
    ask=Read((f"{ROOT}/*/state",)),
    facts={"kstat_pools": Spec.words("names of the imported pools")},
)
def pools(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/proc/spl/kstat/zfs/*/state``: the imported pools as the kernel lists them. ``$import`` is one that ``zpool
    import`` looks for. (OpenZFS module/zfs/spa_stats.c, spa_state_init; TRYIMPORT_NAME in include/sys/spa.h) Raises
    ValueError where there is none (perhaps no permission), or one was kept back."""
    folders = (path.removeprefix(f"{ROOT}/").removesuffix("/state") for path in reply.text)
    names = tuple(sorted(name for name in folders if not name.startswith("$")))
    if not names or not reply.complete(f"{ROOT}/*/state"):
        raise ValueError("no pool has a state here, or one that could not be read")
    yield Fact(host, "kstat_pools", known(names, ", ".join(names), f"ls -d {ROOT}/*/"))


STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED", "UNAVAIL", "SUSPENDED")


@source(
    "kstat_state",
    "pool",
    ask=lambda pool, _: Read((f"{ROOT}/{pool.name}/state",)),
    facts={"kstat_state": Spec.word("its state as the kernel module says", *STATES)},
)
def state(reply: Files, pool: Subject) -> Iterator[Fact]:
    """``/proc/spl/kstat/zfs/POOL/state``: the state of the pool without asking it anything, so never hangs.

    SUSPENDED shows here; ``zpool status`` says so in its text only. (OpenZFS module/zfs/spa_misc.c, spa_state_to_name)"""
    path = f"{ROOT}/{pool.name}/state"
    for text in only(reply, path):
        state = text.removesuffix("\n")
        if state not in STATES:
            raise ValueError(f"{state!r} is not the state of a pool")
        yield Fact(pool, "kstat_state", known(state, state, f"cat {quoted(path)}"))


@source(
    "kstat_iostats",
    "pool",
    ask=lambda pool, _: Read((f"{ROOT}/{pool.name}/iostats",)),
    facts={
        "direct_write_count": Spec.number("Direct I/O writes since the import"),
        "kstat_clock_ns": Spec.number("the clock of its TXGs when these were read, ns"),
        "kstat_created_ns": Spec.number("the same clock when it was imported, ns"),
    },
)
def iostats(reply: Files, pool: Subject) -> Iterator[Fact]:
    """``/proc/spl/kstat/zfs/POOL/iostats``: Direct I/O, which 2.1 and 2.2 do not count. Its header has the times of the
    import and of the read, by the clock that stamps TXGs (``kstat_txgs``); /proc/uptime goes on while the machine sleeps.
    (OpenZFS module/os/linux/spl/spl-kstat.c, ks_crtime, ks_snaptime)"""
    path = f"{ROOT}/{pool.name}/iostats"
    for text in only(reply, path):
        created, now = clocks(text, path)
        yield Fact(pool, "kstat_clock_ns", now)
        yield Fact(pool, "kstat_created_ns", created)
    yield from counts(reply, path, pool, {"direct_write_count": "direct_write_count"})


SHARES = {1.0: "longest", 0.95: "95% quantile", 0.5: "median"}
TIMES = ("otime", "qtime", "wtime", "stime")
COLUMNS = ["txg", "birth", "state", "ndirty", "nread", "nwritten", "reads", "writes", *TIMES]


@source(
    "kstat_txgs",
    "pool",
    ask=lambda pool, _: Read((f"{ROOT}/{pool.name}/txgs",)),
    facts={
        "txg_history_count": Spec.number("committed TXGs in the list"),
        "txg_history_written": Spec.number("committed TXGs in the list that wrote something"),
        "txg_unfinished_since_ns": Spec.number(
            "since when its oldest unfinished TXG is quiescing or syncing; 0: none is"
        ),
        "txg_sync_ms_p95": Spec.real("95th percentile of the time to sync, ms"),
        "txg_sync_ms_max": Spec.real("longest time to sync, ms"),
        "txg_life_ms_max": Spec.real("longest time from the opening of a TXG to the end of its sync, ms"),
        "txg_open_ms_p95": Spec.real("95th percentile of the time open, ms"),
        "txg_open_ms_p50": Spec.real("median of the time open, ms; far below zfs_txg_timeout: dirty data closes them"),
        "txg_dirty_bytes_max": Spec.number("most dirty data in one TXG"),
        "txg_written_bytes_max": Spec.number("most bytes written by one TXG"),
    },
)
def txgs(reply: Files, pool: Subject) -> Iterator[Fact]:
    """``/proc/spl/kstat/zfs/POOL/txgs``: the last zfs_txg_history transaction groups (100 by default; empty with 0).

    Nanoseconds: birth (since boot), otime open, qtime quiescing, wtime waiting, stime syncing; 0 until a state is over.
    States: B(orn), O(pen), Q(uiescing), W(aiting), S(yncing), C(ommitted). A list that ends with a committed TXG is cut
    off. (OpenZFS module/zfs/spa_stats.c; spa_txg_history_init_io() stamps the beginning of S) Statistics of the committed
    ones."""
    path = f"{ROOT}/{pool.name}/txgs"
    for text in only(reply, path):
        lines = [line.split() for line in text.split("\n")]
        if lines[0] != COLUMNS or lines.pop() != []:
            raise ValueError("not a list of TXGs, or cut off")
        numbers = [integer("".join(line[:1])) for line in lines[1:]]
        if numbers != [numbers[0] + i for i in range(len(numbers))]:  # each is the next one (txg_quiesce() in txg.c)
            raise ValueError("a TXG is missing in the list")
        done = [_numbers(line) for line in lines[1:] if line[2:3] == ["C"]]
        if len(lines) > 1 and lines[-1][2:3] == ["C"]:
            raise ValueError("the open TXG is missing at the end of the list")
        if done or (lines[1:2] and lines[1][2:3] == ["S"]):  # else one that is syncing may have gone from the list
            yield Fact(pool, "txg_unfinished_since_ns", _unfinished(lines[1:], f"cat {argument(path)}"))
        if done:
            yield from _statistics(done, pool, f"cat {argument(path)}")


def _numbers(line: Sequence[str]) -> dict[str, int]:
    if len(line) != len(COLUMNS):
        raise ValueError(f"a TXG of {len(line)} columns")
    return {name: integer(value) for name, value in zip(COLUMNS, line, strict=True) if name != "state"}


def _unfinished(lines: Sequence[Sequence[str]], command: str) -> Known:
    """Of the first that is quiescing or syncing. Those that are open or wait for it say nothing by themselves."""
    for line in lines:
        if line[2:3] in (["Q"], ["S"]):
            txg = _numbers(line)
            since = sum(txg[column] for column in ("birth", "otime", "qtime", "wtime"))
            text = f"TXG {txg['txg']} {'quiescing' if line[2] == 'Q' else 'syncing'} since {since} ns"
            return known(since, text, command)
    return known(0, "no TXG is quiescing or syncing", command)


def _statistics(done: Sequence[dict[str, int]], pool: Subject, command: str) -> Iterator[Fact]:
    span = f"of {len(done)} committed TXGs"
    yield Fact(pool, "txg_history_count", known(len(done), f"{len(done)} committed TXGs", command))
    written = sum(txg["nwritten"] > 0 for txg in done)
    yield Fact(pool, "txg_history_written", known(written, f"{written} {span} wrote something", command))
    for name, columns, share in (
        ("txg_sync_ms_p95", ("stime",), 0.95),
        ("txg_sync_ms_max", ("stime",), 1.0),
        ("txg_life_ms_max", TIMES, 1.0),
        ("txg_open_ms_p95", ("otime",), 0.95),
        ("txg_open_ms_p50", ("otime",), 0.5),
    ):
        ms = round(quantile([sum(txg[each] for each in columns) for txg in done], share) / 1e6, 3)
        yield Fact(pool, name, known(ms, f"{' + '.join(columns)} {ms:g} ms, {SHARES[share]} {span}", command))
    for name, column in (("txg_dirty_bytes_max", "ndirty"), ("txg_written_bytes_max", "nwritten")):
        most = max(txg[column] for txg in done)
        yield Fact(pool, name, known(most, f"{column} {most}, most {span}", command))


def quantile(values: Sequence[int], share: float) -> int:
    """The smallest value that this share of them does not exceed (nearest rank)."""
    rank = -(-round(share * 1000) * len(values) // 1000)
    return sorted(values)[max(rank, 1) - 1]


STRING = "7"


@source(
    "kstat_objset",
    "target",
    ask=lambda target, _: Read((f"{ROOT}/{target.name.partition('/')[0]}/objset-0x*",)),
    facts={
        "writes": Spec.number("write calls since it was mounted"),
        "nwritten": Spec.number("bytes written since it was mounted"),
        "reads": Spec.number("read calls since it was mounted"),
        **zil.facts,
        "zil_counted_s": Spec.real("seconds that these counters cover"),
    },
    title="counters of {datasets} of",
)
def objset(reply: Files, target: Subject) -> Facts:
    """``/proc/spl/kstat/zfs/POOL/objset-0x*``: what each mounted dataset has written, and its ZIL (2.2 and later).

    An unmounted dataset has no such file. Counted since it was mounted. (OpenZFS module/zfs/dataset_kstats.c)

    The rows of the datasets at and below the target, under their own names. Raises ValueError where not all files could be
    read: whose one is stands in it, and a list that lacks a dataset is none. What reads alike is shared, for thousands of
    datasets."""
    files = quoted(f"{ROOT}/{target.name.partition('/')[0]}") + "/objset-*"
    for path, error in reply.errors.items():
        of_counters = path.startswith(ROOT) and "/objset-" in path
        if reply.text and of_counters and not error.startswith("no such"):  # as one that was unmounted meanwhile
            raise ValueError(f"{path}: {error}")
    found = Facts()
    for path, text in sorted(reply.text.items()):
        read = [_read(line, files) for line in lines(text, path)]
        if not (name := next((what for row, what in read if row == "dataset_name"), "")) or not isinstance(name, str):
            raise ValueError(f"{path} does not name its dataset")
        if name == target.name or name.startswith(target.name + "/"):
            counts = {row: value for row, value in read if isinstance(value, Known)}
            found.put_of(Subject("dataset", name), {**counts, "zil_counted_s": _span(text, path)})
    return found


def _span(text: str, path: str) -> Known:
    made, now = _nanoseconds(text)
    seconds = round((now - made) / 1e9, 3)
    return known(seconds, f"counted over {seconds:g} s", f"head -1 {quoted(path)}")


@lru_cache(4096)
def _read(line: str, files: str) -> tuple[str, Known | str]:
    """(row, its value), or the name of the dataset; "" for what is no count or not asked for."""
    row, kind, value = row_of(line, files)
    if row == "dataset_name":
        return row, value if kind == STRING else ""
    count = count_of(kind, value)
    if count is None or row not in objset.facts:
        return row, ""
    return row, known(count, f"{row} {count}", f"grep -w -A30 {{subject}}$ {files} | grep -w {row}")
