"""Facts of pools, vdevs and leaves from facts: redundancy, classes, sharing, flushes, block sizes, ages, the database."""

from __future__ import annotations

import copy

import pytest

from auditor import registry
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, Value, known, unknown
from auditor.model import derivation
from auditor.model.pool import past
from tests.tables import typed

POOL = Subject("pool", "tank")
DAY = 86400


def vdev(name: str) -> Subject:
    return Subject("vdev", name, "tank")


def leaf(name: str) -> Subject:
    return Subject("leaf", name, "tank")


class World:
    """A pool built from (name, type, class, leaves); disks are called like their leaves unless given."""

    def __init__(self, *tops: tuple[str, str, str, tuple[str, ...]], now: float = 0.0) -> None:
        self.facts = Facts(now)
        self.facts.add(HOST)
        names = [name for *_, leaves in tops for name in leaves]
        self.put(HOST, database="", zfs_version=(2, 3, 9), zfs_nocacheflush=0)
        self.put(HOST, pools=(POOL,))
        self.put(POOL, vdevs=tuple(vdev(name) for name, *_ in tops), leaves=tuple(leaf(name) for name in names))
        for name, kind, allocation_class, leaves in tops:
            self.put(vdev(name), type=kind, allocation_class=allocation_class, state="ONLINE", ashift=12, parity=0)
            self.put(vdev(name), leaves=tuple(leaf(each) for each in leaves), pool=POOL)
            if kind == "mirror":
                self.put(vdev(name), legs=len(leaves))
            if kind.startswith("raidz"):
                self.put(vdev(name), width=len(leaves))
            for each in leaves:
                disk = Subject("disk", each)
                self.put(leaf(each), type="disk", allocation_class=allocation_class, being_replaced=False)
                self.put(leaf(each), vdev=vdev(name), pool=POOL, disks=(disk,))
                self.put(leaf(each), layers=(), nodes=(), stack_write_cache=())
                self.put(disk, physical_block_bytes=512, sysfs_path=f"/devices/{each}", nvme_serial=f"S-{each}")

    def put(self, subject: Subject, **facts: Value | Judged) -> None:
        for name, value in facts.items():
            judged = (
                value
                if isinstance(value, Known | Unknown)
                else known(typed(subject.kind, name, value), f"{name}={value}")
            )
            self.facts.replace(Fact(subject, name, judged))

    def derived(self, subject: Subject, name: str) -> Judged:
        """What all derivations make of it, in a copy: a fact that is known would stay."""
        facts = copy.deepcopy(self.facts)
        derivation.run(registry.derivations(), facts)
        return facts.get(subject, name)

    def get(self, subject: Subject, name: str) -> Value | None:
        """The derived value, None when unknown."""
        found = self.derived(subject, name)
        return found.value if isinstance(found, Known) else None

    def why(self, subject: Subject, name: str) -> str:
        found = self.derived(subject, name)
        assert isinstance(found, Unknown), found
        return "; ".join(reason.text for reason in found.reasons)


MIRROR = ("mirror-0", "mirror", "normal", ("a", "b"))
SLOG = ("mirror-1", "mirror", "log", ("l0", "l1"))
SPECIAL = ("mirror-2", "mirror", "special", ("s0", "s1"))


@pytest.mark.parametrize(
    ("kind", "parity", "leaves", "expected"),
    [
        ("mirror", 0, "ab", 1),
        ("mirror", 0, "abc", 2),
        ("mirror", 0, "a", 0),
        ("raidz1", 1, "abc", 1),
        ("raidz2", 2, "abcd", 2),
        ("raidz3", 3, "abcde", 3),
        ("draid", 2, "abcdef", 2),
        ("disk", 0, "a", 0),
        ("file", 0, "a", 0),
        ("indirect", 0, "", None),
        ("draid", unknown("not said"), "abc", None),
    ],
)
def test_failures_tolerated(kind: str, parity: int | Unknown, leaves: str, expected: int | None) -> None:
    world = World(("top", kind, "normal", tuple(leaves)))
    world.put(vdev("top"), parity=parity)
    assert world.get(vdev("top"), "failures_tolerated") == expected


def test_a_spare_in_use_or_a_replacement_is_not_a_third_leg() -> None:
    world = World(("mirror-0", "mirror", "normal", ("a", "old", "new")))
    world.put(vdev("mirror-0"), legs=2)
    assert world.get(vdev("mirror-0"), "failures_tolerated") == 1
    world.put(vdev("mirror-0"), legs=unknown("zpool status: timed out"))
    assert world.get(vdev("mirror-0"), "failures_tolerated") is None


def names(found: Value | None) -> list[str]:
    assert isinstance(found, tuple)
    return [each.name for each in found if isinstance(each, Subject)]


@pytest.mark.parametrize(
    ("version", "tops", "expected"),
    [
        ((2, 1, 11), (MIRROR, SLOG, SPECIAL), ["l0", "l1"]),
        ((2, 4, 4), (MIRROR, SLOG, SPECIAL), ["l0", "l1"]),
        ((2, 1, 11), (MIRROR, SPECIAL), ["a", "b"]),
        ((2, 3, 9), (MIRROR, SPECIAL), ["a", "b"]),
        ((2, 4, 0), (MIRROR, SPECIAL), ["s0", "s1"]),
        ((2, 4, 4), (MIRROR,), ["a", "b"]),
        ((2, 9, 0), (MIRROR, SLOG), ["l0", "l1"]),
    ],
)
def test_where_zil_blocks_can_land(
    version: tuple[int, ...], tops: tuple[tuple[str, str, str, tuple[str, ...]], ...], expected: list[str]
) -> None:
    world = World(*tops)
    world.put(HOST, zfs_version=version)
    assert names(world.get(POOL, "zil_leaves")) == expected


def test_where_zil_blocks_land_in_a_release_that_nobody_read_is_unknown() -> None:
    world = World(MIRROR, SPECIAL)
    world.put(HOST, zfs_version=(2, 9, 0))
    assert "OpenZFS 2.9" in world.why(POOL, "zil_leaves")
    world.put(HOST, zfs_version=unknown("no such file"))
    assert "no such file" in world.why(POOL, "zil_class")
    for version in ((2, 3, 99), (2, 4, 0, "rc1"), (2, 4, 99)):
        world.put(HOST, zfs_version=version)
        assert "its number does not say" in world.why(POOL, "zil_class")
    world.put(HOST, zfs_version=(2, 2, 99))
    assert names(world.get(POOL, "zil_leaves")) == ["a", "b"]


def test_a_slog_that_cannot_be_written_to_is_passed_over() -> None:
    world = World(MIRROR, SLOG)
    world.put(vdev("mirror-1"), state="UNAVAIL")
    assert names(world.get(POOL, "zil_leaves")) == ["a", "b"]
    world.put(vdev("mirror-1"), state=unknown("draid rows lack it"))
    assert "draid" in world.why(POOL, "zil_leaves")


def test_classes_are_unknown_when_the_vdevs_are() -> None:
    world = World(MIRROR)
    world.put(POOL, vdevs=unknown("zpool status: timed out"))
    for name in ("log_leaves", "data_leaves", "zil_leaves", "data_failures_tolerated", "data_ashifts"):
        assert "timed out" in world.why(POOL, name)


def test_numbers_of_the_data_vdevs() -> None:
    world = World(MIRROR, ("raidz2-1", "raidz2", "normal", ("c", "d", "e", "f")), ("x", "disk", "log", ("x",)))
    world.put(vdev("raidz2-1"), ashift=9, parity=2)
    assert world.get(POOL, "data_failures_tolerated") == 1
    assert world.get(POOL, "data_ashifts") == (9, 12)


# -- sharing --------------------------------------------------------------------------------------------------------


def on(world: World, **disks: str) -> None:
    for name, disk in disks.items():
        world.put(leaf(name), disks=(Subject("disk", disk),))


def test_legs_on_one_disk() -> None:
    world = World(MIRROR, SLOG)
    assert world.get(leaf("l0"), "shares_disk_with_leg") is False
    on(world, l0="nvme9n1", l1="nvme9n1")
    world.put(Subject("disk", "nvme9n1"), nvme_serial="S9")
    assert world.get(leaf("l0"), "shares_disk_with_leg") is True
    assert world.get(leaf("l0"), "shares_disk_with_data") is False
    assert world.get(leaf("a"), "shares_disk_with_leg") is False


def test_legs_on_two_namespaces_of_one_drive() -> None:
    world = World(MIRROR, SLOG)
    on(world, l0="nvme9n1", l1="nvme9n2")
    for name in ("nvme9n1", "nvme9n2"):
        world.put(Subject("disk", name), sysfs_subsystem_nqn="nqn.x", virtual=False, wwn=f"eui.{name}")
    assert world.get(leaf("l1"), "shares_disk_with_leg") is True


PORTS = ({"smart_serial": "HLM00AAA"}, {"udev_serial": "5000c500a1b2c3d4"})


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (PORTS[0], PORTS[0], True),
        (PORTS[1], PORTS[1], True),
        (PORTS[0], {**PORTS[0], **PORTS[1]}, True),
        ({**PORTS[0], **PORTS[1]}, PORTS[1], None),  # one port does not answer
        (PORTS[0], {"smart_serial": "HLM00AAB"}, False),
        ({**PORTS[0], "udev_serial": "0123"}, {"smart_serial": "HLM00AAB", "udev_serial": "0123"}, None),
        (PORTS[0], {}, None),
    ],
)
def test_legs_on_two_paths_to_one_drive(one: dict[str, str], other: dict[str, str], shared: bool | None) -> None:
    world = World(MIRROR, SLOG)
    on(world, a="sda", b="sdb")
    for name, serials in (("sda", one), ("sdb", other)):
        world.put(Subject("disk", name), transport="sas", virtual=False, **serials)
    assert world.get(leaf("a"), "shares_disk_with_leg") is shared
    assert world.get(leaf("b"), "shares_disk_with_leg") is shared


def test_two_drives_behind_bridges_that_give_one_serial_number() -> None:
    world = World(MIRROR, SLOG)
    on(world, a="sda", b="sdb")
    for name in ("sda", "sdb"):
        world.put(
            Subject("disk", name), transport="usb", virtual=False, smart_serial=f"S{name}", udev_serial="0123456789AB"
        )
    assert world.get(leaf("a"), "shares_disk_with_leg") is False


@pytest.mark.parametrize("virtual", [{"virtual": True}, {"nvme_model": unknown("nvme id-ctrl: not permitted")}])
def test_a_common_controller_or_serial_number_of_virtual_disks_says_nothing(virtual: dict[str, Judged | bool]) -> None:
    world = World(MIRROR, SLOG)
    names = ("nvme0n1", "nvme0n2", "nvme0n3")
    for name, disk in zip(("l0", "l1", "a"), names, strict=True):
        on(world, **{name: disk})
        same = {"sysfs_subsystem_nqn": "nqn.2014.08.org:nvme_card-pd", "nvme_serial": "nvme_card-pd"}
        world.put(Subject("disk", disk), udev_wwn=f"nvme.1ae0-{disk[-1]}", **same, **virtual)
    for fact in ("shares_disk_with_leg", "shares_disk_with_data", "disk_neighbours"):
        assert "give nvme_card-pd as NVMe subsystem or serial number: what they lie on is not seen" in world.why(
            leaf("l0"), fact
        )
    assert "nvme_card-pd" in world.why(leaf("a"), "disk_neighbours")
    assert world.get(leaf("a"), "shares_disk_with_leg") is False
    assert ("not permitted" in world.why(leaf("l0"), "shares_disk_with_leg")) is ("virtual" not in virtual)


def test_two_partitions_of_one_virtual_disk_share_it() -> None:
    world = World(MIRROR, SLOG)
    on(world, l0="nvme0n1", l1="nvme0n1")
    world.put(Subject("disk", "nvme0n1"), virtual=True, nvme_serial="nvme_card-pd")
    assert world.get(leaf("l0"), "shares_disk_with_leg") is True


@pytest.mark.parametrize(
    ("wwn", "shares"),
    [
        ("0x600140512345678900000000000000001", True),
        ("eui.0025385b21404321", True),
        ("eui.0000000000000000", None),
        ("nvme.1ae0-6e766d65-00000001", None),
    ],
)
def test_the_world_wide_name_of_a_virtual_disk_is_its_own(wwn: str, shares: bool | None) -> None:
    world = World(MIRROR, SLOG)
    on(world, l0="sdx", l1="sdy")
    for name in ("sdx", "sdy"):
        world.put(Subject("disk", name), virtual=True, udev_serial="1", udev_wwn=wwn)
    assert world.get(leaf("l0"), "shares_disk_with_leg") is shares


def test_drives_that_all_give_one_world_wide_name_are_drives_still() -> None:
    world = World(MIRROR, SLOG)
    for name in ("l0", "l1"):
        world.put(Subject("disk", name), virtual=False, udev_wwn="eui.0000000001000000", nvme_serial=f"S{name}")
    assert world.get(leaf("l0"), "shares_disk_with_leg") is False


@pytest.mark.parametrize("virtual", [False, None])
def test_a_drive_that_gives_no_serial_number_may_be_any_other(virtual: bool | None) -> None:
    """Two paths of one LUN differ in the kernel's names."""
    world = World(MIRROR, SLOG)
    world.put(Subject("disk", "l0"), nvme_serial=unknown("nvme id-ctrl: not permitted"))
    if virtual is not None:
        world.put(Subject("disk", "l0"), virtual=virtual)
    for name in ("shares_disk_with_leg", "shares_disk_with_data"):
        assert "not permitted" in world.why(leaf("l0"), name)
    assert "not permitted" in world.why(leaf("l1"), "shares_disk_with_leg")
    world.put(Subject("disk", "l0"), virtual=True)  # of a hypervisor each is one
    assert world.get(leaf("l0"), "shares_disk_with_leg") is False


def test_one_of_two_with_a_common_serial_number_may_be_virtual() -> None:
    world = World(MIRROR, SLOG)
    world.put(Subject("disk", "l0"), virtual=False, nvme_serial="S1")
    world.put(Subject("disk", "l1"), nvme_model=unknown("not permitted"), nvme_serial="S1")
    assert "not permitted" in world.why(leaf("l0"), "shares_disk_with_leg")
    assert "not permitted" in world.why(leaf("l1"), "shares_disk_with_leg")


def test_a_log_on_the_disk_of_the_data() -> None:
    world = World(MIRROR, SLOG)
    on(world, l0="a")
    assert world.get(leaf("l0"), "shares_disk_with_data") is True
    assert world.get(leaf("l1"), "shares_disk_with_data") is False


def test_a_leaf_whose_disk_is_unknown_may_be_anywhere() -> None:
    world = World(MIRROR, SLOG)
    world.put(leaf("b"), disks=unknown("no such device"))
    assert "no such device" in world.why(leaf("l0"), "shares_disk_with_data")
    assert world.get(leaf("l0"), "shares_disk_with_leg") is False
    on(world, l0="a")
    assert world.get(leaf("l0"), "shares_disk_with_data") is True


def test_another_pool_that_was_not_listed_has_no_leg_of_this_one() -> None:
    world = World(MIRROR, SLOG)
    world.put(Subject("pool", "other"), leaves=unknown("zpool status other: timed out"))
    assert world.get(leaf("l0"), "shares_disk_with_leg") is False
    assert "timed out" in world.why(leaf("l0"), "shares_disk_with_data")


# -- flushes --------------------------------------------------------------------------------------------------------


def counters(world: World, name: str, writes: int, flushes: int, cache: bool | Unknown = True) -> None:
    world.put(Subject("disk", name), writes=writes, flushes=flushes, sysfs_write_cache="write back", partitions=())
    world.put(Subject("disk", name), write_sectors=8 * writes)
    world.put(POOL, txg_written_bytes_max=100 << 20)
    world.facts.replace(
        Fact(Subject("disk", name), "volatile_cache", cache if isinstance(cache, Unknown) else known(cache, ""))
    )


def flushes_of(world: World, name: str, fact: str = "flushes_reach_disk") -> Judged:
    """The derivation with what it needs, but for volatile_cache, which is a derived fact itself."""
    from auditor.model.disk import used_by
    from auditor.model.flushes import expected_writes, flushes_reach_disk

    for each in [*used_by.derive(HOST, world.facts), *expected_writes.derive(POOL, world.facts)]:
        world.facts.replace(each)
    return next(each.value for each in flushes_reach_disk.derive(leaf(name), world.facts) if each.name == fact)


@pytest.mark.parametrize(
    ("writes", "flushes", "txgs", "arrive", "not_counted"),
    [
        (2227, 6, 32, False, False),  # measured: zfs_nocacheflush=1
        (100_000, 0, 100, False, False),
        (5806, 84, 31, True, False),  # measured: healthy
        (160, 72, 7, True, False),  # measured: a log leaf
        (900, 0, 100, None, True),  # too few writes
        (100_000, 0, 19, None, True),  # too few transaction groups
        (100_000, 60, 100, None, None),  # neither
        (100_000, 200, 100, True, False),
    ],
)
def test_flushes_reach_disk(
    writes: int, flushes: int, txgs: int, arrive: bool | None, not_counted: bool | None
) -> None:
    world = World(MIRROR)
    world.put(POOL, txg_history_written=txgs, vdevs=(vdev("mirror-0"),))
    counters(world, "a", writes, flushes)
    for name, expected in (("flushes_reach_disk", arrive), ("flushes_not_counted", not_counted)):
        found = flushes_of(world, "a", name)
        assert (found.value if isinstance(found, Known) else None) is expected


def test_a_wide_pool_does_not_touch_every_leaf_in_every_group() -> None:
    world = World(MIRROR)
    world.put(POOL, txg_history_written=100, vdevs=tuple(vdev(f"mirror-{i}") for i in range(40)))
    counters(world, "a", 2000, 12)
    assert isinstance(flushes_of(world, "a"), Unknown)


def test_no_volatile_cache_no_flushes() -> None:
    world = World(MIRROR)
    world.put(POOL, txg_history_written=100, vdevs=(vdev("mirror-0"),))
    counters(world, "a", 100_000, 0, cache=False)
    assert flushes_of(world, "a") == Known(True, flushes_of(world, "a").evidence)  # type: ignore[union-attr]
    counters(world, "a", 100_000, 0, cache=unknown("nvme is not installed"))
    assert isinstance(flushes_of(world, "a"), Unknown)


def test_the_counters_of_a_multipath_disk_are_not_its_own() -> None:
    world = World(MIRROR)
    world.put(POOL, txg_history_written=100, vdevs=(vdev("mirror-0"),))
    counters(world, "a", 100_000, 0)
    world.put(Subject("disk", "a"), sysfs_path="/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1")
    assert isinstance(flushes_of(world, "a"), Unknown)


def truth(found: Judged) -> bool | None:
    return bool(found.value) if isinstance(found, Known) else None


def test_flushes_that_stopped_long_ago_do_not_pass_by_their_number() -> None:
    """Some minutes of flushes after boot, none since: more of them than the kernel lists transaction groups."""
    world = World(MIRROR)
    world.put(POOL, txg_history_written=100)
    counters(world, "a", 900_000_000, 200)
    found = flushes_of(world, "a")
    assert isinstance(found, Unknown)
    assert "the flushes stopped at some time" in found.reasons[0].text
    counters(world, "a", 900_000_000, 200_000)  # large writes, all of them in groups that were flushed
    assert truth(flushes_of(world, "a")) is True


@pytest.mark.parametrize(
    ("partitions", "quiet", "expected"),
    [
        (("a1", "a9"), ("a9",), True),
        (("a1", "a2", "a9"), ("a9",), None),  # another file system, which is flushed too
        (("a1", "a2", "a9"), ("a2", "a9"), True),  # swap
        (("a1",), None, True),
        (("a1", "a9"), None, None),  # nobody says what a9 is
    ],
)
def test_flushes_of_others_prove_nothing(
    partitions: tuple[str, ...], quiet: tuple[str, ...] | None, expected: bool | None
) -> None:
    world = World(MIRROR)
    world.put(POOL, txg_history_written=100)
    counters(world, "a", 5806, 840)
    world.put(leaf("a"), layers=("partition",), nodes=("a1",))
    world.put(Subject("disk", "a"), partitions=partitions)
    world.put(Subject("disk", "a"), udev_quiet_partitions=unknown("no udev") if quiet is None else quiet)
    assert truth(flushes_of(world, "a")) is expected


@pytest.mark.parametrize(
    ("layer", "expected"), [("crypt", True), ("lvm", None), ("md-raid1", None), ("multipath", None)]
)
def test_what_lies_below_a_layer_may_be_flushed_by_others(layer: str, expected: bool | None) -> None:
    world = World(MIRROR)
    world.put(POOL, txg_history_written=100)
    counters(world, "a", 5806, 840)
    world.put(leaf("a"), layers=(layer,))
    assert truth(flushes_of(world, "a")) is expected


def test_flushes_of_another_leaf_on_the_disk_prove_nothing() -> None:
    """What is remembered of a device is remembered for each leaf."""
    world = World(MIRROR, SLOG)
    world.put(POOL, txg_history_written=100)
    counters(world, "a", 5806, 840)
    assert truth(flushes_of(world, "a")) is True
    world.put(leaf("l0"), disks=(Subject("disk", "a"),))
    assert truth(flushes_of(world, "a")) is None


def test_a_leaf_without_disks_passes_nothing() -> None:
    from auditor.model.flushes import flush_path

    world = World(MIRROR)
    world.put(HOST, zfs_nocacheflush=0)
    world.put(leaf("a"), disks=(), stack_write_cache=("dm-0=write through",))
    found = {fact.name: fact.value for fact in flush_path.derive(leaf("a"), world.facts)}
    assert [truth(each) for each in (*found.values(), flushes_of(world, "a"))] == [None] * 2


def test_a_multipath_device_that_counts_its_flushes_itself_is_no_failure() -> None:
    world = World(MIRROR)
    world.put(POOL, txg_history_written=100)
    counters(world, "a", 100_000, 0)
    world.put(leaf("a"), layers=("multipath",))
    assert truth(flushes_of(world, "a")) is None


@pytest.mark.parametrize(
    ("blocks", "flushes", "pools", "expected"),
    [
        (5000, 6, (POOL,), False),
        (5000, 25, (POOL,), None),  # some got through
        (12, 6, (POOL,), None),  # hardly anything was committed: a replica, a new log
        (5000, 6, (POOL, Subject("pool", "other")), None),  # whose log blocks?
    ],
)
def test_a_log_is_flushed_for_commits_not_for_groups(
    blocks: int, flushes: int, pools: tuple[Subject, ...], expected: bool | None
) -> None:
    world = World(MIRROR, SLOG)
    world.put(POOL, txg_history_written=100)
    world.put(HOST, zil_itx_metaslab_slog_count=blocks, imported_pools=pools)
    counters(world, "l0", 512_000, flushes)
    assert truth(flushes_of(world, "l0")) is expected


def test_the_log_blocks_of_the_datasets_go_before_those_of_all_pools() -> None:
    world = World(MIRROR, SLOG)
    dataset = Subject("dataset", "tank/db")
    world.put(POOL, txg_history_written=100, datasets=(dataset,))
    world.put(dataset, zil_itx_metaslab_slog_count=5000)
    counters(world, "l0", 512_000, 6)
    assert truth(flushes_of(world, "l0")) is False


def test_the_writes_of_a_cache_beside_the_log_are_not_its_own() -> None:
    world = World(MIRROR, SLOG, ("cache-0", "disk", "cache", ("c0",)))
    world.put(POOL, txg_history_written=100)
    world.put(HOST, zil_itx_metaslab_slog_count=5000, imported_pools=(POOL,))
    counters(world, "l0", 512_000, 6)
    world.put(leaf("c0"), disks=(Subject("disk", "l0"),))
    assert truth(flushes_of(world, "l0")) is None


@pytest.mark.parametrize(
    ("stack", "cache", "expected"),
    [
        ((), True, False),
        (("dm-0=write back",), True, False),
        (("dm-0=write through",), True, True),
        (("dm-1=write back", "dm-0=write through"), True, True),
        (("dm-0=write through",), False, False),
        (("dm-0=write through",), None, None),
        (None, True, None),
    ],
)
def test_a_layer_that_says_write_through_drops_flushes(
    stack: tuple[str, ...] | None, cache: bool | None, expected: bool | None
) -> None:
    from auditor.model.flushes import flush_path

    world = World(MIRROR)
    world.put(HOST, zfs_nocacheflush=0)
    world.put(leaf("a"), stack_write_cache=unknown("not read") if stack is None else stack)
    world.put(Subject("disk", "a"), sysfs_write_cache="write back")
    world.put(Subject("disk", "a"), volatile_cache=unknown("not asked") if cache is None else cache)
    found = {fact.name: fact.value for fact in flush_path.derive(leaf("a"), world.facts)}
    assert truth(found["stack_drops_flushes"]) is expected


# -- block size, ages, database ---------------------------------------------------------------------------------------


def test_native_ashift_is_the_largest_of_the_leaves() -> None:
    world = World(MIRROR)
    world.put(Subject("disk", "b"), physical_block_bytes=4096)
    world.put(HOST, virtualization="none", virtual_machine_hint="none")
    for name in "ab":
        world.put(Subject("disk", name), transport="sata", smart_model="ST4000NM0035", rotational=True)
    assert world.get(vdev("mirror-0"), "native_ashift") == 12
    world.put(leaf("a"), physical_ashift=13)
    assert world.get(vdev("mirror-0"), "native_ashift") == 13
    world.put(leaf("b"), disks=unknown("gone"))
    assert "gone" in world.why(vdev("mirror-0"), "native_ashift")


def test_a_virtual_disk_of_small_blocks_gives_the_least_alone() -> None:
    world = World(MIRROR)
    for name in "ab":
        world.put(Subject("disk", name), nvme_model="QEMU NVMe Ctrl")
    world.put(Subject("disk", "b"), physical_block_bytes=4096)
    assert "say nothing of the device below" in world.why(vdev("mirror-0"), "native_ashift")
    assert world.get(vdev("mirror-0"), "least_ashift") == 12


@pytest.mark.parametrize(
    ("function", "state", "start", "end", "age", "ever", "without"),
    [
        ("scrub", "finished", None, 90, 10.0, True, 10.0),
        ("scrub", "in progress", 99, None, None, True, 1.0),
        ("scrub", "in progress", None, None, None, True, None),
        ("scrub", "paused", 20, None, None, True, 80.0),
        ("scrub", "canceled", None, 90, None, True, 10.0),
        ("resilver", "finished", None, 90, None, None, 10.0),
        ("resilver", "in progress", 95, None, None, None, 5.0),
        ("errorscrub", "finished", None, 90, None, None, 10.0),
        ("errorscrub", "paused", 30, None, None, None, 70.0),
        ("none", "none", None, None, None, False, None),
        ("scrub", "finished", None, 140, None, True, None),  # in the future
    ],
)
def test_scrub_age(
    function: str,
    state: str,
    start: int | None,
    end: int | None,
    age: float | None,
    ever: bool | None,
    without: float | None,
) -> None:
    """Days, at day 100. What has not ended says nothing of when a scrub ended last."""
    world = World(MIRROR, now=100 * DAY)
    world.put(POOL, scan_function=function, scan_state=state)
    world.put(POOL, scan_start_s=unknown("no start") if start is None else start * DAY)
    world.put(POOL, scan_end_s=unknown("no end") if end is None else end * DAY)
    assert world.get(POOL, "scrub_age_days") == age
    assert world.get(POOL, "ever_scrubbed") == ever
    assert world.get(POOL, "unscrubbed_days") == without


def test_pool_age() -> None:
    world = World(MIRROR, now=100 * DAY)
    world.put(Subject("dataset", "tank"), creation=60 * DAY)
    assert world.get(POOL, "age_days") == 40.0


@pytest.mark.parametrize(("name", "page"), [("postgres", 8192), ("mysql", 16384), ("sqlite", 4096), ("etcd", 4096)])
def test_database(name: str, page: int) -> None:
    dataset = Subject("dataset", "tank/db")
    unseen = World(MIRROR)
    unseen.facts.add(dataset)
    assert unseen.get(dataset, "db_named") is None  # nobody looked whether one runs
    world = World(MIRROR)
    world.facts.add(dataset)
    world.put(HOST, database_processes=())
    assert world.get(dataset, "db_named") is False
    assert world.get(dataset, "db_engine") == "none"
    assert world.get(dataset, "db_page_bytes") is None
    other = World(MIRROR)
    other.facts.add(dataset)
    other.put(HOST, database=name)
    assert other.get(dataset, "db_page_bytes") == page
    assert other.get(dataset, "db_engine") == name


def test_every_derivation_gives_what_it_promises() -> None:
    """For each subject of its kind, each fact of FACTS, known or unknown, and nothing else."""
    world = World(MIRROR, SLOG, SPECIAL)
    world.facts.add(Subject("dataset", "tank"))
    world.facts.add(Subject("database", "mysql 1"))
    for each in registry.derivations():
        for subject in each.subjects(world.facts):
            given = list(each.derive(subject, world.facts))
            assert len({(fact.subject, fact.name) for fact in given}) == len(given), (each, subject)
            assert {(fact.subject.kind, fact.name) for fact in given} == each.specs.keys(), (each, subject)


class TestCommitLeaves:
    """The leaves that a flush which is left out concerns."""

    def world(self, **dataset: Value | Judged) -> World:
        world = World(("mirror-0", "mirror", "normal", ("a", "b")), ("c", "disk", "log", ("c",)))
        db = Subject("dataset", "tank/db")
        world.facts.add(db)
        quiet: dict[str, Value | Judged] = {"logbias": "latency", "zil_itx_indirect_count": 0}
        world.put(db, **{**quiet, "zil_itx_metaslab_normal_count": 0, **dataset})
        world.put(POOL, datasets=(db,))
        return world

    def test_of_the_log_where_nothing_goes_around_it(self) -> None:
        assert self.world().get(POOL, "commit_leaves") == (leaf("c"),)

    @pytest.mark.parametrize(
        "seen", [{"logbias": "throughput"}, {"zil_itx_indirect_count": 1}, {"zil_itx_metaslab_normal_count": 7}]
    )
    def test_and_of_the_data_where_something_does(self, seen: dict[str, Value]) -> None:
        assert self.world(**seen).get(POOL, "commit_leaves") == (leaf("c"), leaf("a"), leaf("b"))

    def test_not_known_where_nobody_counted(self) -> None:
        world = self.world(zil_itx_indirect_count=unknown("?"), zil_itx_metaslab_normal_count=unknown("?"))
        world.put(HOST, zil_itx_indirect_count=0, zil_itx_metaslab_normal_count=0)  # of all pools together
        assert world.get(POOL, "commit_leaves") is None
        world.put(Subject("dataset", "tank/db"), mounted=False)
        assert world.get(POOL, "commit_leaves") is None
        world.put(POOL, datasets=())
        assert world.get(POOL, "commit_leaves") is None

    def test_before_2_2_by_the_counters_of_all_pools(self) -> None:
        world = self.world(zil_itx_indirect_count=unknown("?"), zil_itx_metaslab_normal_count=unknown("?"))
        world.put(HOST, zfs_version=(2, 1, 11), zil_itx_indirect_count=0, zil_itx_metaslab_normal_count=0)
        assert world.get(POOL, "commit_leaves") == (leaf("c"),)
        world.put(HOST, zil_itx_indirect_count=3)
        assert world.get(POOL, "commit_leaves") == (leaf("c"), leaf("a"), leaf("b"))

    def test_one_that_is_seen_decides_whatever_is_not(self) -> None:
        world = self.world(logbias=unknown("?"), zil_itx_indirect_count=1)
        assert world.get(POOL, "commit_leaves") == (leaf("c"), leaf("a"), leaf("b"))


class TestTooFewDevices:
    """Of a vdev whose state says nothing of it yet."""

    def pool(self, kind: str, count: int, gone: int, *, parity: int = 0) -> World:
        names = tuple("abcdefgh"[:count])
        world = World(("top", kind, "normal", names))
        world.put(vdev("top"), parity=parity)
        for number, name in enumerate(names):
            world.put(leaf(name), state="ONLINE", device_present=number >= gone)
        return world

    @pytest.mark.parametrize(
        ("kind", "count", "gone", "too_few"),
        [
            ("disk", 1, 0, False),
            ("disk", 1, 1, True),
            ("mirror", 2, 1, False),
            ("mirror", 2, 2, True),
            ("raidz2", 6, 2, False),
            ("raidz2", 6, 3, True),
        ],
    )
    def test_counted_by_the_devices(self, kind: str, count: int, gone: int, too_few: bool) -> None:
        assert self.pool(kind, count, gone).get(vdev("top"), "too_few_devices") is too_few

    def test_by_the_state_of_its_leaves_too(self) -> None:
        world = self.pool("mirror", 2, 1)
        world.put(leaf("b"), state="UNAVAIL")
        assert world.get(vdev("top"), "too_few_devices") is True

    def test_not_known_where_those_that_were_not_seen_decide(self) -> None:
        world = self.pool("mirror", 2, 1)
        world.put(leaf("b"), device_present=unknown("/dev/disk/by-id could not be read"))
        assert world.get(vdev("top"), "too_few_devices") is None
        world.put(leaf("a"), device_present=True)
        assert world.get(vdev("top"), "too_few_devices") is False

    @pytest.mark.parametrize(("kind", "count", "left"), [("mirror", 2, 0), ("mirror", 3, 1), ("raidz2", 6, 1)])
    def test_a_leg_that_resilvers_is_no_copy(self, kind: str, count: int, left: int) -> None:
        world = self.pool(kind, count, 0)
        for number in range(count):
            world.put(leaf("abcdefgh"[number]), resilvering=number == 0)
        assert world.get(vdev("top"), "failures_left") == left
        assert world.get(vdev("top"), "too_few_devices") is False

    def test_which_leg_resilvers_is_not_known_without_a_mark(self) -> None:
        world = self.pool("mirror", 2, 0)
        world.put(POOL, scan_function="resilver", scan_state="in progress")
        assert world.get(vdev("top"), "failures_left") is None
        world.put(POOL, scan_function="scrub")
        assert world.get(vdev("top"), "failures_left") == 1

    def test_what_others_stand_in_for_is_not_missed(self) -> None:
        world = self.pool("mirror", 3, 2)
        world.put(vdev("top"), legs=2)  # one of the three is new, or a spare
        assert world.get(vdev("top"), "too_few_devices") is None
        world = self.pool("raidz1", 4, 2)
        world.put(vdev("top"), width=3)
        assert world.get(vdev("top"), "too_few_devices") is None


@pytest.mark.parametrize(("first", "whole"), [(100, True), (101, True), (102, False), (150, False)])
def test_how_far_the_history_of_a_pool_goes_back(first: int, whole: bool) -> None:
    """The pool was created on day 100; the history is a ring, and of what is gone from it nothing is known."""
    world = World(("a", "disk", "normal", ("a",)), now=200.0 * DAY)
    world.put(POOL, history_since_s=first * DAY)
    world.put(Subject("dataset", "tank"), creation=100 * DAY)
    assert world.get(POOL, "history_days") == 200 - first
    assert world.get(POOL, "history_whole") is (True if whole else None)
    if not whole:
        assert f"begins {first - 100} days after the pool was created" in world.why(POOL, "history_whole")


@pytest.mark.parametrize(
    ("taken_up", "returns"),
    [
        (((-9, 1),), 0),
        (((-90, 1), (-9, 2), (-8, 2)), 0),  # it moved for good, or the host was given another name
        (((-90, 1), (-9, 2), (-8, 1)), 1),
        (((-300, 1), (-9, 2), (-8, 1)), 1),  # a host that ran for long before
        (((-90, 1), (-50, 2), (-8, 1)), 0),  # it was away for longer
        (((-900, 1), (-890, 2), (-889, 1)), 0),  # long ago
        (((-90, 2), (-50, 1), (-49, 2), (-48, 3), (-47, 2)), 2),
        (((-90, 3), (-50, 1), (-49, 2)), 0),
    ],
)
def test_a_pool_that_comes_back_from_another_host(taken_up: tuple[tuple[int, int], ...], returns: int) -> None:
    now = 2_000 * DAY
    world = World(("vda", "disk", "normal", ("vda",)), now=now)
    world.put(POOL, taken_up=tuple(f"{now + days * DAY}={host}" for days, host in taken_up))
    found = {each.name: each.value for each in past.derive(POOL, world.facts)}["returns"]
    assert isinstance(found, Known)
    assert found.value == returns


def test_of_a_history_that_was_not_asked_for_hosts_nothing_is_known() -> None:
    world = World()
    for given in ({}, {"taken_up": ()}):  # hosts that had no name yet are not told apart
        world.put(POOL, **given)
        found = {each.name: each.value for each in past.derive(POOL, world.facts)}["returns"]
        assert isinstance(found, Unknown)
