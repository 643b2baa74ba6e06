"""What is kept of the files in which Proxmox VE and libvirt describe their guests and storages: the disks whose flushes will be
dropped when a guest starts with them, and where the storages lie. All the rest (names, keys, passwords) is not.

cache=unsafe drops the flushes of a disk; none, writeback, writethrough and directsync pass them on or need none. (Proxmox VE,
man 5 qm.conf, pvesm; libvirt, Domain XML format, driver cache=; QEMU, -drive cache=)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PROXMOX, STORAGES, LIBVIRT = "/etc/pve/qemu-server/*.conf", "/etc/pve/storage.cfg", "/etc/libvirt/qemu/*.xml"
DROPS, UNSURE = "drops ", "unsure"
GUEST_FILE = re.compile(r"/etc/(?:pve/qemu-server/[^/]+\.conf|libvirt/qemu/[^/]+\.xml)")
# of storages that lie on this host, and what says where. (Proxmox VE, man 1 pvesm)
KINDS = {"zfspool": "pool", "dir": "path", "lvm": "vgname", "lvmthin": "vgname"}
_KEPT = re.compile(r"drops .+|unsure|(?:zfspool|dir|lvm|lvmthin) [\w.-]+ .+")
_DISK = re.compile(r"((?:ide|sata|scsi|virtio)\d{1,2}):\s*(.*)")
_STORAGE = re.compile(r"([a-z]+):\s+([\w.-]{1,100})")
LONGEST, NAME = 1 << 17, 1000  # of a file, and of what it calls a disk or a place


# no options behind it, as of rbd:POOL/IMAGE:password=WORD
_NAMED = re.compile(r"/[^?=]*|[A-Za-z][\w.-]*:[\w./-]+")


def kept(name: str, text: str) -> str | None:
    """Lines ``drops DISK`` and ``unsure``, or ``KIND NAME PLACE`` of a storage; None where the file is none of these. What was
    kept is kept again."""
    if name != STORAGES and not GUEST_FILE.fullmatch(name):
        return None
    lines = text.removesuffix("\n").split("\n") if text else []  # no other line ends here: Proxmox reads lines of Perl
    if all(map(_KEPT.fullmatch, lines)):
        return text
    if name == STORAGES:
        found = list(_storages(lines))
    elif name.endswith(".xml"):
        found = list(_libvirt(text))
    else:
        found = list(_proxmox(lines))
    return "".join(f"{each}\n" for each in dict.fromkeys(found))


def _proxmox(lines: list[str]) -> Iterator[str]:
    """What is set, and what is pending, which the next start takes; snapshots have sections of their own."""
    disks: dict[str, str] = {}
    section = ""
    for line in lines:
        if line.startswith("["):
            section = line.strip()
        elif section in ("", "[PENDING]") and (found := _DISK.match(line)):
            disks[found[1]] = found[2]
    for options in disks.values():
        volume, *given = options.strip().split(",")
        if "cache=unsafe" in given and "media=cdrom" not in given:
            yield _disk(volume.removeprefix("file="))


def _libvirt(text: str) -> Iterator[str]:
    from xml.etree import ElementTree

    # entities of a document type could grow without bound
    if len(text) > LONGEST or "<!DOCTYPE" in text or "<!ENTITY" in text:
        yield UNSURE
        return
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        yield UNSURE
        return
    for disk in root.findall("./devices/disk"):
        driver, source = disk.find("driver"), disk.find("source")
        if driver is None or driver.get("cache") != "unsafe" or disk.find("readonly") is not None:
            continue
        if disk.get("device", "disk") in ("disk", "lun"):
            place = source is not None and (source.get("dev") or source.get("file"))
            yield _disk(place or "")


def _plain(name: str) -> bool:
    return bool(name) and name.isprintable() and len(name) <= NAME


def _disk(volume: str) -> str:
    """A path of this host, or a volume of a storage."""
    return f"{DROPS}{volume}" if _plain(volume) and _NAMED.fullmatch(volume) else UNSURE


def _storages(lines: list[str]) -> Iterator[str]:
    kind = name = ""
    for line in lines:
        if head := _STORAGE.fullmatch(line.rstrip()):
            kind, name = head[1], head[2]
        key, _, value = line.strip().partition(" ")
        if line[:1].isspace() and KINDS.get(kind) == key and _plain(value.strip()):
            yield f"{kind} {name} {value.strip()}"
