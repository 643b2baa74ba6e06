"""``zpool list``, ``zpool get``, ``zpool iostat`` and ``zdb -C``: which pools there are, the properties of pools and vdevs, how
long their I/O took, and their configuration. (man 8 zpool-list, zpool-get, zpool-iostat, zdb)"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from auditor.facts import HOST, Fact, Facts, Known, Spec, Subject, Value, known
from auditor.host.request import NAME, Output, Request, Run, Skip, command
from auditor.host.request import PROPERTIES as LISTED
from auditor.sources import pool_tree, zfs
from auditor.sources.pool_tree import LeafRow
from auditor.sources.source import source
from auditor.text import quoted

_GET = command("zpool get", "-Hp -o", NAME, valued="-o", lists=("-o", LISTED))
STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED", "UNAVAIL", "SUSPENDED")
COLUMNS = {  # property -> fact, in the order in which they are asked for, after the name
    "size": "list_size_bytes",
    "allocated": "list_allocated_bytes",
    "free": "list_free_bytes",
    "capacity": "list_capacity_percent",
    "fragmentation": "list_fragmentation_percent",
    "health": "list_health",
    "guid": "list_guid",
}


@source(
    "zpool_list",
    "host",
    ask=Run(("zpool", "list", "-Hp", "-o", ",".join(("name", *COLUMNS))), package="zfsutils-linux"),
    runs=(command("zpool list", "-Hp -o", NAME, apart="-v", valued="-o", lists=("-o",)),),
    facts={
        "host.imported_pools": Spec.links("pool", "the imported pools"),
        "list_health": Spec.word("its state", *STATES),
        "list_size_bytes": Spec.number("raw size"),
        "list_allocated_bytes": Spec.number("raw space taken"),
        "list_free_bytes": Spec.number("raw space free"),
        "list_capacity_percent": Spec.number("how full it is"),
        "list_fragmentation_percent": Spec.number("how fragmented its free space is"),
        "list_guid": Spec.word("its GUID in decimal"),
    },
    subject="pool",
    words=COLUMNS,
)
def pools(reply: Output, host: Subject) -> Iterator[Fact]:
    """``zpool list -Hp``: which pools are imported, and size, fill and health of each in one cheap line.

    Prints nothing when no pool is imported. (man 8 zpool-list, man 7 zpoolprops) One line a pool. "-": the pool does not know
    (it is unavailable)."""
    text = "" if reply.text == "no pools available\n" else reply.text
    if text and not text.endswith("\n"):
        raise ValueError("the last line is cut off")
    columns = reply.columns or ("name", *COLUMNS)
    rows = [line.split("\t") for line in text.split("\n")[:-1]]
    if columns[0] != "name" or not all(len(row) == len(columns) and row[0] for row in rows):
        raise ValueError(f"a line has not {len(columns)} columns, the name first")
    if (longest := max((len(row[0]) for row in rows), default=0)) > zfs.LONGEST_NAME:
        raise ValueError(f"a name of {longest} characters; OpenZFS allows {zfs.LONGEST_NAME}")
    pools = tuple(Subject("pool", name) for name, *_ in rows)
    names = ", ".join(pool.name for pool in pools) or "no pool"
    yield Fact(HOST, "imported_pools", known(pools, names, "zpool list -o name"))
    for pool, (_, *values) in zip(pools, rows, strict=True):
        for column, value in zip(columns[1:], values, strict=True):
            name = COLUMNS.get(column, "")
            if name and (found := _known(column, name, value)) is not None:
                yield Fact(pool, name, found)


def _known(column: str, name: str, value: str) -> Known | None:
    text, command = f"{column} {value}", f"zpool list -p -o name,{column} {{subject}}"
    number_of = value.removesuffix("%")
    match name:
        case "list_health":
            if value not in STATES:
                raise ValueError(f"{value!r} is not the state of a pool")
            return known(value, text, command)
        case "list_guid":
            return known(value, text, command) if value.isascii() and value.isdigit() else None
        case _ if number_of.isascii() and number_of.isdigit() and int(number_of) < 1 << 63:
            return known(int(number_of), text, command)
        case _:
            return None


_FEATURE = ("disabled", "enabled", "active")
_PROPERTIES = {  # property -> fact, where they are not called the same
    "size": "size_bytes",
    "capacity": "capacity_percent",
    "fragmentation": "fragmentation_percent",
    "checkpoint": "checkpoint_bytes",
    "freeing": "freeing_bytes",
    "bcloneused": "bcloneused_bytes",
    "feature@block_cloning": "feature_block_cloning",
}
_PLAIN = ("health", "guid", "failmode", "multihost", "autotrim", "autoreplace", "readonly", "cachefile")
_SINCE_2_2 = ("bcloneused", "feature@block_cloning")  # an unknown property makes the whole command fail


CACHED = ("default", "none", "other")


def _ask_properties(pool: Subject, facts: Facts) -> Request:
    names = [name for name in (*_PROPERTIES, *_PLAIN) if name not in _SINCE_2_2 or pool_tree.speaks(facts, 2, 2)]
    return pool_tree.zpool("get", "-Hp", "-o", "name,property,value,source", ",".join(names), pool.name)


@source(
    "zpool_get",
    "pool",
    ask=_ask_properties,
    runs=(_GET,),
    facts={
        "size_bytes": Spec.number("size of the pool"),
        "capacity_percent": Spec.number("how much of it is allocated"),
        "fragmentation_percent": Spec.number("fragmentation of the free space"),
        "health": Spec.word("state of the pool", *pool_tree.POOL_STATES),
        "guid": pool_tree.GUID,
        "failmode": Spec.word("what happens when no vdev can be reached", "wait", "continue", "panic"),
        "multihost": Spec.word("guard against import on two hosts (MMP)", "on", "off"),
        "autotrim": Spec.word("TRIM of freed space", "on", "off"),
        "autoreplace": Spec.word("a new disk in an old slot is used at once", "on", "off"),
        "readonly": Spec.word("imported read-only", "on", "off"),
        "cachefile": Spec.word(
            "where it is written down for the next import: the usual file, nowhere, or elsewhere", *CACHED
        ),
        "checkpoint_bytes": Spec.number("space held by the checkpoint; 0 without one"),
        "freeing_bytes": Spec.number("space that is still being freed"),
        "bcloneused_bytes": Spec.number("space in cloned blocks"),
        "feature_block_cloning": Spec.word("the feature block_cloning", *_FEATURE),
    },
    after=("zdb_config",),
    words=_PROPERTIES,
    title="properties of",
)
def properties(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zpool get``: the properties of a pool. (man 7 zpoolprops, man 7 zpool-features)

    -p prints exact numbers; "-" is "no value", and the only value that most properties of an unavailable pool have. One
    property a line, name TAB property TAB value TAB source; properties that we do not use are skipped."""
    if not reply.text:
        raise ValueError("no property in it")
    measured = False
    for line in reply.text.split("\n")[:-1]:
        name, found, rest = line.partition("\t")
        if not found or name != pool.name:
            raise ValueError(f"not a property of {pool.name}: {line[:80]}")
        key, _, rest = rest.partition("\t")
        value, separator, source = rest.rpartition("\t")
        if not separator or not source:
            raise ValueError(f"no source: {line[:80]}")
        measured = measured or (key == "size" and pool_tree.count(value) >= 0)
        fact = _PROPERTIES.get(key, key if key in _PLAIN else "")
        if fact and (read := _value(fact, value, measured)) is not None:
            yield Fact(pool, fact, known(read, f"{key}={value}", f"zpool get -p {key} {{subject}}"))


def _value(fact: str, text: str, measured: bool) -> Value | None:
    spec = properties.facts[fact]
    if (
        fact == "cachefile"
    ):  # zpool_get_prop(): "-" where spa_prop_get_config() names none, which it does of the usual one
        return {"-": "default", "none": "none"}.get(text, "other") if measured else None
    if spec.type is int:
        if text == "-" and fact == "checkpoint_bytes" and measured:
            return 0  # zpool_get_prop(): "-" is 0 here, in a pool that can be asked
        value = pool_tree.count(text.removesuffix("%"))
        return value if value >= 0 else None
    if spec.values:
        return text if text in spec.values else None
    return text if text.isdigit() else None


_OF_VDEVS = ("ashift", "guid", "parity", "path", "parent", "numchildren")
_LAYOUT = re.compile(r"^(raidz|draid)[\d:a-z]+")


def _ask_vdev_properties(pool: Subject, facts: Facts) -> Request:
    """Not before 2.2, whose kernel module has to have it too."""
    if not pool_tree.speaks(facts, 2, 2):
        return Skip("properties of vdevs need OpenZFS 2.2 or later", applies=False)
    return pool_tree.zpool(
        "get", "-Hp", "-o", "name,property,value,source", ",".join(_OF_VDEVS), pool.name, "all-vdevs"
    )


@source(
    "zpool_get_vdev",
    "pool",
    ask=_ask_vdev_properties,
    runs=(_GET,),
    facts={
        "pool.get_tree": pool_tree.TREE,
        "vdev.ashift": pool_tree.ASHIFT,
        "vdev.guid": pool_tree.GUID,
        "vdev.parity": pool_tree.PARITY,
        "leaf.guid": pool_tree.GUID,
        "leaf.path": pool_tree.PATH,
    },
    after=("zdb_config",),
    title="properties of the vdevs of",
)
def vdev_properties(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zpool get ... POOL all-vdevs``: properties of vdevs, from OpenZFS 2.2 on. (man 7 vdevprops)

    Works without root, and on a pool whose labels zdb cannot read. Cache devices and spares have none. The ashift of a leaf
    is that of its top-level vdev. A vdev with missing rows is cut off."""
    vdevs: dict[str, dict[str, str]] = {}
    for line in reply.text.split("\n")[:-1]:
        cells = line.split("\t")
        if len(cells) < 4:
            raise ValueError(f"not name, property, value and source: {line[:80]}")
        if cells[1] in _OF_VDEVS:
            vdev = vdevs.setdefault(cells[0], {})
            if cells[1] in vdev:
                raise ValueError(f"{cells[0][:80]} comes twice")
            vdev[cells[1]] = "\t".join(cells[2:-1])
    if "root-0" not in vdevs:
        raise ValueError("no root-0: not the vdevs of a pool")
    for name, vdev in vdevs.items():
        vdev |= dict.fromkeys((each for each in reply.lacks if each not in vdev), "-")
        if missing := [each for each in _OF_VDEVS if each not in vdev]:
            raise ValueError(f"{name[:80]} has no {missing[0]}: cut off")
        yield from _vdev(name, vdev, pool)
    if leaf_rows := _tree(vdevs, pool):
        text = f"{len({each.top for each in leaf_rows})} top-level vdevs, {len(leaf_rows)} leaves"
        yield Fact(pool, "get_tree", known(tuple(each.line() for each in leaf_rows), text, reply.command))


def _leaf(vdev: dict[str, str]) -> bool:
    """What is left of a removed vdev has no path."""
    return vdev["numchildren"] == "0" and vdev["path"] != "-"


def _tree(vdevs: dict[str, dict[str, str]], pool: Subject) -> list[LeafRow]:
    """All leaves, each with its top-level vdev; none where a vdev has other children than it says: then some are lost.

    parent is the kernel's name, which leaves out parity and layout: raidz-0 is raidz2-0, draid-0 is draid1:4d:11c:1s-0
    (vdev_name() in module/zfs/vdev.c)."""
    named = {_LAYOUT.sub(r"\1", name): name for name in vdevs}
    above = {name: named.get(vdev["parent"], "") for name, vdev in vdevs.items()}
    above |= {name: "root-0" for name, vdev in vdevs.items() if vdev["parent"] == pool.name}
    children = Counter(above.values())
    if any(str(children[name]) != vdev["numchildren"] for name, vdev in vdevs.items()):
        return []
    leaf_rows = []
    for name, vdev in vdevs.items():
        if _leaf(vdev):
            way = [name]
            while above[way[-1]] not in ("root-0", "", *way):
                way.append(above[way[-1]])
            path = "" if name == vdev["guid"] else vdev["path"]
            leaf_rows.append(LeafRow(way[-1], name, vdev["guid"], path))
    return leaf_rows


def _vdev(name: str, vdev: dict[str, str], pool: Subject) -> Iterator[Fact]:
    values: dict[str, Value] = {"guid": vdev["guid"]} if vdev["guid"].isdigit() else {}
    if vdev["parent"] == pool.name:
        # 0: a vdev that cannot be opened, or what is left of one that was removed
        numbers = {"ashift": pool_tree.count(vdev["ashift"]) or -1, "parity": pool_tree.count(vdev["parity"])}
        here = values | {key: value for key, value in numbers.items() if value >= 0}
        if here.get("ashift"):
            yield from _facts(Subject("vdev", name, pool.name), here, vdev, pool)
    if _leaf(vdev):
        if vdev["guid"] not in (name, "-"):  # a missing device: another disk may have the path now
            values["path"] = vdev["path"]
        yield from _facts(Subject("leaf", name, pool.name), values, vdev, pool)


def _facts(subject: Subject, values: dict[str, Value], vdev: dict[str, str], pool: Subject) -> Iterator[Fact]:
    for name, value in values.items():
        yield Fact(
            subject, name, known(value, f"{name}={vdev[name]}", f"zpool get -p {name} {quoted(pool.name)} {{subject}}")
        )


BUCKETS = 37  # VDEV_L_HISTO_BUCKETS: the last one has all that took longer
COLUMNS_OF_WAITS = (10, 11)  # the last one, of rebuilds, came with 2.2
DISK_WRITE, SYNC_WRITE = 3, 5  # disk_wait write, syncq_wait write
OVER = 30  # the bucket that begins with 2^30 ns, 1.07 s


@source(
    "zpool_iostat",
    "pool",
    ask=lambda pool, _: pool_tree.zpool("iostat", "-wvHp", pool.name),
    runs=(command("zpool iostat", "-wvHp", NAME),),
    facts={
        "pool.sync_writes_timed": Spec.number("synchronous writes that OpenZFS timed on its devices since the import"),
        "leaf.writes_timed": Spec.number("writes that OpenZFS timed since the import"),
        "leaf.sync_writes_timed": Spec.number("of them those of commits"),
        "leaf.writes_over_1s": Spec.number("of its writes those that took the device 1.07 s or longer"),
        "leaf.write_ms_p99": Spec.real(
            "99 % of its writes took the device this long or less, to a power of two: at least"
        ),
        "leaf.write_ms_p99_most": Spec.real("the same: at most"),
        "leaf.sync_queue_ms_p99": Spec.real(
            "99 % of its synchronous writes waited in OpenZFS's queue so long: at least"
        ),
        "leaf.sync_queue_ms_p99_most": Spec.real("the same: at most"),
    },
    adds=False,
    title="latencies of",
)
def latencies(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zpool iostat -w``: how long I/O took since the pool was imported, or the device was opened. (man 8 zpool-iostat)

    Of each vdev a line with its name, and 37 rows: the longest time of a power of two in ns, and how often total_wait,
    disk_wait, syncq_wait and asyncq_wait (each read and write), scrub, trim and rebuild took that long; the pool first. The
    same from 2.1.11 to 2.4.4. disk_wait counts all writes, syncq_wait those of commits; flushes are in neither. (OpenZFS
    module/zfs/vdev.c vdev_stat_update; cmd/zpool/zpool_main.c print_iostat_histo, 2.2.11)"""
    vdevs = _histograms(reply.text)
    if not vdevs or vdevs[0][0] != pool.name:
        raise ValueError(f"the first histogram is not that of {pool.name}")
    _, waits = vdevs[0]
    synced = sum(waits[SYNC_WRITE])
    yield Fact(pool, "sync_writes_timed", known(synced, f"{synced:,} synchronous writes were timed", reply.command))
    for name, waits in vdevs[1:]:
        if not pool_tree.top_type(name, children=True):
            yield from _latencies(Subject("leaf", name, pool.name), waits, reply.command)


def _histograms(text: str) -> list[tuple[str, list[list[int]]]]:
    """(name of a vdev, columns of counts by bucket), as they are printed. Raises ValueError for one that is cut off."""
    found = list[tuple[str, list[list[int]]]]()
    lines = iter([line for line in text.split("\n") if line])
    for name in lines:
        rows = [next(lines, "").split("\t") for _ in range(BUCKETS)]
        for bucket, row in enumerate(rows):
            if row[0] != str((2 << bucket) - 1) or len(row) - 1 not in COLUMNS_OF_WAITS:
                raise ValueError(f"{name[:80]}: not a histogram of latencies, or cut off")
        if min(cells := [pool_tree.count(each) for row in rows for each in row[1:]]) < 0 or len(cells) % BUCKETS:
            raise ValueError(f"{name[:80]}: a count is none")
        found.append((name, [[pool_tree.count(row[column]) for row in rows] for column in range(1, len(rows[0]))]))
    return found


def _latencies(leaf: Subject, waits: list[list[int]], command: str) -> Iterator[Fact]:
    writes, synced = waits[DISK_WRITE], waits[SYNC_WRITE]
    over = sum(writes[OVER:])
    for name, value, what in (
        ("writes_timed", sum(writes), "writes were timed"),
        ("sync_writes_timed", sum(synced), "synchronous writes were timed"),
        ("writes_over_1s", over, "writes took 1.07 s or longer"),
    ):
        yield Fact(leaf, name, known(value, f"{value:,} {what}", command))
    for name, histogram, what in (
        ("write_ms_p99", writes, "disk_wait of writes"),
        ("sync_queue_ms_p99", synced, "syncq_wait of writes"),
    ):
        if sum(histogram):
            least, most = quantile_ms(histogram, 99)
            text = f"{what}: 99 % of {sum(histogram):,} took {most:g} ms or less, not all of them {least:g} ms"
            yield Fact(leaf, name, known(least, text, command))
            yield Fact(leaf, f"{name}_most", known(most, text, command))


def quantile_ms(histogram: list[int], percent: int) -> tuple[float, float]:
    """The ends of the bucket in which this quantile lies, milliseconds; bucket N holds what took 2^N to 2^(N+1) ns."""
    rank = -(-sum(histogram) * percent // 100)
    bucket = next(bucket for bucket, seen in enumerate(accumulate(histogram)) if seen >= rank)
    return round((1 << bucket) / 1e6, 3), round((2 << bucket) / 1e6, 3)


# ``zdb -C``: the configuration of a pool, as its labels and the cache file have it. (man 8 zdb)

_LINE = re.compile(r"( *)([^\s:][^\[\]]*?)(?:\[(\d+)\])?:(?: (.*)|)")
_GONE = ("indirect", "hole", "missing")


class Node(NamedTuple):
    """An nvlist. values: name -> text as printed, without quotes. lists: name -> nested ones, in order."""

    values: dict[str, str]
    lists: dict[str, list[Node]]

    def number(self, name: str) -> int:
        text = self.values.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and int(text) < 1 << 63 else -1

    @property
    def children(self) -> list[Node]:
        return self.lists.get("children", [])


def configs(text: str) -> list[Node]:
    """All configurations in the text (``zdb`` without arguments prints those of all pools in the cache file).

    ValueError when one is cut off: fewer vdevs than vdev_children says, or no features_for_read after them."""
    top: list[Node] = []
    stack: list[tuple[int, Node]] = []
    for line in text.split("\n"):
        found = _LINE.fullmatch(line)
        if not found:
            continue
        indent, name, value = len(found[1]), found[2], found[4]
        name = f"{name}[{found[3]}]" if value and found[3] else name
        while stack and stack[-1][0] >= indent:
            stack.pop()
        if value:
            if stack and name in stack[-1][1].values:
                raise ValueError(f"zdb: {name} comes twice")
            if stack:
                stack[-1][1].values[name] = value[1:-1] if value[0] == value[-1] == "'" else value
            continue
        node = Node({}, {})
        if stack:
            stack[-1][1].lists.setdefault(name, []).append(node)
        elif indent == 0:
            top.append(node)
        stack.append((indent, node))
    for config in top:
        tree = config.lists.get("vdev_tree", [Node({}, {})])[0]
        whole = config.number("vdev_children") == len(tree.children) and "features_for_read" in config.lists
        if "name" in config.values and not whole:
            raise ValueError("zdb: the configuration is cut off")
    return top


@source(
    "zdb_config",
    "pool",
    ask=lambda pool, _: Run(("zdb", "-C", pool.name), package="zfsutils-linux"),
    runs=(command("zdb -C", others=NAME, apart="-e"),),
    facts={
        "pool.guid": pool_tree.GUID,
        "pool.zdb_tree": pool_tree.TREE,
        "vdev.ashift": pool_tree.ASHIFT,
        "vdev.guid": pool_tree.GUID,
        "vdev.asize_bytes": Spec.number("size that can be allocated"),
        "leaf.guid": pool_tree.GUID,
        "leaf.path": pool_tree.PATH,
    },
    after=("zpool_status",),  # the kernel module says what the pool is made of now
)
def config(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zdb -C``: the configuration of a pool as it is on disk: ashift of each vdev, paths, GUIDs. Needs root: else zdb
    dies in an ASSERT, as it aborts on a pool whose only disk is gone. Names are made of type, id and path as zpool makes
    them. is_log is there; special and dedup are not (they are in the vdev's ZAP). (man 8 zdb; dump_nvlist() in
    lib/libnvpair)"""
    found = [each for each in configs(reply.text) if each.values.get("name") == pool.name]
    if len(found) != 1:
        raise ValueError(f"not one configuration of {pool.name}")
    if (guid := found[0].values.get("pool_guid", "")).isdigit():
        yield Fact(pool, "guid", known(guid, f"pool_guid: {guid}", reply.command))
    tops = [each for each in found[0].lists["vdev_tree"][0].children if each.values.get("type") not in _GONE]
    for top in tops:
        yield from _top(top, pool, reply.command)
    leaf_rows = [_leaf_row(top, leaf) for top in tops for leaf in _leaves(top)]
    text = f"{len(tops)} top-level vdevs, {len(leaf_rows)} leaves"
    yield Fact(pool, "zdb_tree", known(tuple(each.line() for each in leaf_rows), text, reply.command))


def _leaf_row(top: Node, leaf: Node) -> LeafRow:
    """is_log is told, special and dedup are not: a leaf is of class log, or of one that is not said."""
    log = top.values.get("is_log")
    path = "" if "not_present" in leaf.values else leaf.values.get("path", "")
    allocation = {"1": "log", "0": "not log"}.get(log or "", "")
    return LeafRow(vdev_name(top), vdev_name(leaf), leaf.values.get("guid", ""), path, allocation)


def _top(top: Node, pool: Subject, command: str) -> Iterator[Fact]:
    name = vdev_name(top)
    if not name:
        raise ValueError(f"zdb: a vdev of type {top.values.get('type')} has no name")
    numbers = {"ashift": top.number("ashift"), "asize": top.number("asize")}
    yield from _config_facts(
        Subject("vdev", name, pool.name), top, {k: v for k, v in numbers.items() if v > 0}, command
    )
    for leaf in _leaves(top):
        values: dict[str, Value] = {}
        if "path" in leaf.values and "not_present" not in leaf.values:  # another disk may have the path now
            values["path"] = leaf.values["path"]
        yield from _config_facts(Subject("leaf", vdev_name(leaf), pool.name), leaf, values, command)


def _config_facts(
    subject: Subject, node: Node, values: dict[str, Value] | dict[str, int], command: str
) -> Iterator[Fact]:
    if node.number("guid") != 0 and node.values.get("guid", "").isdigit():
        yield Fact(subject, "guid", known(node.values["guid"], f"guid: {node.values['guid']}", command))
    for name, value in values.items():
        text = f"{name}: {node.values[name]} ({command})"
        yield Fact(subject, "asize_bytes" if name == "asize" else name, known(value, text, command))


def _leaves(node: Node) -> Iterator[Node]:
    if not node.children and node.values.get("type") not in _GONE:
        yield node
    for child in node.children:
        yield from _leaves(child)


def vdev_name(node: Node) -> str:
    """The name that zpool status shows: zpool_vdev_name() in lib/libzfs/libzfs_pool.c; empty when it cannot be told."""
    kind, path = node.values.get("type", ""), node.values.get("path", "")
    if "not_present" in node.values:
        return node.values.get("guid", "")
    if path:
        return pool_tree.display_name(path, node.values.get("whole_disk") == "1") if kind == "disk" else path
    if node.number("id") < 0 or not kind:
        return ""
    if kind == "raidz":
        kind += node.values.get("nparity", "")
    if kind == "draid":
        data, disks = node.number("draid_ndata"), len(node.children)
        parity, spares = node.number("nparity"), node.number("draid_nspares")
        if min(data, parity, spares) < 0:
            return ""
        total = node.number("draid_nchildren")  # several failure groups in one draid, since 2.4
        width = f"{total}c:{disks}w" if 0 < total < disks else f"{disks}c"
        kind += f"{parity}:{data}d:{width}:{spares}s"
    return f"{kind}-{node.number('id')}"


# ``zdb -i``: the intent log of a dataset that is not mounted.

_DATASET = re.compile(r"Dataset (\S[^[\n]*) \[\w+\], ID \d+, cr_txg \d+, [^\n]*\n")
_HEADER = re.compile(
    r"\n    ZIL header: claim_txg (\d{1,20}), claim_blk_seq \d+, claim_lr_seq \d+ replay_seq \d+, flags 0x([0-9a-f]{1,16})\n"
)
_MEANT = {"type": "filesystem", "mounted": False, "canmount": "on", "readonly": "off"}


def _log_of(dataset: Subject, facts: Facts) -> Run | Skip:
    """Where nothing is meant to be mounted, none is missed; a volume replays its log when it appears."""
    if any(facts.get(dataset, name).or_none() != value for name, value in _MEANT.items()):
        return Skip("it is mounted, or not meant to be", applies=False)
    return Run(("zdb", "-i", dataset.name), package="zfsutils-linux")


@source(
    "zdb_log",
    "dataset",
    ask=_log_of,
    runs=(command("zdb -i", others=NAME, apart="-e"),),
    facts={"log_claimed": Spec.flag("an import claimed its intent log, which waits for a mount to replay it")},
    adds=False,
    title="intent log of",
)
def intent_log(reply: Output, dataset: Subject) -> Iterator[Fact]:
    """``zdb -i``: the header of its intent log. Needs root, reads only, and opens the pool as ``zdb -C`` does.

    An import claims the log of each dataset with records (claim_txg, and ZIL_REPLAY_NEEDED, the first flag); the mount
    replays it and empties the header. (man 8 zdb; cmd/zdb/zdb_il.c dump_intent_log, module/zfs/zil.c zil_claim, zil_replay;
    the same from 2.1.0 to 2.4.4) Raises ValueError where it is the answer about another one."""
    first, header = _DATASET.match(reply.text), _HEADER.search(reply.text)
    if not first or first[1] != dataset.name or bool(header) != ("ZIL header" in reply.text):
        raise ValueError(f"no header of the log of {dataset.name}")
    claimed = header is not None and int(header[1]) > 0 and bool(int(header[2], 16) & 1)
    text = f"claim_txg {header[1]}, flags 0x{header[2]}" if header else "no log"
    yield Fact(dataset, "log_claimed", known(claimed, text, reply.command))
