"""disk.volatile_cache: who is believed, who is not, and what fewer facts may change."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, Value, unknown
from auditor.model.write_cache import KERNEL, SCSI, volatile_cache
from auditor.model.write_cache import NVME as OF_NVME

NVME = Subject("disk", "nvme0n1")
SATA = Subject("disk", "sda")
VIRTIO = Subject("disk", "vda")
REAL = {"virtual": False}
VIRTUAL = {"virtual": True}


def judged(disk: Subject, given: Mapping[str, Value]) -> Judged:
    """disk.volatile_cache out of these facts and no others; what is missing says so by name."""
    facts = Facts()
    for name in (*OF_NVME, *SCSI, *KERNEL, "transport", "virtual", "lies_on"):
        value = given.get(name)
        seen = unknown(f"{name} not seen") if value is None else Known(value, (Evidence(f"{name}={value}", name),))
        facts.put(Fact(disk, name, seen))
    (fact,) = volatile_cache.derive(disk, facts)
    assert (fact.subject, fact.name) == (disk, "volatile_cache")
    return fact.value


def seen(result: Judged) -> set[str]:
    """The facts that a known answer rests on, or the texts of the reasons."""
    if isinstance(result, Known):
        return {line.command for line in result.evidence}
    return {reason.text for reason in result.reasons}


@pytest.mark.parametrize(
    ("disk", "given", "value", "rests_on"),
    [
        # NVMe: VWC bit 0, then Feature 6
        (NVME, REAL | {"nvme_vwc_present": False}, False, {"nvme_vwc_present"}),
        (NVME, REAL | {"nvme_vwc_present": False, "sysfs_write_cache": "write back"}, False, {"nvme_vwc_present"}),
        (NVME, REAL | {"nvme_vwc_present": False, "nvme_write_cache": True}, False, {"nvme_vwc_present"}),
        (NVME, REAL | {"nvme_ns_vwc_absent": True, "nvme_vwc_present": True}, False, {"nvme_ns_vwc_absent"}),
        (NVME, {"nvme_vwc_present": True, "nvme_write_cache": True}, True, {"nvme_vwc_present", "nvme_write_cache"}),
        (
            NVME,
            REAL | {"nvme_vwc_present": True, "nvme_write_cache": False, "sysfs_write_cache": "write back"},
            False,
            {"nvme_vwc_present", "nvme_write_cache"},
        ),
        (NVME, {"nvme_write_cache": True}, True, {"nvme_write_cache"}),
        (
            NVME,
            {"nvme_vwc_present": True, "sysfs_write_cache": "write back"},
            True,
            {"nvme_vwc_present", "sysfs_write_cache"},
        ),
        # the kernel forced to "write through": the drive is still believed
        (
            NVME,
            {"nvme_vwc_present": True, "nvme_write_cache": True, "sysfs_write_cache": "write through"},
            True,
            {"nvme_vwc_present", "nvme_write_cache"},
        ),
        # without root there is the kernel alone
        (NVME, {"sysfs_write_cache": "write back"}, True, {"sysfs_write_cache"}),
        # SATA
        (SATA, REAL | {"hdparm_write_cache": True}, True, {"hdparm_write_cache"}),
        (SATA, REAL | {"hdparm_write_cache": False}, False, {"hdparm_write_cache"}),
        (SATA, REAL | {"smart_write_cache": False}, False, {"smart_write_cache"}),
        (
            SATA,
            REAL | {"smart_write_cache": False, "hdparm_write_cache": False, "sysfs_write_cache": "write back"},
            False,
            {"smart_write_cache", "hdparm_write_cache"},
        ),
        (
            SATA,
            {"smart_write_cache": True, "hdparm_write_cache": True, "sysfs_write_cache": "write through"},
            True,
            {"smart_write_cache", "hdparm_write_cache"},
        ),
        (SATA, {"sysfs_write_cache": "write back"}, True, {"sysfs_write_cache"}),
        # SAS
        (SATA, {"scsi_cache_type": "write back"}, True, {"scsi_cache_type"}),
        (SATA, {"scsi_cache_type": "write back, no read (daft)"}, True, {"scsi_cache_type"}),
        # virtual disks: a cache that is admitted is one, a cache that is denied may be the host's
        (VIRTIO, VIRTUAL | {"sysfs_write_cache": "write back"}, True, {"sysfs_write_cache"}),
        (VIRTIO, VIRTUAL | {"virtio_cache_type": "write back"}, True, {"virtio_cache_type"}),
        (
            NVME,
            VIRTUAL | {"nvme_vwc_present": True, "nvme_write_cache": True},
            True,
            {"nvme_vwc_present", "nvme_write_cache"},
        ),
    ],
)
def test_known(disk: Subject, given: dict[str, Value], value: bool, rests_on: set[str]) -> None:
    result = judged(disk, given)
    assert isinstance(result, Known), result
    assert result.value is value
    assert seen(result) == rests_on


@pytest.mark.parametrize(
    ("disk", "given", "says"),
    [
        (NVME, REAL, ("nvme_vwc_present not seen", "nvme_write_cache not seen")),
        (NVME, REAL | {"nvme_vwc_present": True}, ("nvme_write_cache not seen", "whether it is on is not known")),
        (
            NVME,
            REAL | {"nvme_vwc_present": True, "sysfs_write_cache": "write through"},
            ("nvme_write_cache not seen", "the kernel's word, not the drive's"),
        ),
        (NVME, REAL | {"sysfs_write_cache": "write through"}, ("nvme_vwc_present not seen", "the kernel's word")),
        (SATA, REAL, ("smart_write_cache not seen", "hdparm_write_cache not seen")),
        (
            SATA,
            REAL | {"sysfs_write_cache": "write through"},
            ("hdparm_write_cache not seen", "'write through' in sysfs"),
        ),
        (SATA, REAL | {"scsi_cache_type": "write through"}, ("'write through' in scsi_cache_type",)),
        (SATA, REAL | {"scsi_cache_type": "none"}, ("'none' in scsi_cache_type",)),
        (
            SATA,
            REAL | {"smart_write_cache": True, "hdparm_write_cache": False},
            ("on or off? smart_write_cache=True (smart_write_cache) but hdparm_write_cache=False (hdparm_",),
        ),
        (
            SATA,
            REAL | {"smart_write_cache": False, "hdparm_write_cache": True, "sysfs_write_cache": "write back"},
            ("on or off?",),
        ),
        (VIRTIO, VIRTUAL, ("vda is a virtual disk",)),
        (VIRTIO, VIRTUAL | {"sysfs_write_cache": "write through"}, ("vda is a virtual disk",)),
        (NVME, VIRTUAL | {"nvme_vwc_present": False}, ("nvme0n1 is a virtual disk",)),
        (NVME, VIRTUAL | {"nvme_vwc_present": True, "nvme_write_cache": False}, ("nvme0n1 is a virtual disk",)),
        (SATA, VIRTUAL | {"hdparm_write_cache": False}, ("sda is a virtual disk",)),
        # a denial needs somebody who is known to be a drive
        (NVME, {"nvme_vwc_present": False}, ("virtual not seen",)),
        (SATA, {"smart_write_cache": False}, ("virtual not seen",)),
    ],
)
def test_unknown(disk: Subject, given: dict[str, Value], says: tuple[str, ...]) -> None:
    result = judged(disk, given)
    assert isinstance(result, Unknown), result
    for text in says:
        assert any(text in reason for reason in seen(result)), result


# -- fewer facts ---------------------------------------------------------------------------------------------------

WORDS: dict[str, list[Value]] = {
    "virtual": [True, False],
    "nvme_vwc_present": [True, False],
    "nvme_ns_vwc_absent": [True, False],
    "nvme_write_cache": [True, False],
    "smart_write_cache": [True, False],
    "hdparm_write_cache": [True, False],
    "sysfs_write_cache": ["write back", "write through"],
    "scsi_cache_type": ["write back", "write through", "none"],
    "virtio_cache_type": ["write back", "write through"],
}
given_facts = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in WORDS.items()})


@given(st.sampled_from([NVME, SATA, VIRTIO]), given_facts, st.sets(st.sampled_from(sorted(WORDS))))
def test_fewer_facts_never_take_a_cache_away(disk: Subject, given: dict[str, Value], hidden: set[str]) -> None:
    """Known stays, becomes unknown, or turns from False to True. Unknown turns to False only out of a contradiction."""
    every, fewer = judged(disk, given), judged(disk, {name: given[name] for name in given if name not in hidden})
    match every, fewer:
        case Known(True), Known(False):
            raise AssertionError(f"{given} without {hidden}: the cache is gone")
        case Unknown(), Known(False):
            smart, hdparm = given.get("smart_write_cache"), given.get("hdparm_write_cache")
            assert {smart, hdparm} == {True, False}, f"{given} without {hidden}"


@given(st.sampled_from([NVME, SATA, VIRTIO]), given_facts)
def test_no_cache_is_only_what_a_drive_itself_says(disk: Subject, given: dict[str, Value]) -> None:
    """False needs a disk that is known to be no virtual one, and the word of the drive; the kernel's is not enough."""
    result = judged(disk, given)
    if isinstance(result, Known) and result.value is False:
        assert given.get("virtual") is False
        assert seen(result) <= {*OF_NVME, *SCSI}
