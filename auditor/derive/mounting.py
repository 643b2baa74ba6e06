"""What kind of mount point a file system has: rules ask for the kind, and 10,000 datasets share four answers where each
has a path of its own."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Fact, Facts, Known, Subject, Unknown, known, word

SUBJECT = "dataset"
FACTS = {
    "mounts_at": word(
        "what mountpoint says: a path, / (root), legacy (mounted by mount(8) and fstab) or none",
        "path",
        "root",
        "legacy",
        "none",
    )
}
_COMMAND = "zfs get mountpoint {subject}"
_KINDS = {
    "/": known("root", "mountpoint=/", _COMMAND),
    "legacy": known("legacy", "mountpoint=legacy", _COMMAND),
    "none": known("none", "mountpoint=none", _COMMAND),
}
_PATH = known("path", "mountpoint is a path", _COMMAND)


def derive(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """From the property alone. (man 7 zfsprops, mountpoint)"""
    match facts.get(dataset, "mountpoint"):
        case Known(str() as point):
            yield Fact(dataset, "mounts_at", _KINDS.get(point, _PATH))
        case Unknown() as hole:
            yield Fact(dataset, "mounts_at", hole)
