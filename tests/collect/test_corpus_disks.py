"""The collectors for disks against outputs of other projects and of real guests, in place, and against damaged ones.

The corpus and the recordings lie beside the repository (../shared) and are not part of it: without them those tests are
skipped. ``<file>.expect.json`` is what a careful reader takes from a file.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auditor.collect import block_sysfs, udev
from auditor.facts import HOST, Fact, Facts, Known, Subject, known
from auditor.host.request import Files, Output, Run, Skip

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / ".." / "shared"
COLLECTORS = {
    name: import_module(f"auditor.collect.{name}")
    for name in (
        "udev", "block_sysfs", "nvme_id_ctrl", "nvme_id_ns", "nvme_smart_log", "nvme_write_cache", "nvme_list",
        "smartctl", "hdparm", "nvme_ocp_smart",
    )
}  # fmt: skip
NVME, SATA = Subject("disk", "nvme0n1"), Subject("disk", "sda")

FOLDERS = {
    "hdparm": "hdparm",
    "nvme_id_ctrl": "nvme_id_ctrl",
    "nvme_smart_log": "nvme_smart_log",
    "nvme_vendor_smart_add_log": "nvme_ocp_smart",
    "smartctl_json": "smartctl",
    "smartctl_json_issue_derived": "smartctl",
}
# what the reader noted -> the fact that must say the same; what stands in no table here is not asked of the collector
NOTED = {
    "nvme_id_ctrl": {"model": "nvme_model", "vwc_present": "nvme_vwc_present", "awupf": "nvme_awupf"},
    "nvme_smart_log": {
        "critical_warning": "nvme_critical_warning",
        "avail_spare": "nvme_available_spare_percent",
        "percent_used": "nvme_percent_used",
        "unsafe_shutdowns": "nvme_unsafe_shutdowns",
        "media_errors": "nvme_media_errors",
        "err_log": "nvme_error_log_entries",
        "power_on_hours": "nvme_power_on_hours",
    },
    "hdparm": {"write_cache": "hdparm_write_cache"},
    "nvme_ocp_smart": {
        "capacitor_health": "ocp_capacitor_health",
        "incomplete_shutdowns": "ocp_incomplete_shutdowns",
    },
    "smartctl": {
        "model": "smart_model",
        "passed": "smart_passed",
        "smart_passed": "smart_passed",
        "write_cache": "smart_write_cache",
        "rotation": "smart_rotation_rpm",
        "plp_failed": "smart_nvme_backup_failed",
        "critical_warning": "smart_nvme_critical_warning",
    },
}
DELIBERATE = {
    "nvme_vendor_smart_add_log/cachelib-06.txt": "Samsung's plugin; the collector asks for the log of all makes",
    "nvme_vendor_smart_add_log/cachelib-16.txt": "SK hynix' plugin, which says nothing of capacitors",
    "hdparm/idx-04.txt": "an hdparm -I listing; the collector asks hdparm -W and takes nothing from its feature list",
    "hdparm/idx-10.txt": "an hdparm -I listing; the collector asks hdparm -W and takes nothing from its feature list",
}


def corpus() -> list[Path]:
    files = (path for folder in FOLDERS for path in sorted((SHARED / "corpus" / folder).glob("*")))
    return [path for path in files if not path.name.endswith(".expect.json")]


def recordings() -> list[Path]:
    return sorted((SHARED / "recordings").glob("*/*/manifest.json"))


def parsed(module: ModuleType, text: str, disk: Subject) -> dict[str, object]:
    """What the parser takes from a text, each value held to its declaration."""
    return checked(module, list(module.parse(Output(text, "command"), disk)))


def checked(module: ModuleType, facts: list[Fact]) -> dict[str, object]:
    found: dict[str, object] = {}
    for subject, name, value in facts:
        spec = module.FACTS[name]
        assert subject.kind == module.SUBJECT
        assert isinstance(value, Known)
        assert type(value.value) is spec.type, (name, value.value)
        assert not spec.values or value.value in spec.values, (name, value.value)
        assert value.evidence[0].text
        key = f"{subject} {name}"
        assert key not in found, f"{key} twice"
        found[key] = value.value
    return found


def subject_of(name: str, text: str) -> Subject:
    """That which the answer is about: another one is refused."""
    if name == "smartctl" and (named := re.search(r'"name"\s*:\s*"/dev/([^"]+)"', text)):
        return Subject("disk", named[1])
    if name != "hdparm":
        return NVME
    device = next((line for line in text.splitlines() if line.startswith("/dev/")), "/dev/sda:")
    return Subject("disk", device.strip(":").removeprefix("/dev/"))


@pytest.mark.skipif(not corpus(), reason="no corpus beside the repository (../shared/corpus)")
@pytest.mark.parametrize("path", corpus(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_corpus(path: Path) -> None:
    name = FOLDERS[path.parent.name]
    text = path.read_text("utf-8", "surrogateescape")
    noted = path.with_name(f"{path.name}.expect.json")
    expected: Mapping[str, Any] = json.loads(noted.read_text()) if noted.is_file() else {}
    disk = subject_of(name, text)
    try:
        found = parsed(COLLECTORS[name], text, disk)
    except ValueError:
        deliberate = f"{path.parent.name}/{path.name}" in DELIBERATE
        assert deliberate or "error" in expected or not expected, "a careful reader understands it"
        return
    assert "error" not in expected
    if f"{path.parent.name}/{path.name}" in DELIBERATE:
        assert not found
        return
    for key, fact in NOTED[name].items():
        if key in expected:
            value = {"on": True, "off": False}.get(expected[key], expected[key]) if name == "hdparm" else expected[key]
            assert found.get(f"{disk} {fact}") == value, f"{key}: {fact}"


COMMANDS = {
    ("nvme", "id-ctrl"): "nvme_id_ctrl",
    ("nvme", "id-ns"): "nvme_id_ns",
    ("nvme", "smart-log"): "nvme_smart_log",
    ("nvme", "get-feature"): "nvme_write_cache",
    ("nvme", "list"): "nvme_list",
    ("smartctl", "-j"): "smartctl",
    ("hdparm", "-W"): "hdparm",
    ("udevadm", "info"): "udev",
}


@pytest.mark.skipif(not recordings(), reason="no recordings beside the repository (../shared/recordings)")
@pytest.mark.parametrize("manifest", recordings(), ids=lambda path: f"{path.parts[-3]}/{path.parts[-2]}")
def test_recordings(manifest: Path) -> None:
    """Every answer of a real guest is understood; a device that was not there is a ValueError."""
    for capture in json.loads(manifest.read_text()):
        name = COMMANDS.get(tuple(capture["argv"][:2]))
        if name is None or not capture["stdout_file"]:
            continue
        text = (manifest.parent / capture["stdout_file"]).read_text("utf-8", "surrogateescape")
        device = next((word.removeprefix("/dev/") for word in capture["argv"] if word.startswith("/dev/")), "")
        disk = Subject("disk", device) if device else HOST
        if device.startswith("ata-"):  # the recorder misspelt a path: no such device
            with pytest.raises(ValueError, match=r"detect|speak"):
                parsed(COLLECTORS[name], text, disk)
            continue
        found = parsed(COLLECTORS[name], text, disk)
        assert found or (name == "hdparm" and device.startswith("nvme"))


# -- damage -----------------------------------------------------------------------------------------------------------


def answers() -> list[tuple[str, Subject, str]]:
    """(collector, subject, text) of every answer in the fixtures that is understood."""
    found = []
    for name in COLLECTORS:
        for path in sorted((ROOT / "fixtures" / "commands" / name).glob("*.out")):
            pair = json.loads(path.with_suffix(".json").read_text())
            if "facts" in pair:
                found.append((name, Subject(*pair["subject"]), path.read_text("utf-8", "surrogateescape")))
    return found


ANSWERS = answers()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
    "nvme_id_ns": ("flbas", "nlbaf", "nsfeat", "nawupf", "lbafs"),
    "nvme_smart_log": ("critical_warning", "percent_used", "avail_spare", "media_errors", "unsafe_shutdowns"),
    "nvme_write_cache": ("feature: 0x06", "Feature: 0x06"),
    "nvme_list": ("Devices",),
    "smartctl": ("device", "ata_smart_attributes", "wwn", "scsi_error_counter_log", "smart_status", "rotation_rate"),
}


@settings(max_examples=200, deadline=None)
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


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(path_under("/sys/class/block/"), path_under("../../devices/")),
    st.dictionaries(path_under("/sys/block/"), st.text(max_size=20)),
)
def test_any_sysfs(links: dict[str, str], text: dict[str, str]) -> None:
    with suppress(ValueError):
        checked(block_sysfs, list(block_sysfs.parse(Files(text, links), HOST)))


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
        ("nvme_id_ns", "sda", "", True),  # nobody knows: nvme itself will say
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
    names = [name for module in COLLECTORS.values() for name in module.FACTS]
    assert len(names) == len(set(names))


def test_names_of_several_devices() -> None:
    """A link that several devices claim denotes the one with the highest priority, and nothing when none has."""
    text = (ROOT / "fixtures" / "commands" / "udev" / "zoo.out").read_text()
    names = udev.names(udev.devices(text))
    assert names["/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"] == "dm-0"
    assert "/dev/disk/by-partlabel/zlog" not in names
    assert names["/dev/zvol/tank/my+vol-part1"] == "zd0p1"
    assert udev.devices(text)["cciss/c0d0p1"].disk == "cciss/c0d0"


def test_hundred_disks_are_cheap() -> None:
    links, text = {}, {}
    for number in range(100):
        name = f"sd{chr(97 + number // 26)}{chr(97 + number % 26)}"
        links[f"/sys/class/block/{name}"] = f"../../devices/pci0000:00/0000:00:17.0/ata{number}/host0/block/{name}"
        for part in range(1, 3):
            links[f"/sys/class/block/{name}{part}"] = links[f"/sys/class/block/{name}"] + f"/{name}{part}"
        for file, content in (
            ("queue/write_cache", "write back"),
            ("queue/fua", "0"),
            ("size", "2048"),
            ("stat", "1 " * 17),
        ):
            text[f"/sys/block/{name}/{file}"] = content + "\n"
    started = time.perf_counter()
    found = list(block_sysfs.parse(Files(text, links), HOST))
    assert len({fact.subject for fact in found}) == 100
    assert time.perf_counter() - started < 0.25  # about 5 ms; the margin is for a busy machine
