"""The space on all log vdevs of a pool together, to compare zfs_wrlog_data_max with."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import about, every
from auditor.facts import Fact, Facts, Known, Subject, Unknown, number

SUBJECT = "pool"
FACTS = {"log_bytes": number("space on its log vdevs; a mirror counts once")}


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """pool.log_bytes; 0 where there is no log vdev."""
    vdevs = facts.get(pool, "log_vdevs")
    if isinstance(vdevs, Unknown):
        yield Fact(pool, "log_bytes", vdevs)
        return
    logs = facts.linked(pool, "log_vdevs")
    sizes = every(facts.get(vdev, "asize_bytes") for vdev in logs)
    if isinstance(sizes, Unknown):
        yield Fact(pool, "log_bytes", sizes)
        return
    seen = tuple(piece for vdev, size in zip(logs, sizes, strict=True) for piece in about(vdev, size))
    total = sum(size.value for size in sizes if isinstance(size.value, int))
    yield Fact(pool, "log_bytes", Known(total, seen or vdevs.evidence))
