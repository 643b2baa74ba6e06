"""The leaves that must keep what a commit wrote before fsync returns: those of the log blocks, and often those of the data.

With a log vdev (2.4: or a special one in its place) a commit still writes to the data vdevs where its data goes around the
log (``logbias=throughput``, Direct I/O from 2.3 on: the log holds a pointer), and where the log has no room for its blocks.
(OpenZFS module/zfs/zfs_log.c zfs_log_write, zil.c zil_lwb_add_block, zio.c zio_alloc_zil)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import about
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Subject, Unknown, join, links, unknown

SUBJECT = "pool"
FACTS = {"commit_leaves": links("leaf", "the leaves to which its commits write, or have written", nonempty=True)}
APART = (2, 2)  # from here on the kernel counts datasets apart, before that all pools together
AROUND = ("zil_itx_indirect_count", "zil_itx_metaslab_normal_count")


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """The leaves of the data vdevs too where a counter or logbias shows that commits go there."""
    log, chosen = facts.get(pool, "zil_leaves"), facts.get(pool, "zil_class")
    if isinstance(log, Unknown) or isinstance(chosen, Unknown) or chosen.value == "normal":
        yield Fact(pool, "commit_leaves", log)
        return
    around = _around(pool, facts)
    if isinstance(around, Unknown):
        yield Fact(pool, "commit_leaves", around)
    elif around.value is False:
        yield Fact(pool, "commit_leaves", Known(log.value, (*log.evidence, *around.evidence)))
    else:
        data = facts.get(pool, "data_leaves")
        both = (*facts.linked(pool, "zil_leaves"), *facts.linked(pool, "data_leaves"))
        seen = (*log.evidence, *around.evidence)
        yield Fact(
            pool, "commit_leaves", data if isinstance(data, Unknown) else Known(tuple(dict.fromkeys(both)), seen)
        )


def _around(pool: Subject, facts: Facts) -> Judged:
    """Whether commits of this pool write to the data vdevs, with what shows it. One that does decides; not seen does not."""
    if isinstance(datasets := facts.get(pool, "datasets"), Unknown):
        return datasets
    unknowns: list[Unknown] = []
    quiet: list[Evidence] = []
    release = facts.get(HOST, "zfs_version")
    numbers = release.value if isinstance(release, Known) and isinstance(release.value, tuple) else ()
    before = bool(numbers) and tuple(each for each in numbers if isinstance(each, int))[:2] < APART
    for dataset in facts.linked(pool, "datasets"):
        bias = facts.get(dataset, "logbias")
        if isinstance(bias, Known) and bias.value == "throughput":
            return Known(True, about(dataset, bias))
        mounted = facts.get(dataset, "mounted")
        if isinstance(mounted, Known) and mounted.value is False:  # nothing commits there, and nothing is counted
            continue
        counts = [facts.get(HOST if before else dataset, name) for name in AROUND]
        for each in (bias, *counts):
            if isinstance(each, Unknown):
                unknowns.append(each)
            elif isinstance(each.value, int) and each.value > 0:
                return Known(True, about(dataset, each))
            else:
                quiet += each.evidence
    if unknowns:
        return join(unknowns)
    if not quiet:  # nothing was counted, which is not the same as nothing that goes there
        return unknown(f"{pool}: no mounted dataset whose commits are counted was looked at")
    return Known(False, tuple(dict.fromkeys(quiet))[:3])
