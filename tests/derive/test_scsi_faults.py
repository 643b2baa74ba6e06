"""What the kernel logged of a disk as a SCSI device."""

from __future__ import annotations

from auditor.derive import scsi_faults
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Value, known, unknown

DISK = Subject("disk", "sdb")
SATA = "/sys/devices/pci0000:00/0000:28:00.0/ata3/host2/target2:0:0/2:0:0:0/block/sdb"
NVME = "/sys/devices/pci0000:00/0000:00:1c.5/0000:01:00.0/nvme/nvme0/nvme0n1"
SUBSYSTEM = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1"
NAMES = tuple(source for source, _ in scsi_faults.SOURCES.values())


def found(
    path: str = SATA, whole: tuple[str, ...] = ("faults_whole", "buses_whole"), **logged: tuple[str, ...]
) -> dict[str, Value | str]:
    """Fact -> its value, or why it is not known."""
    facts = Facts()
    facts.put(Fact(DISK, "sysfs_path", known(path, "")))
    facts.put_all(Fact(HOST, name, known(True, "")) for name in whole)
    for name in NAMES:
        entries = logged.get(name, ())
        seen = tuple(Evidence(each) for each in entries) or (Evidence("nothing of the kind"),)
        facts.put(Fact(HOST, name, Known(entries, seen)))
    return told(facts)


def told(facts: Facts) -> dict[str, Value | str]:
    given = {each.name: each.value for each in scsi_faults.derive(DISK, facts)}
    return {name: each.value if isinstance(each, Known) else each.reasons[0].text for name, each in given.items()}


def test_what_the_log_names_by_the_address_of_the_disk_counts_and_no_other() -> None:
    assert found(scsi_medium_errors=("2:0:0:0=3", "12:0:0:0=9"), scsi_hardware_errors=("2:0:0:1=1",)) == {
        "logged_power_ons": 0,
        "logged_aborts": 0,
        "logged_medium_errors": 3,
        "logged_hardware_errors": 0,
    }


def test_each_question_answers_for_its_own_part_of_the_log() -> None:
    now = found(whole=("faults_whole",), scsi_hardware_errors=("2:0:0:0=1",))
    assert (now["logged_aborts"], now["logged_hardware_errors"]) == (0, 1)
    assert "beginning" in str(now["logged_medium_errors"])


def test_no_line_of_scsi_is_about_a_disk_of_nvme() -> None:
    for path in (NVME, SUBSYSTEM):
        assert set(found(path, whole=()).values()) == {0}
    facts = Facts()
    facts.put(Fact(DISK, "sysfs_path", known(NVME, "")))
    facts.put_all(Fact(HOST, name, unknown("dmesg: permission denied")) for name in NAMES)
    assert set(told(facts).values()) == {0}


def test_a_log_that_was_not_read() -> None:
    facts = Facts()
    facts.put(Fact(DISK, "sysfs_path", known(SATA, "")))
    facts.put_all(Fact(HOST, name, unknown("dmesg: permission denied")) for name in NAMES)
    assert set(told(facts).values()) == {"dmesg: permission denied"}
