"""How a block device is attached, told by its place in the kernel's device tree and its name. Pure; no collector.

Sources: drivers/scsi (scsi_transport_sas, _fc, _iscsi name the parents), drivers/ata, drivers/nvme, and the names in
Documentation/admin-guide/devices.txt.
"""

from __future__ import annotations

import re

TRANSPORTS = (
    "nvme", "nvme-tcp", "nvme-rdma", "nvme-fc", "nvme-loop",
    "sata", "sas", "fc", "iscsi", "scsi", "usb", "mmc", "pmem", "dasd",
    "virtio", "virtio-scsi", "xen", "hyperv",
    "loop", "dm", "md", "bcache", "zvol", "ram", "zram", "nbd", "rbd", "drbd",
)  # fmt: skip
VIRTUAL_BUSES = frozenset({"virtio", "virtio-scsi", "xen", "hyperv"})
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

    path: the device's place under /sys, with or without what leads to ``/devices``. name: its kernel name. ata: the
    drive itself speaks ATA (vendor "ATA", ID_ATA=1), which a SAS controller hides from the path. Behind a virtual NVMe
    device (multipath, fabrics) only its controllers know: empty.
    """
    for pattern, word in _NAMES:
        if pattern.fullmatch(name):
            return word
    if name.startswith("nvme"):
        return "" if "/virtual/" in path else "nvme"
    found = next((word for pattern, word in _PATHS if pattern.search(path)), "")
    return "sata" if ata and found in ("sas", "scsi") else found
