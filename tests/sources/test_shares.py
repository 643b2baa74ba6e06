"""What is offered to initiators now, and whether it is offered after the next start."""

from __future__ import annotations

import json

import pytest

from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, TargetUnit, Unknown, Value, known, unknown
from auditor.host.files import allowed_part
from auditor.model.exports import volume_targets
from auditor.sources import shares

VOLUME, OTHER = "LIO-db keeps /dev/zvol/tank/db", "LIO-db keeps /dev/zvol/tank/other"
SPACE = "NVMe-nqn.2024-01.org.example:db/1 keeps /dev/zvol/tank/v"
DEBIAN = "rtslib-fb-targetctl.service enabled wanted"
ONLY_NVME = {"block_targets": (), "nvme_targets": (SPACE,), "nvme_saved": ("/dev/zvol/tank/v",)}
NO_FILE = "LIO-db (/dev/zvol/tank/db) is in no file"
SECRET = "chap-secret"
Given = dict[str, Value | Unknown]


def derived(given: Given) -> dict[str, Judged]:
    said: Given = {
        "block_targets": (VOLUME,),
        "nvme_targets": (),
        "target_units": (DEBIAN,),
        "cluster_makes_targets": False,
        "lio_saved": (),
        "lio_saved_by_debian": ("/dev/zvol/tank/db", "/dev/zvol/tank/other"),
        "nvme_saved": (),
        "imported_pools": (Subject("pool", "tank"),),
        **given,
    }
    facts = Facts()
    for name, value in said.items():
        if name in ("block_targets", "nvme_targets") and not isinstance(value, Unknown):
            assert isinstance(value, tuple)
            value = tuple(TargetUnit(*str(each).split(" ", 2)) for each in value)
        facts.put(Fact(HOST, name, value if isinstance(value, Unknown) else known(value, name)))
    return {fact.name: fact.value for fact in volume_targets.derive(HOST, facts)}


def value(judged: Judged) -> object:
    return judged.value if isinstance(judged, Known) else judged.reasons[0].text


@pytest.mark.parametrize(
    ("given", "lost"),
    [
        ({}, ()),
        ({"lio_saved_by_debian": ()}, (NO_FILE,)),
        ({"lio_saved_by_debian": ("/dev/zvol/tank/other",)}, (NO_FILE,)),
        # of the file that no unit here reads nothing is made
        (
            {"lio_saved_by_debian": (), "lio_saved": ("/dev/zvol/tank/db",)},
            "LIO-db is saved, and no unit that is known here makes targets of that file",
        ),
        ({"lio_saved_by_debian": (), "lio_saved": unknown("permission denied")}, "permission denied"),
        ({"target_units": ()}, "LIO-db is saved, and no unit that is known here makes targets of that file"),
        (
            {"target_units": ("rtslib-fb-targetctl.service disabled -",)},
            ("LIO-db (/dev/zvol/tank/db): rtslib-fb-targetctl.service is disabled",),
        ),
        (
            {"target_units": ("rtslib-fb-targetctl.service static -",)},
            "rtslib-fb-targetctl.service is static: whether something starts it is not seen",
        ),
        (
            {"target_units": ("rtslib-fb-targetctl.service enabled-runtime -",)},
            "rtslib-fb-targetctl.service is enabled-runtime: whether something starts it is not seen",
        ),
        (
            {"target_units": ("rtslib-fb-targetctl.service disabled wanted",)},
            "rtslib-fb-targetctl.service is disabled: whether something starts it is not seen",
        ),
        (
            {"lio_saved_by_debian": ("unoffered /dev/zvol/tank/db",)},
            "LIO-db is saved and given to no initiator; whether it is now is not looked at",
        ),
        ({"imported_pools": unknown("not read")}, ()),
        ({"imported_pools": unknown("not read"), "block_targets": ("LIO-db keeps /dev/tank/db",)}, "not read"),
        ({"target_units": unknown("timed out")}, "timed out"),
        ({"block_targets": (OTHER, VOLUME), "lio_saved_by_debian": ("/dev/zvol/tank/db",)},
         ("LIO-db (/dev/zvol/tank/other) is in no file",)),
        ({"block_targets": ("LIO-db keeps /tank/vm/d1.img",), "lio_saved_by_debian": ()}, ()),
        ({"block_targets": ("LIO-db keeps /dev/tank/db",)}, ("LIO-db (/dev/tank/db) is in no file",)),
        ({**ONLY_NVME, "nvme_saved": ()}, ("NVMe-nqn.2024-01.org.example:db/1 (/dev/zvol/tank/v) is in no file",)),
        ({**ONLY_NVME, "target_units": ("nvmet.service enabled -",)}, ()),
        ({"block_targets": unknown("not read")}, "not read"),
        ({"cluster_makes_targets": True, "lio_saved_by_debian": ()}, "pacemaker makes targets by itself"),
    ],
)  # fmt: skip
def test_what_nothing_makes_anew(given: Given, lost: object) -> None:
    assert value(derived(given)["targets_not_kept"]) == lost


@pytest.mark.parametrize(
    ("block", "volumes"),
    [
        ((VOLUME,), ("LIO-db /dev/zvol/tank/db",)),
        (("LIO-db keeps /dev/zd16",), ("LIO-db /dev/zd16",)),
        (("LIO-db keeps /dev/zd16p1",), ("LIO-db /dev/zd16p1",)),
        (("LIO-db keeps /dev/tank/db",), ("LIO-db /dev/tank/db",)),  # a link that udev made up to OpenZFS 2.1
        (("LIO-db keeps /dev/mapper/vg-db", "LIO-f keeps /srv/f", "SCST-s keeps /dev/zvol/tank/s"), ()),
    ],
)
def test_which_are_volumes(block: tuple[str, ...], volumes: tuple[str, ...]) -> None:
    assert value(derived({"block_targets": block})["volume_targets"]) == volumes


LIO = {
    "storage_objects": [
        {"dev": "/dev/zvol/tank/db", "name": "db", "plugin": "block", "wwn": "a1b2"},
        {"dev": "/dev/zvol/tank/nobody", "name": "nobody", "plugin": "block"},
        {"name": "scratch", "plugin": "ramdisk", "size": 1024},
    ],
    "targets": [
        {
            "tpgs": [
                {
                    "node_acls": [{"chap_password": SECRET, "chap_userid": "db"}],
                    "luns": [{"index": 0, "storage_object": "/backstores/block/db"}],
                }
            ],
            "wwn": "iqn.2003-01.org:db",
        }
    ],
}
NVME = {
    "hosts": [{"nqn": "hostnqn", "dhchap_key": SECRET}],
    "ports": [{"subsystems": ["db"]}],
    "subsystems": [
        {
            "nqn": "db",
            "namespaces": [{"device": {"path": "/dev/zvol/tank/v", "nguid": SECRET}, "nsid": 1, "enable": 1}],
        },
        {"nqn": "x", "namespaces": [{"device": {"path": "/dev/zvol/tank/x"}, "nsid": 1, "enable": 1}]},
    ],
}


def test_of_a_configuration_what_initiators_are_given_is_kept() -> None:
    for path, settings, kept in (
        ("/etc/target/saveconfig.json", LIO, "/dev/zvol/tank/db\nunoffered /dev/zvol/tank/nobody\n"),
        (
            "/etc/rtslib-fb-target/saveconfig.json",
            LIO | {"targets": []},
            "unoffered /dev/zvol/tank/db\nunoffered /dev/zvol/tank/nobody\n",
        ),
        ("/etc/nvmet/config.json", NVME, "/dev/zvol/tank/v\nunoffered /dev/zvol/tank/x\n"),
    ):
        assert allowed_part(path, json.dumps(settings, indent=2)) == kept
        assert allowed_part(path, kept) == kept


@pytest.mark.parametrize(
    "text",
    [
        *("{", '{"storage_objects": 1}', '{"storage_objects": [1]}', '{"targets": [{"tpgs": 1}]}', SECRET),
        *('{"subsystems": [{"namespaces": [{"device": {"path": "/a\\nb"}}]}]}', '{"subsystems": 1}'),
        *('{"targets": [{"tpgs": [{"luns": [{"storage_object": []}]}]}], "storage_objects": [{"dev": 5}]}',),
        *('{"subsystems": [{"namespaces": [{"nsid": 1}]}]}', '{"storage_objects":' * 100_000, '{"a":' + "[" * 200_000),
    ],
)
def test_what_is_no_configuration_is_not_kept(text: str) -> None:
    assert shares.keep_saved(text) == shares.DAMAGED


def test_a_path_may_hold_what_ends_lines_elsewhere() -> None:
    path = "/tank/a\u2028b\n"
    assert shares.keep_saved(path) == path
