"""Where writes to an overlay end: followed on the host alone, and never by what another namespace calls a folder."""

from __future__ import annotations

from functools import partial

import pytest

from auditor.databases import paths
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.gather import layers, witnesses
from auditor.sources import mounts
from tests.fake import FakeHost

ROOT = "25 1 254:1 / / rw - ext4 /dev/vda1 rw\n26 25 0:30 / /tank/docker rw - zfs tank/docker rw\n"
LAYER = "43 25 0:38 / {point} rw,relatime - overlay overlay rw,lowerdir=/l,upperdir={upper},workdir=/w{more}\n"
UPPER = "/tank/docker/x/diff"
SERVER = Subject("database", "postgres 612")


def host(upper: str = UPPER, more: str = "", real: str = UPPER) -> FakeHost:
    table = ROOT + LAYER.format(point="/run/x/merged", upper=upper, more=more)
    return FakeHost(files={layers.OWN: table}, paths={"/run/x/merged/pg": "/run/x/merged/pg", real: real})


def standing(apart: bool | None = False) -> Facts:
    """Facts of a host, where zaudit has mounts of its own, the host's, or nobody knows."""
    facts = Facts()
    where = unknown("permission denied") if apart is None else known(apart, "")
    facts.put(Fact(HOST, "own_mount_namespace", where))
    return facts


def resolved(there: FakeHost, facts: Facts) -> tuple[Subject, ...]:
    return layers.resolve(there, "/run/x/merged/pg", ["tank"], partial(layers.held_before, facts), facts)


def test_a_target_on_an_overlay_is_the_dataset_below_it() -> None:
    assert resolved(host(), standing()) == (Subject("dataset", "tank/docker"),)


@pytest.mark.parametrize("apart", [True, None])
def test_in_another_namespace_the_folder_means_something_else(apart: bool | None) -> None:
    with pytest.raises(
        layers.TargetError, match="whose files lie in /tank/docker/x/diff; run zaudit as root on the outer host"
    ):
        resolved(host(), standing(apart))


@pytest.mark.parametrize(
    ("there", "says"),
    [
        (host(more=",volatile"), "every fsync on it is left out"),
        (host(more=",uuid=on,fsync=volatile"), "every fsync on it is left out"),
        (host(upper="x/diff"), "no plain absolute path"),
        (host(upper="/tank/docker/a\\134\\054b"), "no plain absolute path"),
        (host(upper="/tank/gone"), "upper layer /tank/gone: no such folder, or others than root may have moved it"),
        (host(upper="/tank/\\033[2J"), r"upper layer /tank/\\x1b\[2J"),
        (host(real="/elsewhere"), "upper layer /tank/docker/x/diff: no such"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_the_reason(there: FakeHost, says: str) -> None:
    with pytest.raises(layers.TargetError, match=says):
        resolved(there, standing())


def test_a_layer_off_zfs_is_named_by_what_holds_it() -> None:
    with pytest.raises(layers.TargetError, match="it is on ext4"):
        resolved(host(upper="/var/x", real="/var/x"), standing())


def placed(there: FakeHost, facts: Facts, options: str = "", number: str = "0:38") -> Facts:
    """A server in a container, whose root is the overlay of this device number."""
    line = LAYER.format(point="/", upper="/tank/other", more=options).replace("0:38", number).rstrip("\n")
    seen = (f"/pg -> {number}", f"/pg/pg_wal -> {number}")
    places = ("data:/pg", "log:/pg/pg_wal")
    for name, value in (("mountinfo", (line,)), ("symlinks", ()), ("directories", places), ("devices", seen)):
        facts.put(Fact(SERVER, name, known(value, "")))
    overlays = layers.overlays_of_databases(paths.tables(facts), facts, there)
    facts.put_all(list(paths.lies_on(facts, Facts(), overlays)))
    return facts


def test_a_database_in_a_container_is_on_what_the_host_says_of_its_overlay() -> None:
    facts = placed(host(), standing())
    assert facts.linked(SERVER, "datasets") == (Subject("dataset", "tank/docker"),)
    off = facts.get(SERVER, "off_zfs")
    assert isinstance(off, Known)
    assert off.value == ()


@pytest.mark.parametrize(("apart", "number"), [(False, "0:99"), (None, "0:38"), (True, "0:38")])
def test_an_overlay_that_the_host_does_not_have_is_unknown(apart: bool | None, number: str) -> None:
    assert isinstance(placed(host(), standing(apart), number=number).get(SERVER, "datasets"), Unknown)


def test_a_volatile_layer_is_no_place_for_a_database() -> None:
    facts = placed(host(more=",volatile"), standing(), ",volatile")
    off = facts.get(SERVER, "off_zfs")
    assert isinstance(off, Known)
    assert "every fsync on it is left out" in str(off.value)
    forgotten = facts.get(SERVER, "forgotten")
    assert isinstance(forgotten, Known)
    assert forgotten.value == off.value, "a crash takes it"


@pytest.mark.parametrize(("every", "known_"), [(True, True), (False, False), (None, False)])
def test_process_1_of_a_container_says_nothing_of_the_host(every: bool | None, known_: bool) -> None:
    facts = standing()
    if every is not None:
        facts.put(Fact(HOST, "all_processes", known(every, "/proc/self/ns/pid is pid:[1]")))
    witnesses.check_mount_namespace(facts)
    assert isinstance(facts.get(HOST, "own_mount_namespace"), Known) is known_
    apart = standing(True)
    witnesses.check_mount_namespace(apart)
    assert isinstance(apart.get(HOST, "own_mount_namespace"), Known)


def test_a_comma_in_the_name_of_a_folder() -> None:
    [*_, mount] = mounts.mounts(LAYER.format(point="/x", upper="/a\\054b\\040c", more=""))
    assert layers.upper(mount) == "/a,b c"
