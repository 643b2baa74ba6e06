"""Causes on the devices that the ZIL writes to. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.diagnose.counters import Leg
from auditor.diagnose.model import Cause, Evidence
from auditor.diagnose.seen import FEW, Seen, in_progress, kstat_rows, legs_of, slower_leg, stat, status
from auditor.facts import Subject, word_of
from auditor.text import quoted
from auditor.units import duration

PAST = 0.05  # share of the log blocks that may go past the SLOG
FOREIGN = 1.5  # writes on a log device for each log block
COMMITTERS, ALONE = 5, 1.1  # threads that commit, and commits for each log block
ALWAYS_ONE = 0.7  # threads that are in a commit at any moment, on the average


def slow_log_leg(seen: Seen) -> Iterator[Cause]:
    for top, legs in legs_of(seen, log=True).items():
        if found := slower_leg(legs):
            yield _slow(seen, "slow-log-leg", f"{seen.kind} {top}", *found, "each commit waits for the slowest leg")


def slow_data_leg(seen: Seen) -> Iterator[Cause]:
    """It holds groups and writers up. While a scan runs the legs do not do the same, and are not compared."""
    for top, legs in legs_of(seen, log=False).items():
        if (found := slower_leg(legs)) and not any(in_progress(seen)):
            yield _slow(seen, "slow-data-leg", top, *found, "transaction groups wait for the slowest leg")


def _slow(seen: Seen, id: str, where: str, leg: Leg, times: float, why: str) -> Cause:
    took = duration(leg.block_ns or 0)
    text = f"{leg.device} is the slower leg of {where}, {times:.1f} times as slow ({took} for a write and its flush): {why}"
    evidence = (Evidence(f"{leg.device}: {leg.writes} writes, {leg.flushes or 0} flushes", stat(leg.device)),)
    fix = (
        f"Replace {leg.device}, its cable or its controller; until then, with one copy less: "
        f"zpool offline {quoted(seen.pool.name)} {quoted(leg.leaf)}"
    )
    return Cause(id, text, evidence, fix, "", False)


def shared(seen: Seen) -> Iterator[Cause]:
    """A log vdev of its own gets log blocks and labels, nothing else."""
    blocks = seen.counted.zil.slog
    if seen.kind != "log" or blocks is None:
        return
    tops = legs_of(seen, log=True)
    for leg in (leg for legs in tops.values() for leg in legs):
        others = leg.writes - blocks
        if others > max((FOREIGN - 1) * blocks, 100):
            beside = word_of(seen.facts.get(Subject("leaf", leg.leaf, seen.pool.name), "disk_neighbours"))
            who = f" ({beside})" if beside else ""
            text = f"{leg.device} does not serve the log alone{who}: {leg.writes:,} writes for at most {blocks:,} log blocks"
            evidence = (Evidence(f"{leg.device}: busy {leg.busy:.0%} of the time", stat(leg.device)),)
            yield Cause(
                "log-device-shared", text, evidence, "Give the log a device of its own.", "slog-shared-with-data", False
            )


def past_the_slog(seen: Seen) -> Iterator[Cause]:
    zil, total = seen.counted.zil, seen.counted.zil.blocks
    if not any(leg.kind == "log" for leg in seen.counted.legs) or not total or total < FEW or zil.normal is None:
        return
    past, pointers = zil.normal / total, (zil.indirect or 0) / (zil.commits or total)
    if max(past, pointers) <= PAST:
        return
    what = f"{past:.0%} of the log blocks" if past >= pointers else f"the data of {min(pointers, 1):.0%} of the commits"
    evidence = (
        Evidence(f"{zil.normal} of {total} log blocks", kstat_rows(seen, "zil_itx_metaslab_normal_count")),
        Evidence(f"{zil.indirect or 0} records whose data is elsewhere", kstat_rows(seen, "zil_itx_indirect_count")),
    )
    text = f"{what} bypassed the SLOG and went to the data vdevs"
    yield Cause("past-the-slog", text, evidence, *_back_to_the_slog(seen, past >= pointers), False)


def _back_to_the_slog(seen: Seen, blocks: bool) -> tuple[str, str]:
    """(fix, rule). A log block goes elsewhere only where the log class has no room for it (zio_alloc_zil() of zio.c);
    data only with logbias=throughput, and from 2.3 on with Direct I/O (zfs_log_write(), zil_write_state())."""
    if blocks:
        return f"A larger SLOG, or a working one: zpool list -v {quoted(seen.pool.name)}", "slog-unused"
    names = [each.name for each in seen.counted.datasets if each.commits]
    biased = [name for name in names if word_of(seen.facts.get(Subject("dataset", name), "logbias")) == "throughput"]
    if biased:
        return f"zfs set logbias=latency {' '.join(map(quoted, biased))}", "logbias-throughput-log"
    which = " ".join(map(quoted, names))
    return f"Direct I/O goes past a SLOG, as logbias=throughput does: zfs get logbias,direct {which}".rstrip(), (
        "direct-io-bypasses-slog"
    )


def alone(seen: Seen) -> Iterator[Cause]:
    zil, blocks = seen.counted.zil, seen.counted.zil.blocks
    if seen.committers is None or seen.committers < COMMITTERS or not blocks or not zil.commits or zil.commits < FEW:
        return
    # those who seldom commit at the same time have nothing to share; commits of several blocks each are no sign
    if seen.waiting >= ALWAYS_ONE and 1 / ALONE < zil.commits / blocks < ALONE:
        counts = f"{zil.commits:,} commits, {blocks:,} blocks"
        text = f"{seen.committers} threads commit one after the other, and no two share a log block: {counts}"
        evidence = (Evidence("commits for each log block", kstat_rows(seen, "zil_commit_count")),)
        yield Cause(
            "no-batching", text, evidence, "Let the database batch its commits (commit_delay or the like).", "", False
        )


def on_special(seen: Seen) -> Iterator[Cause]:
    if seen.kind == "special":
        text = "log blocks land on the special vdevs, which serve metadata, too"
        evidence = (Evidence("no log vdev, and special vdevs", status(seen)),)
        yield Cause(
            "zil-on-special", text, evidence, "Add a log vdev where that matters.", "special-acts-as-log", False
        )
