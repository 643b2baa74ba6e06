"""The pools as trees: vdevs, their devices and disks, and what each disk promises, so that a reader sees the weak link."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from auditor.facts import HOST, Facts, Known, Subject, is_true, word_of

Kind = Literal["good", "bad", "open"]


class Disk(NamedTuple):
    """A physical disk. promise: what it does with a cache when the power goes; kind: whether that is enough."""

    name: str
    model: str
    promise: str
    kind: Kind


class Leaf(NamedTuple):
    """A device of a vdev. state: of zpool status."""

    name: str
    state: str
    disks: tuple[Disk, ...]


class Vdev(NamedTuple):
    """A top-level vdev. role: data, log, special or dedup. left: how many more devices it can lose, or empty."""

    name: str
    role: str
    left: str
    leaves: tuple[Leaf, ...]


class Pool(NamedTuple):
    """A pool. state: of zpool status."""

    name: str
    state: str
    vdevs: tuple[Vdev, ...]


def pools(facts: Facts) -> tuple[Pool, ...]:
    """All pools of the audit."""
    return tuple(
        Pool(pool.name, word_of(facts.get(pool, "state"), "unknown"), tuple(_vdevs(facts, pool)))
        for pool in facts.linked(HOST, "pools")
    )


def _vdevs(facts: Facts, pool: Subject) -> Iterator[Vdev]:
    for vdev in facts.linked(pool, "vdevs"):
        role = word_of(facts.get(vdev, "allocation_class"), "unknown").replace("normal", "data")
        left = facts.get(vdev, "failures_left")
        leaves = tuple(_leaf(facts, leaf) for leaf in facts.linked(vdev, "leaves"))
        yield Vdev(vdev.name, role, str(left.value) if isinstance(left, Known) else "", leaves)


def _leaf(facts: Facts, leaf: Subject) -> Leaf:
    disks = tuple(_disk(facts, disk) for disk in facts.linked(leaf, "disks"))
    return Leaf(leaf.name, word_of(facts.get(leaf, "state"), "unknown"), disks)


def _disk(facts: Facts, disk: Subject) -> Disk:
    promise, kind = _promise(facts, disk)
    return Disk(disk.name, word_of(facts.get(disk, "model"), "unknown"), promise, kind)


def _promise(facts: Facts, disk: Subject) -> tuple[str, Kind]:
    virtual, cache, grade = (facts.get(disk, name) for name in ("virtual", "volatile_cache", "plp_grade"))
    failed = facts.get(disk, "plp_failed")
    if is_true(failed):
        return "its power-loss protection has failed", "bad"
    if is_true(virtual):
        return "decided by its provider", "open"
    if isinstance(cache, Known) and cache.value is False:
        return "no volatile cache", "good"
    keeps = facts.get(disk, "keeps_acknowledged")
    if is_true(keeps) and isinstance(grade, Known):
        return f"keeps its cache without power (grade {grade.value} of 5)", "good"
    if isinstance(cache, Known):
        return "volatile cache: rests on its word to empty it when it is flushed", "open"
    return "whether it has a volatile cache is not known", "open"
