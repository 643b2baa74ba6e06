"""``systemctl show``: which units make targets when the host starts, and whether they wait for volumes.

Links of volumes below /dev/zvol come some time after the pool was imported; zfs-volumes.target is reached when they are there.
A unit that is not ordered after it finds none of them, or some, and offers the rest no more. (OpenZFS
etc/systemd/system/zfs-volume-wait.service.in, zfs-volumes.target.in; openzfs/zfs pull request 8975)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Known, Subject, known, words, words_of
from auditor.host.request import Output, Run, Skip

PER = "host"
SUBJECT = "host"
FACTS = {"target_units": words("UNIT STATE AFTER... of each unit that makes targets and is there: what it comes after")}
# of Fedora and kin and Arch; of Debian and Ubuntu; of nvmetcli, SCST and tgt; a cluster makes targets by itself
UNITS = (
    "target.service",
    "rtslib-fb-targetctl.service",
    "nvmet.service",
    "scst.service",
    "tgt.service",
    "tgtd.service",
)
CLUSTER = "pacemaker.service"
PROPERTIES = "--property=Id,LoadState,UnitFileState,After"


def request(host: Subject, facts: Facts) -> Run | Skip:
    """Only where something is offered."""
    return none_offered(facts) or Run(("systemctl", "show", PROPERTIES, *UNITS, CLUSTER), package="systemd")


def none_offered(facts: Facts) -> Skip | None:
    """Why nobody needs to ask what makes targets when the host starts."""
    offered = [facts.get(HOST, name) for name in ("block_targets", "nvme_targets", "tgt_daemons")]
    if any(words_of(each) for each in offered):
        return None
    unseen = not all(isinstance(each, Known) for each in offered)
    return Skip("which targets there are is not known" if unseen else "no target is offered", applies=unseen)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """In the order in which they were asked for. Raises ValueError where not all of them were answered."""
    names = (*UNITS, CLUSTER)
    blocks = [
        dict(line.split("=", 1) for line in block.splitlines()) for block in reply.text.rstrip("\n").split("\n\n")
    ]
    if len(blocks) != len(names) or any(set(each) < {"Id", "LoadState"} for each in blocks):
        raise ValueError(f"{len(blocks)} answers for {len(names)} units")
    there = {name: each for name, each in zip(names, blocks, strict=True) if each["LoadState"] != "not-found"}
    if wrong := [name for name, each in there.items() if each["LoadState"] not in ("loaded", "masked")]:
        raise ValueError(f"{wrong[0]} could not be loaded")
    found = tuple(
        f"{name} {each.get('UnitFileState') or '-'} {each.get('After', '')}".rstrip() for name, each in there.items()
    )
    text = ", ".join(" ".join(each.split(" ")[:2]) for each in found) or "there is no unit that makes targets"
    yield Fact(HOST, "target_units", known(found, text, f"systemctl show {' '.join(UNITS)}"))
