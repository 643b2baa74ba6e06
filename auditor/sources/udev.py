"""``udevadm info --export-db``"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from auditor.facts import HOST, Fact, Spec, Subject, known
from auditor.host.request import Output, Run, command
from auditor.sources.block_devices import DeviceName
from auditor.sources.source import source
from auditor.text import unescaped


class Label(NamedTuple):
    """Of a pool, on a device. guid: in decimal; disk: the whole device that the node is on; pool: its name."""

    guid: str
    node: str
    disk: str
    pool: str


COMMAND = "udevadm info /dev/{subject}"


# Of a partition table (ID_PART_ENTRY_TYPE of blkid): the reserve that OpenZFS leaves at the end of a disk, boot code, EFI
# system (FAT, written to when a kernel is installed), swap, Microsoft's reserve. (UEFI Specification; util-linux
# include/pt-gpt-partnames.h)
_QUIET = frozenset(
    {
        "6a945a3b-1dd2-11b2-99a6-080020736631",
        *("21686148-6449-6e6f-744e-656564454649", "9e1a2d38-c612-4316-aa26-8b49521e5a8b", "0x41"),
        *("c12a7328-f81f-11d2-ba4b-00a0c93ec93b", "0xef"),
        *("0657fd6d-a4ab-43c4-84e5-0933c84b4f4f", "0x82"),
        "e3c9e316-0b5c-4db8-817d-f92df00215ae",
    }
)
_PRIORITY = re.compile(r"-?\d{1,9}")


class Device(NamedTuple):
    """One block device.

    name: its node under /dev, without /dev/ ("nvme0n1p1", "cciss/c0d0"). devtype: "disk" or "partition". disk: the
    name of the whole block device (its own, unless it is a partition). path: DEVPATH. links: other paths under /dev
    that it claims, with /dev/. priority: of those claims. properties: all E: lines.
    """

    name: str
    devtype: str
    disk: str
    path: str
    links: tuple[str, ...]
    priority: int
    properties: Mapping[str, str]


@lru_cache(maxsize=1)  # two sources read the same answer
def block_devices(text: str) -> Mapping[str, Device]:
    """All block devices by name, in the order of the database; raises ValueError when it is cut off inside a record."""
    *records, rest = re.split(r"\n{2,}", text)
    if rest.strip():
        raise ValueError("the database is cut off: no blank line after the last record")
    found = (_device(record) for record in records)
    return {device.name: device for device in found if device}


def _device(record: str) -> Device | None:
    """One record; None when it is not a block device, or says too little of itself."""
    if "\nE: SUBSYSTEM=block" not in record:  # most devices of a host are none
        return None
    node, priority, links, properties = "", 0, [], {}
    for line in record.split("\n"):
        tag = line[:3]
        if tag == "E: " and "=" in line:
            key, _, value = line[3:].partition("=")
            properties[key] = value
        elif tag == "S: ":
            links.append(f"/dev/{line[3:]}")
        elif tag == "N: ":
            node = line[3:]
        elif tag == "L: " and _PRIORITY.fullmatch(line[3:]):
            priority = int(line[3:])
    path, devtype = properties.get("DEVPATH", ""), properties.get("DEVTYPE", "")
    if properties.get("SUBSYSTEM") != "block" or not path or devtype not in ("disk", "partition"):
        return None
    name = node or path.rpartition("/")[2].replace("!", "/")
    disk = path.split("/")[-2].replace("!", "/") if devtype == "partition" and path.count("/") > 1 else name
    return Device(name, devtype, disk, path, tuple(dict.fromkeys(links)), priority, properties)


def names(found: Mapping[str, Device]) -> dict[str, str]:
    """Path under /dev -> name of the device that it denotes; paths which several devices claim equally are left out."""
    best: dict[str, tuple[int, str]] = {}
    for device in found.values():
        for link in device.links:
            priority, name = best.get(link, (device.priority - 1, ""))
            if device.priority > priority:
                best[link] = device.priority, device.name
            elif device.priority == priority and device.name != name:
                best[link] = priority, ""
    nodes = {f"/dev/{name}": name for name in found}
    return {link: name for link, (_, name) in best.items() if name} | nodes


@source(
    "udev",
    "host",
    ask=Run(("udevadm", "info", "--export-db"), package="udev"),
    facts={
        "udev_vendor": Spec.word("vendor"),
        "udev_model": Spec.word("model"),
        "udev_serial": Spec.word("serial number"),
        "udev_wwn": Spec.word("world-wide name"),
        "udev_firmware": Spec.word("firmware revision"),
        "udev_path": Spec.word("ID_PATH: the persistent path of the slot"),
        "udev_partitions": Spec.words("kernel names of the partitions"),
        "udev_quiet_partitions": Spec.words("those of a type that next to nothing is written to"),
        "devlinks": Spec.words("every path under /dev that denotes the whole disk"),
        "device_names": Spec.rows(DeviceName, "every path under /dev that denotes the disk or one of its partitions"),
    },
    subject="disk",
)
def devices(reply: Output, host: Subject) -> Iterator[Fact]:
    """``udevadm info --export-db``: the names, paths and identities of block devices. (man udevadm; systemd udevadm-info.c)

    Records are ``P: device path``, ``N: node``, ``L: link priority``, ``S: link`` and ``E: KEY=value`` lines, a blank line
    after each. Several devices may claim the same link (all members of a pool claim ``disk/by-label/POOL``); the one with the
    highest priority has it, and between equals nobody can tell from here."""
    found = block_devices(reply.text)
    if not found:
        raise ValueError("no block device in it")
    paths: dict[str, list[DeviceName]] = {}
    for path, name in sorted(names(found).items(), key="=".join):
        paths.setdefault(found[name].disk, []).append(DeviceName(path, name))
    parts: dict[str, list[str]] = {}
    for device in found.values():
        if device.devtype == "partition":
            parts.setdefault(device.disk, []).append(device.name)
    for device in found.values():
        if device.devtype != "disk":
            continue
        disk = Subject("disk", device.name)
        for fact, (key, value) in _identity(device).items():
            if value:
                yield Fact(disk, fact, known(value, f"{key}={value}", COMMAND))
        mine = tuple(path for path, name in paths[device.name] if name == device.name)
        inside = tuple(sorted(parts.get(device.name, ())))
        yield Fact(disk, "udev_partitions", known(inside, " ".join(inside) or "no partitions", COMMAND))
        quiet = tuple(each for each in inside if found[each].properties.get("ID_PART_ENTRY_TYPE") in _QUIET)
        yield Fact(disk, "udev_quiet_partitions", known(quiet, " ".join(quiet) or "none of these", COMMAND))
        yield Fact(disk, "devlinks", known(mine, " ".join(mine), COMMAND))
        pairs = tuple(paths[device.name])
        yield Fact(disk, "device_names", known(pairs, f"{len(pairs)} paths", COMMAND))


def _identity(device: Device) -> dict[str, tuple[str, str]]:
    """Fact -> (property that says so, value or empty)."""
    get = device.properties.get

    def first(*keys: str) -> tuple[str, str]:
        return next(((key, value) for key in keys if (value := get(key, "").strip())), (keys[0], ""))

    encoded = unescaped(get("ID_MODEL_ENC", "")).strip()
    serial = ("ID_SCSI_SERIAL", "ID_SERIAL_SHORT") if get("ID_BUS") == "scsi" else ("ID_SERIAL_SHORT", "ID_SERIAL")
    return {
        "udev_vendor": first("ID_VENDOR"),
        "udev_model": ("ID_MODEL_ENC", encoded) if encoded else first("ID_MODEL"),
        "udev_serial": first(*serial),
        "udev_wwn": first("ID_WWN_WITH_EXTENSION", "ID_WWN"),
        "udev_firmware": first("ID_REVISION"),
        "udev_path": first("ID_PATH"),
    }


CONTENTS_COMMAND = "lsblk -o NAME,FSTYPE,LABEL,UUID"
_OF_OTHERS = re.compile(r"(?:zd|loop|nbd|rbd|ram|zram)\d.*")
_OF_THIS_HOST = ("mpath-", "CRYPT-")


@source(
    "udev_contents",
    "host",
    ask=lambda host, facts: devices.request(host, facts),
    runs=(command("udevadm info --export-db"),),
    facts={
        "zfs_labels": Spec.rows(Label, "labels of pools on devices of this host"),
        "labelled_paths": Spec.rows(DeviceName, "every path under /dev that denotes one of these devices"),
    },
)
def contents(reply: Output, host: Subject) -> Iterator[Fact]:
    """``udevadm info --export-db``: which block devices of this host bear labels of pools.

    blkid read them when they came, or when somebody last closed them after writing: a label can be older than what is on the
    device by now. (util-linux libblkid/src/superblocks/zfs.c: ID_FS_LABEL is the name of the pool, ID_FS_UUID its GUID in
    decimal; systemd 60-block.rules)

    A cache device or spare has a label without a pool. Not of this host: zvols, and what is mapped for others or by any local
    user (loop, nbd, rbd, volumes of LVM, which are disks of guests for the most part). Paths of a multipath device and legs of
    md are below what bears the label. All facts; none where blkid found nothing on any device, as where it was not asked.
    Raises ValueError where the database is cut off or empty, as in a container."""
    found = block_devices(reply.text)
    block_devices.cache_clear()  # for the rest of the run it would be 20 KiB a drive
    if not found:
        raise ValueError("no block device in it")
    if not any("ID_FS_TYPE" in device.properties for device in found.values()):
        return
    labels = {name: told for name, device in found.items() if (told := _label(device, found.get(device.disk, device)))}
    text = "; ".join(f"{name}: {told[1]}" for name, told in labels.items()) or "no device bears a label of a pool"
    lines = tuple(Label(guid, name, found[name].disk, pool) for name, (guid, pool) in labels.items())
    yield Fact(HOST, "zfs_labels", known(lines, text, CONTENTS_COMMAND))
    paths = tuple(DeviceName(path, name) for path, name in sorted(names(found).items()) if name in labels)
    yield Fact(HOST, "labelled_paths", known(paths, f"{len(paths)} paths", CONTENTS_COMMAND))


def _label(device: Device, disk: Device) -> tuple[str, str] | None:
    """GUID and name of the pool; None where it bears no label, or is not this host's own."""
    get = device.properties.get
    guid, pool = get("ID_FS_UUID", ""), get("ID_FS_LABEL", "")
    if get("ID_FS_TYPE") != "zfs_member" or not (guid or pool):
        return None
    if guid and not (guid.isascii() and guid.isdigit()):
        return None
    if _OF_OTHERS.fullmatch(device.name) or disk.properties.get("DM_MULTIPATH_DEVICE_PATH") == "1":
        return None
    if device.name.startswith("dm-") and not any(kind in get("DM_UUID", "") for kind in _OF_THIS_HOST):
        return None
    return guid, pool
