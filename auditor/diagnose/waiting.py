"""How long a commit takes, and who waits for it, by samples of stacks. Pure."""

from __future__ import annotations

from auditor.diagnose.commits import FEW
from auditor.diagnose.counters import Counted
from auditor.diagnose.model import Stacked, Waiter
from auditor.diagnose.observation import KERNEL, Observation, Stacks
from auditor.facts import HOST, Facts, is_true
from auditor.sources import kstat
from auditor.units import duration
from auditor.verify import witnesses

# 17 and 27 % on OpenZFS 2.3.9 beside what the program counted itself, where those that wait for a CPU were left out
TOO_LITTLE = "which say up to 30% too little"


def stacked(seen: Observation, counted: Counted, facts: Facts) -> Stacked | None:
    """None where nobody looked at stacks."""
    if seen.stacks is None:
        return None
    found, known = seen.stacks, {each.pid: each for each in seen.processes}
    mine = {*seen.named.threads} if seen.named else set()
    waits = [each for each in found.waits if each.hits > 0]
    samples = sum(each.hits for each in waits)
    waiting = samples / found.passes if found.passes > 0 else 0.0
    commits = _commits(seen)
    why = _why_not(found, samples, commits, facts)
    mean = None if why or not commits else waiting * counted.seconds * 1e9 / commits
    waiters = tuple(
        Waiter(
            pid=each.thread,
            name=each.name,
            role=KERNEL if each.kernel else known[each.thread].role if each.thread in known else "",
            within=known[each.thread].within if each.thread in known else "",
            samples=each.hits,
            part=each.hits / samples,
            own=each.thread in mine,
        )
        for each in waits
    )
    return Stacked(found.passes, samples, waiting, mean, why, waiters)


def _commits(seen: Observation) -> int | None:
    """Of all pools, as stacks are, with those that found the ZIL suspended, which are counted apart. (OpenZFS module/zfs/zil.c
    zil_kstats_global_update(), zil_commit(); include/sys/zil.h ZIL_STAT_INCR)"""
    grown = witnesses.grown(*(witnesses.table(each, witnesses.ZIL_PATH) for each in (seen.before, seen.after)))
    commits = grown.get("zil_commit_count")
    return None if commits is None else commits + grown.get("zil_commit_suspend_count", 0)


def _why_not(found: Stacks, samples: int, commits: int | None, facts: Facts) -> str:
    """Why no mean is told, empty where one is."""
    if found.faults:
        return found.faults[0]
    if not is_true(facts.get(HOST, "all_processes")):
        return "only the processes of this container are seen"
    if commits is None:
        return f"{kstat.ROOT}/zil does not count commits here"
    if found.passes < FEW:
        return f"{found.passes} looks are too few for a mean"
    if commits < FEW or samples < FEW:
        return f"{samples} samples of {commits} commits are too few for a mean"
    return ""


def sentence(found: Stacked) -> str:
    """about 20 ms each by 412 samples of stacks, which say up to 30 % too little; empty where no mean is told."""
    if found.mean_ns is None:
        return ""
    return f"about {duration(found.mean_ns)} each by {found.samples:,} samples of stacks, {TOO_LITTLE}"


def share(found: Stacked) -> str:
    """Of the waiting that is of the process that was named."""
    mine = [each for each in found.waiters if each.own]
    return f"{sum(each.part for each in mine):.0%} of the waiting for commits by {found.samples:,} samples of stacks"
