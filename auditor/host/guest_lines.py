"""What is kept of the command line of a virtual machine: its name, who started it, its disks on this host, and whether their
flushes are dropped. All the rest (secrets, addresses, keys) is not.

With cache=unsafe, or no-flush=on of a node, QEMU completes the flushes of its guest and asks the host for none. An option
that is not given is inherited by the nodes below. (QEMU documentation, qemu-block-drivers and invocation, -drive cache=;
block.c bdrv_inherited_options; block/io.c bdrv_co_flush: BDRV_O_NO_FLUSH)

qemu-storage-daemon takes the same -blockdev, and qemu-nbd --cache=unsafe and one image: what they serve to others is a disk
of a virtual machine or of this host (/dev/nbd0). (man 1 qemu-storage-daemon; man 8 qemu-nbd)

Proxmox VE gives its guests an option of its own, -id; libvirt writes guest= before their names. (qemu-server
config_to_command; libvirt qemuBuildNameCommandLine)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from auditor.databases.engine import WITHHELD, place

# NixOS starts programs through wrappers
# distributions put something before and behind the name, and NixOS starts programs through wrappers. Those of other makers, and
# servers of disks, have their settings elsewhere
PROGRAM = re.compile(
    r"(?:.*/)?\.?(?:kvm|qemu-kvm|qemu-dm|(?:[a-z0-9]+-)?qemu-system-[a-z0-9_]+|(?P<serves>qemu-(?:nbd|storage-daemon)"
    r"|firecracker|cloud-hypervisor|crosvm|nbdkit|nbd-server|spdk_tgt))(?:-[\w.]{1,20}){0,3}",
    re.DOTALL | re.ASCII,
)
NBD, SAME = "qemu-nbd", "qemu-storage-daemon"
GUEST, KEEPS, DROPS, UNSURE = "guest ", "keeps ", "drops ", "unsure"
BY, PROXMOX, LIBVIRT = "by ", "proxmox", "libvirt"
CHARACTERS, DEPTH, DISKS = 1 << 17, 16, 256
_NAME = re.compile(r"[\w.+:@-]{1,64}", re.ASCII)
_KEPT = re.compile(r"(?:keeps|drops) (.+)|unsure|by (?:proxmox|libvirt)|guest (\S+)")
_ON = ("on", "yes", "true", "y")
# how QEMU spells that what follows is a path of this host. (block/file-posix.c, protocol_name)
_PROTOCOL = re.compile(r"^(?:file|host_device|host_cdrom):")
_JSON = "json:"


def kept(text: str) -> str | None:
    """A line ``guest NAME``, one ``by WHO`` where it shows who started it, then one for each disk; None where it is no
    virtual machine. What was kept is kept again."""
    if text.startswith(GUEST):
        return text if all(map(_was_kept, text.splitlines())) else f"{GUEST}{WITHHELD}\n{UNSURE}\n"
    words = text[:CHARACTERS].rstrip("\0").split("\0")
    if not (program := PROGRAM.fullmatch(words[0])):
        return None
    given = list(zip(words[1:], [*words[2:], ""], strict=False))
    disks = [UNSURE] if len(text) > CHARACTERS else []
    if (serves := program["serves"]) and serves != SAME:
        disks += _served(words[1:]) if serves == NBD else [UNSURE]
        given = []
    for option, value in given:
        try:
            disks += _disks(option.lstrip("-") if option.startswith("-") else "", value)
        except (ValueError, RecursionError):
            disks.append(UNSURE)
    found = [*dict.fromkeys(disks)]
    if len(found) > DISKS:  # nobody has so many
        found[DISKS:] = [UNSURE]
    name = serves or _name(given)
    return "".join(f"{each}\n" for each in (GUEST + name, *_starter(given), *found))


def _was_kept(line: str) -> bool:
    found = _KEPT.fullmatch(line)
    if not found:
        return False
    return place(found[1]) if found[1] else not found[2] or found[2] == WITHHELD or bool(_NAME.fullmatch(found[2]))


def _name(given: Sequence[tuple[str, str]]) -> str:
    for option, value in given:
        if option in ("-name", "--name"):
            keys = _pairs(value)
            name = keys.get("guest") or value.partition(",")[0]
            return name if _NAME.fullmatch(name) else WITHHELD
    return WITHHELD


def _served(words: Sequence[str]) -> Iterator[str]:
    """Of qemu-nbd: its image comes last, as everybody writes it; what it has open tells where it does not."""
    shortened = any(word.startswith("--ca") and word.partition("=")[0] != "--cache" for word in words)
    if "--image-opts" in words or shortened or not words or words[-1].startswith("-"):
        yield UNSURE
        return
    said = [after or "" for word, after in zip(words, [*words[1:], None], strict=True) if word == "--cache"]
    said += [word.partition("=")[2] for word in words if word.startswith("--cache=")]
    yield from _disk(words[-1], drops="unsafe" in said)


def _starter(given: Sequence[tuple[str, str]]) -> Iterator[str]:
    if any(option == "-id" and value.isdecimal() for option, value in given):
        yield BY + PROXMOX
    elif any(option == "-name" and value.startswith("guest=") for option, value in given):
        yield BY + LIBVIRT


def _disks(option: str, value: str) -> Iterator[str]:
    """Raises ValueError for what is not understood."""
    match option:
        case "drive" | "blockdev":
            tree = _tree(json.loads(value) if value.startswith("{") else _pairs(value))
            if isinstance(tree.get("file"), str) and option == "drive":
                tree["filename"] = tree.pop("file")
            yield from _nodes(tree, drops=False, depth=0)
        case "hda" | "hdb" | "hdc" | "hdd" | "cdrom" | "fda" | "fdb" | "sd" | "pflash" | "mtdblock":
            yield from _disk(value, drops=False)
        case "readconfig":
            yield UNSURE
        case "set" if value.startswith("drive."):
            yield UNSURE


def _pairs(value: str) -> dict[str, str]:
    """``key=value`` between commas; two commas stand for one, and a key alone is on."""
    parts = (each.replace("\0", ",").partition("=") for each in value.replace(",,", "\0").split(","))
    return {key: text if equals else "on" for key, equals, text in parts}


def _tree(pairs: Any, depth: int = 0) -> dict[str, Any]:
    """``file.cache.no-flush=on`` as a tree of nodes; JSON may spell its keys so, too."""
    if not isinstance(pairs, Mapping) or depth > DEPTH:
        raise ValueError("no node")
    tree: dict[str, Any] = {}
    for key, value in pairs.items():
        *above, last = key.split(".")
        node = tree
        for each in above[:DEPTH]:
            below = node.setdefault(each, {})
            node = below if isinstance(below, dict) else node.setdefault(f"{each}.", {})
        if isinstance(value, Mapping):
            value = {**(there if isinstance(there := node.get(last), dict) else {}), **_tree(value, depth + 1)}
        if isinstance(there := node.get(last), dict) and not isinstance(
            value, Mapping
        ):  # cache=WORD beside cache.no-flush
            node[f"{last}."] = there
        node[last] = value
    return tree


def _nodes(node: Mapping[str, Any], *, drops: bool, depth: int) -> Iterator[str]:
    """The files and devices of a node and those below it."""
    if depth > DEPTH:
        raise ValueError("nested too deeply")
    cache = node.get("cache")
    if isinstance(cache, str):
        drops, cache = cache == "unsafe", node.get("cache.")
    if isinstance(cache, Mapping) and "no-flush" in cache:  # before the word (blockdev.c drive_new)
        drops = cache["no-flush"] in (True, *_ON)
    if isinstance(path := node.get("filename"), str):
        yield from _disk(path, drops=drops and not _reads_only(node), depth=depth)
    for name, below in node.items():
        if isinstance(below, Mapping) and name not in ("cache", "cache."):
            yield from _nodes(below, drops=drops, depth=depth + 1)


def _reads_only(node: Mapping[str, Any]) -> bool:
    return node.get("media") == "cdrom" or any(node.get(each) in (True, *_ON) for each in ("read-only", "readonly"))


def _disk(path: str, *, drops: bool, depth: int = 0) -> Iterator[str]:
    """What is no path of this host (a server, a pool of another storage) is none of its disks."""
    if path.startswith(_JSON):
        yield from _nodes(_tree(json.loads(path.removeprefix(_JSON))), drops=drops, depth=depth + 1)
        return
    path = _PROTOCOL.sub("", path)
    if place(path):
        yield (DROPS if drops else KEEPS) + path
    elif path.startswith(("/", ".")) or ":" not in path:
        yield UNSURE
