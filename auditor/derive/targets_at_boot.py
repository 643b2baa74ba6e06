"""Whether what this host offers to initiators is offered again after its next start: the kernel keeps nothing of its targets, a
unit makes them anew of a file. Judged for volumes of ZFS that LIO or NVMe over Fabrics offers, whoever audits them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from auditor.derive.next_boot import reached
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
from auditor.text import harmless, unit_escaped

SUBJECT = "host"
FACTS = {
    "volume_targets": words("NAME PATH of each backstore of LIO, and namespace of NVMe over Fabrics, that is a volume"),
    "targets_not_kept": words("those of them that nothing makes anew when the host starts"),
    "targets_too_early": words("units that make targets of volumes when the host starts, and do not wait for these"),
}
# a file -> the units that make targets of it
FILES = {
    "lio_saved": ("target.service", "targetcli.service", "iscsi-target.service"),
    "lio_saved_by_debian": ("rtslib-fb-targetctl.service",),
    "nvme_saved": ("nvmet.service",),
}
NEEDS = (
    *(f"host.{name}" for name in (*FILES, "block_targets", "nvme_targets", "target_units", "cluster_makes_targets")),
    *("host.imported_pools", "host.systemd", "host.zfs_units_wanted", "host.zfs_units_masked"),
)
NVME, LIO = "NVMe-", "LIO-"
OFF = ("disabled", "masked", "masked-runtime")
_VOLUME = re.compile(r"/dev/(?:zvol/.+|zd\d+(?:p\d+)?)")
_ELSEWHERE = ("disk", "mapper", "md")  # folders below /dev that are no pool's
UNOFFERED = "unoffered "  # in front of what is saved, and given to no initiator
VOLUMES, WAITER, ALL = "zfs-volumes.target", "zfs-volume-wait.service", "zfs.target"
IMPORT = "zfs-import.target"  # which the waiter comes after: it is no use before the pools are there


class Target(NamedTuple):
    """One volume that is offered now."""

    name: str
    path: str

    def files(self) -> list[str]:
        """The facts of the files that may have it."""
        return [fact for fact in FILES if (fact == "nvme_saved") == self.name.startswith(NVME)]


class Unit(NamedTuple):
    """state: as systemd has it, "enabled" of one that is started when the host is. after: what it waits for, where that is
    started at all; starts: what of that it starts itself. more: "wanted" where another one starts it, "changed" where a part of
    it lies in another file."""

    name: str
    state: str
    more: str
    after: frozenset[str]
    starts: frozenset[str]


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """All three."""
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
        yield from (Fact(HOST, name, join(unseen)) for name in ("targets_not_kept", "targets_too_early"))
        return
    units = {each.name: each for each in map(_unit, words_of(said))}
    seen = said.evidence if isinstance(said, Known) else ()
    yield Fact(HOST, "targets_not_kept", _not_kept(targets, units, seen, facts))
    yield Fact(HOST, "targets_too_early", _too_early(targets, units, seen, facts))


def _is_volume(path: str, pools: set[str]) -> bool:
    """Up to OpenZFS 2.1 udev makes a link /dev/POOL/VOLUME, too. (udev/rules.d/60-zvol.rules.in at zfs-2.1.15)"""
    return bool(_VOLUME.fullmatch(path)) or path.removeprefix("/dev/").partition("/")[0] in pools


def _may_be_a_volume(path: str) -> bool:
    """By a name that only pools tell from others."""
    parts = path.split("/")
    return len(parts) > 3 and parts[1] == "dev" and parts[2] not in ("zvol", *_ELSEWHERE)


def _unit(line: str) -> Unit:
    name, state, more, after = line.split(" ")
    every = [each for each in after.split(",") if each != "-"]
    return Unit(
        name,
        state,
        more,
        frozenset(each.removeprefix("+") for each in every),
        frozenset(each.removeprefix("+") for each in every if each.startswith("+")),
    )


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
        elif strange := [each for each in makers if each.state not in OFF or "wanted" in each.more]:
            unseen.append(unknown(f"{strange[0].name} is {strange[0].state}: whether something starts it is not seen"))
        elif not makers:
            unseen.append(unknown(f"{target.name} is saved, and no unit that is known here makes targets of that file"))
        else:
            lost.append(harmless(f"{target.name} ({target.path}): {makers[0].name} is {makers[0].state}"))
    return join(unseen) if unseen and not lost else Known(tuple(lost), (*pieces,))


def _too_early(targets: list[Target], units: dict[str, Unit], seen: tuple[Evidence, ...], facts: Facts) -> Judged:
    early, unseen = dict[str, None](), list[Unknown]()
    for target in targets:
        makers = [units[name] for fact in target.files() for name in FILES[fact] if name in units]
        started = [each for each in makers if each.state == "enabled"]
        if not started:
            unseen.append(unknown(f"which unit makes {target.name} when the host starts is not seen"))
        for each in started:
            match _waits(each, target, facts):
                case Unknown() as why:
                    unseen.append(why)
                case False if "changed" in each.more:
                    unseen.append(unknown(f"{each.name} was changed here: how else it waits is not looked at"))
                case False:
                    early[each.name] = None
    return join(unseen) if unseen and not early else Known((*early,), seen)


def _waits(unit: Unit, target: Target, facts: Facts) -> bool | Unknown:
    """An ordering alone starts nothing: what it comes after has to be started by it or by something else."""
    if f"{unit_escaped(target.path.strip('/'))}.device" in unit.starts:
        return True
    if not {VOLUMES, WAITER, ALL} & unit.after:
        return False
    units, masked = reached(facts), facts.get(HOST, "zfs_units_masked")
    if isinstance(masked, Known) and WAITER in words_of(masked):
        return False
    if unseen := [each for each in (units, masked) if isinstance(each, Unknown)]:
        return join(unseen)
    started = {*words_of(units)}
    pulled = {VOLUMES, WAITER} & (unit.starts | (unit.after & started))  # the target requires the service
    if not pulled and not (ALL in unit.after & started and {VOLUMES, WAITER} & started):
        return False
    if IMPORT not in started:
        return unknown(f"{WAITER} comes after {IMPORT}, and nothing was seen that starts that")
    return True
