"""The vdevs of a pool by allocation class, and on which of them its ZIL blocks can land.

zio_alloc_zil() in module/zfs/zio.c asks the classes in turn: the log class, then (2.4 and later: commit be1e991a1a,
zfs.4) special, then normal. A log class without a device that can be written to is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import releases
from auditor.derive.combine import about, every
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Known,
    Subject,
    Unknown,
    join,
    links,
    number,
    unknown,
    word,
    words,
)

SUBJECT = "pool"
FACTS = {
    "log_vdevs": links("vdev", "the log vdevs: together the SLOG"),
    "special_vdevs": links("vdev", "the special vdevs"),
    "data_vdevs": links("vdev", "the top-level vdevs of class normal that hold data", nonempty=True),
    "log_leaves": links("leaf", "the leaves of the SLOG"),
    "data_leaves": links("leaf", "the leaves of class normal", nonempty=True),
    "zil_leaves": links("leaf", "the leaves on which ZIL blocks land in this release", nonempty=True),
    "zil_class": word("the class on which ZIL blocks land", "log", "special", "normal"),
    "data_failures_tolerated": number("devices that the weakest vdev of class normal can lose"),
    "data_ashifts": words("the different ashifts of the vdevs of class normal"),
}
NO_DATA = ("indirect", "hole", "missing")
BEFORE_NORMAL = (2, 4)  # from here on the special class comes before the normal one
KNOWN_RELEASES = ((2, 0), (2, 5))  # from, to (exclusive): where the order of the classes was read in the source


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """All facts of FACTS."""
    vdevs = facts.get(pool, "vdevs")
    if isinstance(vdevs, Unknown):
        yield from (Fact(pool, name, vdevs) for name in FACTS)
        return
    tops = facts.linked(pool, "vdevs")
    classes = every(facts.get(vdev, "allocation_class") for vdev in tops)
    types = every(facts.get(vdev, "type") for vdev in tops)
    if isinstance(classes, Unknown):
        yield from (Fact(pool, name, classes) for name in FACTS)
        return
    no_data = {v for v in tops if isinstance(t := facts.get(v, "type"), Known) and t.value in NO_DATA}
    by_class = {
        word_: tuple(v for v, c in zip(tops, classes, strict=True) if c.value == word_ and v not in no_data)
        for word_ in ("normal", "log", "special")
    }
    seen = vdevs.evidence
    yield Fact(pool, "log_vdevs", Known(by_class["log"], seen))
    yield Fact(pool, "special_vdevs", Known(by_class["special"], seen))
    yield Fact(pool, "data_vdevs", types if isinstance(types, Unknown) else Known(by_class["normal"], seen))
    leaves = {word_: _leaves(of, facts, seen) for word_, of in by_class.items()}
    yield Fact(pool, "log_leaves", leaves["log"])
    yield Fact(pool, "data_leaves", _nonempty(pool, leaves["normal"]))
    chosen = _zil_class(by_class, facts, pool)
    yield Fact(pool, "zil_class", chosen)
    if isinstance(chosen, Unknown):
        yield Fact(pool, "zil_leaves", chosen)
    else:
        found = _nonempty(pool, leaves[str(chosen.value)])
        yield Fact(pool, "zil_leaves", found if isinstance(found, Unknown) else Known(found.value, chosen.evidence))
    yield from _numbers(pool, by_class["normal"], facts)


def _leaves(vdevs: tuple[Subject, ...], facts: Facts, seen: tuple[Evidence, ...]) -> Known | Unknown:
    found = every(facts.get(vdev, "leaves") for vdev in vdevs)
    if isinstance(found, Unknown):
        return found
    return Known(tuple(leaf for vdev in vdevs for leaf in facts.linked(vdev, "leaves")), seen)


def _nonempty(pool: Subject, leaves: Known | Unknown) -> Known | Unknown:
    if isinstance(leaves, Known) and not leaves.value:
        return unknown(f"{pool.name}: zpool status names no leaf of this class")
    return leaves


def _zil_class(by_class: dict[str, tuple[Subject, ...]], facts: Facts, pool: Subject) -> Known | Unknown:
    """A log vdev takes blocks while any of them can be written to (metaslab_class_get_dspace() of the log class)."""
    usable = [facts.get(vdev, "state") for vdev in by_class["log"]]
    writable = [state for state in usable if isinstance(state, Known) and state.value in ("ONLINE", "DEGRADED")]
    if writable:
        return Known("log", (Evidence("the pool has a SLOG", f"zpool status {pool.name}"),))
    if unknowns := [state for state in usable if isinstance(state, Unknown)]:
        return join(unknowns)
    without = Evidence("no log vdev can be written to" if by_class["log"] else "no SLOG", f"zpool status {pool.name}")
    if not by_class["special"]:
        return Known("normal", (without,))
    release = facts.get(HOST, "zfs_version")
    if isinstance(release, Unknown):
        return release
    assert isinstance(release.value, tuple)
    if why := releases.untold(release.value, BEFORE_NORMAL) or releases.untold(release.value, KNOWN_RELEASES[1]):
        return unknown(why, releases.REMEDY)
    version = tuple(part for part in release.value if isinstance(part, int))[:2]
    if not KNOWN_RELEASES[0] <= version < KNOWN_RELEASES[1]:
        return unknown(f"where OpenZFS {'.'.join(map(str, version))} puts ZIL blocks is not known to this zaudit")
    return Known("special" if version >= BEFORE_NORMAL else "normal", (without, *release.evidence))


def _numbers(pool: Subject, vdevs: tuple[Subject, ...], facts: Facts) -> Iterator[Fact]:
    for name, fact in (("failures_tolerated", "data_failures_tolerated"), ("ashift", "data_ashifts")):
        found = every(facts.get(vdev, name) for vdev in vdevs)
        if isinstance(found, Unknown) or not found:
            why = found if isinstance(found, Unknown) else unknown(f"{pool.name}: no vdev of class normal is known")
            yield Fact(pool, fact, why)
            continue
        numbers = [each.value for each in found if isinstance(each.value, int)]
        seen = tuple(
            dict.fromkeys(piece for vdev, each in zip(vdevs, found, strict=True) for piece in about(vdev, each))
        )
        yield Fact(pool, fact, Known(min(numbers) if name != "ashift" else tuple(sorted(set(numbers))), seen))
