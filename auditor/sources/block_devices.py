"""Block devices, as ``/sys/class/block``, ``/dev`` and the device mapper have them. (Linux
Documentation/ABI/stable/sysfs-block)"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from auditor.facts import HOST, Fact, Facts, Known, Scalar, Spec, Subject, Unknown, known
from auditor.host.request import Files, Output, Read, Run, Skip, command
from auditor.sources.source import source
from auditor.text import argument


class DeviceName(NamedTuple):
    """path: under /dev. node: the device that it denotes, as the kernel calls it."""

    path: str
    node: str


TRANSPORTS = (
    "nvme", "nvme-tcp", "nvme-rdma", "nvme-fc", "nvme-loop",
    "sata", "sas", "fc", "iscsi", "scsi", "usb", "mmc", "pmem", "dasd",
    "virtio", "virtio-scsi", "xen", "hyperv",
    "loop", "dm", "md", "bcache", "zvol", "ram", "zram", "nbd", "rbd", "drbd",
)  # fmt: skip
NO_DRIVE = frozenset({"loop", "dm", "md", "bcache", "zvol", "ram", "zram", "nbd", "rbd", "drbd"})


_NAMES = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"loop\d+", "loop"),
        (r"dm-\d+", "dm"),
        (r"md(\d+|_.+)", "md"),
        (r"bcache\d+", "bcache"),
        (r"zd\d+", "zvol"),
        (r"zram\d+", "zram"),
        (r"ram\d+", "ram"),
        (r"nbd\d+", "nbd"),
        (r"rbd\d+", "rbd"),
        (r"drbd\d+", "drbd"),
        (r"pmem\d.*", "pmem"),
        (r"dasd[a-z]+", "dasd"),
        (r"mmcblk\d+.*", "mmc"),
        (r"xvd[a-z]+", "xen"),
    )
)
_PATHS = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"/usb\d+/", "usb"),
        (r"/ata\d+/", "sata"),
        (r"/virtio\d+/host\d+/", "virtio-scsi"),
        (r"/virtio\d+/block/", "virtio"),
        (r"/(VMBUS:|MSFT1000:)\d+/", "hyperv"),
        (r"/vbd-\d+", "xen"),
        (r"/session\d+/target", "iscsi"),
        (r"/rport-\d+:", "fc"),
        (r"/end_device-\d+:", "sas"),
        (r"/mmc_host/", "mmc"),
        (r"/host\d+/target\d+:", "scsi"),
    )
)


def transport(path: str, name: str, *, ata: bool = False) -> str:
    """One of TRANSPORTS, or empty when the path does not tell.

    path: under /sys. name: the kernel's. ata: the drive speaks ATA, which a SAS controller hides from the path. Of a
    virtual NVMe device (multipath, fabrics) only its controllers know: empty."""
    for pattern, transport in _NAMES:
        if pattern.fullmatch(name):
            return transport
    if name.startswith("nvme"):
        return "" if "/virtual/" in path else "nvme"
    found = next((transport for pattern, transport in _PATHS if pattern.search(path)), "")
    return "sata" if ata and found in ("sas", "scsi") else found


QUEUE = ("write_cache", "fua", "rotational", "logical_block_size", "physical_block_size")
DEVICE = ("model", "serial", "firmware_rev", "rev", "vendor", "type", "address", "transport", "subsysnqn")
NVME = ("transport", "model", "serial", "firmware_rev", "subsysnqn", "address")
CLASS, BLOCK, CONTROLLERS = "/sys/class/block/", "/sys/block/", "/sys/class/nvme/"


_NODE = re.compile(r"nvme(\d+)n(\d+)")
_PATH_NODE = re.compile(r"nvme(\d+)c\d+n(\d+)")  # one hidden path of a multipath namespace: has no node under /dev
_CONTROLLER = re.compile(r"/(nvme\d+)/[^/]+$")
_BY_TRANSPORT = {"pcie": "nvme", "apple-nvme": "nvme"} | {
    each: f"nvme-{each}" for each in ("tcp", "rdma", "fc", "loop")
}
_FLAGS = {"fua": "queue/fua", "rotational": "queue/rotational", "removable": "removable"}
_BYTES = {"logical_block_bytes": "queue/logical_block_size", "physical_block_bytes": "queue/physical_block_size"}
_TEXTS = {
    "sysfs_vendor": ("device/vendor",),
    "sysfs_model": ("device/model",),
    "sysfs_serial": ("device/serial", "serial"),
    "sysfs_firmware": ("device/firmware_rev", "device/rev"),
    "sysfs_subsystem_nqn": ("device/subsysnqn",),
    "loop_backing_file": ("loop/backing_file",),
    "dm_name": ("dm/name",),
    "dm_uuid": ("dm/uuid",),
    "md_level": ("md/level",),
    "virtio_cache_type": ("cache_type",),
}
_STAT = {"writes": 4, "write_sectors": 6, "flushes": 15, "write_ms": 7, "flush_ms": 16}


@source(
    "block_sysfs",
    "host",
    ask=Read(
        (
            f"{CLASS}*",
            f"{CLASS}*/partition",
            f"{CLASS}*/slaves/*",
            *(f"{BLOCK}*/queue/{name}" for name in QUEUE),
            *(f"{BLOCK}*/{name}" for name in ("stat", "size", "removable", "serial", "cache_type")),
            *(f"{BLOCK}*/device/{name}" for name in DEVICE),
            *(f"{BLOCK}*/{name}" for name in ("loop/backing_file", "dm/name", "dm/uuid", "md/level")),
            f"{BLOCK}*/device/scsi_disk/*/cache_type",
            *(f"{CONTROLLERS}*/{name}" for name in NVME),
        )
    ),
    facts={
        "transport": Spec.word("what the disk is attached by", *TRANSPORTS),
        "sysfs_path": Spec.word("place in the kernel's device tree, from /devices on"),
        "sysfs_write_cache": Spec.word("whether the kernel sends flushes to it", "write back", "write through"),
        "fua": Spec.flag("the kernel sends forced unit access writes to it"),
        "rotational": Spec.flag("the kernel takes it for a spinning disk"),
        "removable": Spec.flag("removable medium"),
        "logical_block_bytes": Spec.number("smallest unit that it can address"),
        "physical_block_bytes": Spec.number("smallest unit that it can write without reading first"),
        "size_bytes": Spec.number("size"),
        "writes": Spec.number("completed writes since boot"),
        "write_sectors": Spec.number("sectors of 512 bytes written since boot"),
        "flushes": Spec.number("completed flushes since boot"),
        "write_ms": Spec.number("milliseconds that these writes took together"),
        "flush_ms": Spec.number("milliseconds that these flushes took together"),
        "sysfs_vendor": Spec.word("vendor (SCSI)"),
        "sysfs_model": Spec.word("model"),
        "sysfs_serial": Spec.word("serial number"),
        "sysfs_firmware": Spec.word("firmware revision"),
        "sysfs_subsystem_nqn": Spec.word("NVMe subsystem"),
        "slaves": Spec.words("kernel names of the block devices that it is made of"),
        "partitions": Spec.words("kernel names of its partitions"),
        "loop_backing_file": Spec.word("file behind a loop device"),
        "dm_name": Spec.word("name of a device-mapper device"),
        "dm_uuid": Spec.word("UUID of a device-mapper device; its prefix says LVM-, CRYPT-, mpath-"),
        "md_level": Spec.word("RAID level of an md device"),
        "scsi_cache_type": Spec.word("cache type of a SCSI disk, from its caching mode page as the kernel read it"),
        "virtio_cache_type": Spec.word("cache type of a virtio disk, as the hypervisor offers it"),
    },
    subject="disk",
)
def sysfs(reply: Files, host: Subject) -> Iterator[Fact]:
    """/sys/class/block, /sys/block, /sys/class/nvme: what the kernel knows of every block device; readable without root.
    (Linux Documentation/ABI/stable/sysfs-block)

    ``stat`` counts since boot: field 5 completed writes, 7 sectors of 512 bytes written, 8 ms of writes, 16 flushes, 17 ms
    of flushes (since Linux 5.5; before, 11 or 15 fields). ``queue/write_cache`` "write through": the kernel sends no flush."""
    paths, slaves = _links(reply.links)
    if not paths:
        raise ValueError("/sys/class/block names no block device")
    texts = _texts(reply.text, BLOCK)
    controllers = _texts(reply.text, CONTROLLERS)
    parts: dict[str, list[str]] = {}
    for name, path in paths.items():
        parent = path.split("/")[-2]
        if parent in paths:
            parts.setdefault(parent, []).append(name)
    twins: dict[tuple[str | Any, ...], list[str]] = {}
    for name in paths:
        if hidden := _PATH_NODE.fullmatch(name):
            twins.setdefault(hidden.groups(), []).append(name)
    cut = {path.removeprefix(CLASS).partition("/slaves/")[0] for path in reply.errors if "/slaves/" in path}
    inside = {name for names in parts.values() for name in names}
    inside |= {name for name, files in _texts(reply.text, CLASS).items() if "partition" in files}
    for name, path in paths.items():
        if name in inside or _PATH_NODE.fullmatch(name):
            continue
        disk, own = Subject("disk", _node(name)), texts.get(name, {})
        if found := _transport(name, paths, own, controllers, twins):
            yield Fact(disk, "transport", _known(found, f"{found}: {path}", "readlink /sys/class/block/{subject}"))
        yield Fact(disk, "sysfs_path", known(path, path, "readlink /sys/class/block/{subject}"))
        mine = tuple(_node(each) for each in sorted(parts.get(name, ())))
        yield Fact(disk, "partitions", _known(mine, " ".join(mine) or "no partitions", "ls /sys/block/{subject}"))
        below = tuple(_node(each) for each in slaves.get(name, ()))
        if name not in cut and (below or found not in ("dm", "md", "bcache")):
            text = " ".join(below) or "none"
            yield Fact(disk, "slaves", _known(below, text, "ls /sys/block/{subject}/slaves"))
        for fact, file, value, text in _values(own):
            yield Fact(disk, fact, _known(value, text, f"cat /sys/block/{{subject}}/{file}"))


def _values(own: Mapping[str, str]) -> Iterator[tuple[str, str, Scalar, str]]:
    cache = own.get("queue/write_cache", "")
    if cache in ("write back", "write through"):
        yield "sysfs_write_cache", "queue/write_cache", cache, cache
    for fact, file in _FLAGS.items():
        if (raw := own.get(file)) in ("0", "1"):
            yield fact, file, raw == "1", f"{fact} {raw}"
    for fact, file in _BYTES.items():
        if (size := _number(own.get(file, ""))) and size >= 512:
            yield fact, file, size, f"{size} bytes"
    if (sectors := _number(own.get("size", ""))) is not None:
        yield "size_bytes", "size", sectors * 512, f"{sectors * 512} bytes"
    counts = own.get("stat", "").split()
    if len(counts) in (11, 15, 17) or len(counts) > 17:
        for fact, index in _STAT.items():
            if index < len(counts) and (count := _number(counts[index])) is not None:
                yield fact, "stat", count, f"{count} {fact.replace('_', ' ')}"
    for fact, files in _TEXTS.items():
        for file in files:
            if text := own.get(file, "").strip():
                yield fact, file, text, text
                break
    types = {
        text for file, text in own.items() if file.startswith("device/scsi_disk/") and file.endswith("/cache_type")
    }
    if len(types) == 1 and (cache := types.pop()):
        yield "scsi_cache_type", "device/scsi_disk/*/cache_type", cache, cache


def _links(links: Mapping[str, str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """(name -> path from /devices on, name -> names of what it is made of)."""
    paths: dict[str, str] = {}
    slaves: dict[str, list[str]] = {}
    for link in sorted(links):
        name, _, rest = link.removeprefix(CLASS).partition("/")
        _, devices, path = links[link].partition("/devices/")
        if not link.startswith(CLASS) or not name:
            continue
        if not rest and devices and path.endswith(f"/{name}"):
            paths[name] = devices + path
        elif rest.startswith("slaves/"):
            slaves.setdefault(name, []).append(rest.removeprefix("slaves/"))
    return paths, slaves


def _texts(text: Mapping[str, str], folder: str) -> dict[str, dict[str, str]]:
    """Device -> file below it -> its first line, bare. Without its newline it is cut off; only virtio's serial has none."""
    found: dict[str, dict[str, str]] = {}
    for path, content in text.items():
        name, _, rest = path[len(folder) :].partition("/")
        if path.startswith(folder) and (content.endswith("\n") or rest == "serial"):
            found.setdefault(name, {})[rest] = content.strip("\n").rstrip(" ")
    return found


def _transport(
    name: str,
    paths: Mapping[str, str],
    own: Mapping[str, str],
    controllers: Mapping[str, Mapping[str, str]],
    twins: Mapping[tuple[str | Any, ...], Sequence[str]],
) -> str:
    """One of bus.TRANSPORTS or empty. NVMe: as its controllers say, when all of a multipath namespace agree. twins: its
    hidden nodes, one a path, by what they have in common with it."""
    node = _NODE.fullmatch(name)
    if not node:
        return transport(paths[name], name, ata=own.get("device/vendor", "").strip() == "ATA")
    through = {found[1] for each in twins.get(node.groups(), [name]) if (found := _CONTROLLER.search(paths[each]))}
    nqn = own.get("device/subsysnqn")
    if not through and nqn:
        through = {each for each, files in controllers.items() if files.get("subsysnqn") == nqn}
    said = {controllers.get(each, {}).get("transport", "") for each in through}
    if len(said) == 1 and (only := said.pop()):
        return _BY_TRANSPORT.get(only, "")
    return transport(paths[name], name)


def _node(name: str) -> str:
    """sysfs spells a slash in a device's name as ``!`` (cciss!c0d0)."""
    return name.replace("!", "/")


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= 19 and int(text) < 1 << 63 else None


@lru_cache(maxsize=4096, typed=True)
def _known(value: Scalar | tuple[str, ...], text: str, command: str) -> Known:
    return known(value, text, command)


MODES = ("writethrough", "writeback", "writearound", "none")
STATES = ("no cache", "clean", "dirty", "inconsistent")
FILES = ("md/degraded", "bcache/cache_mode", "bcache/state")
_FILE = re.compile(r"/sys/block/([^/]+)/(.+)")
_MODE = re.compile(r"(?:\w+ )*\[(\w+)\](?: \w+)*")


@source(
    "stacked_sysfs",
    "host",
    ask=Read(tuple(f"/sys/block/*/{file}" for file in FILES)),
    facts={
        "md_degraded": Spec.number("devices that an md device lacks"),
        "bcache_mode": Spec.word("how a bcache device writes", *MODES),
        "bcache_state": Spec.word("whether the cache of a bcache device holds data that is nowhere else", *STATES),
    },
    subject="disk",
)
def stacked(reply: Files, host: Subject) -> Iterator[Fact]:
    """/sys/block/*/md, /sys/block/*/bcache: how whole an md device is, and how a bcache device writes. bcache puts its mode
    in brackets; what it wrote back stays in its cache for a while after a change, as its state says. (Linux
    Documentation/admin-guide/md.rst, admin-guide/bcache.rst)"""
    for path, content in reply.text.items():
        found = _FILE.fullmatch(path)
        if not found or not content.endswith("\n"):
            continue
        text = content.strip()
        if fact := _fact(found[2], text):
            name, value = fact
            disk = Subject("disk", found[1].replace("!", "/"))
            yield Fact(disk, name, known(value, f"{found[2]}: {text}", f"cat {argument(path)}"))


def _fact(file: str, text: str) -> tuple[str, Scalar] | None:
    if file == "md/degraded" and re.fullmatch(r"[0-9]{1,6}", text):
        return "md_degraded", int(text)
    if file == "bcache/cache_mode" and (mode := _MODE.fullmatch(text)) and mode[1] in MODES:
        return "bcache_mode", mode[1]
    return ("bcache_state", text) if file == "bcache/state" and text in STATES else None


FOLDERS = (
    *(f"/dev/disk/by-{name}/" for name in ("id", "partuuid", "path", "uuid", "partlabel", "label", "vdev")),
    "/dev/mapper/",
)


@source(
    "dev_links",
    "host",
    ask=Read(tuple(f"{folder}*" for folder in FOLDERS)),
    facts={"dev_links": Spec.rows(DeviceName, "every symbolic link in these folders")},
)
def dev_links(reply: Files, host: Subject) -> Iterator[Fact]:
    """/dev/disk and /dev/mapper: which block device a path means now, as the kernel resolves it. (udev(7), SYMLINK) udev's
    database may give one name to several devices; the link decides. A path that is not in its folder is that of a device
    that is gone. Raises ValueError when no link could be read."""
    pairs = tuple(DeviceName(path, target.rpartition("/")[2]) for path, target in sorted(reply.links.items()))
    if not pairs:
        raise ValueError("no link in /dev/disk or /dev/mapper")
    yield Fact(host, "dev_links", known(pairs, f"{len(pairs)} links", "ls -l /dev/disk/by-id"))


CACHE_MODES = ("writeback", "writethrough", "passthrough")


_SPLIT = {mark: re.compile(rf"(?<!\\)((?:\\\\)*){re.escape(mark)}") for mark in ",;"}


def _ask_dmsetup(host: Subject, facts: Facts) -> Run | Skip:
    """Only where udev shows such a device: else the command would load the kernel module and make /dev/mapper/control."""
    links = facts.get(HOST, "dev_links")
    if isinstance(links, Unknown):
        return Skip(f"whether there is a device-mapper device is not known: {links.reasons[0].text}")
    if not any(re.fullmatch(r"dm-\d+", each.node) for each in links.rows(DeviceName)):
        return Skip("there is no device-mapper device", applies=False)
    return Run(("dmsetup", "table", "--concise"), package="dmsetup")


@source(
    "dmsetup_table",
    "host",
    ask=_ask_dmsetup,
    runs=(command("dmsetup table --concise"),),
    facts={
        "dm_targets": Spec.words(
            "device-mapper targets that it is made of: linear, crypt, multipath, cache-writeback, ..."
        )
    },
    subject="disk",
    form="line",
)
def dmsetup(reply: Output, host: Subject) -> Iterator[Fact]:
    """``dmsetup table --concise``: what each device-mapper device does with the writes that it gets. Needs root. (man 8
    dmsetup)

    ``NAME,UUID,MINOR,FLAGS,TABLE[,TABLE...]`` of each device, joined by semicolons, with backslashes. A table is ``START
    LENGTH TARGET ...``; ``cache METADATA CACHE ORIGIN BLOCK NUMBER FEATURE...`` has its mode among the features, ``raid``
    its level in the next word. (Linux Documentation/admin-guide/device-mapper/cache.rst, dm-raid.rst)"""
    line = reply.text.removesuffix("\n")
    if line == reply.text or "\n" in line:
        raise ValueError("not one whole line")
    if line == "No devices found":
        return
    for device in _parts(line, ";"):
        fields = _parts(device, ",")
        if len(fields) < 4 or not fields[2].isdigit() or fields[3] not in ("ro", "rw"):
            raise ValueError(f"not a device: {device[:60]}")
        targets = [re.match(r"\d+ \d+ ([a-z0-9_-]+)(.*)", table) for table in fields[4:]]
        if not all(targets):
            raise ValueError(f"not a table: {device[:60]}")
        names = tuple(dict.fromkeys(_target(found[1], found[2].split()) for found in targets if found))
        disk = Subject("disk", f"dm-{fields[2]}")
        yield Fact(
            disk,
            "dm_targets",
            known(names, f"{fields[0]}: {', '.join(names) or 'empty'}", f"dmsetup table {argument(fields[0])}"),
        )


def _target(name: str, words: list[str]) -> str:
    """The target, with its mode or level where it has one and says it."""
    if name == "cache" and len(words) > 4 and words[4].isdigit():
        modes = [each for each in words[5 : 5 + int(words[4])] if each in CACHE_MODES]
        return f"cache-{modes[0]}" if len(modes) == 1 else name
    if name == "raid" and words and words[0].startswith("raid"):
        return f"raid-{words[0]}"
    return name


def _parts(text: str, mark: str) -> list[str]:
    parts, start = [], 0
    for found in _SPLIT[mark].finditer(text):
        parts.append(text[start : found.end() - 1])
        start = found.end()
    return [*parts, text[start:]]
