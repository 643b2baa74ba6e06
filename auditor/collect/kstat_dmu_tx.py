"""``/proc/spl/kstat/zfs/dmu_tx``: how often writes of any pool were held back. (OpenZFS include/sys/dmu_tx.h)"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import kstat
from auditor.facts import HOST, Fact, Facts, Spec, Subject, number
from auditor.host.request import Files, Read, Request

PER = "host"
SUBJECT = "host"
PATH = f"{kstat.ROOT}/dmu_tx"
FACTS: dict[str, Spec] = {
    "dmu_tx_assigned": number("transactions that got into a TXG"),
    "dmu_tx_delay": number("transactions delayed because the TXG was being closed"),
    "dmu_tx_group": number("transactions of which an object belonged to a TXG still being closed"),
    "dmu_tx_memory_reserve": number("transactions that found too little memory"),
    "dmu_tx_memory_reclaim": number("transactions that waited for the ARC to shrink"),
    "dmu_tx_dirty_throttle": number("transactions that waited for dirty data to be written"),
    "dmu_tx_dirty_delay": number("transactions delayed by the write throttle"),
    "dmu_tx_dirty_over_max": number("transactions that met zfs_dirty_data_max"),
    "dmu_tx_dirty_frees_delay": number("frees that were held back"),
    "dmu_tx_wrlog_delay": number("transactions that met zfs_wrlog_data_max"),
    "dmu_tx_quota": number("transactions that met a quota"),
}


def request(host: Subject, facts: Facts) -> Request:
    """One file."""
    return Read((PATH,))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Each row under its own name."""
    return kstat.of_rows(reply, PATH, HOST, FACTS)
