"""``zpool status -P``: the paths of the leaves, where ``zpool status`` has no JSON (before OpenZFS 2.3).

Text shows either names or paths, and a path alone does not tell whether ``nvme-X-part1`` is called ``nvme-X`` (OpenZFS
partitioned the whole disk) or ``nvme-X-part1`` (somebody else did). So the names come from ``zpool_status``, the paths
from here, and :func:`join` puts them together. (man 8 zpool-status)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import _status_text
from auditor.collect._pool_tree import TREE, Paths, Told, speaks, zpool
from auditor.facts import Fact, Facts, Kind, Known, Subject, known, words
from auditor.host.request import Output, Request, Skip

PER = "pool"
SUBJECT = "pool"
FORM = "json"
FACTS = {
    "leaf_paths": words("paths of all leaves, cache devices and spares included, as zpool status has them"),
    "path_tree": TREE,
}


def request(pool: Subject, facts: Facts) -> Request:
    """Only where zpool status is read as text."""
    if speaks(facts, 2, 3):
        return Skip("zpool status -j has the paths of the leaves", applies=False)
    return zpool("status", "-P", pool.name)


def parse(reply: Output, pool: Subject) -> Iterator[Fact]:
    """One fact. A missing device shows as its GUID here too: it has no path, and is left out."""
    found = [each for each in _status_text.pools(reply.text) if each.name == pool.name]
    if len(found) != 1 or not found[0].complete or found[0].root is None:
        raise ValueError(f"pool {pool.name} is not there from beginning to end")
    told = [
        Told(top.name, leaf.name, "", leaf.path, allocation)
        for allocation, top in found[0].tops
        for leaf, _ in top.leaves()
    ]
    for allocation, rows in (("cache", found[0].cache), ("spare", found[0].spares)):
        told += [Told("", row.name, "", row.path, allocation) for row in rows]
    paths = tuple(dict.fromkeys(each.path for each in told if each.path))
    yield Fact(pool, "leaf_paths", known(paths, ", ".join(paths), reply.command))
    text = f"{len(told)} leaves, cache devices and spares"
    yield Fact(pool, "path_tree", known(tuple(each.line() for each in told), text, reply.command))


def join(facts: Facts) -> Iterator[Fact]:
    """leaf.path of every leaf that has none yet and whose name fits exactly one of the paths of its pool."""
    named: dict[str, Paths] = {}
    for leaf in list(facts.subjects("leaf")):
        match facts.get(leaf, "path"), facts.get(Subject("pool", leaf.within), "leaf_paths"):
            case Known(), _:
                continue
            case _, Known(tuple() as paths, evidence):
                if leaf.within not in named:
                    named[leaf.within] = Paths(map(str, paths))
                if path := named[leaf.within].of(leaf.name):
                    yield Fact(leaf, "path", known(path, path, evidence[0].command))


def adopt(facts: Facts) -> Iterator[Fact]:
    """What zdb says of a vdev or leaf that zpool status calls otherwise, for the one that it can only be.

    ``zpool status`` of 2.1 shortens ``/dev/vg0/lv0`` to ``lv0``, later releases and zdb's paths to ``vg0/lv0``.
    """
    named_by: dict[Kind, tuple[str, ...]] = {"vdev": ("vdevs",), "leaf": ("leaves", "cache_leaves", "spare_leaves")}
    for kind, links in named_by.items():
        every = list(facts.subjects(kind))
        pools = dict.fromkeys(Subject("pool", each.within) for each in every)
        named = {each for pool in pools for link in links for each in facts.linked(pool, link)}
        for stray in every:
            meant = stray._replace(name=stray.name.rpartition("/")[2])
            if stray not in named and meant in named:
                yield from (Fact(meant, name, value) for name, value in facts.of(stray).items())
