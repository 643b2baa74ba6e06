"""Where GRUB finds kernels and its configuration, and which features of a pool it reads.

GRUB opens a pool for reading, so that features count that are not compatible with reading (``zpool-features.7``, "READ-ONLY
COMPATIBLE"; zfeature_register() in module/zcommon/zfeature_common.c at zfs-2.4.4), and of these it knows its own list
(spa_feature_names in grub-core/fs/zfs/zfs.c, the same from grub-2.02 to grub-2.12; zstd_compress came with 2.14).
"""

from __future__ import annotations

from functools import lru_cache

PLACES = ("/boot", "/boot/grub")  # TrueNAS has boot-pool/grub at the second
READ = frozenset({"lz4_compress", "hole_birth", "embedded_data", "extensible_dataset", "large_blocks"})
_COMPATIBLE = """
allocation_classes async_destroy block_cloning block_cloning_endian bookmarks device_rebuild empty_bpobj enabled_txg
fast_dedup filesystem_limits large_microzap livelist log_spacemap obsolete_counts physical_rewrite project_quota
resilver_defer spacemap_histogram spacemap_v2 userobj_accounting zilsaxattr zpool_checkpoint
"""
_BEYOND = """
blake3 bookmark_v2 bookmark_written device_removal draid dynamic_gang_header edonr encryption head_errlog large_dnode
longname multi_vdev_crash_dump raidz_expansion redacted_datasets redaction_bookmarks redaction_list_spill sha512 skein
vdev_zaps_v2 zstd_compress
"""
READ_ONLY_COMPATIBLE, BEYOND = frozenset(_COMPATIBLE.split()), frozenset(_BEYOND.split())


@lru_cache(maxsize=8)  # asked for each pool, of a table with all datasets
def pools_of(table: tuple[str, ...]) -> tuple[str, ...] | None:
    """The pools in which GRUB looks for its files, by the lines of /proc/self/mountinfo: what was mounted last at each of its
    places. None where one of them is mounted on demand: nobody knows what lies there until somebody looks."""
    last: dict[str, list[str]] = {}
    for line in table:
        row = line.split(" ")
        if len(row) > 4 and row[4] in PLACES and "-" in row:
            last[row[4]] = row[row.index("-") + 1 :][:2]
    if any(each[:1] == ["autofs"] for each in last.values()):
        return None
    names = (each[1].replace("\\040", " ") for each in last.values() if each[:1] == ["zfs"] and len(each) > 1)
    return tuple(dict.fromkeys(name.partition("/")[0] for name in names))
