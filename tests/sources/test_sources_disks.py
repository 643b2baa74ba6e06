"""The collectors for disks against damaged answers."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from auditor.facts import HOST, Fact, Facts, Known, Subject, known
from auditor.host.request import Files, Output, Run, Skip
from auditor.sources import block_devices, sources, udev
from auditor.sources.source import Source
from tests import pairs, shared

ROOT = Path(__file__).resolve().parents[2]
COLLECTORS = {
    name: sources()[name]
    for name in (
        "udev", "block_sysfs", "nvme_id_ctrl", "nvme_smart_log", "nvme_write_cache", "nvme_list",
        "smartctl", "hdparm", "nvme_ocp_smart",
    )
}  # fmt: skip
NVME, SATA = Subject("disk", "nvme0n1"), Subject("disk", "sda")


def parsed(source: Source, text: str, disk: Subject) -> dict[str, object]:
    """What the parser takes from a text, each value held to its declaration."""
    return checked(source, list(source.parse(Output(text, "command"), disk)))


def checked(source: Source, facts: list[Fact]) -> dict[str, object]:
    found: dict[str, object] = {}
    for subject, name, value in facts:
        spec = source.facts[name]
        assert subject.kind == source.subject
        assert isinstance(value, Known)
        assert type(value.value) is spec.type, (name, value.value)
        assert not spec.values or value.value in spec.values, (name, value.value)
        assert value.evidence[0].text
        key = f"{subject} {name}"
        assert key not in found, f"{key} twice"
        found[key] = value.value
    return found


# -- damage -----------------------------------------------------------------------------------------------------------


def answers() -> list[tuple[str, Subject, str]]:
    """(collector, subject, text) of every answer in the fixtures that is understood."""
    return [
        (name, Subject(*pair.expected["subject"]), pair.reply.text)
        for name in COLLECTORS
        for pair in pairs.of(name)
        if isinstance(pair.reply, Output) and "facts" in pair.expected
    ]


ANSWERS = answers()


@shared.examples(300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(ANSWERS), st.floats(0, 1))
def test_cut_off(answer: tuple[str, Subject, str], where: float) -> None:
    """A cut answer is a ValueError or yields some of the same facts. (Of a udev database cut exactly between two
    records nobody can tell: then only the facts about single devices are held to it.)"""
    name, subject, text = answer
    whole = parsed(COLLECTORS[name], text, subject)
    try:
        found = parsed(COLLECTORS[name], text[: int(len(text) * where)], subject)
    except ValueError:
        return
    for key, value in found.items():
        assert whole[key] == value or (name == "udev" and isinstance(value, tuple))


@shared.examples(300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(ANSWERS), st.floats(0, 1), st.integers(0, 60), st.text(max_size=30))
def test_garbled(answer: tuple[str, Subject, str], where: float, length: int, other: str) -> None:
    """Whatever stands in an answer: a ValueError, or facts of the declared types."""
    name, subject, text = answer
    at = int(len(text) * where)
    with suppress(ValueError):
        parsed(COLLECTORS[name], text[:at] + other + text[at + length :], subject)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 1 << 130) | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
KEYS = {
    "nvme_id_ctrl": ("vwc", "mn", "sn", "awupf", "error", "Error: x"),
    "nvme_smart_log": ("critical_warning", "percent_used", "avail_spare", "media_errors", "unsafe_shutdowns"),
    "nvme_write_cache": ("feature: 0x06", "Feature: 0x06"),
    "nvme_list": ("Devices",),
    "smartctl": ("device", "ata_smart_attributes", "wwn", "scsi_error_counter_log", "smart_status", "rotation_rate"),
}


@shared.examples(200, deadline=None)
@given(st.sampled_from(sorted(KEYS)), st.data())
def test_any_json(name: str, data: st.DataObject) -> None:
    """JSON of any other shape: a ValueError, or facts of the declared types."""
    fields = data.draw(st.dictionaries(st.sampled_from(KEYS[name]), JSON, max_size=6))
    smartctl = {"smartctl": {"exit_status": 0}} if name == "smartctl" else {}
    with suppress(ValueError):
        parsed(COLLECTORS[name], json.dumps(fields | smartctl) + "\n", NVME if name != "nvme_list" else HOST)


NAMES = st.sampled_from(["sda", "sda1", "nvme0n1", "nvme0c0n1", "dm-0", "..", "", "queue", "slaves"])


def path_under(folder: str) -> st.SearchStrategy[str]:
    return st.lists(NAMES, max_size=4).map(lambda parts: folder + "/".join(parts))


@shared.examples(200, deadline=None)
@given(
    st.dictionaries(path_under("/sys/class/block/"), path_under("../../devices/")),
    st.dictionaries(path_under("/sys/block/"), st.text(max_size=20)),
)
def test_any_sysfs(links: dict[str, str], text: dict[str, str]) -> None:
    with suppress(ValueError):
        checked(block_devices.sysfs, list(block_devices.sysfs.parse(Files(text, links), HOST)))


# -- the rest ---------------------------------------------------------------------------------------------------------


def facts_with(disk: Subject, transport: str) -> Facts:
    facts = Facts()
    if transport:
        facts.put(Fact(disk, "transport", known(transport, transport)))
    return facts


@pytest.mark.parametrize(
    ("name", "disk", "transport", "asked"),
    [
        ("nvme_id_ctrl", "nvme0n1", "nvme", True),
        ("nvme_id_ctrl", "nvme0n1", "", True),
        ("nvme_smart_log", "nvme1n1", "nvme-tcp", True),
        ("nvme_write_cache", "sda", "sata", False),
        ("nvme_smart_log", "sda", "", True),  # nobody knows: nvme itself will say
        ("hdparm", "sda", "sata", True),
        ("hdparm", "sda", "", True),
        ("hdparm", "sda", "sas", False),
        ("hdparm", "nvme0n1", "", False),
        ("smartctl", "sda", "sas", True),
        ("smartctl", "nvme0n1", "nvme", True),
        ("smartctl", "vda", "virtio", False),
        ("smartctl", "dm-0", "dm", False),
    ],
)
def test_who_is_asked(name: str, disk: str, transport: str, asked: bool) -> None:
    subject = Subject("disk", disk)
    match COLLECTORS[name].request(subject, facts_with(subject, transport)):
        case Run(argv):
            assert asked
            assert f"/dev/{disk}" in argv
        case Skip(reason, applies=applies):
            assert not asked
            assert not applies
            assert disk in reason


def test_one_name_one_collector() -> None:
    """A fact that two tools could give stands under two names: they can disagree, and both are facts."""
    names = [name for module in COLLECTORS.values() for name in module.facts]
    assert len(names) == len(set(names))


def test_names_of_several_devices() -> None:
    """A link that several devices claim denotes the one with the highest priority, and nothing when none has."""
    text = pairs.output("udev", "zoo")
    names = udev.names(udev.block_devices(text))
    assert names["/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"] == "dm-0"
    assert "/dev/disk/by-partlabel/zlog" not in names
    assert names["/dev/zvol/tank/my+vol-part1"] == "zd0p1"
    assert udev.block_devices(text)["cciss/c0d0p1"].disk == "cciss/c0d0"
