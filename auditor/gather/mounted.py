"""What ``zfs get`` says of a mounted dataset, compared with the mounts themselves.

Where the source of a property is "temporary" its value is that of a mount that the command found where it ran, and others
may have another one (:mod:`auditor.sources.mounts`).
"""

from __future__ import annotations

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Subject, Unknown, pairs_of, unknown, value_of

TEMPORARY = "(temporary)"  # how the evidence of such a property ends
HERE = "run in the mount namespace of the host, as root"
BY_MOUNT = ("atime", "relatime")  # each mount has its own; exec, setuid, devices, xattr and nbmand are not read


def stand(facts: Facts) -> None:
    """own_mount_namespace becomes unknown where process 1 may be that of a container: its mounts are then no witness."""
    every, apart = facts.get(HOST, "all_processes"), facts.get(HOST, "own_mount_namespace")
    if isinstance(apart, Known) and apart.value is False and value_of(every) is not True:
        hole = (
            every
            if isinstance(every, Unknown)
            else unknown(f"{every.evidence[0].text}: process 1 is of a container", HERE)
        )
        facts.replace(Fact(HOST, "own_mount_namespace", hole))


def compare(facts: Facts) -> None:
    """All datasets: readonly as the file system is, not as a mount is; the rest only where zaudit sees the host's mounts."""
    states = _states(facts)
    apart = facts.get(HOST, "own_mount_namespace")
    same, other = (isinstance(apart, Known) and apart.value is answer for answer in (False, True))
    for dataset in list(facts.subjects("dataset")):
        seen = states.get(dataset.name)
        _readonly(dataset, seen, facts)
        for name in () if same else BY_MOUNT:
            if _temporary(facts.get(dataset, name)):
                _doubt(dataset, name, facts)
        if other and value_of(facts.get(dataset, "mounted")) is False:
            if seen:
                facts.replace(Fact(dataset, "mounted", Known(True, seen.evidence)))
            else:
                _doubt(dataset, "mounted", facts)


def _states(facts: Facts) -> dict[str, Known]:
    """Dataset -> "ro" or "rw", of the file systems that are mounted."""
    table = facts.get(HOST, "zfs_mounts")
    if not isinstance(table, Known):
        return {}
    command = table.evidence[0].command
    return {
        name: Known(state, (Evidence(f"its file system is mounted {state}", command),))
        for name, state in pairs_of(table)
    }


def _readonly(dataset: Subject, seen: Known | None, facts: Facts) -> None:
    """readonly=on holds where the file system itself is ro; where it is rw somebody can write to it."""
    said = facts.get(dataset, "readonly")
    if not (isinstance(said, Known) and said.value == "on"):
        return
    if seen and seen.value == "rw":
        facts.replace(Fact(dataset, "readonly", Known("off", (*said.evidence, *seen.evidence))))
    elif seen is None and _temporary(said):
        _doubt(dataset, "readonly", facts)


def _doubt(dataset: Subject, name: str, facts: Facts) -> None:
    said = facts.get(dataset, name)
    assert isinstance(said, Known)
    text = f"{said.evidence[0].text}: so it is mounted where zaudit runs; how others have it mounted was not seen"
    facts.replace(Fact(dataset, name, unknown(text, HERE)))


def _temporary(found: Judged) -> bool:
    return isinstance(found, Known) and found.evidence[0].text.endswith(TEMPORARY)
