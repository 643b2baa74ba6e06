"""Where the time of a commit goes, as shares that add up to all of it. Pure arithmetic.

A commit waits until its log block is handed down (queue), for the threads of OpenZFS that pass it on (pipeline), until the
slowest device of a log vdev has written it, until the slowest has flushed it, and until a CPU is free for the thread that is
woken (wake-up). Each is measured apart, and none is
what the others leave over: what they leave over is told as unexplained. (OpenZFS module/zfs/zil.c: zil_commit_writer(),
zil_lwb_write_done(), zil_lwb_flush_vdevs_done(), zil_commit_waiter())
"""

from __future__ import annotations

from typing import NamedTuple

MOST_UNEXPLAINED = 0.30


class Parts(NamedTuple):
    """Means in nanoseconds. None: not measured. both: write and flush where a device counts them together. data: of what
    is written before its log block, which only points to it."""

    commit: float
    queue: float | None = None
    write: float | None = None
    flush: float | None = None
    both: float | None = None
    pipeline: float | None = None
    wake: float | None = None
    data: float | None = None


class Share(NamedTuple):
    """what: queue, pipeline, data write, log write, flush, log write and flush, wake-up or unexplained. part: of the commit, 0
    to 1."""

    what: str
    ns: float
    part: float


class Shares(NamedTuple):
    """shares: they add up to the commit. overlap: how much of it the parts say too much, where they overlap. why_not: why they
    explain nothing, empty where they do."""

    shares: tuple[Share, ...]
    overlap: float
    why_not: str


def shares(parts: Parts) -> Shares:
    """The shares of a mean commit. Where the parts together are longer than the whole, each is shortened alike."""
    if parts.commit <= 0:
        return Shares((), 0.0, "no commit took any time")
    # who commits waits for a CPU between its commits, too; the threads that pass a log block on work for several devices side
    # by side, and for other I/O: each at most what the others leave
    left = parts.commit - sum(filter(None, (parts.queue, parts.data, parts.write, parts.flush, parts.both)))
    if parts.wake is not None:
        parts = parts._replace(wake=min(parts.wake, max(left, 0.0)))
    if parts.pipeline is not None:
        parts = parts._replace(pipeline=min(parts.pipeline, max(left - (parts.wake or 0.0), 0.0)))
    named = (
        ("queue", parts.queue),
        ("pipeline", parts.pipeline),
        ("data write", parts.data),
        ("log write", parts.write),
        ("flush", parts.flush),
        ("log write and flush", parts.both),
        ("wake-up", parts.wake),
    )
    seen = [(what, ns) for what, ns in named if ns is not None]
    together = sum(ns for _, ns in seen)
    overlap = max(together / parts.commit - 1, 0.0)
    scale = 1 / (1 + overlap)
    told = [Share(what, ns * scale, ns * scale / parts.commit) for what, ns in seen]
    left = max(1 - sum(each.part for each in told), 0.0)
    told.append(Share("unexplained", left * parts.commit, left))
    return Shares(tuple(told), overlap, _why_not(left, overlap, seen == []))


def woken(parts: Parts, found: Shares, alone: bool) -> tuple[float, float]:
    """The least and the most of a commit, 0 to 1, that is waiting for a CPU. A thread that is alone
    waits for nobody's turn: what looks like it is its own work before its log block, or waiting for a CPU to do it on."""
    told = {each.what: each.part for each in found.shares}
    least = told.get("wake-up", 0.0)
    if not alone or not parts.wake:
        return least, least
    return least, max(least, min(parts.wake / parts.commit, least + told.get("queue", 0.0)))


def _why_not(left: float, overlap: float, nothing: bool) -> str:
    if nothing:
        return "no part of a commit could be measured"
    if left > MOST_UNEXPLAINED:
        return f"{left:.0%} of the time of a commit is not explained by what was measured"
    if overlap > MOST_UNEXPLAINED:
        return (
            f"the parts of a commit are {overlap:.0%} longer than the commit: devices did other work at the same time"
        )
    return ""


def longest(found: Shares) -> Share | None:
    """The part that explains most, None where none does."""
    explained = [each for each in found.shares if each.what != "unexplained"]
    return max(explained, key=lambda each: each.part, default=None) if not found.why_not else None
