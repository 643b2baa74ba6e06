"""/sys/bus/pci/drivers: which RAID controllers have a driver bound to them, so that only their own tool is asked.

That none is there counts only where files could be read at all: /proc/filesystems is the witness.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Known, Subject, known, words
from auditor.host.request import WITNESS, Files, Read, Skip

PER = "host"
SUBJECT = "host"
FACTS = {"raid_drivers": words("drivers of RAID controllers that have a controller")}
DRIVERS = ("megaraid_sas", "smartpqi", "hpsa", "aacraid")
LINKS = tuple(f"/sys/bus/pci/drivers/{name}/*:*" for name in DRIVERS)


def request(host: Subject, facts: Facts) -> Read:
    """The links to the PCI devices; their names are addresses."""
    return Read((*LINKS, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    reply.witness()
    if not reply.complete(*LINKS):
        return
    found = tuple(name for name in DRIVERS if any(f"/drivers/{name}/" in link for link in reply.links))
    text = ", ".join(found) or "no RAID controller has a driver"
    yield Fact(HOST, "raid_drivers", known(found, text, "ls /sys/bus/pci/drivers/{megaraid_sas,smartpqi,hpsa,aacraid}"))


def unless(facts: Facts, *drivers: str) -> Skip | None:
    """For the collectors of the controllers' tools: nothing to ask where none of these drivers has a controller."""
    match facts.get(HOST, "raid_drivers"):
        case Known(tuple() as there) if not set(drivers) & set(map(str, there)):
            return Skip(f"there is no controller of {' or '.join(drivers)}", applies=False)
    return None
