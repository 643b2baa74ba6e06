"""``/sys/module/{zfs,spl}/parameters``: the tunables as they are now. (man 4 zfs, man 4 spl)

Which release has which parameter, and what its default is, is not said here.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect._json import is_integer
from auditor.facts import HOST, Fact, Facts, Known, Spec, Subject, known, number, word
from auditor.host.request import Files, Read, Request
from auditor.text import argument

PER = "host"
SUBJECT = "host"

WORDS = {
    "spa_config_path": "the cache file of imported pools",
    "spl_hostid_path": "where the host id is read from",
    "zfs_active_allocator": "how metaslabs are allocated from",
    "zfs_deadman_failmode": "what a hung I/O does: wait, continue or panic",
    "zio_taskq_read": "threads for reads",
    "zio_taskq_write": "threads for writes",
}
NUMBERS = {
    # durability
    "zfs_nocacheflush": "1: no vdev is ever flushed",
    "zil_nocacheflush": "1: no flush after log writes",
    "zil_replay_disable": "1: the log is thrown away at import",
    "zfs_zil_saxattr": "0: changes of SA extended attributes are not logged",
    "zfs_recover": "1: fatal errors become warnings",
    "zfs_flags": "debug bits",
    "zfs_txg_timeout": "longest time between TXGs, s",
    "zfs_dmu_offset_next_sync": "1: SEEK_HOLE waits for a TXG",
    "zfs_bclone_enabled": "1: block cloning is allowed",
    "zfs_bclone_wait_dirty": "1: cloning waits for dirty data",
    "zfs_dio_enabled": "1: O_DIRECT goes past the ARC",
    "zfs_dio_strict": "1: misaligned O_DIRECT fails",
    "zfs_vdev_direct_write_verify": "1: Direct I/O writes are verified",
    "zfs_multihost_interval": "time between multihost writes, ms",
    "zfs_multihost_fail_intervals": "missed intervals that suspend a pool; 0: never",
    "zfs_multihost_import_intervals": "intervals an import waits",
    "zfs_deadman_enabled": "1: hung I/O is noticed",
    "zfs_deadman_ziotime_ms": "an I/O this old is hung, ms",
    "zfs_deadman_synctime_ms": "a TXG this old is hung, ms",
    "zfs_no_scrub_io": "1: a scrub reads metadata only",
    "zfs_no_scrub_prefetch": "1: a scrub does not prefetch",
    "zfs_scan_ignore_errors": "1: a resilver counts as complete in spite of errors",
    "zfs_send_corrupt_data": "1: send replaces unreadable blocks instead of failing",
    "zvol_request_sync": "1: zvol requests are handled one after the other",
    "zvol_use_blk_mq": "1: zvols use blk-mq",
    "zvol_threads": "threads for zvol requests",
    "zfs_vdev_disk_classic": "1: the old way to submit I/O to disks",
    "zfs_vdev_failfast_mask": "which kernel retries are left out",
    "zfs_fallocate_reserve_percent": "what fallocate checks for, % of the size",
    "zfs_autoimport_disable": "1: no import from the cache file when the module is loaded",
    "zfs_disable_ivset_guid_check": "1: raw receives are not checked",
    "zfs_initialize_value": "what free space is filled with",
    "spa_load_verify_data": "1: a rewind import reads data",
    "spa_load_verify_metadata": "1: a rewind import reads metadata",
    "zfs_max_missing_tvds": "missing top-level vdevs that an import puts up with",
    "spl_hostid": "the host id when set by hand",
    # ZIL
    "zfs_immediate_write_sz": "writes from this size on go to the data vdevs when there is no SLOG, bytes",
    "zil_special_is_slog": "1: a special vdev counts as a SLOG",
    "zil_maxblocksize": "largest log block, bytes",
    "zil_maxcopied": "largest write copied when made, bytes",
    "zil_slog_bulk": "bytes of a commit at high priority, bytes",
    "zfs_commit_timeout_pct": "how long a log block waits for company, % of the last latency",
    "zil_min_commit_timeout": "no wait below this, ns",
    "zfs_embedded_slog_min_ms": "metaslabs that a vdev must have for an embedded log",
    "zfs_wrlog_data_max": "most log data of unwritten TXGs, bytes",
    "zfs_zil_clean_taskq_maxalloc": "bound of the clean-up queue",
    "zfs_zil_clean_taskq_minalloc": "its preallocation",
    "zfs_zil_clean_taskq_nthr_pct": "its threads, % of the processors",
    # dirty data, TXG, throttle
    "zfs_dirty_data_max": "most dirty data, bytes",
    "zfs_dirty_data_max_percent": "most dirty data, % of memory",
    "zfs_dirty_data_max_max": "bound of zfs_dirty_data_max, bytes",
    "zfs_dirty_data_max_max_percent": "bound of zfs_dirty_data_max, % of memory",
    "zfs_dirty_data_sync_percent": "dirty data that starts a TXG, % of the most",
    "zfs_delay_min_dirty_percent": "dirty data that starts the throttle, % of the most",
    "zfs_delay_scale": "how steeply it throttles",
    "zfs_vdev_async_write_active_min_dirty_percent": "dirty data below which few writes are active, %",
    "zfs_vdev_async_write_active_max_dirty_percent": "dirty data above which most writes are active, %",
    "zfs_vdev_async_write_min_active": "fewest active asynchronous writes a vdev",
    "zfs_vdev_async_write_max_active": "most active asynchronous writes a vdev",
    "zfs_vdev_sync_write_min_active": "fewest active synchronous writes a vdev",
    "zfs_vdev_sync_write_max_active": "most active synchronous writes a vdev",
    "zfs_vdev_sync_read_min_active": "fewest active synchronous reads a vdev",
    "zfs_vdev_sync_read_max_active": "most active synchronous reads a vdev",
    "zfs_vdev_async_read_min_active": "fewest active asynchronous reads a vdev",
    "zfs_vdev_async_read_max_active": "most active asynchronous reads a vdev",
    "zfs_vdev_scrub_min_active": "fewest active scrub reads a vdev",
    "zfs_vdev_scrub_max_active": "most active scrub reads a vdev",
    "zfs_vdev_max_active": "most active I/O a vdev",
    "zfs_vdev_aggregation_limit": "largest merged I/O, bytes",
    "zfs_vdev_aggregation_limit_non_rotating": "largest merged I/O of an SSD, bytes",
    "zfs_sync_taskq_batch_pct": "threads that sync, % of the processors",
    "zfs_txg_history": "TXGs that the txgs kstat keeps",
    "zio_slow_io_ms": "an I/O this long is slow, ms",
    "zfs_slow_io_events_per_second": "slow I/O events that are reported a second",
    "spa_slop_shift": "share of the pool kept back: 1/2^n",
    "zfs_checksum_events_per_second": "checksum error events that are reported a second",
    "zfs_resilver_min_time_ms": "time of a TXG for a resilver, ms",
    "zfs_scrub_min_time_ms": "time of a TXG for a scrub, ms",
    "zfs_vdev_min_auto_ashift": "smallest ashift chosen for a new vdev",
    "zfs_vdev_max_auto_ashift": "largest ashift chosen for a new vdev",
    "zfs_metaslab_mem_limit": "memory for metaslabs, %",
    "zfs_vdev_open_timeout_ms": "how long an open waits for a device, ms",
    "zfs_vdev_mirror_rotating_inc": "mirror read balance",
    "metaslab_force_ganging": "blocks from this size on are split up (a test), bytes",
    "zfs_max_recordsize": "largest recordsize that can be set, bytes",
    # memory
    "zfs_arc_max": "most the ARC takes, bytes; 0: by itself",
    "zfs_arc_min": "least the ARC keeps, bytes; 0: by itself",
    "zfs_arc_sys_free": "what the ARC leaves free, bytes; 0: by itself",
    "zfs_arc_shrinker_limit": "pages that the ARC gives back at once; 0: any",
    "zfs_arc_pc_percent": "share of the page cache, %",
    "zfs_arc_lotsfree_percent": "memory below which writes are held back, %",
    "zfs_prefetch_disable": "1: no prefetch",
    "l2arc_noprefetch": "1: prefetched data stays out of the L2ARC",
    "l2arc_write_max": "bytes a second to the L2ARC",
}
FACTS: dict[str, Spec] = {
    **{name: number(text) for name, text in NUMBERS.items()},
    **{name: word(text) for name, text in WORDS.items()},
}


def request(host: Subject, facts: Facts) -> Request:
    """All of them: a recording then also answers what a later zaudit asks."""
    return Read(("/sys/module/zfs/parameters/*", "/sys/module/spl/parameters/*"))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Each under its own name; a number that is none is left out."""
    for path, text in sorted(reply.text.items()):
        name = path.rpartition("/")[2]
        if name in FACTS and text.endswith("\n") and (found := _known(name, text.strip(), path)) is not None:
            yield Fact(HOST, name, found)


def _known(name: str, value: str, path: str) -> Known | None:
    if name in WORDS:
        return known(value, f"{name}={value}", f"cat {argument(path)}")
    if not is_integer(value):
        return None
    return known(int(value), f"{name}={value}", f"cat {argument(path)}")
