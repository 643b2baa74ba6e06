"""Pools that are not audited, as far as they may share a disk with one that is: their leaves and the disks behind these.

A log device that also holds the data of another pool dies with it, and waits for it. (``model/leaf.py``)
"""

from __future__ import annotations

from auditor.facts import Facts, Known, Subject

COLLECTORS = ("zpool_status", "zpool_status_paths")
NAMES = ("sysfs_serial", "udev_serial", "nvme_list_serial")


def nameless(disk: Subject, facts: Facts) -> bool:
    """Whether nothing that was asked once for all disks tells its serial number."""
    return not any(isinstance(found := facts.get(disk, name), Known) and found.value for name in NAMES)
