"""``/proc/spl/kstat/zfs/zil``: what the ZIL of all pools together has done since the module was loaded.

2.1 has the counts only; ``*_write`` and ``*_alloc`` came with 2.2, error, stall and suspend with 2.3, crash with 2.4.
(OpenZFS include/sys/zil.h, zil_stats)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import kstat
from auditor.facts import HOST, Fact, Facts, Spec, Subject, number
from auditor.host.request import Files, Read, Request

PER = "host"
SUBJECT = "host"
PATH = f"{kstat.ROOT}/zil"
FACTS: dict[str, Spec] = {
    "zil_commit_count": number("commits that were asked for (fsync and the like)"),
    "zil_commit_writer_count": number("commits after merging"),
    "zil_commit_error_count": number("commits that a failed log write or flush sent to the next TXG"),
    "zil_commit_stall_count": number("commits that found no space for a log block and waited for the TXG"),
    "zil_commit_suspend_count": number("commits while the ZIL was suspended, which waited for the TXG"),
    "zil_commit_crash_count": number("commits while the ZIL was crashed (pool suspended)"),
    "zil_itx_count": number("transactions that were committed"),
    "zil_itx_indirect_count": number("writes of which the log holds a pointer only, the data is on the data vdevs"),
    "zil_itx_indirect_bytes": number("bytes of those writes"),
    "zil_itx_copied_count": number("writes copied into the log when they were made"),
    "zil_itx_copied_bytes": number("bytes of those writes"),
    "zil_itx_needcopy_count": number("writes copied into the log at the commit"),
    "zil_itx_needcopy_bytes": number("bytes of those writes"),
    "zil_itx_metaslab_normal_count": number("log blocks on the data (in 2.4 also special) vdevs"),
    "zil_itx_metaslab_normal_bytes": number("log records in them, bytes"),
    "zil_itx_metaslab_normal_write": number("bytes written for them"),
    "zil_itx_metaslab_normal_alloc": number("bytes allocated for them"),
    "zil_itx_metaslab_slog_count": number("log blocks on log vdevs"),
    "zil_itx_metaslab_slog_bytes": number("log records in them, bytes"),
    "zil_itx_metaslab_slog_write": number("bytes written for them"),
    "zil_itx_metaslab_slog_alloc": number("bytes allocated for them"),
}


def request(host: Subject, facts: Facts) -> Request:
    """One file."""
    return Read((PATH,))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Each row under its own name."""
    return kstat.of_rows(reply, PATH, HOST, FACTS)
