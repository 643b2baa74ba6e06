"""The vdevs of a pool, as ``zpool status`` lists them and as others do: a row that one of them lost is a hole.

``zdb -C``, ``zpool get all-vdevs`` and ``zpool status -P`` name the same leaves. Where one names a leaf that ``zpool
status`` does not, it becomes a leaf of the pool of which nothing is known, so that its rules say so; and what
``zpool status`` says of the make-up of its top-level vdev is not believed. The same for a leaf that stands elsewhere,
is of another class, or that only ``zpool status`` names. A command that gave no answer is no witness.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Kind, Known, Subject, Unknown, unknown
from auditor.sources.pool_tree import Told, display_name

WITNESSES = ("zdb_tree", "get_tree", "path_tree")
BESIDE = {"cache": "cache_leaves", "spare": "spare_leaves"}  # not below a top-level vdev
MADE_OF = ("type", "legs", "parity", "leaves")  # of a top-level vdev: what it can lose depends on these
SHOWN = 4  # names in a reason


class Difference(NamedTuple):
    """What one witness tells otherwise. missing: from ``zpool status``. elsewhere: (leaf, the top-level vdev that the witness
    puts it below). reclassed: leaves of another class. extra: leaves that the witness does not name. beside: links of cache
    devices and spares that lack one."""

    missing: list[Told]
    elsewhere: list[tuple[Subject, str]]
    reclassed: list[Subject]
    extra: list[Subject]
    beside: list[str]


def compare(facts: Facts, unseen: dict[Kind, tuple[str, ...]]) -> None:
    """All witnesses of all pools; replaces in the store what is not believed any more.

    unseen: the facts of a leaf or vdev that are not known where ``zpool status`` does not name it.
    """
    for pool in facts.linked(HOST, "pools"):
        status = facts.get(pool, "vdevs")
        for name in WITNESSES:
            told = facts.get(pool, name)
            if isinstance(status, Known) and isinstance(told, Known) and isinstance(told.value, tuple):
                rows = [Told.of_line(str(line)) for line in told.value]
                found = _difference(facts, pool, rows)
                if any(found):
                    why = _reason(status, told, pool, rows, found, facts)
                    _disbelieve(facts, pool, found, why, unseen)


def _difference(facts: Facts, pool: Subject, rows: list[Told]) -> Difference:
    leaves = facts.linked(pool, "leaves")
    found = Difference([], [], [], [], [])
    called, named = _Leaves(leaves, facts), set[Subject]()
    beside = {link: _Leaves(facts.linked(pool, link), facts) for link in BESIDE.values()}
    for row in rows:
        if link := BESIDE.get(row.allocation):
            if beside[link].find(row) is None and link not in found.beside:
                found.beside.append(link)
            continue
        leaf = called.find(row)
        if leaf is None:
            found.missing.append(row)
            continue
        named.add(leaf)
        if not _below(leaf, row, facts):
            found.elsewhere.append((leaf, row.top))
        elif _other_class(facts.get(leaf, "allocation_class"), row.allocation):
            found.reclassed.append(leaf)
    found.extra.extend(leaf for leaf in leaves if leaf not in named)
    return found


class _Leaves:
    """Leaves by all that they can be called; a pool may have thousands."""

    def __init__(self, leaves: Iterable[Subject], facts: Facts) -> None:
        self._by_name = {leaf.name: leaf for leaf in leaves}
        self._guid = {leaf: str(found.value) for leaf in leaves if isinstance(found := facts.get(leaf, "guid"), Known)}
        self._path = {leaf: str(found.value) for leaf in leaves if isinstance(found := facts.get(leaf, "path"), Known)}
        self._by_guid = {guid: leaf for leaf, guid in self._guid.items()}
        self._by_path = {path: leaf for leaf, path in self._path.items()}

    def find(self, row: Told) -> Subject | None:
        """The leaf that a row means: by its GUID where both have one, else by its name or path."""
        if row.guid and (found := self._by_guid.get(row.guid) or self._by_name.get(row.guid)):
            return found
        found = self._by_name.get(row.name) or self._by_path.get(row.path)
        if found is None and row.path:  # as zpool status may call the leaf with this path, where its own is not known
            names = (display_name(row.path, False), display_name(row.path, True), row.path.rpartition("/")[2])
            found = next((leaf for name in names if (leaf := self._by_name.get(name))), None)
            found = None if found in self._path else found
        return None if found is None or (row.guid and found in self._guid) else found


def _below(leaf: Subject, row: Told, facts: Facts) -> bool:
    """Whether it stands below the same top-level vdev; a leaf that is one itself is called as each calls its leaves."""
    match facts.get(leaf, "vdev"):
        case Known(Subject(name=top)):
            return top == row.top or (row.top == row.name and top == leaf.name)
    return True  # a spare that stands in two places


def _other_class(ours: Judged, theirs: str) -> bool:
    if not isinstance(ours, Known) or not theirs:
        return False
    return ours.value == "log" if theirs == "not log" else ours.value != theirs


def _reason(status: Known, told: Known, pool: Subject, rows: list[Told], found: Difference, facts: Facts) -> Unknown:
    """Both sides, and which leaves make the difference."""
    ours, theirs = (side.evidence[0].command or "another command" for side in (status, told))
    count = len(facts.linked(pool, "leaves"))
    parts = [f"{ours} lists {count} leaves, {theirs} {sum(row.allocation not in BESIDE for row in rows)}"]
    missing = [
        f"{row.name} (GUID {row.guid})" if row.guid and row.guid != row.name else row.name for row in found.missing
    ]
    for names, what in (
        (missing, "missing from the first"),
        ([leaf.name for leaf in found.extra], "missing from the second"),
        ([f"{leaf.name} (below {top})" for leaf, top in found.elsewhere], "elsewhere in the second"),
        ([leaf.name for leaf in found.reclassed], "of another class in the second"),
        ([link.replace("_leaves", " devices") for link in found.beside], "not all in the first"),
    ):
        if names:
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            parts.append(f"{', '.join(names[:SHOWN])}{more}: {what}")
    return unknown("; ".join(parts))


def _disbelieve(
    facts: Facts, pool: Subject, found: Difference, why: Unknown, unseen: dict[Kind, tuple[str, ...]]
) -> None:
    tops, wrong = dict.fromkeys(facts.linked(pool, "vdevs")), set[Subject]()
    leaves = dict.fromkeys(facts.linked(pool, "leaves"))
    strays = [Subject("leaf", row.name, pool.name) for row in found.missing]
    named = [
        Subject("vdev", top, pool.name) for top in (*(r.top for r in found.missing), *(t for _, t in found.elsewhere))
    ]
    for subject in (*strays, *(vdev for vdev in named if vdev not in tops)):
        _put_unseen(facts, subject, pool, why, unseen)
    moved = [leaf for leaf, _ in found.elsewhere]
    for leaf in (*moved, *found.extra, *found.reclassed):
        wrong |= set(facts.linked(leaf, "vdev"))
        facts.replace(Fact(leaf, "allocation_class", why))
    for leaf in (*moved, *found.extra):
        facts.replace(Fact(leaf, "vdev", why))
    for vdev in tops:
        inside = facts.linked(vdev, "leaves")
        if vdev in named or (vdev in wrong and not set(inside) & set(found.reclassed)):
            for name in MADE_OF:
                facts.replace(Fact(vdev, name, why))
        # its class stands as long as one of its leaves does
        if vdev in wrong and not any(isinstance(facts.get(leaf, "allocation_class"), Known) for leaf in inside):
            facts.replace(Fact(vdev, "allocation_class", why))
    seen = (Evidence(why.reasons[0].text),)
    facts.replace(Fact(pool, "vdevs", Known(tuple(dict.fromkeys((*tops, *named))), seen)))
    facts.replace(Fact(pool, "leaves", Known(tuple(dict.fromkeys((*leaves, *strays))), seen)))
    for link in found.beside:
        facts.replace(Fact(pool, link, why))


def _put_unseen(
    facts: Facts, subject: Subject, pool: Subject, why: Unknown, unseen: dict[Kind, tuple[str, ...]]
) -> None:
    facts.put(Fact(subject, "pool", Known(pool, (Evidence(f"in pool {pool.name}"),))))
    facts.put_all(_unseen(subject, unseen[subject.kind], why))


def _unseen(subject: Subject, names: tuple[str, ...], why: Unknown) -> Iterator[Fact]:
    return (Fact(subject, name, why) for name in names)
