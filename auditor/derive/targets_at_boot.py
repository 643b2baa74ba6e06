"""Whether what this host offers to initiators is offered again after its next start: the kernel keeps nothing of its targets, a
unit makes them anew of a file. Judged for what lies on volumes of ZFS, whoever audits them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from auditor.derive.next_boot import reached
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Subject, Unknown, join, unknown, words, words_of

SUBJECT = "host"
FACTS = {
    "volume_targets": words("NAME PATH of each backstore of LIO, and namespace of NVMe over Fabrics, that is a volume"),
    "targets_not_kept": words("those of them that nothing makes anew when the host starts"),
    "targets_too_early": words("units that make targets of volumes when the host starts, and do not wait for these"),
}
NEEDS = (
    *("host.block_targets", "host.nvme_targets", "host.target_units", "host.lio_saved", "host.nvme_saved"),
    *("host.systemd", "host.zfs_units_wanted", "host.zfs_units_masked"),
)
VOLUME = re.compile(r"/dev/(?:zvol/|zd\d+$)")
LIO, NVME, SCST = ("target.service", "rtslib-fb-targetctl.service"), ("nvmet.service",), ("scst.service",)
CLUSTER = "pacemaker.service"
ENABLED = ("enabled", "enabled-runtime", "static", "indirect")
WAITER = "zfs-volume-wait.service"
WAITS = {WAITER, "zfs-volumes.target", "zfs.target"}
_DEVICE = re.compile(r"dev-(?:zvol-.+|zd\d+)\.device")


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """All, of volumes alone."""
    asked = [facts.get(HOST, name) for name in ("block_targets", "nvme_targets")]
    if unseen := [each for each in asked if isinstance(each, Unknown)]:
        yield from (Fact(HOST, name, join(unseen)) for name in FACTS)
        return
    rows = [line.split(" ", 2) for each in asked for line in words_of(each)]
    volumes = {name: path for name, _, path in rows if VOLUME.match(path)}
    seen = tuple(piece for each in asked if isinstance(each, Known) for piece in each.evidence)
    yield Fact(HOST, "volume_targets", Known(tuple(" ".join(each) for each in volumes.items()), seen))
    units = facts.get(HOST, "target_units")
    if isinstance(units, Known) and any(name == CLUSTER and starts for name, starts, _ in map(_unit, words_of(units))):
        makes = unknown("pacemaker starts with the host, and makes targets by itself", "pcs resource")
        yield from (Fact(HOST, name, makes) for name in ("targets_not_kept", "targets_too_early"))
    else:
        yield Fact(HOST, "targets_not_kept", _not_kept(volumes, units, facts))
        yield Fact(HOST, "targets_too_early", _too_early(volumes, units, facts))


def _unit(line: str) -> tuple[str, bool, set[str]]:
    """Its name, whether it is started when the host is, and what it comes after."""
    name, enabled, *after = line.split(" ")
    return name, enabled in ENABLED, {*after}


def _makers(name: str) -> tuple[tuple[str, ...], str]:
    """Which units make it, and the fact of what is saved; of SCST that is not looked at."""
    if name.startswith("NVMe-"):
        return NVME, "nvme_saved"
    return (LIO, "lio_saved") if name.startswith("LIO-") else (SCST, "")


def _not_kept(volumes: Mapping[str, str], units: Judged, facts: Facts) -> Judged:
    started = {name for name, starts, _ in map(_unit, words_of(units)) if starts}
    lost, unseen, seen = list[str](), list[Unknown](), dict[Evidence, None]()
    for name, path in volumes.items():
        makers, fact = _makers(name)
        if not fact:
            continue
        saved = facts.get(HOST, fact)
        if isinstance(saved, Known) and path not in words_of(saved):
            lost.append(f"{name} ({path}) is in no file")
        elif isinstance(units, Known) and not started & {*makers}:
            lost.append(f"{name} ({path}): no unit that makes it is enabled")
        unseen += [each for each in (saved, units) if isinstance(each, Unknown)]
        seen |= dict.fromkeys(piece for each in (saved, units) if isinstance(each, Known) for piece in each.evidence)
    return join(unseen) if unseen and not lost else Known(tuple(lost), (*seen,))


def _too_early(volumes: Mapping[str, str], units: Judged, facts: Facts) -> Judged:
    if isinstance(units, Unknown):
        return units
    makers = {unit for name in volumes for unit in _makers(name)[0]}
    ours = [each for each in map(_unit, words_of(units)) if each[0] in makers and each[1]]
    reaches = reached(facts)  # to be ordered after a unit that is not started is to wait for nothing
    waiting = [after & WAITS for _, _, after in ours]
    if isinstance(reaches, Unknown) and any(waiting):
        return reaches
    waits = WAITER in words_of(reaches)
    early = tuple(
        name
        for (name, _, after), targets in zip(ours, waiting, strict=True)
        if not (targets and waits) and not any(map(_DEVICE.fullmatch, after))
    )
    return Known(early, (*units.evidence, *(reaches.evidence if isinstance(reaches, Known) else ())))
