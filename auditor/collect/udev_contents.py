"""``udevadm info --export-db``: which block devices of this host bear labels of pools.

blkid read them when they came, or when somebody last closed them after writing: a label can be older than what is on the device
by now. (util-linux libblkid/src/superblocks/zfs.c: ID_FS_LABEL is the name of the pool, ID_FS_UUID its GUID in decimal; systemd
60-block.rules)

A cache device or spare has a label without a pool. Not of this host: zvols, and what is mapped for others or by any local user
(loop, nbd, rbd, volumes of LVM, which are disks of guests for the most part). Paths of a multipath device and legs of md are
below what bears the label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.collect import udev
from auditor.facts import HOST, DeviceName, Fact, Facts, Label, Subject, known, rows
from auditor.host.request import Output, Run

PER = "host"
SUBJECT = "host"
FACTS = {
    "zfs_labels": rows(Label, "labels of pools on devices of this host"),
    "labelled_paths": rows(DeviceName, "every path under /dev that denotes one of these devices"),
}
COMMAND = "lsblk -o NAME,FSTYPE,LABEL,UUID"
_OF_OTHERS = re.compile(r"(?:zd|loop|nbd|rbd|ram|zram)\d.*")
_OF_THIS_HOST = ("mpath-", "CRYPT-")


def request(host: Subject, facts: Facts) -> Run:
    return udev.request(host, facts)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """All facts; none where blkid found nothing on any device, as where it was not asked. Raises ValueError where the database
    is cut off or empty, as in a container."""
    found = udev.devices(reply.text)
    if not found:
        raise ValueError("no block device in it")
    if not any("ID_FS_TYPE" in device.properties for device in found.values()):
        return
    labels = {name: told for name, device in found.items() if (told := _label(device, found.get(device.disk, device)))}
    text = "; ".join(f"{name}: {told[1]}" for name, told in labels.items()) or "no device bears a label of a pool"
    lines = tuple(Label(guid, name, found[name].disk, pool) for name, (guid, pool) in labels.items())
    yield Fact(HOST, "zfs_labels", known(lines, text, COMMAND))
    paths = tuple(DeviceName(path, name) for path, name in sorted(udev.names(found).items()) if name in labels)
    yield Fact(HOST, "labelled_paths", known(paths, f"{len(paths)} paths", COMMAND))


def _label(device: udev.Device, disk: udev.Device) -> tuple[str, str] | None:
    """GUID and name of the pool; None where it bears no label, or is not this host's own."""
    get = device.properties.get
    guid, pool = get("ID_FS_UUID", ""), get("ID_FS_LABEL", "")
    if get("ID_FS_TYPE") != "zfs_member" or not (guid or pool) or not ((guid.isascii() and guid.isdigit()) or not guid):
        return None
    if _OF_OTHERS.fullmatch(device.name) or disk.properties.get("DM_MULTIPATH_DEVICE_PATH") == "1":
        return None
    if device.name.startswith("dm-") and not any(kind in get("DM_UUID", "") for kind in _OF_THIS_HOST):
        return None
    return guid, pool
