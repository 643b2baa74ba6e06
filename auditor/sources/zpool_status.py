"""``zpool status`` and ``zpool status -P``: the tree of vdevs, their states and errors, the last scan. (man 8 zpool-status)"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterator

from auditor.facts import Fact, Facts, Kind, Known, Spec, Subject, Value, known
from auditor.host.request import NAME, Output, Request, Skip, command
from auditor.sources import pool_tree
from auditor.sources.pool_tree import LeafRow, Paths, PoolStatus, Row, Scan
from auditor.sources.source import integer, source

_CLASSES = ("normal", "log", "special", "dedup")
_ERRORS = {
    "read": ("read_errors", Spec.number("failed reads since the last clear")),
    "write": ("write_errors", Spec.number("failed writes since the last clear")),
    "checksum": ("checksum_errors", Spec.number("blocks with a wrong checksum since the last clear")),
}
# print_status_reason() in cmd/zpool/zpool_main.c, in lower case; 2.1 may say ONLINE or DEGRADED next to it
_STUCK = ("in response to io failures", "there are i/o failures", "pool is suspended")
_NOTE = Spec.word("what zpool status prints after the counts; empty when nothing")


_STATUS = command("zpool status", "-j --json-int -p -s -P", NAME, apart="-P -L -g -x")


def _ask_status(pool: Subject, facts: Facts) -> Request:
    return pool_tree.zpool(
        "status", *(("-j", "--json-int") if pool_tree.speaks(facts, 2, 3) else ("-p", "-s")), pool.name
    )


def pools(text: str) -> list[PoolStatus]:
    return pool_tree.pools(text) if text.lstrip().startswith("{") else pools_of_text(text)


@source(
    "zpool_status",
    "pool",
    ask=_ask_status,
    runs=(_STATUS,),
    facts={
        "pool.state": Spec.word("state of the pool", *pool_tree.POOL_STATES),
        "pool.status_text": Spec.word("the status: paragraph: what is wrong; empty when nothing"),
        "pool.suspended": Spec.flag("I/O is suspended after failures (SUSPENDED, or the status text says so)"),
        "pool.data_errors": Spec.number("blocks or files that are known to be damaged for good"),
        "pool.scan_function": Spec.word("the running scan, or the last", "scrub", "resilver", "errorscrub", "none"),
        "pool.scan_state": Spec.word("how it stands", "finished", "in progress", "canceled", "paused", "none"),
        "pool.scan_end_s": Spec.number("when it ended, seconds since the epoch; from text up to a time zone off"),
        "pool.scan_start_s": Spec.number("when it began, where it has not ended yet; as scan_end_s"),
        "pool.scan_pass_start_s": Spec.number("since when it runs without a restart of the pool"),
        "pool.scan_moved": Spec.flag("since then it has read something: by its bytes, or by its mean rates"),
        "pool.scan_errors": Spec.number("errors that it found and could not repair"),
        "pool.scan_repaired_bytes": Spec.number("bytes that it repaired or resilvered"),
        "pool.guid": pool_tree.GUID,
        "pool.vdevs": Spec.links("vdev", "all top-level vdevs but cache and spares", nonempty=True),
        "pool.leaves": Spec.links("leaf", "the leaves of these", nonempty=True),
        "pool.cache_leaves": Spec.links("leaf", "L2ARC devices"),
        "pool.spare_leaves": Spec.links("leaf", "hot spares, in use or not"),
        "vdev.type": Spec.word("kind of the top-level vdev", *pool_tree.TOP_TYPES),
        "vdev.allocation_class": Spec.word("what is allocated on it", *_CLASSES),
        "vdev.state": Spec.word("its state", *pool_tree.ROW_STATES),
        "vdev.parity": pool_tree.PARITY,
        "vdev.legs": Spec.number("legs of a mirror; a disk and the spare or the new disk in its place are one"),
        "vdev.width": Spec.number(
            "disks side by side in a raidz or draid; a disk and the spare or the new disk in its place are one"
        ),
        "vdev.guid": pool_tree.GUID,
        "vdev.allocating": Spec.flag("new blocks may go there: neither being removed nor set to non-allocating"),
        "vdev.used_percent": Spec.number("share of its space that is allocated, percent (from OpenZFS 2.3 on)"),
        "vdev.note": _NOTE,
        "vdev.pool": Spec.link("pool", "its pool"),
        "vdev.leaves": Spec.links(
            "leaf", "its leaves, spares in use and disks under replacement included", nonempty=True
        ),
        "leaf.type": Spec.word("kind of leaf; dspare is a distributed spare of draid", "disk", "file", "dspare"),
        "leaf.path": pool_tree.PATH,
        "leaf.state": Spec.word("its state", *pool_tree.ROW_STATES),
        "leaf.allocation_class": Spec.word("of its top-level vdev", *_CLASSES, "cache", "spare"),
        "leaf.guid": pool_tree.GUID,
        "leaf.slow_ios": Spec.number("I/Os that took longer than zio_slow_io_ms (30 s)"),
        "leaf.physical_ashift": Spec.number("ashift that fits the disk, where a smaller one is in use"),
        "leaf.native_block_bytes": Spec.number("physical block size of the disk, where a smaller one is in use"),
        "leaf.block_size_non_native": Spec.flag("the block size in use is smaller than the disk's"),
        "leaf.being_replaced": Spec.flag("it is the old or the new disk of a replacement that runs"),
        "leaf.resilvering": Spec.flag("it is being resilvered, or waits for it: not all data is on it yet"),
        "leaf.note": _NOTE,
        "leaf.vdev": Spec.link("vdev", "its top-level vdev; cache devices and idle spares have none"),
        "leaf.pool": Spec.link("pool", "its pool"),
        **{f"{kind}.{name}": spec for kind in ("vdev", "leaf") for name, spec in _ERRORS.values()},
    },
    form="json",
    title="state of",
)
def status(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zpool status``: the tree of vdevs, their states and errors, the last scan. JSON from OpenZFS 2.3 on, text before.

    Neither -P nor -L: with -P a whole disk and its first partition read the same; ``zpool_status_paths`` gives the paths.
    Not -v: listing damaged files reads the damaged pool, and does not show where it is cut off. -p: exact counts; -s: slow
    I/Os. Text without its ``errors:`` line is cut off and gives nothing. (man 8 zpool-status)"""
    found = [each for each in pools(reply.text) if each.name == pool.name]
    if len(found) != 1:
        raise ValueError(f"no pool {pool.name} in it" if not found else f"pool {pool.name} comes twice")
    status = found[0]
    if not status.complete:
        raise ValueError("it ends before the errors: line: cut off")
    if status.root is None or status.root.name != pool.name or status.state not in pool_tree.POOL_STATES:
        raise ValueError("the pool has no state, or no separate row")
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
    # JSON has times in seconds since the epoch (and GUIDs), text has ctime(3) in local time (and none)
    local = "" if status.guid else " (local time of the host, read as UTC)"
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


def _of_vdevs(status: PoolStatus, pool: Subject, command: str) -> Iterator[Fact]:
    home = known(pool, f"in pool {pool.name}", command)
    for allocation, row in _tops(status):
        vdev = Subject("vdev", row.name, pool.name)
        values: dict[str, Value] = {"allocation_class": allocation, "note": row.note}
        values["allocating"] = "(removing)" not in row.note and "(non-allocating)" not in row.note
        values |= {name: text for name, text in (("type", row.type), ("state", row.state), ("guid", row.guid)) if text}
        if row.type not in pool_tree.TOP_TYPES:
            values.pop("type", None)
        if values.get("state") not in pool_tree.ROW_STATES:
            values.pop("state", None)
        if (disks := pool_tree.parity(row.name if row.type.startswith(("raidz", "draid")) else "", row.type)) >= 0:
            values["parity"] = disks
        if row.type == "mirror":
            values["legs"] = len(row.children)
        if row.type.startswith(("raidz", "draid")):
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
    if row.state in pool_tree.ROW_STATES:
        values["state"] = row.state
    values |= {name: row.counts[key] for key, (name, _) in _ERRORS.items() if key in row.counts}
    if "slow" in row.counts:
        values["slow_ios"] = row.counts["slow"]
    if row.ashifts:
        values["physical_ashift"] = row.ashifts[1]
        values["native_block_bytes"] = 1 << row.ashifts[1]
    note = row.note.startswith("(") or not row.note  # one in parentheses stands next to that on the block size
    if row.ashifts or (row.state == "ONLINE" and row.counts and allocation != "spare" and note):
        values["block_size_non_native"] = bool(row.ashifts)  # the note is left out only where another takes its place
    return values


def _ask_paths(pool: Subject, facts: Facts) -> Request:
    """Only where zpool status is read as text."""
    if pool_tree.speaks(facts, 2, 3):
        return Skip("zpool status -j has the paths of the leaves", applies=False)
    return pool_tree.zpool("status", "-P", pool.name)


@source(
    "zpool_status_paths",
    "pool",
    ask=_ask_paths,
    runs=(_STATUS,),
    facts={
        "leaf_paths": Spec.words("paths of all leaves, cache devices and spares included, as zpool status has them"),
        "path_tree": pool_tree.TREE,
    },
    form="json",
    title="devices of",
)
def paths(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zpool status -P``: the paths of the leaves, where there is no JSON (before OpenZFS 2.3). (man 8 zpool-status)

    A path does not tell whether ``nvme-X-part1`` is called so or ``nvme-X`` (a whole disk): names come from
    ``zpool_status``, paths from here, and :func:`join` puts them together. A missing device shows as its GUID, and is left
    out."""
    found = [each for each in pools_of_text(reply.text) if each.name == pool.name]
    if len(found) != 1 or not found[0].complete or found[0].root is None:
        raise ValueError(f"pool {pool.name} is not there from beginning to end")
    leaf_rows = [
        LeafRow(top.name, leaf.name, "", leaf.path, allocation)
        for allocation, top in found[0].tops
        for leaf, _ in top.leaves()
    ]
    for allocation, rows in (("cache", found[0].cache), ("spare", found[0].spares)):
        leaf_rows += [LeafRow("", row.name, "", row.path, allocation) for row in rows]
    paths = tuple(dict.fromkeys(each.path for each in leaf_rows if each.path))
    yield Fact(pool, "leaf_paths", known(paths, ", ".join(paths), reply.command))
    text = f"{len(leaf_rows)} leaves, cache devices and spares"
    yield Fact(pool, "path_tree", known(tuple(each.line() for each in leaf_rows), text, reply.command))


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

    ``zpool status`` of 2.1 shortens ``/dev/vg0/lv0`` to ``lv0``, later releases and zdb's paths to ``vg0/lv0``."""
    named_by: dict[Kind, tuple[str, ...]] = {"vdev": ("vdevs",), "leaf": ("leaves", "cache_leaves", "spare_leaves")}
    for kind, names in named_by.items():
        every = list(facts.subjects(kind))
        pools = dict.fromkeys(Subject("pool", each.within) for each in every)
        named = {each for pool in pools for link in names for each in facts.linked(pool, link)}
        for stray in every:
            meant = stray._replace(name=stray.name.rpartition("/")[2])
            if stray not in named and meant in named:
                yield from (Fact(meant, name, value) for name, value in facts.of(stray).items())


# ``zpool status`` as text, as releases before 2.3 print it: indentation is the tree. Layout: print_status_config() in
# cmd/zpool/zpool_main.c. Raises ValueError for what it does not know, or where the text is cut off.

_HEADER = re.compile(r" {0,3}([a-z]+):(?: ++(.*)|)")
_HEADERS = {"pool", "id", "state", "status", "action", "see", "scan", "scrub", "remove", "checkpoint", "expand", "trim"}
_HEADERS |= {"config", "errors", "dedup", "comment"}
_TABLE = re.compile(r"\s*+NAME\s++STATE(?:\s++READ\s++WRITE\s++CKSUM((?:\s++[A-Z]++)*+))?")
_STATE = "|".join(pool_tree.ROW_STATES)
_COUNT = r"\d+(?:\.\d+)?[KMGTPE]?"
_COUNTS = rf"\s++({_COUNT})\s++({_COUNT})\s++({_COUNT})"
_ROW_LIKE = re.compile(rf"\s({_STATE})\s++{_COUNT}\s++{_COUNT}\s")
_STATES = re.compile(rf"(?<=\s)(?={_STATE})")
_MOST_COLUMNS = 8  # after CKSUM; zpool status -p -s -t has three
_SECTIONS = {"logs": "log", "log": "log", "special": "special", "dedup": "dedup", "cache": "cache", "spares": "spare"}
_BLOCKS = re.compile(r"block size: (\d+)B configured, (\d+)B native")
_WHEN = r"(\w{3} \w{3} +\d{1,2} \d\d:\d\d:\d\d \d{4})"
_NO_ERRORS = ("No known data errors", "No known errors")
_LISTED = "Permanent errors have been detected"
_SCANS = (  # pattern -> function, state
    (r"(?:thorough )?scrub (?:repaired|completed)\b", "scrub", "finished"),
    (r"(?:thorough )?scrub (?:in progress)\b", "scrub", "in progress"),
    (r"(?:thorough )?scrub (?:canceled|stopped)\b", "scrub", "canceled"),
    (r"(?:thorough )?scrub paused\b", "scrub", "paused"),
    (r"(?:resilvered|resilver completed)\b", "resilver", "finished"),
    (r"resilver (?:\([^)]*+\) )?in progress\b", "resilver", "in progress"),
    (r"resilver (?:\([^)]*+\) )?canceled\b", "resilver", "canceled"),
    (r"scrubbed \d+ error blocks\b", "errorscrub", "finished"),
    (r"error scrub in progress\b", "errorscrub", "in progress"),
    (r"error scrub canceled\b", "errorscrub", "canceled"),
    (r"error scrub paused\b", "errorscrub", "paused"),
)


def pools_of_text(text: str) -> list[PoolStatus]:
    """All pools in the text, in its order. A table without a ``pool:`` line is a pool without a name."""
    blocks: list[list[str]] = [[]]
    for line in text.removesuffix("\n").split("\n"):
        found = _HEADER.fullmatch(line)
        if found and found[1] == "pool":
            blocks.append([])
        blocks[-1].append(line)
    return [_pool(block) for number, block in enumerate(blocks) if number or any(map(_TABLE.match, block))]


def _pool(lines: list[str]) -> PoolStatus:
    headers: dict[str, str] = {}
    scans: list[Scan] = []
    table: list[str] = []
    listed: list[str] = []
    key, ended = "", False
    for line in lines:
        found = _HEADER.fullmatch(line)
        if found and not (key == "table" and _ROW_LIKE.search(line)):
            key = "scan" if found[1] == "scrub" else found[1]
            if key == "scan" and "scan" in headers:
                scans += _scan(headers.pop("scan"))
            headers[key] = (found[2] or "").strip()
        elif _TABLE.match(line) and key in ("config", ""):
            key, table = "table", [line]
        elif not line.strip():
            ended = ended or bool(listed)
            key = "" if key == "table" and len(table) > 1 else key
        elif key == "table":
            table.append(line)
        elif key == "errors":
            if not ended:
                listed.append(line.strip())
        elif key in headers:
            headers[key] += "\n" + line.strip()
    if unknown := sorted(headers.keys() - _HEADERS):
        raise ValueError(f"zpool status: {unknown[0]}: is not a header that is known")
    scans += _scan(headers.get("scan", ""))
    errors = headers.get("errors", "")
    counted = re.fullmatch(r"(\d+) data errors?, use '-v' for a list", errors)
    permanent = errors.startswith(_LISTED)
    none = errors in _NO_ERRORS
    pool = PoolStatus(
        name=headers.get("pool", ""),
        state=headers.get("state", ""),
        headers=headers,
        scans=None if headers.get("scan") and not scans and headers["scan"] != "none requested" else tuple(scans),
        errors=errors,
        # a list may be cut off anywhere: it counts only when something follows it
        data_errors=0 if none else integer(counted[1]) if counted else len(listed) if permanent and ended else -1,
        complete=bool(none or counted or permanent or errors.startswith("List of errors unavailable")),
    )
    return _rows(pool, table) if table else pool


def _rows(pool: PoolStatus, table: list[str]) -> PoolStatus:
    columns = _TABLE.match(table[0])
    extra = len(columns[1].split()) if columns and columns[1] else 0
    if extra > _MOST_COLUMNS:
        raise ValueError(f"zpool status: {extra} columns after CKSUM")
    slow = bool(columns and columns[1] and columns[1].split()[0] == "SLOW")
    at = len(table[0].encode("utf-8", "surrogateescape").partition(b"STATE")[0])
    sections: dict[str, list[tuple[int, Row]]] = {"normal": []}
    section = "normal"
    for line in table[1:]:
        word = line.split()
        old = (
            word[0] == "logs" and len(word) == 5 and word[1] in pool_tree.ROW_STATES
        )  # as illumos and early releases print it
        if sections["normal"] and word[0] in _SECTIONS and (len(word) == 1 or old):
            section = _SECTIONS[word[0]]
            if section in sections:
                raise ValueError(f"zpool status: two sections {word[0]}")
            sections[section] = []
        else:
            indent = sum(8 if each == "\t" else 1 for each in line[: len(line) - len(line.lstrip())])
            sections[section].append((indent, _row(line, at, extra, slow, section == "spare")))
    if empty := [name for name, rows in sections.items() if not rows]:
        raise ValueError(f"zpool status: no device in section {empty[0]}")
    trees = {name: _tree(rows) for name, rows in sections.items()}
    if len(trees["normal"]) != 1:
        raise ValueError("zpool status: the table does not begin with one row for the pool")
    root = trees["normal"][0]._replace(type="root")
    tops = [("normal", each) for each in root.children]
    tops += [(name, each) for name in ("dedup", "special", "log") for each in trees.get(name, ())]
    return pool._replace(root=root, tops=tuple(tops), cache=trees.get("cache", ()), spares=trees.get("spare", ()))


def _row(line: str, at: int, extra: int, slow: bool, spare: bool) -> Row:
    """Name and state stand apart in the state's column; where TABs were lost, at the first word that is a state."""
    raw = line.encode("utf-8", "surrogateescape")
    line = line.rstrip()
    tail = re.compile(rf"({_STATE})(?:{_COUNTS}((?:\s++\S++){{{extra}}}))?(?:\s{{2}}\s*+(.+))?")
    name = raw[:at].decode("utf-8", "surrogateescape").strip()
    found = tail.fullmatch(raw[at:].decode("utf-8", "surrogateescape").rstrip()) if raw[at - 2 : at] == b"  " else None
    if not found or not name:
        starts = (each.start() for each in _STATES.finditer(line) if line[: each.start()].strip())
        found = next((found for start in starts if (found := tail.fullmatch(line, start))), None)
        if not found:
            raise ValueError(f"zpool status: row not understood or cut off: {line.strip()[:80]}")
        name = line[: found.start()].strip()
    groups = found.groups()
    state, read, write, checksum, more, note = (each or "" for each in groups)
    if not read and not spare:
        raise ValueError(f"zpool status: the row of {name[:80]} is cut off")
    values = {"read": pool_tree.count(read), "write": pool_tree.count(write), "checksum": pool_tree.count(checksum)}
    if slow:
        values["slow"] = pool_tree.count(more.split()[0]) if more else -1
    blocks = _BLOCKS.search(note)
    return Row(
        name,
        state=state,
        path=name if name.startswith("/") else "",
        counts={key: value for key, value in values.items() if value >= 0},
        note=note,
        ashifts=tuple(integer(each).bit_length() - 1 for each in blocks.groups()) if blocks else (),
    )


def _tree(rows: list[tuple[int, Row]]) -> tuple[Row, ...]:
    if rows and any(depth < rows[0][0] for depth, _ in rows):
        raise ValueError("zpool status: the indentation of the table is not a tree")
    return tuple(_forest(rows, 0))


def _forest(rows: list[tuple[int, Row]], level: int) -> Iterator[Row]:
    if level > pool_tree.DEPTH:
        raise ValueError("zpool status: nested too deeply")
    while rows:
        depth, row = rows[0]
        inner = 1
        while inner < len(rows) and rows[inner][0] > depth:
            inner += 1
        children = tuple(_forest(rows[1:inner], level + 1))
        if not children:
            pool_tree.no_children(row.name)
        kind = pool_tree.top_type(row.name, bool(children)) or ("" if children else pool_tree.leaf_type(row.name))
        yield row._replace(type=kind, children=children)
        rows = rows[inner:]


def _scan(text: str) -> list[Scan]:
    text = text.replace("\n", " ").strip()
    kinds = [(function, state) for pattern, function, state in _SCANS if re.match(pattern, text)]
    if not kinds:
        return []
    function, state = kinds[0]
    over = state in ("finished", "canceled")
    ended = re.search(rf" on {_WHEN}", text) if over else None
    # a paused one has two dates: that of the pause and, below, that of the start
    began = None if over else re.search(rf" started on {_WHEN}", text) or re.search(rf" since {_WHEN}", text)
    paused = state == "paused" and began is not None and " started on " not in began[0]
    errors = re.search(r" with (\d+) errors", text)
    repaired = re.search(r"(?:repaired|resilvered)(?: \([^()]*+\))? ([\d.]++[KMGTPE]?B?) in ", text)
    return [
        Scan(
            function,
            state,
            text,
            end_s=_ctime(ended[1]) if ended else -1,
            errors=integer(errors[1]) if errors else -1,
            repaired=pool_tree.size(repaired[1]) if repaired else -1,
            start_s=_ctime(began[1]) if began and not paused else -1,
            moved=_moved(text) if state == "in progress" else -1,
        )
    ]


def _moved(text: str) -> int:
    """By its rates, which are means over its pass; from 2.2 on those that are 0 are left out."""
    if not re.search(r"[\d.][KMGTPE]?B? scanned\b", text):
        return -1
    rates = (pool_tree.size(each) for each in re.findall(r"(?<![\d.])([\d.]++[KMGTPE]?B?)/s", text))
    return int(any(rate > 0 for rate in rates))


def _ctime(text: str) -> int:
    try:
        return calendar.timegm(time.strptime(text, "%a %b %d %H:%M:%S %Y"))
    except ValueError:
        return -1
