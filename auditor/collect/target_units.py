"""``systemctl show``: which units make targets when the host starts."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Known, Subject, TargetUnit, flag, known, rows_of, words
from auditor.host.request import Output, Run, Skip

PER = "host"
SUBJECT = "host"
FACTS = {
    "target_units": words(
        "UNIT STATE MORE of each unit that makes targets and is there: STATE as UnitFileState, or -; MORE is wanted where"
        " another unit starts it, or -"
    ),
    "cluster_makes_targets": flag("pacemaker runs here, or starts with the host"),
}
# of Fedora, Arch and kin, of openSUSE, of NixOS; of Debian and Ubuntu; of nvmetcli
UNITS = ("target.service", "targetcli.service", "iscsi-target.service", "rtslib-fb-targetctl.service", "nvmet.service")
CLUSTER = "pacemaker.service"
WANTED = ("WantedBy", "RequiredBy", "BoundBy")
PROPERTIES = f"--property=Id,LoadState,ActiveState,UnitFileState,{','.join(WANTED)}"
LOADED = ("loaded", "masked")


def request(host: Subject, facts: Facts) -> Run | Skip:
    """Only where something is offered."""
    return none_offered(facts) or Run(("systemctl", "show", PROPERTIES, *UNITS, CLUSTER), package="systemd")


def none_offered(facts: Facts) -> Skip | None:
    """Why nobody needs to ask what makes targets when the host starts."""
    offered = [facts.get(HOST, name) for name in ("block_targets", "nvme_targets")]
    if any(rows_of(each, TargetUnit) for each in offered):
        return None
    unseen = not all(isinstance(each, Known) for each in offered)
    return Skip("which targets there are is not known" if unseen else "no target is offered", applies=unseen)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """In the order in which they were asked for. Raises ValueError where not all of them were answered."""
    names = (*UNITS, CLUSTER)
    blocks = [_block(text) for text in reply.text.rstrip("\n").split("\n\n")]
    if len(blocks) != len(names) or any(not each.keys() >= {"Id", "LoadState"} for each in blocks):
        raise ValueError(f"{len(blocks)} answers for {len(names)} units")
    # an alias is another unit, which is asked for by its own name
    said = {name: each for name, each in zip(names, blocks, strict=True) if each["Id"] == name}
    there = {name: each for name, each in said.items() if each["LoadState"] != "not-found"}
    if wrong := [name for name, each in there.items() if each["LoadState"] not in LOADED or "ActiveState" not in each]:
        raise ValueError(f"{wrong[0]} could not be loaded")
    cluster = there.pop(CLUSTER, {})
    runs = cluster.get("ActiveState", "inactive") != "inactive" or cluster.get("UnitFileState", "") == "enabled"
    text = f"{CLUSTER}: {cluster.get('ActiveState', 'not there')}, {cluster.get('UnitFileState', '')}".rstrip(", ")
    yield Fact(HOST, "cluster_makes_targets", known(runs, text, f"systemctl show {CLUSTER}"))
    found = tuple(f"{name} {each.get('UnitFileState') or '-'} {_more(each)}" for name, each in there.items())
    text = ", ".join(" ".join(each.split(" ")[:2]) for each in found) or "there is no unit that makes targets"
    yield Fact(HOST, "target_units", known(found, text, f"systemctl show {' '.join(UNITS)}"))


def _block(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def _more(said: dict[str, str]) -> str:
    return "wanted" if any(said.get(name) for name in WANTED) else "-"
