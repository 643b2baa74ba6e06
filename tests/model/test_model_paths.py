"""What lies between the database and the drives: shares, stacks, controllers, wear; and what a pool's past says."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Subject, Unknown, Value, unknown
from tests.model.test_model_pools import DAY, MIRROR, POOL, SLOG, World, leaf, vdev

DISK = Subject("disk", "sda")


def dataset(name: str) -> Subject:
    return Subject("dataset", name)


# -- shares -----------------------------------------------------------------------------------------------------------


def shared(exports: tuple[str, ...] | Unknown, **settings: str) -> World:
    """Three datasets, one inside the other, and one whose mount point only begins alike."""
    world = World(MIRROR)
    smb: tuple[str, ...] = ()
    world.put(HOST, nfs_exports=exports, smb_shares_without_sync=smb, smb_global_without_sync=False)
    for name in ("tank", "tank/db", "tank/db/wal", "tank/db2"):
        world.put(dataset(name), type="filesystem", mountpoint=f"/{name}", sharenfs="off", sharesmb="off", **settings)
    world.put(dataset("tank/vol"), type="volume")
    return world


@pytest.mark.parametrize(
    ("export", "hit"),
    [
        ("/tank/db *(rw,async)", ["tank/db"]),
        ("/tank/db/pg/16 *(rw,async)", ["tank/db"]),
        ("/tank/db *(rw,async,crossmnt)", ["tank/db", "tank/db/wal"]),
        ("/tank *(rw,async,nohide)", ["tank", "tank/db", "tank/db/wal", "tank/db2"]),
        ("/tank/db *(rw,sync)", []),
        ("/tank/db *(rw,async,sync)", []),
        ("/tank/db *(ro,async)", []),
        ("/tank/db *(ro,async,rw)", ["tank/db"]),
        ("/tank/db *(rw,async,ro)", []),
        ("/tank/db *()", []),
        ("/tank\\057db *(async)", ["tank/db"]),
        ("/srv *(rw,async)", []),
    ],
)
def test_an_async_export_belongs_to_the_dataset_that_holds_its_path(export: str, hit: list[str]) -> None:
    world = shared((export,))
    names = ("tank", "tank/db", "tank/db/wal", "tank/db2")
    assert [name for name in names if world.get(dataset(name), "nfs_async")] == hit
    assert all(world.get(dataset(name), "nfs_async") is not None for name in names)
    assert world.get(dataset("tank/vol"), "nfs_async") is None


@pytest.mark.parametrize(
    ("sharenfs", "is_async"),
    [
        ("off", False),
        ("on", False),
        ("rw=@10.0.0.0/24,async", True),
        ("rw,noasync", False),
        ("async,no_root_squash", True),
        ("ro,async", False),
        ("ro=@10.0.0.0/24:backup,async", False),
        ("async,ro=@10.0.0.0/24,rw=db1", True),
        ("ro,rw=db1,async", True),
        ("rw,async,ro", True),
        ("ro;rw=db1,async", True),
    ],
)
def test_the_property_counts_though_nothing_is_exported(sharenfs: str, is_async: bool) -> None:
    world = shared(())
    world.put(dataset("tank/db"), sharenfs=sharenfs)
    assert world.get(dataset("tank/db"), "nfs_async") is is_async


def test_without_the_table_only_the_property_decides() -> None:
    world = shared(unknown("/etc/exports: permission denied"))
    assert "permission denied" in world.why(dataset("tank/db"), "nfs_async")
    world.put(dataset("tank/db"), sharenfs="async")
    assert world.get(dataset("tank/db"), "nfs_async") is True


def test_smb_shares_have_the_value_of_global_unless_they_say_otherwise() -> None:
    world = shared(())
    world.put(HOST, smb_shares_without_sync=("vm=/tank/db2",))
    assert world.get(dataset("tank/db2"), "smb_flush_ignored") is True
    assert world.get(dataset("tank/db"), "smb_flush_ignored") is False
    world.put(HOST, smb_global_without_sync=True)
    world.put(dataset("tank/db"), sharesmb="on")
    assert world.get(dataset("tank/db"), "smb_flush_ignored") is True
    assert world.get(dataset("tank"), "smb_flush_ignored") is False
    world.put(HOST, smb_global_without_sync=unknown("it includes another file"))
    assert "includes" in world.why(dataset("tank/db"), "smb_flush_ignored")


# -- stacks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layers", "targets", "rearranges", "caches"),
    [
        ((), (), False, False),
        (("partition", "crypt"), ("crypt",), False, False),
        (("crypt",), unknown("needs root"), False, False),
        (("lvm",), ("linear",), False, False),
        (("lvm", "crypt"), ("linear", "crypt"), False, False),
        (("multipath",), ("multipath",), False, False),
        (("lvm",), ("striped",), True, False),
        (("lvm",), ("thin", "thin-pool", "linear"), True, False),
        (("lvm",), ("cache", "linear"), True, True),
        (("dm",), ("writecache",), True, True),
        (("lvm",), ("cache-writeback", "linear"), True, True),
        (("lvm",), ("cache-writethrough", "linear"), True, False),
        (("lvm",), ("cache-passthrough", "writecache"), True, True),
        (("bcache",), unknown("needs root"), True, True),
        (("bcache-writeback",), unknown("needs root"), True, True),
        (("bcache-writethrough",), unknown("needs root"), True, False),
        (("lvm", "bcache-writethrough"), unknown("needs root"), True, None),
        (("md-raid1",), (), True, False),
        (("lvm",), unknown("needs root"), None, None),
        (("dm",), (), None, None),
        (("lvm", "md-raid0"), unknown("needs root"), True, None),
        (unknown("no such path"), (), None, None),
    ],
)
def test_layers(
    layers: tuple[str, ...] | Unknown, targets: tuple[str, ...] | Unknown, rearranges: bool | None, caches: bool | None
) -> None:
    world = World(MIRROR)
    world.put(leaf("a"), layers=layers, dm_targets=targets)
    assert world.get(leaf("a"), "stack_rearranges") is rearranges
    assert world.get(leaf("a"), "stack_caches") is caches


@pytest.mark.parametrize(
    ("kernel", "volumes", "survives"),
    [
        (True, ((False, unknown("no tool")),), True),
        (False, ((False, unknown("no tool")),), False),
        (False, ((True, "0"),), False),
        (False, ((True, "5"),), True),
        (False, ((True, "1"), (True, "10")), True),
        (False, ((True, "1"), (False, unknown("no tool"))), False),
        (False, ((True, unknown("no tool")),), None),
        (unknown("needs root"), ((False, unknown("no tool")),), None),
        (unknown("needs root"), ((True, "1"),), True),
    ],
)
def test_what_survives_the_death_of_a_drive(
    kernel: bool | Unknown, volumes: tuple[tuple[bool, str | Unknown], ...], survives: bool | None
) -> None:
    world = World(MIRROR)
    disks = tuple(Subject("disk", f"sd{at}") for at, _ in enumerate(volumes))
    world.put(leaf("a"), redundant_below=kernel, disks=disks)
    for disk, (volume, level) in zip(disks, volumes, strict=True):
        world.put(
            disk, smart_model="PERC H730 Mini" if volume else "INTEL SSDSC2BB120G4", transport="scsi", raid_level=level
        )
    world.put(leaf("a"), layers=("md-raid1",))
    assert world.get(leaf("a"), "survives_drive_loss") is survives


@pytest.mark.parametrize(
    ("layers", "serials", "survives"),
    [
        (("md-raid1",), ("S1", "S2"), True),
        (("md-raid1",), ("S1", "S1"), None),
        (("md-raid1", "multipath"), ("S1", "S1"), True),
    ],
)
def test_a_mirror_of_two_namespaces_of_one_drive(
    layers: tuple[str, ...], serials: tuple[str, ...], survives: bool | None
) -> None:
    world = World(MIRROR)
    disks = (Subject("disk", "nvme0n1"), Subject("disk", "nvme0n2"))
    world.put(leaf("a"), redundant_below=True, disks=disks, layers=layers)
    for disk, serial in zip(disks, serials, strict=True):
        world.put(disk, nvme_serial=serial, virtual=False)
    assert world.get(leaf("a"), "survives_drive_loss") is survives


# -- controllers ------------------------------------------------------------------------------------------------------

ROOT = "/devices/pci0000:00"


@pytest.mark.parametrize(
    ("first", "second", "shared_by"),
    [
        (f"{ROOT}/0000:00:05.0/nvme/nvme0/nvme0n1", f"{ROOT}/0000:00:06.0/nvme/nvme1/nvme1n1", ""),
        (
            f"{ROOT}/0000:00:1c.0/0000:02:00.0/nvme/nvme0/nvme0n1",
            f"{ROOT}/0000:00:1c.0/0000:03:00.0/nvme/nvme1/nvme1n1",
            "0000:00:1c.0",
        ),
        (
            f"{ROOT}/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda",
            f"{ROOT}/0000:00:17.0/ata2/host1/target1:0:0/1:0:0:0/block/sdb",
            "0000:00:17.0",
        ),
        (f"{ROOT}/0000:00:05.0/nvme/nvme0/nvme0n1", "/devices/pci0000:80/0000:80:05.0/nvme/nvme1/nvme1n1", ""),
        (f"{ROOT}/0000:00:05.0/nvme/nvme0/nvme0n1", "/devices/platform/soc/mmc", None),
    ],
)
def test_what_the_legs_of_the_log_hang_on(first: str, second: str, shared_by: str | None) -> None:
    world = World(MIRROR, SLOG)
    for name, path in (("l0", first), ("l1", second)):
        world.put(Subject("disk", name), sysfs_path=path, virtual=False)
    assert world.get(vdev("mirror-1"), "shared_controller") == shared_by
    assert world.get(vdev("mirror-1"), "legs_share_controller") is (None if shared_by is None else bool(shared_by))
    world.put(Subject("disk", "l1"), virtual=True)
    assert "decided on its host" in world.why(vdev("mirror-1"), "legs_share_controller")


# -- the log's size, wear, caches -------------------------------------------------------------------------------------


def test_log_vdevs_add_up_and_the_legs_of_a_mirror_do_not() -> None:
    world = World(MIRROR, SLOG, ("x", "disk", "log", ("x",)))
    world.put(vdev("mirror-1"), asize_bytes=1000)
    assert world.get(POOL, "log_bytes") is None
    world.put(vdev("x"), asize_bytes=500)
    assert world.get(POOL, "log_bytes") == 1500
    assert World(MIRROR).get(POOL, "log_bytes") == 0


@pytest.mark.parametrize(
    ("given", "wear", "low"),
    [
        (
            {"nvme_percent_used": 3, "nvme_available_spare_percent": 100, "nvme_available_spare_threshold_percent": 10},
            3,
            False,
        ),
        (
            {"nvme_percent_used": 3, "nvme_available_spare_percent": 20, "nvme_available_spare_threshold_percent": 10},
            3,
            True,
        ),
        ({"smart_percent_used": 83, "smart_protocol": "ATA"}, 83, False),
        ({"smart_percent_used": 0, "smart_protocol": "NVMe"}, 0, None),
        ({}, None, None),
    ],
)
def test_wear(given: dict[str, Value], wear: int | None, low: bool | None) -> None:
    world = World(MIRROR)
    world.put(DISK, **given)
    assert world.get(DISK, "wear_percent") == wear
    assert world.get(DISK, "spare_low") is low


@pytest.mark.parametrize(
    ("name", "given", "off"),
    [
        ("nvme0n1", {"nvme_vwc_present": True, "nvme_write_cache": False}, True),
        ("nvme0n1", {"nvme_vwc_present": True, "nvme_write_cache": True}, False),
        ("nvme0n1", {"nvme_vwc_present": False}, False),
        ("nvme0n1", {"nvme_vwc_present": True}, None),
        ("nvme0n1", {"nvme_write_cache": False}, None),
        ("sda", {"hdparm_write_cache": False}, True),
        ("sda", {"hdparm_write_cache": False, "smart_write_cache": True}, None),
        ("sda", {}, None),
    ],
)
def test_a_cache_that_is_off_is_not_a_cache_that_is_not_there(
    name: str, given: dict[str, Value], off: bool | None
) -> None:
    world = World(MIRROR)
    world.put(Subject("disk", name), **given)
    assert world.get(Subject("disk", name), "cache_switched_off") is off


@pytest.mark.parametrize(
    ("model", "transport", "raid"),
    [
        ("PERC H730 Mini", "scsi", True),
        ("HP LOGICAL VOLUME", "scsi", True),
        ("DELLBOSS VD", "sata", True),
        ("ThinkSystem M.2 VD", "sata", True),
        ("Dell BOSS-N1", "nvme", True),
        ("HPE NS204i-p Gen10+ Boot Controller", "nvme", True),
        ("INTEL SSDSC2BB120G4", "scsi", False),
        ("Wonder Drive 3000", "sata", False),
        ("Wonder Drive 3000", "scsi", None),
        ("QEMU QEMU HARDDISK", "virtio-scsi", False),
        ("PERC H730 Mini", "iscsi", False),
    ],
)
def test_volumes_of_raid_controllers(model: str, transport: str, raid: bool | None) -> None:
    world = World(MIRROR)
    world.put(DISK, smart_model=model, transport=transport)
    assert world.get(DISK, "raid_volume") is raid


@pytest.mark.parametrize(("transport", "raid"), [("scsi", True), ("sata", False), ("iscsi", False)])
def test_a_volume_of_any_name_that_its_controller_lists(transport: str, raid: bool) -> None:
    world = World(MIRROR)
    world.put(DISK, smart_model="Wonder Volume 9", transport=transport, raid_level="1")
    assert world.get(DISK, "raid_volume") is raid


@pytest.mark.parametrize(
    ("batteries", "good"),
    [
        (("0=Optimal", "1=Failed"), True),
        (("0=none",), False),
        (("0=Optimal", "0=Degraded"), False),
        (("1=Optimal",), None),
        (unknown("storcli64 is not installed"), None),
    ],
)
def test_the_battery_of_the_controller(batteries: tuple[str, ...] | Unknown, good: bool | None) -> None:
    world = World(MIRROR)
    world.put(DISK, storcli_controller="0")
    world.put(HOST, storcli_batteries=batteries)
    assert world.get(DISK, "raid_cache_protected") is good


@pytest.mark.parametrize(
    ("policy", "models", "cache"),
    [
        ("enabled", unknown("storcli64: no models"), "on"),
        ("enabled", ("INTEL SSDSC2KG019T8", "ST600MM0208"), "on"),
        ("enabled", ("INTEL SSDSC2KG019T8", "INTEL SSDSC2KG019T8"), "on, protected"),
        ("default", ("INTEL SSDSC2KG019T8",), "on, protected"),
        ("default", ("ST600MM0208",), None),
        ("disabled", ("ST600MM0208",), "off"),
        (unknown("storcli64 is not installed"), unknown("storcli64 is not installed"), None),
    ],
)
def test_the_caches_of_the_drives_behind_a_controller(
    policy: str | Unknown, models: tuple[str, ...] | Unknown, cache: str | None
) -> None:
    world = World(MIRROR)
    world.put(DISK, raid_disk_cache=policy, raid_drive_models=models)
    assert world.get(DISK, "raid_drive_cache") == cache


# -- releases and the past --------------------------------------------------------------------------------------------


def past(**given: Value | Unknown) -> World:
    world = World(MIRROR, now=1000 * DAY)
    world.put(POOL, autotrim="off", trims=0, imports_without_log=0, rewinds=0)
    timers: tuple[str, ...] = ()
    world.put(HOST, trim_timers=timers, trim_cron=False, os_ids=("debian",))
    for name in ("a", "b"):
        world.put(Subject("disk", name), transport="nvme")
    world.put(POOL, **given)
    return world


def test_days_since_an_import_without_its_log() -> None:
    world = past(imports_without_log=1, import_without_log_s=994 * DAY)
    assert world.get(POOL, "import_without_log_days") == 6
    assert past().get(POOL, "import_without_log_days") is None


def test_one_way_to_trim_is_enough_and_none_must_be_known() -> None:
    assert past().get(POOL, "trimmed") is False
    assert past(autotrim="on").get(POOL, "trimmed") is True
    assert "does not show" in past(trims=3, trim_s=950 * DAY).why(POOL, "trimmed")
    assert past(trims=3, trim_s=850 * DAY).get(POOL, "trimmed") is False
    world = past()
    world.put(HOST, trim_timers=("tank",))
    assert world.get(POOL, "trimmed") is True
    world.put(HOST, trim_timers=("other",))
    assert world.get(POOL, "trimmed") is False
    world.put(HOST, trim_cron=True)
    assert world.get(POOL, "trimmed") is True
    world.put(Subject("disk", "b"), transport="sata")
    assert world.get(POOL, "trimmed") is False
    world.put(POOL, trims=unknown("zpool history tank: permission denied"))
    assert "permission denied" in world.why(POOL, "trimmed")


def test_what_trims_on_nixos_alone_decides_there_and_where_it_may_be_nixos() -> None:
    world = past()
    world.put(HOST, os_ids=("nixos",), trim_nixos=True)
    assert world.get(POOL, "trimmed") is True
    world.put(HOST, trim_nixos=unknown("denied"))
    assert world.why(POOL, "trimmed") == "denied"
    world.put(HOST, os_ids=unknown("no os-release"))
    assert world.why(POOL, "trimmed") == "no os-release"
