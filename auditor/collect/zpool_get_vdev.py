"""``zpool get ... POOL all-vdevs``: properties of vdevs, from OpenZFS 2.2 on. (man 7 vdevprops)

Without root, and also on a pool whose labels zdb cannot read. Cache devices and spares have none: zpool says so on
stderr and ends with 0. "all-vdevs" needs the name of the pool before it. The ashift of a leaf is that of its top-level
vdev, so it is read there only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from auditor.collect._pool_tree import ASHIFT, GUID, PARITY, PATH, TREE, Told, count, speaks, zpool
from auditor.facts import Fact, Facts, Subject, Value, flag, known
from auditor.host.request import Output, Request, Skip
from auditor.text import quoted

PER = "pool"
AFTER = ("zdb_config",)
SUBJECT = ("pool", "vdev", "leaf")
FACTS = {
    "pool.get_tree": TREE,
    "vdev.ashift": ASHIFT,
    "vdev.guid": GUID,
    "vdev.parity": PARITY,
    "leaf.guid": GUID,
    "leaf.path": PATH,
    "leaf.failfast": flag("I/O to it fails fast while others can take over"),
}
_PROPERTIES = ("ashift", "guid", "parity", "path", "parent", "numchildren", "failfast")
_LAYOUT = re.compile(r"^(raidz|draid)[\d:a-z]+")


def request(pool: Subject, facts: Facts) -> Request:
    """Not before 2.2, whose kernel module has to have it too."""
    if not speaks(facts, 2, 2):
        return Skip("properties of vdevs need OpenZFS 2.2 or later", applies=False)
    return zpool("get", "-Hp", "-o", "name,property,value,source", ",".join(_PROPERTIES), pool.name, "all-vdevs")


def parse(reply: Output, pool: Subject) -> Iterator[Fact]:
    """The rows of each vdev follow each other; a vdev of which rows are missing is cut off."""
    vdevs: dict[str, dict[str, str]] = {}
    for line in reply.text.split("\n")[:-1]:
        cells = line.split("\t")
        if len(cells) < 4:
            raise ValueError(f"not name, property, value and source: {line[:80]}")
        if cells[1] in _PROPERTIES:
            vdev = vdevs.setdefault(cells[0], {})
            if cells[1] in vdev:
                raise ValueError(f"{cells[0][:80]} comes twice")
            vdev[cells[1]] = "\t".join(cells[2:-1])
    if "root-0" not in vdevs:
        raise ValueError("no root-0: not the vdevs of a pool")
    for name, vdev in vdevs.items():
        vdev |= dict.fromkeys((each for each in reply.lacks if each not in vdev), "-")
        if missing := [each for each in _PROPERTIES if each not in vdev]:
            raise ValueError(f"{name[:80]} has no {missing[0]}: cut off")
        yield from _vdev(name, vdev, pool)
    if told := _tree(vdevs, pool):
        text = f"{len({each.top for each in told})} top-level vdevs, {len(told)} leaves"
        yield Fact(pool, "get_tree", known(tuple(each.line() for each in told), text, reply.command))


def _leaf(vdev: dict[str, str]) -> bool:
    """What is left of a removed vdev has no path."""
    return vdev["numchildren"] == "0" and vdev["path"] != "-"


def _tree(vdevs: dict[str, dict[str, str]], pool: Subject) -> list[Told]:
    """All leaves, each with its top-level vdev; none where a vdev has other children than it says: then some are lost.

    parent is the kernel's name, which leaves out parity and layout: raidz-0 is raidz2-0, draid-0 is draid1:4d:11c:1s-0
    (vdev_name() in module/zfs/vdev.c).
    """
    named = {_LAYOUT.sub(r"\1", name): name for name in vdevs}
    above = {name: named.get(vdev["parent"], "") for name, vdev in vdevs.items()}
    above |= {name: "root-0" for name, vdev in vdevs.items() if vdev["parent"] == pool.name}
    children = Counter(above.values())
    if any(str(children[name]) != vdev["numchildren"] for name, vdev in vdevs.items()):
        return []
    told = []
    for name, vdev in vdevs.items():
        if _leaf(vdev):
            way = [name]
            while above[way[-1]] not in ("root-0", "", *way):
                way.append(above[way[-1]])
            path = "" if name == vdev["guid"] else vdev["path"]
            told.append(Told(way[-1], name, vdev["guid"], path))
    return told


def _vdev(name: str, vdev: dict[str, str], pool: Subject) -> Iterator[Fact]:
    values: dict[str, Value] = {"guid": vdev["guid"]} if vdev["guid"].isdigit() else {}
    if vdev["parent"] == pool.name:
        # 0: a vdev that cannot be opened, or what is left of one that was removed
        numbers = {"ashift": count(vdev["ashift"]) or -1, "parity": count(vdev["parity"])}
        here = values | {key: value for key, value in numbers.items() if value >= 0}
        if here.get("ashift"):
            yield from _facts(Subject("vdev", name, pool.name), here, vdev, pool)
    if _leaf(vdev):
        if vdev["guid"] not in (name, "-"):  # a missing device: another disk may have the path now
            values["path"] = vdev["path"]
        if vdev["failfast"] in ("on", "off"):
            values["failfast"] = vdev["failfast"] == "on"
        yield from _facts(Subject("leaf", name, pool.name), values, vdev, pool)


def _facts(subject: Subject, values: dict[str, Value], vdev: dict[str, str], pool: Subject) -> Iterator[Fact]:
    for name, value in values.items():
        yield Fact(
            subject, name, known(value, f"{name}={vdev[name]}", f"zpool get -p {name} {quoted(pool.name)} {{subject}}")
        )
