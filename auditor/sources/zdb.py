"""``zdb -C``: the configuration of a pool, as its labels and the cache file have it. (man 8 zdb)"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from auditor.facts import Fact, Spec, Subject, Value, known
from auditor.host.request import NAME, Output, Run, command
from auditor.sources.pool_tree import ASHIFT, GUID, PATH, TREE, LeafRow, display_name
from auditor.sources.source import source

_LINE = re.compile(r"( *)([^\s:][^\[\]]*?)(?:\[(\d+)\])?:(?: (.*)|)")
_GONE = ("indirect", "hole", "missing")


class Node(NamedTuple):
    """An nvlist. values: name -> text as printed, without quotes. lists: name -> nested ones, in order."""

    values: dict[str, str]
    lists: dict[str, list[Node]]

    def number(self, name: str) -> int:
        """An unsigned number; -1 when it is not there."""
        text = self.values.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and int(text) < 1 << 63 else -1

    @property
    def children(self) -> list[Node]:
        """The vdevs below."""
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
        "pool.guid": GUID,
        "pool.zdb_tree": TREE,
        "vdev.ashift": ASHIFT,
        "vdev.guid": GUID,
        "vdev.asize_bytes": Spec.number("size that can be allocated"),
        "leaf.guid": GUID,
        "leaf.path": PATH,
    },
    after=("zpool_status",),  # the kernel module says what the pool is made of now
)
def config(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zdb -C``: the configuration of a pool as it is on disk: ashift of each vdev, paths, GUIDs. Needs root.

    The names are made of type, id and path as zpool makes them. is_log is in it; special and dedup are not (they are in the
    vdev's ZAP), so the class of other vdevs is not told from here. Without root zdb dies in an ASSERT; on a pool whose only
    disk is gone it aborts. (man 8 zdb; dump_nvlist() in lib/libnvpair)"""
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
    yield from _facts(Subject("vdev", name, pool.name), top, {k: v for k, v in numbers.items() if v > 0}, command)
    for leaf in _leaves(top):
        values: dict[str, Value] = {}
        if "path" in leaf.values and "not_present" not in leaf.values:  # another disk may have the path now
            values["path"] = leaf.values["path"]
        yield from _facts(Subject("leaf", vdev_name(leaf), pool.name), leaf, values, command)


def _facts(subject: Subject, node: Node, values: dict[str, Value] | dict[str, int], command: str) -> Iterator[Fact]:
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
        return display_name(path, node.values.get("whole_disk") == "1") if kind == "disk" else path
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


SOURCES = (config,)
