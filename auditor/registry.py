"""Which facts exist: those of every source, of every derivation, and of a run of fio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal, cast, get_args

from auditor import data
from auditor.databases import paths
from auditor.facts import Kind, Spec
from auditor.gather import layers, users, walk
from auditor.model.derivation import Derivation
from auditor.sources import block_tree
from auditor.sources import sources as sources
from auditor.sources.source import Source


@cache
def derivations() -> tuple[Derivation, ...]:
    """Of all modules of auditor/model."""
    values = (each for module in data.modules("auditor.model") for each in vars(module).values())
    return tuple(dict.fromkeys(each for each in values if isinstance(each, Derivation)))


def specs(source: Source) -> list[tuple[tuple[Kind, str], Spec]]:
    """((kind, fact), spec) of a source. One about one kind names its facts bare, others qualify them."""
    return list(qualified(source.facts, source.subject).items())


def qualified(facts: Mapping[str, Spec], subject: str = "") -> dict[tuple[Kind, str], Spec]:
    """(kind, fact) -> spec, from names that are qualified ("leaf.path") or about one kind of subject ("path")."""
    found = {}
    for name, spec in facts.items():
        kind, _, bare = name.rpartition(".")
        found[cast(Kind, kind or subject), bare] = spec
    return found


def every() -> Iterator[tuple[tuple[Kind, str], Spec]]:
    """((kind, fact), spec) of every source and derivation."""
    for source in sources().values():
        yield from specs(source)
    for derivation in derivations():
        yield from derivation.specs.items()


@cache
def registry() -> dict[tuple[Kind, str], Spec]:
    """(kind, fact) -> spec of every fact that anything can provide."""
    found: dict[tuple[Kind, str], Spec] = {}
    walked: dict[tuple[Kind, str], Spec] = {
        **qualified(block_tree.PROVIDES),
        **qualified(walk.PROVIDES),
        **qualified(layers.PROVIDES),
        **qualified(users.PROVIDES),
        **qualified(paths.PROVIDES),
        **qualified(RUN_FACTS, "run"),
        **qualified(RUNS_FACTS, "host"),
    }
    for key, spec in (*walked.items(), *every()):
        if key in found and found[key] != spec:
            raise TypeError(f"{'.'.join(key)} is already something else")
        found[key] = spec
    return found


# -- runs of fio ------------------------------------------------------------------------------------------------------
# The facts of a run, for the rules that judge whether it was honest (``rules/fio-*.toml``) and what it showed.

Purpose = Literal[
    "log", "binlog", "group", "fresh", "recycled", "variant", "data", "together", "calls", "warm", "sweep"
]

RUN_FACTS: dict[str, Spec] = {
    "purpose": Spec.word("what the run is for", *get_args(Purpose)),
    "dataset": Spec.link("dataset", "what was written to"),
    "pool": Spec.link("pool", "its pool"),
    "followed": Spec.flag("every sync was followed down to the devices (of the log run)"),
    "unflushed": Spec.links(
        "disk", "disks whose flushes did not account for the syncs, where every link above them did"
    ),
    "fio_ended_well": Spec.flag("fio ended by itself, without an error and without a short write"),
    "sync": Spec.word("how the job asks for stable storage", "fsync", "fdatasync", "dsync", "sync", "none"),
    "syncs": Spec.number("syncs that returned"),
    "writes": Spec.number("writes"),
    "reads": Spec.number("reads"),
    "seconds": Spec.real("time that it ran, s"),
    "jobs": Spec.number("jobs at once"),
    "depth": Spec.number("I/Os of one job at once"),
    "file_bytes": Spec.number("size of its files together"),
    "direct": Spec.flag("the job opens its files with O_DIRECT"),
    "fallocate": Spec.flag("the job asks for its space before it writes"),
    "zero_buffers": Spec.flag("the job writes zeros"),
    "compressible_percent": Spec.number("how much of its buffers fio makes compressible, %"),
    "repeats_buffers": Spec.flag("fio may write the same buffer twice"),
    "written_share": Spec.real("bytes that transaction groups wrote, for each byte that the job wrote"),
    "slog_share": Spec.real("share of the ZIL's payload that went to the SLOG, where there is one"),
    "foreign_load": Spec.flag("others committed or wrote meanwhile"),
    "scan_ran": Spec.flag("a scrub or resilver ran meanwhile"),
    "throttled": Spec.number("transactions that the write throttle held back"),
    "thermal_throttled": Spec.flag("a drive of the log slowed itself down for heat"),
    "p50_us": Spec.real("median latency of a sync, microseconds"),
    "floor_us": Spec.real("least median that devices of this class can honestly have, microseconds"),
    "samples_beyond": Spec.number("samples beyond the highest percentile that is asked for"),
    "objectives_met": Spec.flag("every objective was kept"),
}
RUNS_FACTS: dict[str, Spec] = {"runs": Spec.links("run", "runs of fio in this verification")}
