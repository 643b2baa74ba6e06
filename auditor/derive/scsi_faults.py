"""What the kernel logged of each disk as a SCSI device since it booted: that it was reset, and commands that were given up.

The log names host, channel, target and LUN, which stand in the path of the disk in sysfs. What is there counts even where
the beginning of the log is gone; that nothing is there counts only where it is whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
}
SOURCES = {"logged_power_ons": "scsi_power_ons", "logged_aborts": "scsi_aborts"}
NEEDS = ("host.faults_whole", *(f"host.{name}" for name in SOURCES.values()), "disk.sysfs_path")
GONE = "dmesg: the beginning of the kernel's log is gone, so what it no longer holds is not known"
_ADDRESS = re.compile(r"/(\d+:\d+:\d+:\d+)/")


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    place, whole = facts.get(disk, "sysfs_path"), facts.get(HOST, "faults_whole")
    for name, source in SOURCES.items():
        log = facts.get(HOST, source)
        if isinstance(log, Unknown) or isinstance(place, Unknown):
            yield Fact(disk, name, log if isinstance(log, Unknown) else place)
        else:
            yield Fact(disk, name, _counted(disk, _ADDRESS.findall(f"{place.value}/"), log, whole))


def _counted(disk: Subject, addresses: list[str], log: Known, whole: Judged) -> Judged:
    pairs = pairs_of(log)
    counted = zip(pairs, log.evidence, strict=True) if pairs else ()
    mine = [(int(times), seen) for (at, times), seen in counted if at in addresses[-1:]]
    if mine:
        return Known(sum(times for times, _ in mine), tuple(seen for _, seen in mine))
    if not is_true(whole):
        return unknown(GONE)
    return Known(0, (Evidence(f"nothing of {disk} in the kernel's log, which reaches back to its start", "dmesg -k"),))
