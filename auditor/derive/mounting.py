"""What kind of mount point a file system has: rules ask for the kind, and 10,000 datasets share four answers where each
has a path of its own."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Fact, Facts, Known, Subject, Unknown, flag, known, word

SUBJECT = "dataset"
FACTS = {
    "mounts_at": word(
        "what mountpoint says: a path, / (root), legacy (mounted by mount(8) and fstab) or none",
        "path",
        "root",
        "legacy",
        "none",
    ),
    "at_boot": flag("it is mounted at /boot: kernels lie there, which the boot loader reads from the pool by itself"),
}
NEEDS = ("dataset.mountpoint",)
_COMMAND = "zfs get mountpoint {subject}"
_KINDS = {
    "/": known("root", "mountpoint=/", _COMMAND),
    "legacy": known("legacy", "mountpoint=legacy", _COMMAND),
    "none": known("none", "mountpoint=none", _COMMAND),
}
_PATH = known("path", "mountpoint is a path", _COMMAND)
_AT_BOOT = known(True, "mountpoint=/boot", _COMMAND)
_ELSEWHERE = known(False, "mountpoint is not /boot", _COMMAND)


def derive(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """From the property alone. (man 7 zfsprops, mountpoint)"""
    match facts.get(dataset, "mountpoint"):
        case Known(str() as point):
            yield Fact(dataset, "mounts_at", _KINDS.get(point, _PATH))
            yield Fact(dataset, "at_boot", _AT_BOOT if point == "/boot" else _ELSEWHERE)
        case Unknown() as hole:
            yield Fact(dataset, "mounts_at", hole)
            yield Fact(dataset, "at_boot", hole)
