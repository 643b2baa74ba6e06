"""Cache devices and hot spares: which of them OpenZFS cannot use. No state of the pool tells of them.

Such a device is opened by its path, and is not used where its label is not there or is that of another device. The pool
stays ONLINE. (OpenZFS module/zfs/vdev.c vdev_validate_aux; module/zfs/spa.c spa_load_l2cache, spa_load_spares)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import (
    Evidence,
    Fact,
    Facts,
    Known,
    Subject,
    Unknown,
    is_true,
    join,
    known,
    links,
    unknown,
    word_of,
    words,
)

SUBJECT = "pool"
FACTS = {
    "cache_gone": words("what is wrong with each cache device that OpenZFS cannot use"),
    "every_leaf": links("leaf", "its leaves, cache devices and hot spares; none that lies on others", nonempty=True),
}
NEEDS = (
    *("pool.leaves", "pool.cache_leaves", "pool.spare_leaves"),
    *("leaf.type", "leaf.state", "leaf.note", "leaf.path", "leaf.device_present", "leaf.taken_by"),
)
USED = ("ONLINE", "DEGRADED", "AVAIL", "INUSE")
NO_DEVICE = ("file", "dspare")


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Both facts."""
    yield from _cache(pool, facts)
    beside = ("leaves", "cache_leaves", "spare_leaves")
    if unseen := [each for name in beside if isinstance(each := facts.get(pool, name), Unknown)]:
        yield Fact(pool, "every_leaf", join(unseen))
        return
    every = dict.fromkeys(leaf for name in beside for leaf in facts.linked(pool, name))
    own = tuple(leaf for leaf in every if word_of(facts.get(leaf, "type")) != "dspare")
    yield Fact(
        pool, "every_leaf", Known(own, (Evidence(", ".join(leaf.name for leaf in own), f"zpool status {pool}"),))
    )


def _cache(pool: Subject, facts: Facts) -> Iterator[Fact]:
    caches = facts.get(pool, "cache_leaves")
    leaves = facts.linked(pool, "cache_leaves")
    faults = [fault(leaf, facts) for leaf in leaves]
    gone = tuple(each for each in faults if isinstance(each, str) and each)
    doubts = [each for each in (caches, *faults) if isinstance(each, Unknown)]
    if doubts and not gone:
        yield Fact(pool, "cache_gone", join(doubts))
        return
    text = "; ".join(gone) or (f"in use: {', '.join(leaf.name for leaf in leaves)}" if leaves else "no cache device")
    yield Fact(pool, "cache_gone", known(gone, text, f"zpool status {pool}"))


def fault(leaf: Subject, facts: Facts) -> str | Unknown:
    """Why OpenZFS cannot use it, and who has it instead; empty where it can."""
    state, present = facts.get(leaf, "state"), facts.get(leaf, "device_present")
    if isinstance(state, Unknown) or state.value == "UNKNOWN":
        return state if isinstance(state, Unknown) else unknown(f"{leaf.name}: zpool status does not know its state")
    if state.value not in USED:
        note = word_of(facts.get(leaf, "note"))
        taken = facts.get(leaf, "taken_by")
        by = f"; {taken.evidence[0].text}" if isinstance(taken, Known) and taken.value else ""
        return f"{leaf.name} is {state.value}" + (f" ({note})" if note else "") + by
    if word_of(facts.get(leaf, "type")) in NO_DEVICE or is_true(present):
        return ""
    if isinstance(present, Unknown):
        return present
    return f"{leaf.name} is {state.value}, but {word_of(facts.get(leaf, 'path'))} does not exist"
