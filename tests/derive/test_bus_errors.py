"""Errors of PCI Express links and refused accesses to memory, by the disks that they are on the way to."""

from __future__ import annotations

import pytest

from auditor.derive import bus_errors
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Value, known, unknown

DISK = Subject("disk", "nvme0n1")
NVME = "/sys/devices/pci0000:00/0000:00:1c.5/0000:01:00.0/nvme/nvme0/nvme0n1"


def found(path: str = NVME, *, whole: bool = True, **logged: tuple[str, ...]) -> dict[str, Value | str]:
    """Fact -> its value, or why it is not known."""
    facts = Facts()
    facts.put(Fact(DISK, "sysfs_path", known(path, "")))
    if whole:
        facts.put(Fact(HOST, "buses_whole", known(True, "")))
    for name in bus_errors.FACTS:
        entries = logged.get(name, ())
        seen = tuple(Evidence(each) for each in entries) or (Evidence("nothing of the kind"),)
        facts.put(Fact(HOST, name, Known(entries, seen)))
    told = {each.name: each.value for each in bus_errors.derive(DISK, facts)}
    return {name: each.value if isinstance(each, Known) else each.reasons[0].text for name, each in told.items()}


def test_each_link_on_the_way_counts_and_no_other() -> None:
    logged = ("0000:01:00.0=2", "0000:00:1c.5=3", "0000:02:00.0=40")
    assert found(pcie_corrected=logged) == {"pcie_corrected": 5, "pcie_uncorrected": 0, "dma_faults": 0}


def test_a_refused_access_of_a_controller_is_one_of_each_disk_behind_it() -> None:
    sata = "/sys/devices/pci0000:00/0000:28:00.0/ata3/host2/target2:0:0/2:0:0:0/block/sda"
    assert found(sata, dma_faults=("0000:28:00.0=6",))["dma_faults"] == 6


def test_a_domain_of_its_own_is_another_device() -> None:
    assert found(pcie_uncorrected=("10000:01:00.0=1",))["pcie_uncorrected"] == 0


def test_what_is_there_counts_without_the_beginning_and_silence_does_not() -> None:
    told = found(whole=False, pcie_uncorrected=("0000:01:00.0=1",))
    assert told["pcie_uncorrected"] == 1
    assert "beginning" in str(told["pcie_corrected"])


@pytest.mark.parametrize(
    "path", ["/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1", "/sys/devices/virtual/block/dm-0"]
)
def test_without_a_pci_device_on_the_way_nothing_is_known(path: str) -> None:
    assert "no PCI device" in str(found(path)["pcie_uncorrected"])


def test_a_log_that_was_not_read() -> None:
    facts = Facts()
    facts.put(Fact(DISK, "sysfs_path", known(NVME, "")))
    facts.put_all(Fact(HOST, name, unknown("dmesg: permission denied")) for name in bus_errors.FACTS)
    assert not any(isinstance(each.value, Known) for each in bus_errors.derive(DISK, facts))
