"""How much of what was seen is of the process that was named. Pure.

Narrowed is who commits, and nothing else: a log block holds commits of everybody, and the devices serve all of them. What is
written to a volume is committed by a thread of the kernel (OpenZFS module/os/linux/zfs/zvol_os.c), so of a process that has one
open the commits to that volume are its own, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from auditor.diagnose.commits import Trace, of_kernel, volumes
from auditor.diagnose.histograms import Thread
from auditor.diagnose.model import Own, Stacked
from auditor.diagnose.observation import Named, Observation
from auditor.diagnose.waiting import share
from auditor.facts import HOST, Facts, is_true
from auditor.units import duration

SHARED = "log blocks, devices and causes are of the whole pool"


def own(
    seen: Observation, trace: Trace, facts: Facts, where: Mapping[int, str], stacks: Stacked | None = None
) -> tuple[Own | None, frozenset[Thread]]:
    """None where no process was named; and what of the trace is its own. where: ZIL -> dataset; stacks: samples of them, where
    there is no trace."""
    named = seen.named
    if named is None:
        return None, frozenset()
    why = _why_not(seen, trace, facts)
    below = volumes(named.targets, facts)
    kernels = [] if why or not below else of_kernel(seen, trace.threads)
    through = [each for each in kernels if where.get(each.zil) in below]
    threads = {*named.threads} if not why else set()
    mine = frozenset((*(each for each in trace.threads if each.pid in threads), *through))
    commits, us = sum(each.commits for each in mine), sum(each.us for each in mine)
    whole = sum(each.us for each in trace.threads)
    sampled = stacks is not None and stacks.mean_ns is not None
    told = f" does {share(stacks)}" if stacks and sampled else _share(trace, why, commits, us, whole)
    faults = [*named.faults, *([why] if why and sampled else [])]
    if lost := sum(each.commits for each in trace.threads if each.pid in {*named.lost} and not why):
        faults.append(f"{lost:,} commits are of threads that ended before anybody saw whose they were")
    if below and sampled:
        faults.append(
            f"threads of the kernel wait for commits to {', '.join(sorted(below))}, and are not counted as its own"
        )
    if untold := sum(each.commits for each in kernels if each.zil not in where):
        faults.append(f"{untold:,} commits are to some volume, and to which is not known")
    return Own(
        pid=named.pid,
        name=named.name,
        processes=named.processes,
        datasets=named.targets,
        commits=None if why else commits,
        mean_ns=us * 1000 / commits if commits else None,
        part=None if why else us / whole if whole else 0.0,
        text=f"{_called(named)}{told}{_through(through, where)}; {SHARED} {seen.pool}",
        faults=tuple(faults),
        parent=named.parent,
    ), mine


def _through(through: Collection[Thread], where: Mapping[int, str]) -> str:
    names = sorted({where[each.zil] for each in through})
    return f", with what threads of the kernel commit to {', '.join(names)}" if names else ""


def _why_not(seen: Observation, trace: Trace, facts: Facts) -> str:
    if seen.traced is None:
        return f"which commits are its own was not seen: {seen.untraced}"
    if not trace.whole:
        return "which commits are its own is not known: not every thread that commits was seen"
    if not is_true(facts.get(HOST, "all_processes")):
        return "which commits are its own is not known: the kernel numbers processes otherwise than this container"
    return ""


def _called(named: Named) -> str:
    """process 100 (postgres) and 3 processes that it started"""
    children = named.processes - 1
    also = f" and {children:,} process{'es' if children > 1 else ''} that it started" if children > 0 else ""
    return f"process {named.pid} ({named.name}){also}"


def _share(trace: Trace, why: str, commits: int, us: int, whole: int) -> str:
    if why:
        return f": {why}"
    if not commits:
        return f" made none of the {trace.commits:,} commits"
    return (
        f" made {commits:,} of {trace.commits:,} commits, {us / whole if whole else 0:.0%} of the time of all of them, "
        f"{duration(us * 1000 / commits)} each"
    )
