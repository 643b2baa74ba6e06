"""Facts of made-up hosts, for the tests of what the model is filled from."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.facts import HOST, Fact, Facts, Subject, Value, known

HEALTHY: Mapping[str, Value] = {
    "virtualization": "none",
    "container": False,
    "zfs_version": (2, 3, 9),
    "zfs_version_text": "2.3.9-1",
    "zfs_nocacheflush": 0,
    "zil_nocacheflush": 0,
    "zil_replay_disable": 0,
    "zfs_nocacheflush_boot": 0,
    "zil_nocacheflush_boot": 0,
    "zil_replay_disable_boot": 0,
    "zvol_use_blk_mq": 0,
    "zfs_dio_enabled": 1,
    "platform": "debian",
}
PROPERTIES: Mapping[str, Value] = {
    "type": "filesystem",
    "sync": "standard",
    "logbias": "latency",
    "commits_directly": False,
    "direct": "standard",
    "readonly": "off",
    "encryption": "off",
    "keylocation": "none",
    "carries": (),
    "flushes_lost": (),
    "flushes_dropped": (),
    "flushes_dropped_at_start": (),
    "nfs_async": False,
    "smb_flush_ignored": False,
    "recordsize": 131072,
}
DRIVE: Mapping[str, Value] = {
    "transport": "nvme",
    "volatile_cache": True,
    "plp_grade": 4,
    "drive_class": "plp-full",
    "plp_failed": False,
    "lost_flushed": False,
    "virtual": False,
    "raid_volume": False,
    "logged_flush_errors": 0,
    "sysfs_write_cache": "write back",
}
LEAF: Mapping[str, Value] = {
    "type": "disk",
    "state": "ONLINE",
    "device_present": True,
    "resilvering": False,
    "being_replaced": False,
    "read_errors": 0,
    "write_errors": 0,
    "checksum_errors": 0,
    "layers": ("partition",),
    "flushes_reach_disk": True,
    "shares_disk_with_leg": False,
    "lies_on": (),
}


class Made:
    """Facts of one host, with what is set last on top."""

    def __init__(self, **host: Value) -> None:
        self.facts = Facts()
        self.put(HOST, **{**HEALTHY, **host})
        self.put(HOST, databases=(), pools=())

    def put(self, subject: Subject, **values: Value) -> Subject:
        for name, value in values.items():
            self.facts.replace(Fact(subject, name, known(value, f"{name} {value}")))
        return subject

    def pool(self, name: str, *vdevs: Subject) -> Subject:
        pool = Subject("pool", name)
        leaves = tuple(leaf for vdev in vdevs for leaf in self.facts.linked(vdev, "leaves"))
        self.put(pool, vdevs=vdevs, leaves=leaves, hostid_mismatch=False, datasets=(), scan_function="none")
        self.put(pool, scan_state="none")
        return self._also(HOST, "pools", pool)

    def vdev(self, pool: str, name: str, *drives: str, of: str = "normal", **leaf: Value) -> Subject:
        """A mirror of drives, or one drive, each with the facts of a healthy one."""
        vdev = Subject("vdev", name, pool)
        leaves = tuple(self.leaf(pool, drive, **leaf) for drive in drives)
        kind = "mirror" if len(drives) > 1 else "disk"
        return self.put(vdev, leaves=leaves, type=kind, allocation_class=of, state="ONLINE")

    def leaf(self, pool: str, drive: str, **values: Value) -> Subject:
        disk = self.put(Subject("disk", drive), **{**DRIVE, "serial": f"serial of {drive}"})
        return self.put(Subject("leaf", drive, pool), **{**LEAF, "disks": (disk,), **values})

    def dataset(self, name: str, **values: Value) -> Subject:
        dataset = self.put(Subject("dataset", name), **{**PROPERTIES, **values})
        return self._also(Subject("pool", name.partition("/")[0]), "datasets", dataset)

    def database(self, engine: str, log: Subject, data: Subject, **values: Value) -> Subject:
        database = Subject("database", f"{engine} 1")
        every = tuple(dict.fromkeys((log, data)))
        self.put(database, engine=engine, process="1", eatmydata=False, off_zfs=(), datasets=every)
        self.put(database, log_datasets=(log,), data_datasets=(data,))
        self.put(database, **values)
        return self._also(HOST, "databases", database)

    def _also(self, subject: Subject, name: str, one: Subject) -> Subject:
        self.put(subject, **{name: (*self.facts.linked(subject, name), one)})
        return one
