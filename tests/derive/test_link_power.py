"""How the links of disks save power."""

from __future__ import annotations

import pytest

from auditor.derive import link_power
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, known, unknown

DISK = Subject("disk", "sda")
SATA = "/sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda"


def found(path: str, *policies: str) -> object:
    facts = Facts()
    facts.put(Fact(DISK, "sysfs_path", known(path, "")))
    facts.put(Fact(HOST, "link_power", Known(policies, tuple(map(Evidence, policies)) or (Evidence("none"),))))
    (told,) = link_power.derive(DISK, facts)
    return told.value.value if isinstance(told.value, Known) else None


@pytest.mark.parametrize(
    ("path", "policy"),
    [
        (SATA, "med_power_with_dipm"),
        (SATA.replace("host2", "host20"), ""),
        ("/sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1", ""),
    ],
)
def test_by_the_host_adapter(path: str, policy: str) -> None:
    assert found(path, "host1=min_power", "host2=med_power_with_dipm") == policy


def test_none_has_one() -> None:
    assert found(SATA) == ""


def test_not_read() -> None:
    facts = Facts()
    facts.put_all([Fact(DISK, "sysfs_path", known(SATA, "")), Fact(HOST, "link_power", unknown("was not asked for"))])
    (told,) = link_power.derive(DISK, facts)
    assert not isinstance(told.value, Known)
