"""``/proc/spl/kstat/zfs/POOL/txgs``: the last zfs_txg_history transaction groups (100 by default; empty with 0).

Times in nanoseconds: birth (since boot), otime open, qtime quiescing, wtime waiting, stime syncing. The states are
B(orn), O(pen), Q(uiescing), W(aiting), S(yncing), C(ommitted); a pool that can be written to always has a TXG that is
not committed yet, so a list that ends with a committed one is cut off. A time is 0 until its state is over.
(OpenZFS module/zfs/spa_stats.c; spa_txg_history_init_io() stamps the beginning of S)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.collect import kstat
from auditor.collect._json import integer
from auditor.facts import Fact, Facts, Known, Subject, known, number, real
from auditor.host.request import Files, Read, Request
from auditor.text import argument

PER = "pool"
SUBJECT = "pool"
TIMES = ("otime", "qtime", "wtime", "stime")
COLUMNS = ["txg", "birth", "state", "ndirty", "nread", "nwritten", "reads", "writes", *TIMES]
FACTS = {
    "txg_history_count": number("committed TXGs in the list"),
    "txg_history_written": number("committed TXGs in the list that wrote something"),
    "txg_last_committed": number("number of the newest committed TXG"),
    "txg_unfinished_since_ns": number("since when its oldest unfinished TXG is quiescing or syncing; 0: none is"),
    "txg_sync_ms_p95": real("95th percentile of the time to sync, ms"),
    "txg_sync_ms_max": real("longest time to sync, ms"),
    "txg_life_ms_max": real("longest time from the opening of a TXG to the end of its sync, ms"),
    "txg_open_ms_p95": real("95th percentile of the time open, ms"),
    "txg_open_ms_p50": real("median of the time open, ms; far below zfs_txg_timeout: dirty data closes them"),
    "txg_dirty_bytes_max": number("most dirty data in one TXG"),
    "txg_written_bytes_max": number("most bytes written by one TXG"),
}


def request(pool: Subject, facts: Facts) -> Request:
    """One file."""
    return Read((f"{kstat.ROOT}/{pool.name}/txgs",))


def parse(reply: Files, pool: Subject) -> Iterator[Fact]:
    """Statistics of the committed TXGs; nothing when the list is empty."""
    path = f"{kstat.ROOT}/{pool.name}/txgs"
    for text in kstat.only(reply, path):
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
    last = max(txg["txg"] for txg in done)
    yield Fact(pool, "txg_last_committed", known(last, f"TXG {last}", command))
    for name, columns, share in (
        ("txg_sync_ms_p95", ("stime",), 0.95),
        ("txg_sync_ms_max", ("stime",), 1.0),
        ("txg_life_ms_max", TIMES, 1.0),
        ("txg_open_ms_p95", ("otime",), 0.95),
        ("txg_open_ms_p50", ("otime",), 0.5),
    ):
        ms = round(quantile([sum(txg[each] for each in columns) for txg in done], share) / 1e6, 3)
        yield Fact(pool, name, known(ms, f"{' + '.join(columns)} {ms:g} ms, {_share(share)} {span}", command))
    for name, column in (("txg_dirty_bytes_max", "ndirty"), ("txg_written_bytes_max", "nwritten")):
        most = max(txg[column] for txg in done)
        yield Fact(pool, name, known(most, f"{column} {most}, most {span}", command))


def _share(share: float) -> str:
    return {1.0: "longest", 0.5: "median"}.get(share, f"{share:.0%} quantile")


def quantile(values: Sequence[int], share: float) -> int:
    """The smallest value that this share of them does not exceed (nearest rank)."""
    rank = -(-round(share * 1000) * len(values) // 1000)
    return sorted(values)[max(rank, 1) - 1]
