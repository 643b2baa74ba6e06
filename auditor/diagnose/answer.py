"""One sentence of what was found, and which outcome it is. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.diagnose import shares, waiting
from auditor.diagnose.commits import FEW, Trace
from auditor.diagnose.counters import Counted
from auditor.diagnose.model import Cause, Committer, Outcome, Stacked, Waiter
from auditor.diagnose.observation import KERNEL, Observation, service
from auditor.units import duration


class Basis(NamedTuple):
    """What an answer is made of. lost: why syncs are not durable; standing: what else stands out; reasons: why what was seen
    is not believed; alone: one thread commits; kind: the class of vdevs where log blocks land; unlogged: why the kernel's log
    was not seen."""

    seen: Observation
    counted: Counted
    trace: Trace
    found: shares.Shares
    lost: Sequence[Cause]
    standing: Sequence[Cause]
    committers: Sequence[Committer]
    alone: bool
    reasons: tuple[str, ...]
    kind: str
    unlogged: str
    stacks: Stacked | None


def answer(basis: Basis) -> tuple[Outcome, str, tuple[str, ...]]:
    """The outcome, one sentence, and the reasons for it, or what else could not be seen."""
    counted, reasons, standing = basis.counted, basis.reasons, basis.standing
    if basis.lost:
        return "NOT DURABLE", basis.lost[0].text, reasons
    commits = basis.trace.commits if basis.trace.whole else counted.zil.commits
    if commits is None:
        return "INCONCLUSIVE", "whether anybody commits could not be seen", reasons
    rate = f"{commits / counted.seconds:,.0f} commits/s"
    if standing and (standing[0].decisive or not reasons):
        text = standing[0].text
        if basis.found.shares and not basis.found.why_not:
            took = _sentence(basis)
            text = f"{took}: {text}" if standing[0].id == "slow-log-leg" else f"{text}; {took}"
        return "CAUSE", text, (*reasons, *_unseen(basis))
    if commits < FEW and not reasons and not counted.txgs:  # an imported pool has one that is open
        text = f"{commits} commits in {counted.seconds:.0f} s, and whether one hangs was not seen"
        return "INCONCLUSIVE", text, (f"no transaction group of {basis.seen.pool} was seen (zfs_txg_history)",)
    if commits < FEW and not reasons:
        return "NOBODY COMMITS", f"{commits} commits in {counted.seconds:.0f} s: nobody waits for one here", reasons
    if reasons:
        return "INCONCLUSIVE", f"{rate}; where their time goes could not be told: {reasons[0]}", reasons
    if not basis.seen.traced:
        stacks = basis.stacks
        took = f"{rate}{_sampled(stacks)}" if stacks and stacks.mean_ns is not None else ""
        text = f"{took or rate}; nothing that is counted stands out{'' if took else ', and how long one takes was not seen'}"
        return "INCONCLUSIVE", text, _unseen(basis)
    if basis.unlogged:
        return "INCONCLUSIVE", f"{_sentence(basis)}; nothing that was seen stands out", _unseen(basis)
    return "NOTHING STANDS OUT", _sentence(basis), reasons


def _unseen(basis: Basis) -> tuple[str, ...]:
    seen, unlogged, stacks = basis.seen, basis.unlogged, basis.stacks
    failures = (f"whether a device failed was not seen: {unlogged}",) if unlogged else ()
    if not seen.untraced:
        return failures
    if stacks is None:
        return (f"how long a commit takes was not seen: {seen.untraced}", *failures)
    if stacks.mean_ns is None:
        return (
            f"how long a commit takes was not seen: {seen.untraced}",
            f"how long a commit takes is not told by samples of stacks: {stacks.why}",
            *failures,
        )
    return (f"how long a commit takes was not measured ({seen.untraced}): {waiting.sentence(stacks)}", *failures)


def _sampled(stacks: Stacked) -> str:
    first = max(stacks.waiters, key=lambda each: each.part)
    return f", {waiting.sentence(stacks)}, {first.part:.0%} of the waiting by {label(first)}"


def _sentence(basis: Basis) -> str:
    """postgres (walwriter) waits 24 ms of each 27 ms commit for the flush of nvme3n1."""
    trace, most, who = basis.trace, shares.longest(basis.found), _most(basis.committers)
    if most is None or trace.mean_ns is None:
        return f"{who}: {trace.commits} commits"
    legs = [leg for leg in basis.counted.legs if leg.kind == basis.kind and leg.block_ns is not None]
    slowest = max(legs, key=lambda leg: leg.block_ns or 0, default=None)
    device = f" of {slowest.device}" if slowest else ""
    what = {
        "queue": "its log block to be filled and issued" if basis.alone else "its turn, behind earlier log blocks",
        "data write": "its data to be written, before the log block that points to it",
        "log write": f"the log block to be written{device.replace(' of ', ' to ')}",
        "flush": f"the flush{device}",
        "log write and flush": f"the write and flush{device}",
        "pipeline": "threads of OpenZFS to pass its log block on",
        "wake-up": "a CPU",
    }[most.what]
    verb = "wait" if " threads" in who else "waits"
    return f"{who} {verb} {duration(most.ns)} of each {duration(trace.mean_ns)} commit for {what}"


def _most(committers: Sequence[Committer]) -> str:
    """Who spends most of the time in commits: a thread, or those of one name in one place, where they have half of it;
    else how many."""
    alike: dict[tuple[str, str, str], list[Committer]] = {}
    for each in committers:
        alike.setdefault((label(each), each.within, each.dataset), []).append(each)
    (name, *_), most = max(alike.items(), key=lambda each: sum(one.part for one in each[1]))
    if sum(each.part for each in most) < 0.5:
        return f"{len(committers)} threads"
    of_kernel = all(each.role == KERNEL for each in most)
    return name if len(most) == 1 or of_kernel else f"{len(most)} threads of {name}"


def label(committer: Committer | Waiter) -> str:
    """postgres (walwriter); a zvol by its name, whose commits a thread of the kernel makes."""
    kind = service(committer.name, committer.role)
    if kind == "zvol":
        dataset = committer.dataset if isinstance(committer, Committer) else ""
        return f"a zvol ({dataset})" if dataset else "a zvol"
    if kind == "nfsd":
        return "the NFS server"
    return f"{committer.name} ({committer.role})" if committer.role else committer.name
