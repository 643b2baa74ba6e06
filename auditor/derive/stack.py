"""Whether what lies between a leaf and its disks only passes writes and flushes on, or moves them about or keeps them.

Layers come from sysfs; what an LVM or other device-mapper device does stands in its table, which only root may read. A
layer that only its name is known of ("dm", "lvm") is therefore unknown without the table. A cache that writes through, or
around itself, holds no write that its disk has not; one whose mode is not known is taken for one that writes back.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Fact, Facts, Known, Subject, Unknown, flag, unknown, word, words_of

SUBJECT = "leaf"
FACTS = {
    "stack": word("the layers and device-mapper targets between OpenZFS and the disks, or empty"),
    "stack_rearranges": flag("one of them does more than pass writes and flushes on"),
    "stack_caches": flag("one of them may keep the only copy of what was flushed"),
}
LAYERS = frozenset({"partition", "crypt", "multipath", "loop", "md-linear"})  # loop has a rule of its own
TARGETS = frozenset({"linear", "crypt", "multipath"})
TOLD_BY_TARGETS = frozenset({"lvm", "dm"})
CACHES = frozenset({"bcache", "bcache-writeback", "cache", "cache-writeback", "writecache"})


def derive(leaf: Subject, facts: Facts) -> Iterator[Fact]:
    """All facts of FACTS."""
    layers, targets = facts.get(leaf, "layers"), facts.get(leaf, "dm_targets")
    if isinstance(layers, Unknown):
        yield from (Fact(leaf, name, layers) for name in FACTS)
        return
    named = words_of(layers)
    made_of = words_of(targets)
    others = [each for each in (*named, *made_of) if each not in LAYERS | TARGETS | TOLD_BY_TARGETS]
    evidence = layers.evidence + (targets.evidence if isinstance(targets, Known) else ())
    yield Fact(leaf, "stack", Known(", ".join(dict.fromkeys((*named, *made_of))), evidence))
    for name, which in (("stack_rearranges", others), ("stack_caches", [each for each in others if each in CACHES])):
        if which:
            yield Fact(leaf, name, Known(True, evidence))
        elif isinstance(targets, Unknown) and set(named) & TOLD_BY_TARGETS:
            yield Fact(leaf, name, targets)
        elif isinstance(targets, Known) and "dm" in named and not made_of:
            yield Fact(leaf, name, unknown(f"{leaf}: the table of a device-mapper device below it is empty"))
        else:
            yield Fact(leaf, name, Known(False, layers.evidence))
