"""Which mounts of fstab come before the file system of ZFS that they need: systemd orders those of fstab by their paths, and
does not know those that ``zfs mount -a`` mounts. Of a pool with a list for zfs-mount-generator it does. (man 5 systemd.mount,
man 8 zfs-mount-generator; OpenZFS etc/systemd/system/zfs-mount.service.in)

The root file system, and what lies below it by its name, is mounted by the initramfs before all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from auditor.derive.mounts_of_zfs import mounted_at
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    FstabNeed,
    Judged,
    Known,
    Subject,
    Unknown,
    join,
    rows_of,
    unknown,
    words,
    words_of,
)

SUBJECT = "host"  # a line of fstab needs the nearest file system alone
FACTS = {"dataset.fstab_too_early": words("mount points of fstab that need it mounted, and do not wait for that")}
COMMAND = "cat /etc/fstab"


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Of all file systems."""
    needs = _needs(facts)
    places = _places(facts) if rows_of(needs, FstabNeed) else {}
    early: dict[str, dict[str, None]] = {}
    for point, path in rows_of(needs, FstabNeed):
        if dataset := _nearest(path, places):
            early.setdefault(dataset, {})[point] = None
    for subject in facts.subjects("dataset"):
        if points := tuple(early.get(subject.name, ())):
            seen = tuple(
                Evidence(f"/etc/fstab mounts {point}, and waits for nothing of ZFS", COMMAND) for point in points
            )
            yield Fact(subject, "fstab_too_early", Known(points, seen))
        else:
            yield Fact(subject, "fstab_too_early", Known((), needs.evidence) if isinstance(needs, Known) else needs)


def _needs(facts: Facts) -> Judged:
    """What fstab needs, where systemd carries it out."""
    needed = [facts.get(HOST, name) for name in ("fstab_needs", "systemd", "generated_pools", "mount_table")]
    if unseen := [each for each in needed if isinstance(each, Unknown)]:
        return join(unseen)
    needs, systemd, *_ = (each for each in needed if isinstance(each, Known))
    if not systemd.value:
        return unknown(f"{systemd.evidence[0].text}: in which order it mounts is not looked at")
    return needs


def _places(facts: Facts) -> Mapping[str, str]:
    """Mount point, escaped as in fstab -> dataset of those that ``zfs mount -a`` mounts; of several with the same, the last."""
    roots = mounted_at(facts, "/")
    listed = words_of(facts.get(HOST, "generated_pools"))
    found = {}
    for dataset in facts.subjects("dataset"):
        match facts.get(dataset, "mountpoint"), facts.get(dataset, "canmount"):
            case Known(str() as point), Known("on") if point.startswith("/"):
                early = any(f"{dataset.name}/".startswith(f"{root}/") for root in roots)
                if not early and dataset.name.partition("/")[0] not in listed:
                    found[point.replace(" ", "\\040")] = dataset.name
    return found


def _nearest(path: str, places: Mapping[str, str]) -> str:
    """The dataset that is mounted at this path or at the nearest folder above it, but /; empty: none."""
    above = path.rstrip("/")
    while above and above not in places:
        above = above.rpartition("/")[0]
    return places.get(above, "")
