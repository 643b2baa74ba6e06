"""The facts behind a reason of the model, whose evidence or remedy is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from auditor.data import releases
from auditor.durability.answers import Reason
from auditor.facts import HOST, Fact, Facts, Kind, Subject
from auditor.observation.whole_host import Observation

_CACHE = ("volatile_cache", "plp_grade", "drive_class", "plp_failed", "virtual", "transport")
_RAID = ("raid_write_policy", "raid_cache_protected", "raid_drive_cache")
_BELOW = ("below", "lies_on", "stack_rearranges", "stack_caches")
_ENGINE = (
    "engine",
    "synchronous_commit",
    "asynchronous_roles",
    "fsync",
    "no_fsync",
    "flush_log_at_commit",
    "sync_binlog",
)
_OTHERS = ("flush_method", "doublewrite", "redo_log", "journal", "standalone", "appendonly", "appendfsync")
_SETTINGS = tuple(f"database.{name}" for name in (*_ENGINE, *_OTHERS))
_STORE = (*(f"disk.{name}" for name in (*_CACHE, *_RAID)), *(f"leaf.{name}" for name in _BELOW))
_TORN = ("database.torn_page_guard", "database.engine")
FACTS_OF: Mapping[str, tuple[str, ...]] = {
    "leave": (*_SETTINGS, "host.database_expected", "host.database_seen"),
    "ask": (*_SETTINGS, "host.databases"),
    "copy": ("dataset.copied_s",),
    "elsewhere": ("database.standalone", "database.engine"),
    "guard": _TORN,
    "page in block": ("database.page_within_block", "database.page_bytes", "dataset.recordsize"),
    "split": ("database.log_splits_page",),
    "pass on": tuple(
        ["database.eatmydata"]
        + [f"dataset.{name}" for name in ("flushes_dropped", "flushes_lost", "nfs_async", "smb_flush_ignored")]
    ),
    "reach": ("dataset.type", "dataset.flushes_dropped"),
    "commit": ("dataset.sync", "dataset.readonly"),
    "indirect": ("dataset.logbias", "dataset.direct", "host.zfs_dio_enabled", "host.zfs_version"),
    "direct": ("dataset.direct", "host.zfs_dio_enabled", "host.zfs_version", "dataset.commits_directly"),
    "recover": ("database.redo_log",),
    "close": (),
    "remote": (),
    "alone": ("disk.serial", "disk.wwn", "disk.virtual"),
    "replay": ("host.zil_replay_disable_boot",),
    "defect": (
        *("dataset.type", "dataset.sync", "dataset.logbias", "host.release", "host.zvol_use_blk_mq"),
        *(f"host.{releases.build_fact(bug)}" for bug in ("zvol-flush-lost", "zvol-blk-mq-sync")),
    ),
    "key": ("dataset.encryption", "dataset.keylocation", "dataset.key_inside"),
    "unmount": (),  # no fact tells it
    "zil flush": ("host.zil_nocacheflush", "host.zfs_nocacheflush"),
    "txg flush": ("host.zfs_nocacheflush",),
    "import": ("pool.hostid_mismatch",),
    "room": ("pool.log_bytes", "host.zfs_wrlog_data_max"),
    "log class": ("host.zfs_version",),
    "redundancy": ("vdev.type", "vdev.leaves", "vdev.parity", "vdev.width", "vdev.legs"),
    "present": (
        "leaf.state",
        "leaf.device_present",
        "leaf.resilvering",
        "vdev.leaves",
        "pool.vdevs",
        "pool.scan_function",
    ),
    "opens": ("leaf.below", "disk.transport"),
    "errors": ("leaf.read_errors", "leaf.write_errors", "leaf.checksum_errors"),
    "flush": (
        "leaf.flushes_reach_disk",
        "leaf.flushes_not_counted",
        "leaf.stack_write_cache",
        "disk.sysfs_write_cache",
    ),
    "flush error": ("disk.logged_flush_errors",),
    "dataset": ("database.datasets", "database.off_zfs", "leaf.lies_on"),
    "virtual": ("host.virtualization", "host.container"),
    **dict.fromkeys(("drive", "controller", "hypervisor", "target", "layer"), _STORE),
}
CALLED: tuple[Kind, ...] = ("pool", "dataset", "database")
INSIDE: tuple[Kind, ...] = ("vdev", "leaf")


def because(facts: Facts, observation: Observation, reason: Reason) -> tuple[Fact, ...]:
    """The facts of its subject that were looked at; none where the reason is the event itself."""
    wanted = FACTS_OF.get(reason.element, ())
    found = list[Fact]()
    for subject in dict.fromkeys((HOST, *subjects(facts, observation, reason.subject))):
        own = facts.of(subject)
        names = (each.partition(".")[2] for each in wanted if each.startswith(f"{subject.kind}."))
        found += (Fact(subject, name, own[name]) for name in names if name in own)
    return tuple(found)


def subjects(facts: Facts, observation: Observation, name: str) -> Iterator[Subject]:
    """Whatever the model calls so."""
    yield from observation.about.get(name, ())
    words = name.split(" ")  # a name of a pool may have blanks
    parts = ((" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words)))
    inside = (Subject(kind, part, pool) for pool, part in parts for kind in INSIDE)
    for subject in (*(Subject(kind, name) for kind in CALLED), *inside):
        if facts.of(subject):
            yield subject
    for database in facts.linked(HOST, "databases"):
        places = facts.linked(database, "datasets")
        if name == database.name:
            yield from places
        elif name == f"the files of {database.name}" or any(each.name == name for each in places):
            yield database
