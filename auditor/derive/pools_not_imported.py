"""Pools whose labels drives of this host bear, and that are not imported; those apart that are called like one that is.

What udev knows of a device that a pool was made on later may be the label of before: no leaf of an imported pool counts. Nor
does a device that a virtual machine has open: only who may open it can do so, and it is told by
its number. Where the label has the name of an imported pool it does: at the next start that machine does not run yet. An old
leg of an imported pool bears that pool's GUID.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import (
    HOST,
    DeviceName,
    Fact,
    Facts,
    Guest,
    GuestFile,
    Known,
    Label,
    Subject,
    Unknown,
    join,
    known,
    rows_of,
    word_of,
    words,
)

SUBJECT = "host"
FACTS = {
    "pools_not_imported": words("name and GUID of each, and the devices that bear its label"),
    "pool_names_twice": words("the same of those that are called like a pool that is imported"),
}
THERE = ("ONLINE", "DEGRADED", "AVAIL", "INUSE")
COMMAND = "zpool import"


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Known where no label is of another pool, whatever else is not known."""
    labels, pools, loaded = (facts.get(HOST, name) for name in ("zfs_labels", "imported_pools", "zfs_loaded"))
    if isinstance(loaded, Known) and not loaded.value:
        pools = loaded  # and none is imported
    if unseen := [each for each in (labels, pools) if isinstance(each, Unknown)]:
        yield from (Fact(HOST, name, join(unseen)) for name in FACTS)
        return
    guids = [facts.get(pool, "list_guid") for pool in facts.linked(HOST, "imported_pools")]
    leaves = [facts.get(leaf, "path") for leaf in facts.subjects("leaf") if _is_there(leaf, facts)]
    guests, opened = rows_of(facts.get(HOST, "guests"), Guest), facts.get(HOST, "guest_files")
    nodes = {each.path: each.node for each in rows_of(facts.get(HOST, "labelled_paths"), DeviceName)}
    mine = {word_of(each) for each in guids}
    taken = {nodes.get(word_of(path), "") for path in leaves}
    of_guests = {each.where.removeprefix("/dev/") for each in rows_of(opened, GuestFile)}
    # udev writes a blank in a label as an underscore (systemd src/udev/udev-builtin-blkid.c, ID_FS_LABEL)
    names = {each for pool in facts.linked(HOST, "imported_pools") for each in (pool.name, pool.name.replace(" ", "_"))}
    others: dict[bool, dict[str, list[str]]] = {False: {}, True: {}}  # by whether another one of that name is imported
    for guid, node, disk, name in rows_of(labels, Label):
        if guid not in mine and not {node, disk} & (taken if name in names else taken | of_guests):
            others[name in names].setdefault(f"{name} (GUID {guid})", []).append(node)
    doubts = [each for each in (*guids, *leaves) if isinstance(each, Unknown)]
    of_opened = [opened] if guests and isinstance(opened, Unknown) else []
    for fact, twice in zip(FACTS, (False, True), strict=True):
        found = tuple(f"{pool} on {', '.join(sorted(devices))}" for pool, devices in others[twice].items())
        text = "; ".join(found) or "every label is that of an imported pool, or its device is in use"
        why = doubts if twice else [*doubts, *of_opened]
        yield Fact(HOST, fact, join(why) if found and why else known(found, text, COMMAND))


def _is_there(leaf: Subject, facts: Facts) -> bool:
    """Whether it is a device that its pool writes to, as far as that is known."""
    kind, state = facts.get(leaf, "type"), facts.get(leaf, "state")
    return not (isinstance(kind, Known) and kind.value in ("file", "dspare")) and (
        isinstance(state, Unknown) or state.value in THERE
    )
