"""Whether a disk is the volume of a RAID controller: by its model, which names the controller, by how it is attached, or
because the controller's own tool lists it."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import drives
from auditor.derive.disk_identity import DRIVES, HYPERVISOR, NETWORK, SOFTWARE
from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, flag, unknown

SUBJECT = "disk"
FACTS = {"raid_volume": flag("a volume of a RAID controller, with drives behind it that cannot be seen")}
LISTED = ("storcli_controller", "raid_write_policy", "raid_level")
FAMILY = "volume of a RAID controller"


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    yield Fact(disk, "raid_volume", _judged(disk, facts))


def _judged(disk: Subject, facts: Facts) -> Judged:
    """A "scsi" disk whose model says nothing may be such a volume: controllers can give theirs any name."""
    model, transport = facts.get(disk, "model"), facts.get(disk, "transport")
    bus = str(transport.value) if isinstance(transport, Known) else ""
    if isinstance(transport, Known) and bus in HYPERVISOR | NETWORK | SOFTWARE:
        return Known(False, transport.evidence)
    if isinstance(model, Unknown):
        return model
    drive = drives.match(str(model.value))
    if drive and (drive.plp != "virtual" or drive.family.startswith(FAMILY)):
        return Known(drive.plp == "virtual", model.evidence)
    if isinstance(transport, Unknown):
        return transport
    if drive or bus in DRIVES:
        return Known(False, model.evidence + transport.evidence)
    for name in LISTED:
        if isinstance(listed := facts.get(disk, name), Known):
            return Known(True, listed.evidence)
    return unknown(
        f"{disk} is attached by {bus}, its model is not in drives.toml: it may be the volume of a controller"
    )
