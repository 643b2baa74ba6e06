"""``zpool status`` and ``zpool status -P``: the tree of vdevs, their states and errors, the last scan. (man 8 zpool-status)"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Fact, Facts, Kind, Known, Subject, Value, flag, known, link, links, number, word, words
from auditor.host.request import NAME, Output, Request, Skip, command
from auditor.sources import pool_tree, zpool_status_text
from auditor.sources.pool_tree import (
    GUID,
    PARITY,
    PATH,
    POOL_STATES,
    ROW_STATES,
    TOP_TYPES,
    TREE,
    Paths,
    PoolStatus,
    Row,
    Told,
    before,
    parity,
    speaks,
    zpool,
)
from auditor.sources.source import source

_CLASSES = ("normal", "log", "special", "dedup")
_ERRORS = {
    "read": ("read_errors", number("failed reads since the last clear")),
    "write": ("write_errors", number("failed writes since the last clear")),
    "checksum": ("checksum_errors", number("blocks with a wrong checksum since the last clear")),
}
# print_status_reason() in cmd/zpool/zpool_main.c, in lower case; 0.7 and 2.1 may say ONLINE or DEGRADED beside it
_STUCK = ("in response to io failures", "there are i/o failures", "pool is suspended")
_NOTE = word("what zpool status prints after the counts; empty when nothing")


_STATUS = command("zpool status", "-j --json-int -p -s -P", NAME, apart="-P -L -g -x")


def _ask_status(pool: Subject, facts: Facts) -> Request:
    """JSON where both the module and the command have it; before 0.8 there is neither -p nor -s."""
    exact = () if before(facts, 0, 8) else ("-p", "-s")
    return zpool("status", *(("-j", "--json-int") if speaks(facts, 2, 3) else exact), pool.name)


def pools(text: str) -> list[PoolStatus]:
    """All pools of one output, JSON or text."""
    return pool_tree.pools(text) if text.lstrip().startswith("{") else zpool_status_text.pools(text)


@source(
    "zpool_status",
    "pool",
    ask=_ask_status,
    runs=(_STATUS,),
    facts={
        "pool.state": word("state of the pool", *POOL_STATES),
        "pool.status_text": word("the status: paragraph: what is wrong; empty when nothing"),
        "pool.suspended": flag("I/O is suspended after failures (SUSPENDED, or the status text says so)"),
        "pool.data_errors": number("blocks or files that are known to be damaged for good"),
        "pool.scan_function": word("the running scan, or the last", "scrub", "resilver", "errorscrub", "none"),
        "pool.scan_state": word("how it stands", "finished", "in progress", "canceled", "paused", "none"),
        "pool.scan_end_s": number("when it ended, seconds since the epoch; from text up to a time zone off"),
        "pool.scan_start_s": number("when it began, where it has not ended yet; as scan_end_s"),
        "pool.scan_pass_start_s": number("since when it runs without a restart of the pool"),
        "pool.scan_moved": flag("since then it has read something: by its bytes, or by its mean rates"),
        "pool.scan_errors": number("errors that it found and could not repair"),
        "pool.scan_repaired_bytes": number("bytes that it repaired or resilvered"),
        "pool.guid": GUID,
        "pool.vdevs": links("vdev", "all top-level vdevs but cache and spares", nonempty=True),
        "pool.leaves": links("leaf", "the leaves of these", nonempty=True),
        "pool.cache_leaves": links("leaf", "L2ARC devices"),
        "pool.spare_leaves": links("leaf", "hot spares, in use or not"),
        "vdev.type": word("kind of the top-level vdev", *TOP_TYPES),
        "vdev.allocation_class": word("what is allocated on it", *_CLASSES),
        "vdev.state": word("its state", *ROW_STATES),
        "vdev.parity": PARITY,
        "vdev.legs": number("legs of a mirror; a disk and the spare or the new disk in its place are one"),
        "vdev.width": number(
            "disks side by side in a raidz; a disk and the spare or the new disk in its place are one"
        ),
        "vdev.guid": GUID,
        "vdev.allocating": flag("new blocks may go there: neither being removed nor set to non-allocating"),
        "vdev.used_percent": number("share of its space that is allocated, percent (from OpenZFS 2.3 on)"),
        "vdev.note": _NOTE,
        "vdev.pool": link("pool", "its pool"),
        "vdev.leaves": links("leaf", "its leaves, spares in use and disks under replacement included", nonempty=True),
        "leaf.type": word("kind of leaf; dspare is a distributed spare of draid", "disk", "file", "dspare"),
        "leaf.path": PATH,
        "leaf.state": word("its state", *ROW_STATES),
        "leaf.allocation_class": word("of its top-level vdev", *_CLASSES, "cache", "spare"),
        "leaf.guid": GUID,
        "leaf.slow_ios": number("I/Os that took longer than zio_slow_io_ms (30 s)"),
        "leaf.physical_ashift": number("ashift that fits the disk, where a smaller one is in use"),
        "leaf.native_block_bytes": number("physical block size of the disk, where a smaller one is in use"),
        "leaf.block_size_non_native": flag("the block size in use is smaller than the disk's"),
        "leaf.being_replaced": flag("it is the old or the new disk of a replacement that runs"),
        "leaf.resilvering": flag("it is being resilvered, or waits for it: not all data is on it yet"),
        "leaf.note": _NOTE,
        "leaf.vdev": link("vdev", "its top-level vdev; cache devices and idle spares have none"),
        "leaf.pool": link("pool", "its pool"),
        **{f"{kind}.{name}": spec for kind in ("vdev", "leaf") for name, spec in _ERRORS.values()},
    },
    form="json",
    title="state of",
)
def status(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zpool status``: the tree of vdevs, their states and errors, the last scan. JSON from OpenZFS 2.3 on, text before.

    Names are those that ``zpool status`` shows, so neither -P nor -L: with -P a whole disk (``nvme-X``) and its first
    partition (``nvme-X-part1``) would read the same; ``zpool_status_paths`` gives the paths where this one does not. Not
    -v: listing damaged files reads the damaged pool, and nothing shows where such a list is cut off. -p: exact counts; -s:
    slow I/Os. A text without its ``errors:`` line is cut off and gives nothing. (man 8 zpool-status)
    """
    found = [each for each in pools(reply.text) if each.name == pool.name]
    if len(found) != 1:
        raise ValueError(f"no pool {pool.name} in it" if not found else f"pool {pool.name} comes twice")
    status = found[0]
    if not status.complete:
        raise ValueError("it ends before the errors: line: cut off")
    if status.root is None or status.root.name != pool.name or status.state not in POOL_STATES:
        raise ValueError("the pool has no state, or no row of its own")
    yield from _of_pool(status, pool, reply.command)
    yield from _of_vdevs(status, pool, reply.command)
    yield from _of_leaves(status, pool, reply.command)


def _of_pool(status: PoolStatus, pool: Subject, command: str) -> Iterator[Fact]:
    def fact(name: str, value: Value, text: str) -> Fact:
        return Fact(pool, name, known(value, text, command))

    yield fact("state", status.state, f"state: {status.state}")
    text = status.headers.get("status", "")
    yield fact("status_text", " ".join(text.split()), f"status: {text}" if text else "no status: line")
    reason = " ".join(text.split()).lower()
    stuck = status.state == "SUSPENDED" or "suspended" in status.errors or any(each in reason for each in _STUCK)
    yield fact("suspended", stuck, reason if stuck and reason else f"state: {status.state}")
    if status.data_errors >= 0:
        yield fact("data_errors", status.data_errors, f"errors: {status.errors}")
    if status.guid:
        yield fact("guid", status.guid, status.guid)
    yield from _of_scan(status, pool, command)
    tops = [row for _, row in _tops(status)]
    leaves = dict.fromkeys(leaf.name for row in tops for leaf, _ in row.leaves())
    for name, kind, members, nonempty in (
        ("vdevs", "vdev", [row.name for row in tops], True),
        ("leaves", "leaf", list(leaves), True),
        ("cache_leaves", "leaf", [row.name for row in status.cache], False),
        ("spare_leaves", "leaf", [row.name for row in status.spares], False),
    ):
        if members or not nonempty:
            subjects = tuple(Subject("vdev" if kind == "vdev" else "leaf", each, pool.name) for each in members)
            yield fact(name, subjects, ", ".join(members) or "none")


def _tops(status: PoolStatus) -> list[tuple[str, Row]]:
    """Top-level vdevs that hold data: what is left of removed ones (indirect, hole) does not."""
    return [(name, row) for name, row in status.tops if row.type not in ("indirect", "hole")]


def _of_scan(status: PoolStatus, pool: Subject, command: str) -> Iterator[Fact]:
    if status.scans is None:
        return
    if not status.scans:
        none = known("none", "no scan: line" if not status.headers.get("scan") else "scan: none requested", command)
        yield from (Fact(pool, name, none) for name in ("scan_function", "scan_state"))
        return
    running = [scan for scan in status.scans if scan.state in ("in progress", "paused")]
    scan = running[0] if running else max(status.scans, key=lambda each: each.end_s)
    local = "" if _exact(status) else " (local time of the host, read as UTC)"
    for name, value, text in (
        ("scan_function", scan.function, scan.text),
        ("scan_state", scan.state, scan.text),
        ("scan_end_s", scan.end_s, f"{scan.text}{local}"),
        ("scan_start_s", scan.start_s, f"{scan.text}{local}"),
        ("scan_pass_start_s", scan.pass_start_s if scan in running else -1, scan.text),
        ("scan_errors", scan.errors, scan.text),
        ("scan_repaired_bytes", scan.repaired, scan.text),
    ):
        if value != -1:
            yield Fact(pool, name, known(value, text, command))
    if scan in running and scan.moved != -1:
        yield Fact(pool, "scan_moved", known(bool(scan.moved), scan.text, command))


def _exact(status: PoolStatus) -> bool:
    """JSON has times in seconds since the epoch (and GUIDs), text has ctime(3) in local time (and none)."""
    return bool(status.guid)


def _of_vdevs(status: PoolStatus, pool: Subject, command: str) -> Iterator[Fact]:
    home = known(pool, f"in pool {pool.name}", command)
    for allocation, row in _tops(status):
        vdev = Subject("vdev", row.name, pool.name)
        values: dict[str, Value] = {"allocation_class": allocation, "note": row.note}
        values["allocating"] = "(removing)" not in row.note and "(non-allocating)" not in row.note
        values |= {name: text for name, text in (("type", row.type), ("state", row.state), ("guid", row.guid)) if text}
        if row.type not in TOP_TYPES:
            values.pop("type", None)
        if values.get("state") not in ROW_STATES:
            values.pop("state", None)
        if (disks := parity(row.name if row.type.startswith(("raidz", "draid")) else "", row.type)) >= 0:
            values["parity"] = disks
        if row.type == "mirror":
            values["legs"] = len(row.children)
        if row.type.startswith("raidz"):
            values["width"] = len(row.children)
        values |= {name: row.counts[key] for key, (name, _) in _ERRORS.items() if key in row.counts}
        for name, value in values.items():
            yield Fact(vdev, name, known(value, _text(row, name, value), command))
        if row.space:
            allocated, space = row.space
            text = f"{row.name}: {allocated:,} of {space:,} bytes are allocated"
            yield Fact(vdev, "used_percent", known(allocated * 100 // space, text, "zpool list -v"))
        yield Fact(vdev, "pool", home)
        if members := tuple(dict.fromkeys(Subject("leaf", leaf.name, pool.name) for leaf, _ in row.leaves())):
            yield Fact(vdev, "leaves", known(members, ", ".join(each.name for each in members), command))


def _text(row: Row, name: str, value: Value) -> str:
    match name:
        case "state":
            return f"{row.name} {row.state}" + (f"  {row.note}" if row.note else "")
        case "note":
            return row.note or "nothing after the counts"
        case _:
            return f"{row.name}: {_leaf_text(name, value)}"


def _of_leaves(status: PoolStatus, pool: Subject, command: str) -> Iterator[Fact]:
    """Each leaf once. A spare stands in several places; where these contradict each other nothing is said."""
    seen: dict[str, dict[str, Value]] = {}
    for allocation, top in _tops(status):
        for row, replacing in top.leaves():
            values = _leaf(row, allocation, replacing) | {"vdev": Subject("vdev", top.name, pool.name)}
            before = seen.setdefault(row.name, values)
            for name in list(before):
                if before[name] != values.get(name):
                    del before[name]
    for allocation, rows in (("cache", status.cache), ("spare", status.spares)):
        for row in rows:
            if row.name not in seen:
                seen[row.name] = _leaf(row, allocation, False)
    share: dict[tuple[str, Value], Known] = {("pool", pool): known(pool, f"in pool {pool.name}", command)}
    for leaf, values in seen.items():
        subject = Subject("leaf", leaf, pool.name)
        for name, value in (values | {"pool": pool}).items():
            if (found := share.get((name, value))) is None or type(found.value) is not type(value):
                found = share[name, value] = known(value, _leaf_text(name, value), command)
            yield Fact(subject, name, found)


def _leaf_text(name: str, value: Value) -> str:
    if name == "note":
        return str(value) or "nothing after the counts"
    return f"{name.replace('_', ' ')} {str(value).lower() if isinstance(value, bool) else value}"


def _leaf(row: Row, allocation: str, replacing: bool) -> dict[str, Value]:
    values: dict[str, Value] = {"allocation_class": allocation, "being_replaced": replacing, "note": row.note}
    values["resilvering"] = "(resilvering)" in row.note or "(awaiting resilver)" in row.note
    values |= {name: text for name, text in (("path", row.path), ("guid", row.guid)) if text}
    if row.type in ("disk", "file", "dspare"):
        values["type"] = row.type
    if row.state in ROW_STATES:
        values["state"] = row.state
    values |= {name: row.counts[key] for key, (name, _) in _ERRORS.items() if key in row.counts}
    if "slow" in row.counts:
        values["slow_ios"] = row.counts["slow"]
    if row.ashifts:
        values["physical_ashift"] = row.ashifts[1]
        values["native_block_bytes"] = 1 << row.ashifts[1]
    if row.ashifts or (row.state == "ONLINE" and row.counts and allocation != "spare" and not _fault(row.note)):
        values["block_size_non_native"] = bool(row.ashifts)  # the note is left out only where another takes its place
    return values


def _fault(note: str) -> bool:
    """Whether there is a note other than those in parentheses, which stand beside that on the block size."""
    return bool(note) and not note.startswith("(")


def _ask_paths(pool: Subject, facts: Facts) -> Request:
    """Only where zpool status is read as text."""
    if speaks(facts, 2, 3):
        return Skip("zpool status -j has the paths of the leaves", applies=False)
    return zpool("status", "-P", pool.name)


@source(
    "zpool_status_paths",
    "pool",
    ask=_ask_paths,
    runs=(_STATUS,),
    facts={
        "leaf_paths": words("paths of all leaves, cache devices and spares included, as zpool status has them"),
        "path_tree": TREE,
    },
    form="json",
    title="devices of",
)
def paths(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zpool status -P``: the paths of the leaves, where ``zpool status`` has no JSON (before OpenZFS 2.3).

    Text shows either names or paths, and a path alone does not tell whether ``nvme-X-part1`` is called ``nvme-X`` (OpenZFS
    partitioned the whole disk) or ``nvme-X-part1`` (somebody else did). So the names come from ``zpool_status``, the paths
    from here, and :func:`join` puts them together. (man 8 zpool-status)

    One fact. A missing device shows as its GUID here too: it has no path, and is left out.
    """
    found = [each for each in zpool_status_text.pools(reply.text) if each.name == pool.name]
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
    for kind, names in named_by.items():
        every = list(facts.subjects(kind))
        pools = dict.fromkeys(Subject("pool", each.within) for each in every)
        named = {each for pool in pools for link in names for each in facts.linked(pool, link)}
        for stray in every:
            meant = stray._replace(name=stray.name.rpartition("/")[2])
            if stray not in named and meant in named:
                yield from (Fact(meant, name, value) for name, value in facts.of(stray).items())


SOURCES = (status, paths)
