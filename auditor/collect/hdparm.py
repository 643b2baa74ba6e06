"""``hdparm -W``: the write cache of a SATA drive, as the drive says. (man hdparm; hdparm.c get_wcache)

On NVMe and virtio it prints the device's name and nothing else, with exit code 0. "not supported" is no answer either:
a SAS drive that does not speak ATA may cache all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import Fact, Facts, Known, Subject, flag, known
from auditor.host.request import Output, Run, Skip

PER = "disk"
SUBJECT = "disk"
FACTS = {"hdparm_write_cache": flag("the drive's volatile write cache is on, as IDENTIFY DEVICE says")}

_DEVICE = re.compile(r"^/dev/(\S+):$", re.MULTILINE)
_CACHE = re.compile(
    r"^ write-caching = +(0 \(off\)|1 \(on\))$", re.MULTILINE
)  # not " setting drive write-caching to 0"
_TROUBLE = re.compile(r"SG_IO|failed|missing sense|Invalid argument", re.IGNORECASE)


def request(disk: Subject, facts: Facts) -> Run | Skip:
    match facts.get(disk, "transport"):
        case Known(str() as bus) if bus != "sata":
            return Skip(f"{disk.name} is not a SATA drive ({bus})", applies=False)
        case _ if disk.name.startswith("nvme"):
            return Skip(f"{disk.name} is not a SATA drive (nvme)", applies=False)
        case _:
            return Run(("hdparm", "-W", f"/dev/{disk.name}"), package="hdparm")


def parse(reply: Output, disk: Subject) -> Iterator[Fact]:
    text = reply.text[: reply.text.rfind("\n") + 1]  # a line that does not end may be cut off
    if _DEVICE.findall(text) != [disk.name]:
        raise ValueError(f"it does not speak of /dev/{disk.name} alone")
    said = set(_CACHE.findall(text))
    if len(said) > 1:
        raise ValueError("it says both on and off")
    if not said:
        return
    on = said == {"1 (on)"}
    if on or not _TROUBLE.search(text + reply.stderr):  # "off" out of data that did not arrive whole is no comfort
        yield Fact(disk, "hdparm_write_cache", known(on, f"write-caching = {on:d}", "hdparm -W /dev/{subject}"))
