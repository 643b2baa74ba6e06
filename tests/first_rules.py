"""The rules that were there first: none of them may go, and what all others cost is measured against them."""

THE_FIRST = frozenset(
    """
    sync-disabled sync-ancestor-trap logbias-throughput-log logbias-throughput-compression
    zfs-nocacheflush zil-nocacheflush zil-replay-disabled write-cache-forced-through flush-latched-off
    slog-no-redundancy slog-shared-with-data no-power-loss-protection
    slog-virtual slog-unhealthy special-acts-as-log special-redundancy-mismatch
    no-redundancy ashift-too-small ashift-mixed raidz-small-blocks pool-degraded pool-data-errors
    vdev-errors-nonzero scrub-stale pool-nearly-full failmode-continue checksum-off primarycache
    recordsize-vs-page dedup-on-db untested-combination
    """.split()  # noqa: SIM905 (a list of words)
)
