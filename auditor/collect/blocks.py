"""From the path of a leaf down to the physical disks: partition, dm-crypt, LVM, md, multipath, bcache, loop. Pure.

A stack that cannot be followed to its end is unknown: a disk that was not found may be the one that lies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from auditor.facts import (
    Evidence,
    Fact,
    Facts,
    Known,
    Subject,
    Unknown,
    join,
    links as links_spec,
    unknown,
    word,
    words,
)

PROVIDES = {
    "leaf.disks": links_spec("disk", "the physical disks that hold it", nonempty=True),
    "leaf.node": word("kernel name of the block device that OpenZFS opened (nvme0n1p1, dm-0)"),
    "leaf.layers": words(
        "what lies between OpenZFS and the disks, outermost first: partition, crypt, lvm, multipath, md, loop, ..."
    ),
}
STACKED = ("dm", "md", "bcache")
DEPTH = 16  # deeper than any sane stack; ends a loop of loops
_DM = {"CRYPT": "crypt", "LVM": "lvm", "mpath": "multipath", "part1": "partition", "DMRAID": "dmraid"}


@dataclass(frozen=True, slots=True)
class Way:
    """disks: kernel names at the bottom. layers: what was passed. command: what shows it."""

    disks: tuple[str, ...]
    layers: tuple[str, ...]


def links(facts: Facts, inventory: Facts) -> Iterator[Fact]:
    """leaf.disks, leaf.node and leaf.layers of every leaf, from the block devices of the inventory."""
    nodes = _nodes(inventory)
    for leaf in list(facts.subjects("leaf")):
        match facts.get(leaf, "path"):
            case Unknown() as why:
                yield from (Fact(leaf, name, why) for name in ("disks", "node", "layers"))
            case Known(str(path)):
                yield from _leaf(leaf, path, facts, inventory, nodes)


def _nodes(inventory: Facts) -> dict[str, tuple[str, str]]:
    """Path under /dev, or bare kernel name -> (node, whole block device)."""
    found: dict[str, tuple[str, str]] = {}
    for disk in inventory.subjects("disk"):
        found[f"/dev/{disk.name}"] = (disk.name, disk.name)
        for source in ("partitions", "udev_partitions"):
            match inventory.get(disk, source):
                case Known(tuple() as parts):
                    found.update({f"/dev/{part}": (str(part), disk.name) for part in parts})
        match inventory.get(disk, "device_names"):
            case Known(tuple() as pairs):
                for pair in pairs:
                    path, _, node = str(pair).rpartition("=")
                    found[path] = (node, disk.name)
    return found


def _leaf(
    leaf: Subject, path: str, facts: Facts, inventory: Facts, nodes: dict[str, tuple[str, str]]
) -> Iterator[Fact]:
    kind = facts.get(leaf, "type")
    if kind == Known("file", getattr(kind, "evidence", ())):
        why = unknown(f"{path} is a file; the disk below its file system is not followed")
        yield from (Fact(leaf, name, why) for name in ("disks", "node", "layers"))
        return
    if path not in nodes:
        why = _unresolved(path, inventory)
        yield from (Fact(leaf, name, why) for name in ("disks", "node", "layers"))
        return
    node, disk = nodes[path]
    yield Fact(leaf, "node", Known(node, (Evidence(f"{path} is {node}", f"readlink -f {path}"),)))
    way = _down(disk, ("partition",) if node != disk else (), inventory, nodes)
    if isinstance(way, Unknown):
        yield Fact(leaf, "disks", way)
        yield Fact(leaf, "layers", way)
        return
    between = way.layers[1:] if node != disk else way.layers
    text = node if node in way.disks else " on ".join((node, *between, " and ".join(way.disks)))
    seen = (Evidence(text, f"lsblk -s /dev/{node}"),)
    yield Fact(leaf, "disks", Known(tuple(Subject("disk", name) for name in way.disks), seen))
    yield Fact(leaf, "layers", Known(way.layers, seen))


def _unresolved(path: str, inventory: Facts) -> Unknown:
    reasons = [
        why for disk in inventory.subjects("disk") if isinstance(why := inventory.get(disk, "device_names"), Unknown)
    ]
    if not any(True for _ in inventory.subjects("disk")):
        return unknown(f"{path}: no block device could be listed (/sys/class/block, udevadm info)")
    return unknown(
        f"{path}: no block device has this name now, or several claim it"
        + (" (udev did not answer)" if reasons else "")
    )


def _down(
    disk: str, layers: tuple[str, ...], inventory: Facts, nodes: dict[str, tuple[str, str]], depth: int = 0
) -> Way | Unknown:
    """Follow what a block device is made of until there is nothing below."""
    subject = Subject("disk", disk)
    transport, slaves = inventory.get(subject, "transport"), inventory.get(subject, "slaves")
    stacked = isinstance(transport, Known) and transport.value in STACKED
    if isinstance(slaves, Known) and not slaves.value and not stacked:
        return Way((disk,), layers)
    if isinstance(slaves, Unknown):
        return slaves if stacked or isinstance(transport, Unknown) else Way((disk,), layers)
    assert isinstance(slaves.value, tuple)
    if not slaves.value or depth > DEPTH:
        return unknown(f"/sys/class/block/{disk}/slaves: does not lead to a disk")
    layers += (_layer(subject, str(transport.value) if isinstance(transport, Known) else "stacked", inventory),)
    ways = []
    for name in slaves.value:
        node, below = nodes.get(f"/dev/{name}", (str(name), str(name)))
        ways.append(_down(below, layers, inventory, nodes, depth + 1))
    unknowns = [way for way in ways if isinstance(way, Unknown)]
    if unknowns:
        return join(unknowns)
    found = [way for way in ways if isinstance(way, Way)]
    return Way(
        tuple(sorted({name for way in found for name in way.disks})),
        tuple(dict.fromkeys(layer for way in found for layer in way.layers)),
    )


def _layer(disk: Subject, transport: str, inventory: Facts) -> str:
    """crypt, lvm, multipath, raid1, ...: dm says it in the prefix of its UUID, md in its level."""
    if transport == "dm":
        match inventory.get(disk, "dm_uuid"):
            case Known(str(uuid)):
                return _DM.get(uuid.partition("-")[0], "dm")
        return "dm"
    if transport == "md":
        match inventory.get(disk, "md_level"):
            case Known(str(level)):
                return f"md-{level}"
    return transport
