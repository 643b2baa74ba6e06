"""The facts of a run, for the rules that judge whether it was honest (``rules/fio-*.toml``) and what it showed."""

from __future__ import annotations

from typing import Literal, get_args

from auditor.facts import Spec, flag, link, links, number, real, word

# Words that rules and results share, in a module that costs nothing to import.

Purpose = Literal[
    "log", "binlog", "group", "fresh", "recycled", "variant", "data", "together", "calls", "warm", "ab", "sweep"
]


FACTS: dict[str, Spec] = {
    "purpose": word("what the run is for", *get_args(Purpose)),
    "dataset": link("dataset", "what was written to"),
    "pool": link("pool", "its pool"),
    "followed": flag("every sync was followed down to the devices (of the log run)"),
    "unflushed": links("disk", "disks whose flushes did not account for the syncs, where every link above them did"),
    "fio_ended_well": flag("fio ended by itself, without an error and without a short write"),
    "sync": word("how the job asks for stable storage", "fsync", "fdatasync", "dsync", "sync", "none"),
    "syncs": number("syncs that returned"),
    "writes": number("writes"),
    "reads": number("reads"),
    "seconds": real("time that it ran, s"),
    "jobs": number("jobs at once"),
    "depth": number("I/Os of one job at once"),
    "file_bytes": number("size of its files together"),
    "direct": flag("the job opens its files with O_DIRECT"),
    "fallocate": flag("the job asks for its space before it writes"),
    "zero_buffers": flag("the job writes zeros"),
    "compressible_percent": number("how much of its buffers fio makes compressible, %"),
    "repeats_buffers": flag("fio may write the same buffer twice"),
    "written_share": real("bytes that transaction groups wrote, for each byte that the job wrote"),
    "slog_share": real("share of the ZIL's payload that went to the SLOG, where there is one"),
    "foreign_load": flag("others committed or wrote meanwhile"),
    "scan_ran": flag("a scrub or resilver ran meanwhile"),
    "throttled": number("transactions that the write throttle held back"),
    "thermal_throttled": flag("a drive of the log slowed itself down for heat"),
    "p50_us": real("median latency of a sync, microseconds"),
    "floor_us": real("least median that devices of this class can honestly have, microseconds"),
    "samples_beyond": number("samples beyond the highest percentile that is asked for"),
    "objectives_met": flag("every objective was kept"),
}
HOST_FACTS: dict[str, Spec] = {"runs": links("run", "runs of fio in this verification")}
