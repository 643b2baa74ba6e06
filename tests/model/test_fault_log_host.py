"""Threads of OpenZFS, and faults of memory and processors, from all that tells of them."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Known, Unknown, Value, known, unknown
from auditor.model.fault_log import HARDWARE, THREADS, host_faults

NONE: dict[str, Value | None] = {
    **dict.fromkeys(THREADS, ()),
    **dict.fromkeys(HARDWARE, ()),
    "zfs_version": (2, 4, 4),
    "virtualization": "none",
    "memory_ecc": True,
    "memory_uncorrected_errors": 0,
    "memory_corrected_errors": 3,
}


def found(**other: Value | None) -> dict[str, object]:
    """Fact -> its value, or None where it is unknown. None given: that one was not read."""
    facts = Facts()
    for name, value in (NONE | other).items():
        facts.put(Fact(HOST, name, unknown("not read") if value is None else known(value, f"line of {name}")))
    told = {each.name: each.value for each in host_faults.derive(HOST, facts)}
    return {name: each.value if isinstance(each, Known) else None for name, each in told.items()}


@pytest.mark.parametrize(
    ("other", "threads"),
    [
        ({}, ()),
        ({"hung_tasks": ("z_null=2",), "hung_in_zfs": ("z_null=1", "mysqld=1")}, ("hung task z_null=2", "hung task mysqld=1")),
        ({"hung_tasks": ("txg_sync=2",), "zfs_panics": ("zap.c:771=1",)}, ("panic at zap.c:771=1", "hung task txg_sync=2")),
        ({"zfs_version": (2, 1, 16), "zfs_faults_beside": ("kfpu_begin=1",)}, ("fault in kfpu_begin=1",)),
        ({"zfs_version": (2, 1, 16), "zfs_faults_beside": None}, None),
        ({"zfs_version": (2, 2, 0), "zfs_faults_beside": None}, ()),
        ({"zfs_version": None, "zfs_faults_beside": None}, None),
        ({"zfs_panics": None}, None),
        ({"zfs_panics": None, "hung_in_zfs": ("mysqld=1",)}, ("hung task mysqld=1",)),
    ],
)  # fmt: skip
def test_threads_are_known_as_soon_as_one_has_stopped(other: dict[str, Value | None], threads: object) -> None:
    assert found(**other)["zfs_threads_stopped"] == threads


@pytest.mark.parametrize(
    ("other", "faults"),
    [
        ({}, ()),
        ({"hardware_errors": ("memory error, corrected=4",)}, ("reported: memory error, corrected=4",)),
        ({"memory_uncorrected_errors": 1}, ("memory errors not corrected=1",)),
        ({"memory_corrected_errors": 99}, ()),
        ({"memory_corrected_errors": 100}, ("corrected memory errors=100",)),
        ({"memory_uncorrected_errors": None}, None),
        ({"memory_ecc": False, "memory_uncorrected_errors": None}, ()),
        ({"memory_ecc": None}, None),
        ({"memory_ecc": None, "machine_checks": ("mce=3",)}, ("machine checks: mce=3",)),
        ({"machine_checks": None}, None),
        ({"virtualization": "kvm", "machine_checks": None, "memory_uncorrected_errors": None}, ()),
        ({"virtualization": None}, None),
    ],
)
def test_hardware_of_bare_metal_and_counters_of_ecc(other: dict[str, Value | None], faults: object) -> None:
    assert found(**other)["hardware_faults"] == faults


def test_the_lines_of_what_was_found_are_the_evidence_and_the_reasons_of_what_was_not() -> None:
    facts = Facts()
    for name, value in NONE.items():
        assert value is not None
        facts.put(Fact(HOST, name, known(value, f"line of {name}")))
    facts.replace(Fact(HOST, "zfs_panics", known(("zap.c:771=1",), "line of zfs_panics")))
    facts.replace(Fact(HOST, "machine_checks", unknown("the log is gone")))
    threads, hardware = (each.value for each in host_faults.derive(HOST, facts))
    assert isinstance(threads, Known)
    assert [each.text for each in threads.evidence] == ["line of zfs_panics"]
    assert isinstance(hardware, Unknown)
    assert [each.text for each in hardware.reasons] == ["the log is gone"]
