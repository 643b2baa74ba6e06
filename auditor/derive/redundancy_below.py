"""Whether what a leaf lies on survives the death of a drive: RAID of the kernel, or of a controller that says its level.

It says nothing of bad blocks: OpenZFS sees one copy, and cannot tell what lies below which half of a mirror is right.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import about, every
from auditor.derive.device_names import names
from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, flag, is_true, unknown

SUBJECT = "leaf"
FACTS = {"survives_drive_loss": flag("RAID below it keeps it whole when one drive dies")}
NOT_REDUNDANT = "0"


def derive(leaf: Subject, facts: Facts) -> Iterator[Fact]:
    yield Fact(leaf, "survives_drive_loss", _judged(leaf, facts))


def _judged(leaf: Subject, facts: Facts) -> Judged:
    """A RAID of the kernel is enough; without one, every disk must be a redundant volume."""
    kernel, disks = facts.get(leaf, "redundant_below"), facts.get(leaf, "disks")
    if is_true(kernel):
        return _apart(leaf, facts) or kernel
    if isinstance(disks, Unknown):
        return disks
    if not facts.linked(leaf, "disks"):
        return unknown(f"{leaf}: no disks are known")
    volumes = [(disk, _volume(disk, facts)) for disk in facts.linked(leaf, "disks")]
    for disk, volume in volumes:
        if isinstance(volume, Known) and volume.value is False:
            return kernel if isinstance(kernel, Unknown) else Known(False, kernel.evidence + about(disk, volume))
    found = every(volume for _, volume in volumes)
    if isinstance(found, Unknown):
        return found
    pairs = zip(volumes, found, strict=True)
    return Known(True, tuple(piece for (disk, _), volume in pairs for piece in about(disk, volume)))


def _apart(leaf: Subject, facts: Facts) -> Unknown | None:
    """Two legs may be namespaces of one drive. Paths of dm-multipath have all names in common, and are one leg."""
    layers = facts.get(leaf, "layers")
    if isinstance(layers, Unknown) or (isinstance(layers.value, tuple) and "multipath" in layers.value):
        return layers if isinstance(layers, Unknown) else None
    known_as = [names((disk,), facts).all for disk in facts.linked(leaf, "disks")]
    twice = {name for at, each in enumerate(known_as) for other in known_as[:at] for name in each & other}
    return unknown(f"{leaf}: two of the disks below it give {min(twice)}, and may be one drive") if twice else None


def _volume(disk: Subject, facts: Facts) -> Judged:
    """Whether it is a volume of a controller at a level that survives the death of a drive."""
    volume, level = facts.get(disk, "raid_volume"), facts.get(disk, "raid_level")
    if isinstance(volume, Unknown) or volume.value is False:
        return volume
    return level if isinstance(level, Unknown) else Known(level.value != NOT_REDUNDANT, level.evidence)
