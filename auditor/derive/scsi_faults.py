"""What the kernel logged of each disk as a SCSI device since it booted: that it was reset, commands that were given up, and
what it said of those that failed.

The log names host, channel, target and LUN, which stand in the path of the disk in sysfs; of a disk that is none of SCSI it can
hold nothing. What is there counts even where the beginning of the log is gone; that nothing is there counts only where it is
whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    is_true,
    number,
    pairs_of,
    unknown,
)

SUBJECT = "disk"
FACTS = {
    "logged_power_ons": number("power-ons and resets since the host booted that it reported after it was attached"),
    "logged_aborts": number(
        "commands to it that were aborted after 30 s or more since the host booted, and that it was given up"
    ),
    "logged_medium_errors": number("commands since the host booted that failed for its medium, as it said itself"),
    "logged_hardware_errors": number("commands since the host booted that failed for its own hardware, as it said"),
}
# where the log names it, and the fact that says whether that question saw the whole log
SOURCES = {
    "logged_power_ons": ("scsi_power_ons", "faults_whole"),
    "logged_aborts": ("scsi_aborts", "faults_whole"),
    "logged_medium_errors": ("scsi_medium_errors", "buses_whole"),
    "logged_hardware_errors": ("scsi_hardware_errors", "buses_whole"),
}
NEEDS = ("disk.sysfs_path", *(f"host.{name}" for name in dict.fromkeys(sum(SOURCES.values(), ()))))
GONE = "dmesg: the beginning of the kernel's log is gone, so what it no longer holds is not known"
_NVME = re.compile(r"/nvme\d+n\d+$")
_ADDRESS = re.compile(r"/(\d+:\d+:\d+:\d+)/")


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    place = facts.get(disk, "sysfs_path")
    for name, (source, whole) in SOURCES.items():
        log = facts.get(HOST, source)
        addresses = _ADDRESS.findall(f"{place.value}/") if isinstance(place, Known) else []
        if isinstance(place, Known) and not addresses and _NVME.search(str(place.value)):
            yield Fact(disk, name, Known(0, (Evidence(f"{disk} is attached by NVMe, and not by SCSI"),)))
        elif isinstance(log, Unknown) or isinstance(place, Unknown):
            yield Fact(disk, name, log if isinstance(log, Unknown) else place)
        else:
            own = frozenset(addresses[-1:])
            yield Fact(disk, name, counted(disk, own.__contains__, log, facts.get(HOST, whole)))


def counted(disk: Subject, its: Callable[[str], bool], log: Known, whole: Judged) -> Judged:
    """How often the log names a place of the disk. its: whether a place is one."""
    lines = zip(pairs_of(log), log.evidence, strict=False)  # of a log without any there is one piece of evidence
    mine = [(int(times), seen) for (at, times), seen in lines if its(at)]
    if mine:
        return Known(sum(times for times, _ in mine), tuple(seen for _, seen in mine))
    if not is_true(whole):
        return unknown(GONE)
    return Known(0, (Evidence(f"nothing of {disk} in the kernel's log, which reaches back to its start", "dmesg -k"),))
