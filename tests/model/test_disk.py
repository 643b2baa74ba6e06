"""disk.plp_grade, plp_failed, virtual, hdd and drive_class: every rung of the ladder, contradictions, fewer facts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Subject, Unknown, Value, unknown
from auditor.model.derivation import run
from auditor.model.disk import SOURCES, identity
from auditor.model.write_cache import plp_grade, volatile_cache

RAW = (
    *("host.virtualization", "host.virtual_machine_hint", "dataset.sync"),
    *(f"disk.{source}" for sources in SOURCES.values() for source in sources),
    *("disk.sysfs_vendor", "disk.udev_vendor", "disk.transport", "disk.rotational", "disk.smart_rotation_rpm"),
    *("disk.nvme_vwc_present", "disk.nvme_ns_vwc_absent", "disk.nvme_write_cache", "disk.lies_on"),
    *("disk.smart_write_cache", "disk.hdparm_write_cache", "disk.sysfs_write_cache", "disk.scsi_cache_type"),
    *("disk.virtio_cache_type", "disk.capacitor_ok", "disk.capacitor_attribute", "disk.ocp_capacitor_health"),
    *("disk.ocp_incomplete_shutdowns", "disk.nvme_critical_warning", "disk.smart_nvme_critical_warning"),
    *("disk.nvme_backup_failed", "disk.smart_nvme_backup_failed"),
)

FULL, INFERRED = "INTEL SSDPEDMD400G4", "KCD61LUL3T84"  # plp-full, confidence A and C
FULL_SATA = "INTEL SSDSC2BB120G4"
AT_REST, AT_REST_NVME = "CT1000MX500SSD1", "INTEL SSDPED1D280GA"
CLIENT, CLIENT_SATA = "Samsung SSD 970 EVO 500GB", "Samsung SSD 860 EVO 500GB"
STRANGER = "Wonder Drive 3000"


def facts_of(disk: Subject, given: Mapping[str, Value]) -> Facts:
    """Everything derived from these raw facts ("host.virtualization" or a fact of the disk); the rest is unknown."""
    facts = Facts()
    for need in RAW:
        kind, _, name = need.partition(".")
        value = given.get(need if kind == "host" else name)
        fact = unknown(f"{name} not seen") if value is None else Known(value, (Evidence(f"{name}={value}", name),))
        facts.put(Fact(HOST if kind == "host" else disk, name, fact))
    run((identity, plp_grade, volatile_cache), facts)
    return facts


def nvme(model: str = "", **given: Value) -> dict[str, Value]:
    """An NVMe drive on bare metal."""
    known: dict[str, Value] = {"transport": "nvme", "rotational": False, "host.virtualization": "none", **given}
    return known | ({"nvme_model": model} if model else {})


def sata(model: str = "", **given: Value) -> dict[str, Value]:
    """A SATA drive on bare metal, solid-state."""
    known: dict[str, Value] = {"transport": "sata", "smart_rotation_rpm": 0, "host.virtualization": "none", **given}
    return known | ({"smart_model": model} if model else {})


def judged(given: Mapping[str, Value], name: str) -> Judged:
    disk = Subject("disk", "nvme0n1" if given.get("transport") == "nvme" else "sda")
    return facts_of(disk, given).get(disk, name)


def value(given: Mapping[str, Value], name: str) -> Value | None:
    """The value, or None when it is unknown."""
    result = judged(given, name)
    return result.value if isinstance(result, Known) else None


def reasons(given: Mapping[str, Value], name: str) -> str:
    result = judged(given, name)
    assert isinstance(result, Unknown), result
    return "\n".join(reason.text for reason in result.reasons)


NO_CACHE = {"nvme_vwc_present": False}
CACHE = {"nvme_vwc_present": True, "nvme_write_cache": True}
CLEAR = {"nvme_critical_warning": 0}
BROKEN = {"nvme_critical_warning": 0x10}
HEALTHY = {"capacitor_ok": True}
WORN = {"capacitor_ok": False}
OCP = {"ocp_capacitor_health": 114, "ocp_incomplete_shutdowns": 0}
OCP_EMPTY = {"ocp_capacitor_health": 0, "ocp_incomplete_shutdowns": 0}


@pytest.mark.parametrize(
    ("grade", "given"),
    [
        # 5: all of it, NVMe only
        (5, nvme(FULL, **NO_CACHE, **HEALTHY, **CLEAR)),
        (5, nvme(INFERRED, **NO_CACHE, **HEALTHY, **CLEAR)),
        (5, nvme(FULL, nvme_ns_vwc_absent=True, **HEALTHY, nvme_backup_failed=False)),
        (5, nvme(FULL, **NO_CACHE, **OCP, **CLEAR)),
        (1, nvme(FULL, **NO_CACHE, **OCP_EMPTY, **CLEAR)),
        (1, nvme(FULL, **NO_CACHE, **OCP_EMPTY, **HEALTHY, **CLEAR)),
        # a power cut that it did not finish, and what lies between empty and full, prove nothing either way
        (4, nvme(FULL, **NO_CACHE, **OCP | {"ocp_incomplete_shutdowns": 2}, **CLEAR)),
        (4, nvme(FULL, **NO_CACHE, **OCP | {"ocp_capacitor_health": 99}, **CLEAR)),
        (4, nvme(FULL, **NO_CACHE, ocp_capacitor_health=163, **CLEAR)),
        (5, nvme(FULL, **NO_CACHE, **HEALTHY, nvme_critical_warning=0x2F)),  # all warnings but bit 4
        # 4: class and one witness
        (4, nvme(FULL, **NO_CACHE, **HEALTHY)),
        (4, nvme(FULL, **NO_CACHE, **CLEAR)),
        (4, nvme(FULL, **NO_CACHE)),
        (4, nvme(FULL, **CACHE, **HEALTHY, **CLEAR)),
        (4, nvme(INFERRED, **CACHE, **HEALTHY)),
        (4, sata(FULL_SATA, **HEALTHY, hdparm_write_cache=True)),
        (4, sata(FULL_SATA, **HEALTHY)),
        # 3: declared
        (3, nvme(FULL)),
        (3, nvme(FULL, **CACHE, **CLEAR)),
        (3, nvme(INFERRED)),
        (3, nvme(INFERRED, **NO_CACHE, **CLEAR)),  # an inferred class and a claim are no proof
        (3, sata(FULL_SATA, hdparm_write_cache=True)),
        (3, nvme(STRANGER, **NO_CACHE)),
        (3, nvme(STRANGER, **NO_CACHE, **HEALTHY, **CLEAR)),
        (3, nvme(AT_REST_NVME, **NO_CACHE)),
        # 2: flushed data
        (2, sata(AT_REST, hdparm_write_cache=True)),
        (2, nvme(AT_REST_NVME, **CACHE)),
        (2, sata(AT_REST, hdparm_write_cache=True, **HEALTHY)),
        # 1: nothing
        (1, nvme(CLIENT, **CACHE, **CLEAR)),
        (1, nvme(CLIENT, nvme_vwc_present=True)),
        (1, nvme(STRANGER, **CACHE)),
        (1, sata(CLIENT_SATA, smart_write_cache=True)),
        (1, sata(STRANGER, sysfs_write_cache="write back")),
        # failed: whatever else was said
        (1, nvme(FULL, **NO_CACHE, **HEALTHY, **BROKEN)),
        (1, nvme(FULL, **NO_CACHE, **HEALTHY, nvme_backup_failed=True)),
        (1, nvme(FULL, **NO_CACHE, smart_nvme_backup_failed=True, **CLEAR)),
        (1, nvme(FULL, **NO_CACHE, smart_nvme_critical_warning=0x10, **CLEAR)),
        (1, sata(FULL_SATA, **WORN)),
        (1, WORN),
    ],
)
def test_every_rung_of_the_ladder(grade: int, given: dict[str, Value]) -> None:
    result = judged(given, "plp_grade")
    assert isinstance(result, Known), result
    assert result.value == grade
    assert result.evidence


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "model not seen"),
        ({"host.virtualization": "none", "nvme_model": STRANGER, **NO_CACHE}, "transport not seen"),
        (nvme(), "nvme_model not seen"),
        (nvme("", **NO_CACHE), "nvme_model not seen"),
        (nvme(CLIENT), "nvme_vwc_present not seen"),
        (nvme(STRANGER), "nvme_write_cache not seen"),
        (sata(STRANGER, sysfs_write_cache="write through"), "the kernel's word, not the drive's"),
        (sata(AT_REST), "hdparm_write_cache not seen"),
        (sata(CLIENT_SATA, smart_write_cache=True, hdparm_write_cache=False), "on or off?"),
        # the table and the drive contradict each other
        (nvme(CLIENT, **NO_CACHE), "no power-loss protection (Samsung client SSD (EVO, PRO, QVO); drives.toml"),
        (nvme(CLIENT, **NO_CACHE), "but the drive says that it has no volatile write cache (nvme_vwc_present=False)"),
        (sata(CLIENT_SATA, **HEALTHY, smart_write_cache=True), "but the drive reports healthy capacitors"),
        (sata(STRANGER, **HEALTHY, smart_write_cache=True), "Wonder Drive 3000 is not in drives.toml; but"),
        # hard disks
        (sata("ST4000VN006", smart_write_cache=True) | {"smart_rotation_rpm": 5400}, "is a hard disk"),
        (sata("ST4000VN006", rotational=False) | {"smart_rotation_rpm": 5400}, "solid-state or hard disk?"),
        # not a drive
        (nvme("QEMU NVMe Ctrl", **CACHE, **CLEAR), "power-loss protection is decided on its host"),
        (nvme("QEMU NVMe Ctrl", **NO_CACHE, **CLEAR, **HEALTHY), "power-loss protection is decided on its host"),
        (nvme("Amazon EC2 NVMe Instance Storage", **NO_CACHE), "power-loss protection is decided on its host"),
        (sata("DELL PERC H730 Mini"), "power-loss protection is decided on its host"),
        ({"transport": "virtio", "sysfs_write_cache": "write back"}, "power-loss protection is decided on its host"),
        ({"transport": "iscsi", "smart_model": STRANGER}, "power-loss protection is decided on its host"),
        (nvme(STRANGER, **NO_CACHE) | {"host.virtualization": "kvm"}, "this host runs in kvm"),
        (nvme(STRANGER, **NO_CACHE) | {"host.virtual_machine_hint": "qemu"}, "this host runs in qemu"),
        ({**sata(FULL_SATA), "transport": "virtio-scsi"}, "is attached by virtio-scsi: what lies between is not known"),
        ({**sata(STRANGER), "transport": "scsi"}, "the volume of a controller"),
    ],
)
def test_no_grade(given: dict[str, Value], says: str) -> None:
    assert says in reasons(given, "plp_grade")


@pytest.mark.parametrize(
    ("failed", "given"),
    [
        (True, nvme(FULL, **BROKEN)),
        (True, nvme(FULL, **BROKEN, **HEALTHY)),
        (True, nvme(FULL, **CLEAR, **WORN)),
        (True, nvme("QEMU NVMe Ctrl", **BROKEN)),
        (False, nvme(FULL, **CLEAR)),
        (False, nvme(FULL, nvme_critical_warning=0x0F)),
        (False, sata(FULL_SATA, **HEALTHY)),
        (None, sata(FULL_SATA)),
        (None, sata(FULL_SATA, capacitor_attribute=False)),
        (None, sata(FULL_SATA, capacitor_attribute=True)),
        (True, nvme(CLIENT, **BROKEN)),
        (False, nvme(CLIENT, **CLEAR)),
        (False, nvme(CLIENT)),
        (False, sata("ST4000NM", rotational=True, smart_rotation_rpm=7200)),
        (None, nvme(FULL)),
        (None, nvme("QEMU NVMe Ctrl", **CLEAR)),
        (None, CLEAR),
    ],
)
def test_failed(failed: bool | None, given: dict[str, Value]) -> None:
    assert value(given, "plp_failed") is failed


@pytest.mark.parametrize(
    ("silent", "given"),
    [
        (True, sata(FULL_SATA, capacitor_attribute=False)),
        (False, sata(FULL_SATA, **HEALTHY)),
        (False, sata(CLIENT)),
        (None, sata(FULL_SATA)),
        (None, nvme(FULL)),
        (None, {**sata(FULL_SATA, capacitor_attribute=False), "transport": "virtio-scsi"}),
    ],
)
def test_a_drive_that_says_nothing_about_its_capacitors_is_neither_good_nor_bad(
    silent: bool | None, given: dict[str, Value]
) -> None:
    assert value(given, "plp_silent") is silent


def test_the_evidence_names_the_table_and_how_sure_it_is() -> None:
    result = judged(nvme("Samsung SSD 970 EVO Plus 2TB", **CACHE), "plp_grade")
    assert isinstance(result, Known)
    assert [line.text for line in result.evidence] == [
        "Samsung SSD 970 EVO Plus 2TB: no power-loss protection (Samsung 970 EVO Plus; drives.toml, confidence A: "
        "product line, client; kept its flushed data in a public power-cut test (R. Bishop 2022, 2 TB))",
        "nvme_model=Samsung SSD 970 EVO Plus 2TB",
        "nvme_write_cache=True",
        "nvme_vwc_present=True",
    ]
    inferred = judged(nvme(INFERRED), "drive_class")
    assert isinstance(inferred, Known)
    assert "confidence C, declared: no document: model code" in inferred.evidence[0].text


# -- identity ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "model", "table"),
    [
        ({"nvme_model": f" {FULL}  ", "sysfs_model": "x"}, FULL, "plp-full"),
        ({"nvme_model": "  ", "nvme_list_model": CLIENT}, CLIENT, "none"),
        ({"smart_model": AT_REST, "sysfs_model": "CT1000MX500SSD1"}, AT_REST, "data-at-rest-only"),
        ({"sysfs_model": "Virtual disk", "sysfs_vendor": "VMware"}, "VMware Virtual disk", "virtual"),
        ({"sysfs_model": "PERC H730 Mini", "sysfs_vendor": "DELL"}, "DELL PERC H730 Mini", "virtual"),
        ({"sysfs_model": "QEMU HARDDISK", "sysfs_vendor": "QEMU"}, "QEMU HARDDISK", "virtual"),
        ({"sysfs_model": "HUSMR3280ASS200", "sysfs_vendor": "HGST"}, "HGST HUSMR3280ASS200", "plp-full"),
        # the kernel cuts a SATA model after 16 characters; udev has it whole
        ({"sysfs_model": "INTEL SSDSC2BB12", "sysfs_vendor": "ATA"}, "INTEL SSDSC2BB12", None),
        ({"sysfs_model": "INTEL SSDSC2BB12", "sysfs_vendor": "ATA", "udev_model": FULL_SATA}, FULL_SATA, "plp-full"),
        ({"sysfs_model": "Samsung SSD 860", "sysfs_vendor": "ATA"}, "Samsung SSD 860", "none"),
        ({"sysfs_model": "LAB_SATA_DISK", "sysfs_vendor": "ATA"}, "LAB_SATA_DISK", "not in the table"),
        ({"udev_model": "Samsung_SSD_860_EVO_500GB"}, "Samsung_SSD_860_EVO_500GB", "none"),
        ({"sysfs_vendor": "0x1af4"}, None, None),
    ],
)
def test_model_and_class(given: dict[str, Value], model: str | None, table: str | None) -> None:
    assert value(given, "model") == model
    assert value(given, "drive_class") == table


def test_the_first_source_that_is_known_names_serial_firmware_and_wwn() -> None:
    given: dict[str, Value] = {"smart_serial": " S1 ", "sysfs_serial": "S2", "udev_firmware": "F", "udev_wwn": "0x5"}
    assert [value(given, name) for name in ("serial", "firmware", "wwn")] == ["S1", "F", "0x5"]
    assert "smart_serial not seen" in reasons({}, "serial")


@pytest.mark.parametrize(
    ("virtual", "given"),
    [
        (False, nvme(FULL)),
        (False, nvme(FULL) | {"host.virtualization": "kvm"}),  # passed through
        (True, sata(CLIENT_SATA) | {"smart_firmware": "2.5+"}),  # QEMU's own, whatever the model
        (True, {"transport": "scsi", "udev_firmware": "2.5+"}),
        (False, sata(CLIENT_SATA) | {"smart_firmware": "RVT04B6Q", "host.virtualization": "kvm"}),
        (False, nvme(STRANGER)),
        (True, nvme("QEMU NVMe Ctrl")),
        (True, nvme("Amazon Elastic Block Store")),
        (True, {"transport": "virtio"}),
        (True, {"transport": "loop"}),
        (True, {"transport": "nvme-tcp"}),
        (None, nvme(STRANGER) | {"host.virtualization": "vmware"}),
        (None, {"transport": "nvme", "nvme_model": STRANGER}),
        (None, {"host.virtualization": "none", "nvme_model": STRANGER}),
        (None, nvme()),
        (None, {**sata(STRANGER), "transport": "scsi"}),
        (None, {**sata(STRANGER), "transport": "something new"}),
    ],
)
def test_virtual(virtual: bool | None, given: dict[str, Value]) -> None:
    assert value(given, "virtual") is virtual


@pytest.mark.parametrize(
    ("hdd", "given"),
    [
        (True, sata("ST4000VN006", smart_rotation_rpm=5400)),
        (True, sata("ST4000VN006", smart_rotation_rpm=5400, rotational=True)),
        (False, sata(STRANGER)),
        (False, nvme(STRANGER)),
        (False, nvme(FULL) | {"rotational": True}),
        (None, sata(STRANGER, rotational=True)),  # 0 rpm and rotational
        (None, sata(FULL_SATA, rotational=True) | {"smart_rotation_rpm": 7200}),  # an SSD that spins
        (None, sata("Intel Raid 1 Volume") | {"smart_rotation_rpm": 7200}),
        (None, nvme("QEMU NVMe Ctrl")),  # rotational=0, but of what
        (None, {"transport": "usb", "rotational": True, "udev_model": "Bridge", "host.virtualization": "none"}),
        (None, {"transport": "sata", "rotational": True, "smart_model": "ST4000VN006"}),  # in a virtual machine?
        (None, {"transport": "nvme", "rotational": False}),  # and what is it, if a hypervisor shows it?
        (True, {"transport": "sata", "rotational": True, "smart_model": "ST4000VN006", "host.virtualization": "none"}),
        (None, {}),
    ],
)
def test_hdd(hdd: bool | None, given: dict[str, Value]) -> None:
    assert value(given, "hdd") is hdd


# -- fewer facts ---------------------------------------------------------------------------------------------------

FLAG: list[Value] = [True, False]
CACHES: list[Value] = ["write back", "write through"]
WORDS: dict[str, list[Value]] = {
    "host.virtualization": ["none", "kvm"],
    "host.virtual_machine_hint": ["none", "qemu"],
    "transport": ["nvme", "sata", "sas", "scsi", "usb", "virtio", "virtio-scsi", "iscsi", "loop"],
    "rotational": FLAG,
    "smart_rotation_rpm": [0, 7200],
    "capacitor_ok": FLAG,
    "capacitor_attribute": FLAG,
    "ocp_capacitor_health": [0, 50, 114],
    "ocp_incomplete_shutdowns": [0, 2],
    "nvme_critical_warning": [0, 1, 0x10, 0x1F],
    "nvme_backup_failed": FLAG,
    "smart_nvme_critical_warning": [0, 0x10],
    "smart_nvme_backup_failed": FLAG,
    "nvme_vwc_present": FLAG,
    "nvme_ns_vwc_absent": FLAG,
    "nvme_write_cache": FLAG,
    "smart_write_cache": FLAG,
    "hdparm_write_cache": FLAG,
    "sysfs_write_cache": CACHES,
    "scsi_cache_type": CACHES,
}
MODELS = ("nvme_model", "nvme_list_model", "smart_model", "udev_model")
NAMES = [FULL, INFERRED, FULL_SATA, AT_REST, AT_REST_NVME, CLIENT, CLIENT_SATA, STRANGER, "QEMU NVMe Ctrl"]
others = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in WORDS.items()})


@st.composite
def disks(draw: st.DrawFn) -> dict[str, Value]:
    """Raw facts of one disk; all sources that name a model name the same."""
    model = draw(st.sampled_from(NAMES))
    given = draw(others)
    if given.get("transport") == "loop":
        return given  # what software makes has no model
    return given | dict.fromkeys(draw(st.sets(st.sampled_from(MODELS))), model)


def damning(given: Mapping[str, Value]) -> set[str]:
    """The facts that report a failure of the protection."""
    bits = ("nvme_critical_warning", "smart_nvme_critical_warning")
    found = {name for name in bits if int(str(given.get(name, 0))) & 0x10}
    found |= {name for name in ("nvme_backup_failed", "smart_nvme_backup_failed") if given.get(name) is True}
    found |= {"ocp_capacitor_health"} if given.get("ocp_capacitor_health") == 0 else set()
    return found | ({"capacitor_ok"} if given.get("capacitor_ok") is False else set())


@pytest.mark.slow
@settings(max_examples=1000)
@given(disks(), st.sets(st.sampled_from(sorted({*WORDS, *MODELS}))))
def test_fewer_facts_never_raise_a_grade(given: dict[str, Value], hidden: set[str]) -> None:
    """The law: as long as no report of a failure is hidden, what is known stays, becomes unknown or gets worse."""
    hidden -= damning(given)
    disk = Subject("disk", "nvme0n1" if given.get("transport") == "nvme" else "sda")
    every = facts_of(disk, given)
    fewer = facts_of(disk, {name: given[name] for name in given if name not in hidden})

    def both(name: str) -> tuple[Value | None, Value | None]:
        pair = [each.value if isinstance(each := facts.get(disk, name), Known) else None for facts in (every, fewer)]
        return pair[0], pair[1]

    before, after = both("plp_grade")
    assert not (isinstance(before, int) and isinstance(after, int) and after > before)
    assert both("plp_failed") != (True, False)
    for name in ("virtual", "hdd", "drive_class", "drive_confidence", "model"):
        before, after = both(name)
        assert None in (before, after) or before == after, name
    assert both("volatile_cache") != (True, False)


@pytest.mark.slow
@settings(max_examples=500)
@given(disks())
def test_a_good_grade_never_rests_on_one_thing_alone(given: dict[str, Value]) -> None:
    """4 and 5 need the class and a word of the drive; a failure that is reported leaves 1; a virtual disk has none."""
    disk = Subject("disk", "nvme0n1" if given.get("transport") == "nvme" else "sda")
    facts = facts_of(disk, given)
    grade = facts.get(disk, "plp_grade")
    if not isinstance(grade, Known):
        return
    if damning(given):
        assert grade.value == 1
        return
    virtual, hdd, table = (facts.get(disk, name) for name in ("virtual", "hdd", "drive_class"))
    assert isinstance(virtual, Known)
    assert virtual.value is False
    assert isinstance(hdd, Known)
    assert hdd.value is False
    if isinstance(grade.value, int) and grade.value >= 4:
        assert isinstance(table, Known)
        assert table.value == "plp-full"
        named = {line.command for line in grade.evidence}
        assert named & {"nvme_vwc_present", "nvme_ns_vwc_absent", "capacitor_ok", "ocp_capacitor_health"}
