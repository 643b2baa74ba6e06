"""What is offered to initiators now, and whether it is offered after the next start."""

from __future__ import annotations

import json

import pytest

from auditor.derive import targets_at_boot
from auditor.facts import HOST, Fact, Facts, Judged, Known, Unknown, known, unknown
from auditor.host import target_settings
from auditor.host.allowed import allowed_part

VOLUME = "LIO-db keeps /dev/zvol/tank/db"
SPACE = "NVMe-nqn.2024-01.org.example:db/1 keeps /dev/zvol/tank/v"
DEBIAN = "rtslib-fb-targetctl.service enabled network.target local-fs.target"
WAITING = "rtslib-fb-targetctl.service enabled network.target zfs-volumes.target"
ALL_OF_ZFS = (
    "multi-user.target zfs.target",
    "zfs.target zfs-volumes.target",
    "zfs-volumes.target zfs-volume-wait.service",
)
SECRET = "chap-secret"
ONLY_NVME = {"block_targets": (), "nvme_targets": (SPACE,), "nvme_saved": ("/dev/zvol/tank/v",)}


def derived(**given: tuple[str, ...] | Unknown) -> dict[str, Judged]:
    said: dict[str, tuple[str, ...] | Unknown] = {
        "block_targets": (VOLUME,),
        "nvme_targets": (),
        "target_units": (WAITING,),
        "lio_saved": ("/dev/zvol/tank/db",),
        "nvme_saved": (),
        "zfs_units_wanted": ALL_OF_ZFS,
        "zfs_units_masked": (),
        **given,
    }
    facts = Facts()
    facts.put(Fact(HOST, "systemd", known(True, "systemd")))
    for name, value in said.items():
        facts.put(Fact(HOST, name, value if isinstance(value, Unknown) else known(value, name)))
    return {fact.name: fact.value for fact in targets_at_boot.derive(HOST, facts)}


def value(judged: Judged) -> object:
    return judged.value if isinstance(judged, Known) else judged.reasons[0].text


@pytest.mark.parametrize(
    ("given", "lost"),
    [
        ({}, ()),
        ({"lio_saved": ()}, ("LIO-db (/dev/zvol/tank/db) is in no file",)),
        ({"lio_saved": ("/dev/zvol/tank/other",)}, ("LIO-db (/dev/zvol/tank/db) is in no file",)),
        ({"target_units": ()}, ("LIO-db (/dev/zvol/tank/db): no unit that makes it is enabled",)),
        (
            {"target_units": ("target.service disabled local-fs.target",)},
            ("LIO-db (/dev/zvol/tank/db): no unit that makes it is enabled",),
        ),
        ({"target_units": ("nvmet.service enabled",)}, ("LIO-db (/dev/zvol/tank/db): no unit that makes it is enabled",)),
        ({"lio_saved": unknown("permission denied")}, "permission denied"),
        ({"target_units": unknown("timed out")}, "timed out"),
        ({"lio_saved": (), "target_units": unknown("timed out")}, ("LIO-db (/dev/zvol/tank/db) is in no file",)),
        ({"block_targets": ("SCST-db keeps /dev/zvol/tank/db",), "lio_saved": ()}, ()),
        ({"block_targets": ("LIO-db keeps /tank/vm/d1.img",), "lio_saved": ()}, ()),
        (
            {"block_targets": (), "nvme_targets": (SPACE,)},
            ("NVMe-nqn.2024-01.org.example:db/1 (/dev/zvol/tank/v) is in no file",),
        ),
        ({**ONLY_NVME, "target_units": ("nvmet.service enabled",)}, ()),
        ({"block_targets": unknown("not read")}, "not read"),
        (
            {"target_units": (WAITING, "pacemaker.service enabled"), "lio_saved": ()},
            "pacemaker starts with the host, and makes targets by itself",
        ),
        ({"target_units": (WAITING, "pacemaker.service disabled")}, ()),
    ],
)  # fmt: skip
def test_what_nothing_makes_anew(given: dict[str, tuple[str, ...] | Unknown], lost: object) -> None:
    assert value(derived(**given)["targets_not_kept"]) == lost


@pytest.mark.parametrize(
    ("given", "early"),
    [
        ({}, ()),
        ({"target_units": (DEBIAN,)}, ("rtslib-fb-targetctl.service",)),
        ({"target_units": ("target.service disabled local-fs.target",)}, ()),
        ({"target_units": ("tgt.service enabled network.target",)}, ()),
        ({"target_units": ("target.service enabled zfs-volume-wait.service",)}, ()),
        ({"target_units": ("target.service enabled zfs.target",)}, ()),
        ({"target_units": ("target.service enabled dev-zvol-tank-db.device",), "zfs_units_wanted": ()}, ()),
        ({"zfs_units_wanted": ALL_OF_ZFS[:2]}, ("rtslib-fb-targetctl.service",)),
        ({"zfs_units_masked": ("zfs-volume-wait.service",)}, ("rtslib-fb-targetctl.service",)),
        ({"zfs_units_wanted": unknown("not read")}, "not read"),
        ({"target_units": (DEBIAN,), "zfs_units_wanted": unknown("not read")}, ("rtslib-fb-targetctl.service",)),
        ({"target_units": unknown("timed out")}, "timed out"),
        ({"block_targets": ("SCST-db keeps /dev/zd16",), "target_units": ("scst.service enabled",)}, ("scst.service",)),
    ],
)
def test_what_does_not_wait_for_volumes(given: dict[str, tuple[str, ...] | Unknown], early: object) -> None:
    assert value(derived(**given)["targets_too_early"]) == early


LIO = {
    "storage_objects": [
        {"dev": "/dev/zvol/tank/db", "name": "db", "plugin": "block", "wwn": "a1b2"},
        {"name": "scratch", "plugin": "ramdisk", "size": 1024},
    ],
    "targets": [
        {"tpgs": [{"node_acls": [{"chap_password": SECRET, "chap_userid": "db"}]}], "wwn": "iqn.2003-01.org:db"}
    ],
}
NVME = {
    "hosts": [{"nqn": "hostnqn", "dhchap_key": SECRET}],
    "subsystems": [
        {"namespaces": [{"device": {"path": "/dev/zvol/tank/v", "nguid": SECRET}, "nsid": 1}]},
        {"nqn": "x"},
    ],
}


def test_of_a_configuration_devices_alone_are_kept() -> None:
    for path, settings, kept in zip(
        ("/etc/target/saveconfig.json", "/etc/nvmet/config.json"),
        (LIO, NVME),
        ("/dev/zvol/tank/db\n", "/dev/zvol/tank/v\n"),
        strict=True,
    ):
        assert allowed_part(path, json.dumps(settings, indent=2)) == kept
        assert allowed_part(path, kept) == kept


@pytest.mark.parametrize(
    "text",
    [
        *("{", '{"storage_objects": 1}', '{"storage_objects": [1]}', '{"storage_objects": [{"dev": 5}]}', SECRET),
        *('{"storage_objects": [{"dev": "/a\\nb"}]}', '{"storage_objects": [{"dev": "relative"}]}'),
        *('{"subsystems": [{"namespaces": [{"nsid": 1}]}]}', '{"storage_objects":' * 100_000, '{"a":' + "[" * 200_000),
    ],
)
def test_what_is_no_configuration_is_not_kept(text: str) -> None:
    assert target_settings.kept(text) == target_settings.DAMAGED
