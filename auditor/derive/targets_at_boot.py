"""Whether what this host offers to initiators is offered again after its next start: the kernel keeps nothing of its targets, a
unit makes them anew of a file. Judged for volumes of ZFS that LIO or NVMe over Fabrics offers, whoever audits them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    TargetUnit,
    Unknown,
    join,
    rows_of,
    unknown,
    words,
    words_of,
)
from auditor.text import harmless

SUBJECT = "host"
FACTS = {
    "volume_targets": words("NAME PATH of each backstore of LIO, and namespace of NVMe over Fabrics, that is a volume"),
    "targets_not_kept": words("those of them that nothing makes anew when the host starts"),
}
# a file -> the units that make targets of it
FILES = {
    "lio_saved": ("target.service", "targetcli.service", "iscsi-target.service"),
    "lio_saved_by_debian": ("rtslib-fb-targetctl.service",),
    "nvme_saved": ("nvmet.service",),
}
NVME, LIO = "NVMe-", "LIO-"
OFF = ("disabled", "masked", "masked-runtime")
_VOLUME = re.compile(r"/dev/(?:zvol/.+|zd\d+(?:p\d+)?)")
_ELSEWHERE = ("disk", "mapper", "md")  # folders below /dev that are no pool's
UNOFFERED = "unoffered "  # in front of what is saved, and given to no initiator


class Target(NamedTuple):
    """One volume that is offered now."""

    name: str
    path: str

    def files(self) -> list[str]:
        """The facts of the files that may have it."""
        return [fact for fact in FILES if (fact == "nvme_saved") == self.name.startswith(NVME)]


class Unit(NamedTuple):
    """state: as systemd has it, "enabled" of one that is started when the host is. wanted: another one starts it."""

    name: str
    state: str
    wanted: bool


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Both."""
    asked = [facts.get(HOST, name) for name in ("block_targets", "nvme_targets")]
    if unseen := [each for each in asked if isinstance(each, Unknown)]:
        yield from (Fact(HOST, name, join(unseen)) for name in FACTS)
        return
    pools = {pool.name for pool in facts.linked(HOST, "imported_pools")}
    rows = [row for each in asked for row in rows_of(each, TargetUnit)]
    imported = facts.get(HOST, "imported_pools")
    if isinstance(imported, Unknown) and any(_may_be_a_volume(path) for _, _, path in rows):
        yield from (Fact(HOST, name, imported) for name in FACTS)
        return
    targets = [Target(name, path) for name, _, path in rows if name.startswith((LIO, NVME)) and _is_volume(path, pools)]
    seen = tuple(piece for each in asked if isinstance(each, Known) for piece in each.evidence)
    yield Fact(HOST, "volume_targets", Known(tuple(f"{each.name} {each.path}" for each in targets), seen))
    said, cluster = facts.get(HOST, "target_units"), facts.get(HOST, "cluster_makes_targets")
    if isinstance(cluster, Known) and cluster.value:
        said = unknown("pacemaker makes targets by itself", "pcs resource")
    if unseen := [each for each in (said, cluster) if isinstance(each, Unknown)]:
        yield Fact(HOST, "targets_not_kept", join(unseen))
        return
    units = {each.name: each for each in map(_unit, words_of(said))}
    seen = said.evidence if isinstance(said, Known) else ()
    yield Fact(HOST, "targets_not_kept", _not_kept(targets, units, seen, facts))


def _is_volume(path: str, pools: set[str]) -> bool:
    """Up to OpenZFS 2.1 udev makes a link /dev/POOL/VOLUME, too. (udev/rules.d/60-zvol.rules.in at zfs-2.1.15)"""
    return bool(_VOLUME.fullmatch(path)) or path.removeprefix("/dev/").partition("/")[0] in pools


def _may_be_a_volume(path: str) -> bool:
    """By a name that only pools tell from others."""
    parts = path.split("/")
    return len(parts) > 3 and parts[1] == "dev" and parts[2] not in ("zvol", *_ELSEWHERE)


def _unit(line: str) -> Unit:
    name, state, more = line.split(" ")
    return Unit(name, state, more == "wanted")


def _not_kept(targets: list[Target], units: dict[str, Unit], seen: tuple[Evidence, ...], facts: Facts) -> Judged:
    lost, unseen, pieces = list[str](), list[Unknown](), dict.fromkeys(seen)
    for target in targets:
        files = {fact: facts.get(HOST, fact) for fact in target.files()}
        pieces |= dict.fromkeys(piece for each in files.values() if isinstance(each, Known) for piece in each.evidence)
        having = [fact for fact, saved in files.items() if target.path in words_of(saved)]
        makers = [units[name] for fact in having for name in FILES[fact] if name in units]
        if any(each.state == "enabled" for each in makers):
            continue
        if unread := [each for each in files.values() if isinstance(each, Unknown)]:
            unseen += unread
        elif not having and any(f"{UNOFFERED}{target.path}" in words_of(saved) for saved in files.values()):
            text = f"{target.name} is saved and given to no initiator; whether it is now is not looked at"
            unseen.append(unknown(harmless(text)))
        elif not having:
            lost.append(harmless(f"{target.name} ({target.path}) is in no file"))
        elif strange := [each for each in makers if each.state not in OFF or each.wanted]:
            unseen.append(unknown(f"{strange[0].name} is {strange[0].state}: whether something starts it is not seen"))
        elif not makers:
            unseen.append(unknown(f"{target.name} is saved, and no unit that is known here makes targets of that file"))
        else:
            lost.append(harmless(f"{target.name} ({target.path}): {makers[0].name} is {makers[0].state}"))
    return join(unseen) if unseen and not lost else Known(tuple(lost), (*pieces,))
