"""The facts of a run, for the rules that judge whether it was honest (``rules/fio-*.toml``) and what it showed."""

from __future__ import annotations

from typing import Literal, get_args

from auditor.facts import Spec

# Words that rules and results share, in a module that costs nothing to import.

Purpose = Literal[
    "log", "binlog", "group", "fresh", "recycled", "variant", "data", "together", "calls", "warm", "ab", "sweep"
]


FACTS: dict[str, Spec] = {
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
HOST_FACTS: dict[str, Spec] = {"runs": Spec.links("run", "runs of fio in this verification")}
