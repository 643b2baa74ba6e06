"""Does what is configured let a flush get from OpenZFS to the disk?

``zfs_nocacheflush`` stops all flushes, and the kernel drops them where ``queue/write_cache`` says "write through" (kernel:
Documentation/block/writeback_cache_control.rst): of the disk, or of a device-mapper or md device above it, which ends an
empty flush itself then (submit_bio_noacct() in block/blk-core.c). Before Linux 6.11 a device-mapper device took the word
of the disks over when its table was loaded (dm_table_set_restrictions() in drivers/md/dm-table.c), and keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import about, every
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, is_true, unknown, words_of

SUBJECT = "leaf"
FACTS = {
    "flush_path_intact": flag("nothing that is configured keeps a flush from reaching its disks"),
    "stack_drops_flushes": flag("a device between OpenZFS and a disk with a volatile cache completes flushes itself"),
}


def derive(leaf: Subject, facts: Facts) -> Iterator[Fact]:
    """Both facts; unknown where a disk, its cache or its counters could not be seen."""
    disks = facts.get(leaf, "disks")
    if isinstance(disks, Unknown):
        yield from (Fact(leaf, name, disks) for name in FACTS)
        return
    behind = facts.linked(leaf, "disks")
    stack = _stack(leaf, behind, facts)
    yield Fact(leaf, "stack_drops_flushes", stack)
    yield Fact(leaf, "flush_path_intact", _intact(behind, stack, facts))


def _stack(leaf: Subject, disks: tuple[Subject, ...], facts: Facts) -> Judged:
    caches = facts.get(leaf, "stack_write_cache")
    if isinstance(caches, Unknown):
        return caches
    through = [name for name in words_of(caches) if name.endswith("=write through")]
    if not through:
        return Known(False, caches.evidence)
    volatile = [(disk, facts.get(disk, "volatile_cache")) for disk in disks]
    for disk, cache in volatile:
        if is_true(cache):
            return Known(True, caches.evidence + about(disk, cache))
    if not volatile:
        return unknown(f"leaf {leaf}: no disks are known")
    found = every(cache for _, cache in volatile)
    seen = (piece for disk, cache in volatile if isinstance(cache, Known) for piece in about(disk, cache))
    return found if isinstance(found, Unknown) else Known(False, (*caches.evidence, *seen))


def _off(cache: Judged) -> bool:
    return isinstance(cache, Known) and cache.value is False


def _intact(disks: tuple[Subject, ...], stack: Judged, facts: Facts) -> Judged:
    """False where one thing breaks the path, whatever else is unknown; True only where all of it was seen."""
    parts: list[Judged] = [facts.get(HOST, "zfs_nocacheflush")]
    match parts[0]:
        case Known(int(value), seen) if value != 0:
            return Known(False, seen)
    match stack:
        case Known(True, seen):
            return Known(False, seen)
    if not disks:
        return unknown("no disks are known")
    if not all(_off(facts.get(disk, "volatile_cache")) for disk in disks):
        parts.append(stack)
    for disk in disks:
        cache, kernel = facts.get(disk, "volatile_cache"), facts.get(disk, "sysfs_write_cache")
        match cache, kernel:
            case Known(True), Known("write through"):
                return Known(False, about(disk, cache) + about(disk, kernel))
            case Known(False), _:
                parts.append(Known(True, about(disk, cache)))  # nothing to flush
            case _, Known("write back"):
                parts.append(Known(True, about(disk, kernel)))
            case _, _:
                parts += [each for each in (cache, kernel) if isinstance(each, Unknown)]
    found = every(parts)
    return (
        found if isinstance(found, Unknown) else Known(True, tuple(piece for each in found for piece in each.evidence))
    )
