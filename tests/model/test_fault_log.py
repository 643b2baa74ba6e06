"""The kernel's log, set beside the disks: whose line it is, and when silence means that nothing happened."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, known, unknown
from auditor.host.process import Lines
from auditor.host.request import Output
from auditor.model.disk import used_by
from auditor.model.fault_log import logged_faults
from auditor.model.pool import suspensions
from auditor.sources import kernel_log as kernel_log_source

BOOT, GONE = "records 0 to 1187\n", "records 523 to 1187\n"
SDA, SDB = Subject("disk", "sda"), Subject("disk", "sdb")
NVME = Subject("disk", "nvme1n1")
PLACES = {
    SDA: "/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda",
    SDB: "/devices/pci0000:00/0000:00:17.0/ata4/host3/target3:0:0/3:0:0:0/block/sdb",
    NVME: "/devices/pci0000:00/0000:00:06.0/nvme/nvme0/nvme1n1",  # the controller has another number
}


RESETS, IO = "time-outs or resets of its controller or link", "failed reads or writes"
NONE = {"logged_faults": (), "logged_fault": "nothing", "logged_flush_errors": 0, "cache_assumed": False}


def logged(places: dict[Subject, str], **asked: str) -> Facts:
    """What the log says in answer to each question, and the places of these disks."""
    facts = Facts()
    for source, name in (
        (kernel_log_source.log, "disks"),
        (kernel_log_source.faults, "faults"),
        (kernel_log_source.buses, "buses"),
    ):
        if name in asked:
            facts.put_all(source.parse(Output(asked[name], f"/dev/kmsg ({name})"), HOST))
    for disk in (SDA, SDB, NVME):
        facts.add(disk)
        if place := places.get(disk):
            facts.put(Fact(disk, "sysfs_path", known(place, place)))
    return facts


def judged(
    disks: str = BOOT, faults: str = BOOT, buses: str = BOOT, *, places: dict[Subject, str] = PLACES
) -> dict[tuple[str, str], Judged]:
    facts = logged(places, disks=disks, faults=faults, buses=buses)
    return {(each.subject.name, each.name): each.value for each in logged_faults.derive(HOST, facts)}


def times(found: dict[tuple[str, str], Judged], what: str) -> list[int | None]:
    """How often that befell each of the disks; None where something about it is not known."""
    of = [found[disk.name, "logged_faults"] for disk in (SDA, SDB, NVME)]
    return [int(dict(each.pairs()).get(what, 0)) if isinstance(each, Known) else None for each in of]


def value(found: Judged) -> object:
    return found.value if isinstance(found, Known) else None


def test_a_whole_log_without_a_word_of_it_is_none() -> None:
    """Also of a disk of which nobody knows where it is."""
    for places in (PLACES, {}):
        found = judged(places=places)
        assert {key: value(each) for key, each in found.items()} == {
            (disk.name, name): nothing for disk in (SDA, SDB, NVME) for name, nothing in NONE.items()
        }


def test_what_is_seen_counts_where_the_beginning_is_gone_and_nothing_else_does() -> None:
    found = judged(GONE + "[9.0] I/O error, dev sda, sector 0 op 0x1:(WRITE) flags 0x800 phys_seg 0 prio class 0\n")
    assert value(found["sda", "logged_flush_errors"]) == 1
    for key in (("sda", "logged_faults"), ("sdb", "logged_flush_errors"), ("nvme1n1", "logged_fault")):
        why = found[key]
        assert isinstance(why, Unknown)
        assert "the beginning of the kernel's log is gone" in why.reasons[0].text


def test_a_port_and_a_controller_are_found_by_their_place() -> None:
    text = (
        BOOT
        + "[1.0] ata4.00: failed command: FLUSH CACHE EXT\n[2.0] nvme nvme0: I/O 1 QID 5 timeout, reset controller\n"
    )
    found = judged(text)
    assert times(found, RESETS) == [0, 1, 1]
    nowhere = judged(text, places={})
    assert times(nowhere, RESETS) == [None, None, None]
    shared = judged(text, places=PLACES | {SDA: PLACES[SDA].replace("ata3", "ata4")})
    assert times(shared, RESETS)[1] is None
    hidden = judged(text, places=PLACES | {NVME: "/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1"})
    assert times(hidden, RESETS)[2] is None


def test_what_the_link_says_is_of_the_disk_on_that_port() -> None:
    """No other line need follow: libata tries again, and the block layer is silent where that succeeds."""
    text = BOOT + "[1.0] ata3: hard resetting link\n[2.0] ata4.00: exception Emask 0x10 SAct 0x1 SErr 0x0 action 0x6\n"
    found = judged(text)
    assert times(found, RESETS) == [1, 1, 0]


@pytest.mark.parametrize("used", [True, False])
def test_what_openzfs_says_of_a_path_is_of_the_disk_of_that_leaf(used: bool) -> None:
    leaf = Subject("leaf", "luks", "tank")
    text = BOOT + "[1.0] zio pool=tank vdev=/dev/mapper/luks error=5 type=2 offset=0 size=4096 flags=1605761\n"
    facts = logged(PLACES, disks=text, faults=BOOT, buses=BOOT)
    facts.put(Fact(leaf, "path", known("/dev/mapper/luks", "")))
    for disk in (SDA, SDB):
        if used:
            facts.put(Fact(disk, "used_by", known((leaf,) if disk == SDA else (), "")))
    found = {(each.subject.name, each.name): each.value for each in logged_faults.derive(HOST, facts)}
    assert times(found, IO)[:2] == ([1, 0] if used else [None, None])


def test_a_cache_that_was_guessed_stays_so_whatever_is_logged_later() -> None:
    """Who can log a line can log this one; what the kernel takes the cache for now stands in sysfs."""
    text = BOOT + "[1.0] sd 2:0:0:0: [sda] Assuming drive cache: write through\n"
    assert value(judged(text)["sda", "cache_assumed"]) is True
    text += "[9.0] sd 2:0:0:0: [sda] Write cache: enabled, read cache: enabled, doesn't support DPO or FUA\n"
    assert value(judged(text)["sda", "cache_assumed"]) is True


@pytest.mark.parametrize("line", ["ata3: hard resetting link", "ata3.00: failed command: DATA SET MANAGEMENT"])
def test_a_port_that_two_disks_share_leaves_what_names_one_of_them(line: str) -> None:
    """The lines of the port leave open which of the two it was; those with a name do not become less by it."""
    named = "[2.0] I/O error, dev sda, sector 0 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 0\n"
    shared = PLACES | {SDB: PLACES[SDB].replace("ata4", "ata3")}
    found = judged(f"{BOOT}{named}[3.0] {line}\n", places=shared)
    assert times(found, "failed TRIM commands")[:2] == [1, None]


# -- one list of faults ------------------------------------------------------------------------------------------------------

MEDIUM = "[3.0] sd 2:0:0:0: [sda] tag#3 Sense Key : Medium Error [current] \n"
POWER_ON = "[4.0] sd 2:0:0:0: Power-on or device reset occurred\n"
ABORT = "[5.0] sd 3:0:0:0: attempting task abort! scmd(00000000), outstanding for 30500 ms & timeout 30000 ms\n"
LINK = "[6.0] pcieport 0000:00:06.0: PCIe Bus Error: severity={}, type=Physical Layer\n"
REFUSED = "[7.0] ahci 0000:00:17.1: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0 address=0x0 flags=0x20]\n"
STOPPED = "[8.0] mpt3sas_cm0: fault_state(0x2623)!\n[9.0] megaraid_sas 0000:00:17.0: resetting fusion adapter scsi0.\n"


def test_a_finding_names_each_fault_the_likely_cause_first_with_its_lines() -> None:
    error = "[9.0] critical medium error, dev sda, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0\n"
    found = judged(BOOT + error * 2, buses=BOOT + MEDIUM)["sda", "logged_faults"]
    assert isinstance(found, Known)
    assert found.value == ("medium errors=1", f"{IO}=2")
    assert [each.text.split("]")[0] for each in found.evidence] == ["[3.0", "[9.0"]


@pytest.mark.parametrize(
    ("log", "part"),
    [
        ({"buses": MEDIUM, "faults": POWER_ON * 3}, "drive"),
        ({"faults": POWER_ON * 3}, "link"),
        ({"disks": "[1.0] ata3.00: failed command: SEND FPDMA QUEUED\n"}, "TRIM"),
        ({"disks": "[1.0] ata3: hard resetting link\n", "faults": STOPPED}, "controller"),
        ({"buses": REFUSED}, "bus"),
    ],
)
def test_what_the_first_fault_points_at_decides_what_to_do(log: dict[str, str], part: str) -> None:
    found = judged(*(BOOT + log.get(name, "") for name in ("disks", "faults", "buses")))
    assert value(found["sda", "logged_fault"]) == part


def test_an_address_is_of_one_disk() -> None:
    assert times(judged(faults=BOOT + ABORT, buses=BOOT + MEDIUM), "commands given up") == [0, 1, 0]
    assert times(judged(buses=BOOT + MEDIUM.replace("2:0:0:0", "12:0:0:0")), "medium errors") == [0, 0, 0]


@pytest.mark.parametrize(("text", "number", "counted"), [(POWER_ON, 2, 0), (POWER_ON, 3, 3)])
def test_what_is_usual_is_no_fault_of_a_whole_log_alone(text: str, number: int, counted: int) -> None:
    what = "power-ons or resets of the drive"
    assert times(judged(faults=BOOT + text * number), what)[0] == counted
    assert times(judged(GONE, faults=GONE + text * number, buses=GONE), what)[0] == (counted or None)


def test_each_link_on_the_way_counts_and_no_other() -> None:
    lost, corrected = LINK.format("Uncorrected (Non-Fatal)"), LINK.format("Corrected")
    assert times(judged(buses=BOOT + lost), "PCIe errors not corrected") == [0, 0, 1]
    assert times(judged(buses=BOOT + corrected * 99), "corrected PCIe errors") == [0, 0, 0]
    assert times(judged(buses=BOOT + corrected * 100), "corrected PCIe errors") == [0, 0, 100]
    other = lost.replace("0000:00:06.0", "10000:00:06.0")  # another domain is another device
    assert times(judged(buses=BOOT + other), "PCIe errors not corrected") == [0, 0, 0]


def test_a_refused_access_of_a_controller_is_one_of_each_disk_behind_it() -> None:
    """Whatever function it is logged of."""
    assert times(judged(buses=BOOT + REFUSED), "DMA accesses refused by the IOMMU") == [1, 1, 0]


def test_a_controller_that_stopped_is_of_the_disks_that_may_be_behind_it() -> None:
    sas = PLACES[SDB].replace("ata4/", "").replace("00:17.0", "00:19.0")
    assert times(judged(places=PLACES | {SDB: sas}, faults=BOOT + STOPPED), "faults of its controller") == [1, 1, 0]


def test_without_a_pci_device_on_the_way_a_line_of_one_may_be_its() -> None:
    places = PLACES | {NVME: "/devices/virtual/nvme-subsystem/nvme-subsys0/nvme1n1"}
    assert times(judged(places=places, buses=BOOT + LINK.format("Uncorrected (Fatal)")), IO)[2] is None
    assert times(judged(places=places), IO)[2] == 0


def test_a_question_that_was_not_asked_takes_no_fault_back_and_makes_none() -> None:
    error = "[9.0] I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0\n"
    facts = logged(PLACES, disks=BOOT + error)
    facts.put(Fact(HOST, "scsi_medium_errors", unknown("not in the recording")))
    found = {(each.subject.name, each.name): each.value for each in logged_faults.derive(HOST, facts)}
    assert times(found, IO) == [1, None, None]


def flushes(text: str, layers: tuple[str, ...] = ("multipath",)) -> Judged:
    """logged_flush_errors of sda, a path of dm-0, on which the leaf lies by way of dm-1."""
    facts, leaf = Facts(), Subject("leaf", "mpatha", "tank")
    facts.put_all(kernel_log_source.log.parse(Output(text, "/dev/kmsg (disks)"), HOST))
    facts.put(Fact(leaf, "disks", known((SDA, SDB), "sda and sdb")))
    facts.put(Fact(leaf, "layers", known(layers, "")))
    facts.put(Fact(leaf, "nodes", known(("dm-1", "dm-0"), "")))
    facts.put_all(list(used_by.derive(HOST, facts)))
    found = {(each.subject, each.name): each.value for each in logged_faults.derive(HOST, facts)}
    return found[SDA, "logged_flush_errors"]


def error(what: str, device: str, operation: str = "op 0x1:(WRITE) flags 0x800 phys_seg 0") -> str:
    return f"[9.0] {what} error, dev {device}, sector 0 {operation} prio class 2\n"


PATH = error("recoverable transport", "sda")


@pytest.mark.parametrize(
    ("text", "times"),
    [
        (BOOT, 0),
        (BOOT + PATH, 0),
        (BOOT + error("I/O", "sda", "op 0x2:(FLUSH) flags 0x0 phys_seg 0") + error("timeout", "sda"), 0),
        (BOOT + error("critical target", "sda"), 1),
        (BOOT + error("critical medium", "sda") + PATH * 2, 1),
        (BOOT + PATH + error("I/O", "dm-0"), 1),
        (BOOT + error("recoverable transport", "sdb") + error("I/O", "dm-0"), 1),
        (BOOT + PATH + error("I/O", "dm-7"), 0),
        (GONE + PATH, None),
        (BOOT + PATH * 10, None),
        (BOOT + PATH + error("I/O", "sdb", "op 0x0:(READ) flags 0x0 phys_seg 1") * 9, None),
        (GONE + PATH + error("critical target", "sda"), 1),
    ],
)
def test_what_one_path_of_multipath_refuses_another_takes(text: str, times: int | None) -> None:
    found = flushes(text)
    assert value(found) == times
    if times is None:
        assert isinstance(found, Unknown)
        assert "dm-multipath repeats" in found.reasons[0].text


def test_without_multipath_every_failed_flush_counts() -> None:
    assert value(flushes(BOOT + PATH, ("crypt",))) == 1
    assert value(flushes(BOOT + PATH + error("I/O", "dm-0"), ("crypt",))) == 1


@pytest.mark.parametrize(
    ("events", "line", "times"),
    [
        (0, "", 0),
        (2, "", 2),
        (None, "", None),
        (None, "tank", 1),
        (0, "tank", 1),  # the event was cleared, or pushed out by others
        (0, "tan", 0),
        (3, "tank", 3),
    ],
)
def test_a_suspension_that_one_remembers_counts(events: int | None, line: str, times: int | None) -> None:
    facts, pool = Facts(), Subject("pool", "tank")
    text = f"[9.0] WARNING: Pool '{line}' has encountered an uncorrectable I/O failure and has been suspended.\n"
    facts.put_all(kernel_log_source.log.parse(Output(BOOT + (text if line else ""), "/dev/kmsg (disks)"), HOST))
    if events is not None:
        facts.put(Fact(pool, "events_io_failure", known(events, f"{events} events")))
    (fact,) = suspensions.derive(pool, facts)
    assert value(fact.value) == times


@pytest.mark.parametrize(
    "line",
    [
        "[    1.000000] Command line: password=hunter2",
        "[    1.000000] audit: type=1400 apparmor error, dev nobody",
        "[    1.000000] sd 2:0:0:0: [sda] Attached SCSI disk",
        "[    1.000000] EXT4-fs (sda1): I/O error, dev sda, sector 5",
    ],
)
def test_of_the_log_only_lines_that_are_read_are_kept(line: str) -> None:
    first = "[    0.000000] Linux version 6.12.48 (ann@build7) #1 SMP\n"
    assert Lines(kernel_log_source.KEEP).of(f"{first}{line}\n".encode()).decode() == first
