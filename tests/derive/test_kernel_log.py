"""The kernel's log, set beside the disks: whose line it is, and when silence means that nothing happened."""

from __future__ import annotations

import pytest

from auditor.collect import kernel_log as collector
from auditor.derive import disk_leaves, kernel_log, suspensions
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, known
from auditor.host.output import Lines
from auditor.host.request import Output

BOOT, GONE = "records 0 to 1187\n", "records 523 to 1187\n"
SDA, SDB = Subject("disk", "sda"), Subject("disk", "sdb")
NVME = Subject("disk", "nvme1n1")
PLACES = {
    SDA: "/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda",
    SDB: "/devices/pci0000:00/0000:00:17.0/ata4/host3/target3:0:0/3:0:0:0/block/sdb",
    NVME: "/devices/pci0000:00/0000:00:06.0/nvme/nvme0/nvme1n1",  # the controller has another number
}


def judged(text: str, places: dict[Subject, str] | None = None) -> dict[tuple[str, str], Judged]:
    facts = Facts()
    facts.put_all(collector.parse(Output(text, "/dev/kmsg (disks)"), HOST))
    for disk in (SDA, SDB, NVME):
        facts.add(disk)
        if place := (PLACES if places is None else places).get(disk):
            facts.put(Fact(disk, "sysfs_path", known(place, place)))
    return {(each.subject.name, each.name): each.value for each in kernel_log.derive(HOST, facts)}


def value(found: Judged) -> object:
    return found.value if isinstance(found, Known) else None


def test_a_whole_log_without_a_word_of_it_is_none() -> None:
    found = judged(BOOT)
    assert {value(each) for (_, name), each in found.items() if name != "cache_assumed"} == {0}
    assert {value(each) for (_, name), each in found.items() if name == "cache_assumed"} == {False}


def test_what_is_seen_counts_where_the_beginning_is_gone_and_nothing_else_does() -> None:
    found = judged(GONE + "[9.0] I/O error, dev sda, sector 0 op 0x1:(WRITE) flags 0x800 phys_seg 0 prio class 0\n")
    assert value(found["sda", "logged_flush_errors"]) == 1
    for key in (("sda", "logged_io_errors"), ("sdb", "logged_flush_errors"), ("nvme1n1", "logged_resets")):
        why = found[key]
        assert isinstance(why, Unknown)
        assert "the beginning of the kernel's log is gone" in why.reasons[0].text


def test_a_port_and_a_controller_are_found_by_their_place() -> None:
    text = (
        BOOT
        + "[1.0] ata4.00: failed command: FLUSH CACHE EXT\n[2.0] nvme nvme0: I/O 1 QID 5 timeout, reset controller\n"
    )
    found = judged(text)
    assert [value(found[disk, "logged_resets"]) for disk in ("sda", "sdb", "nvme1n1")] == [0, 1, 1]
    nowhere = judged(text, {})
    assert all(isinstance(nowhere[disk, "logged_resets"], Unknown) for disk in ("sda", "sdb", "nvme1n1"))
    shared = judged(text, PLACES | {SDA: PLACES[SDA].replace("ata3", "ata4")})
    assert isinstance(shared["sdb", "logged_resets"], Unknown)
    hidden = judged(text, PLACES | {NVME: "/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1"})
    assert isinstance(hidden["nvme1n1", "logged_resets"], Unknown)


def test_what_the_link_says_is_of_the_disk_on_that_port() -> None:
    """No other line need follow: libata tries again, and the block layer is silent where that succeeds."""
    text = BOOT + "[1.0] ata3: hard resetting link\n[2.0] ata4.00: exception Emask 0x10 SAct 0x1 SErr 0x0 action 0x6\n"
    found = judged(text)
    assert [value(found[disk, "logged_resets"]) for disk in ("sda", "sdb", "nvme1n1")] == [1, 1, 0]


@pytest.mark.parametrize("used", [True, False])
def test_what_openzfs_says_of_a_path_is_of_the_disk_of_that_leaf(used: bool) -> None:
    facts, leaf = Facts(), Subject("leaf", "luks", "tank")
    text = BOOT + "[1.0] zio pool=tank vdev=/dev/mapper/luks error=5 type=2 offset=0 size=4096 flags=1605761\n"
    facts.put_all(collector.parse(Output(text, "/dev/kmsg (disks)"), HOST))
    facts.put(Fact(leaf, "path", known("/dev/mapper/luks", "")))
    for disk in (SDA, SDB):
        facts.add(disk)
        if used:
            facts.put(Fact(disk, "used_by", known((leaf,) if disk == SDA else (), "")))
    found = {each.subject: each.value for each in kernel_log.derive(HOST, facts) if each.name == "logged_io_errors"}
    assert [value(found[disk]) for disk in (SDA, SDB)] == ([1, 0] if used else [None, None])


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
    found = judged(f"{BOOT}{named}[3.0] {line}\n", shared)
    assert value(found["sda", "logged_trim_errors"]) == 1
    assert isinstance(found["sdb", "logged_resets"], Unknown)


def flushes(text: str, layers: tuple[str, ...] = ("multipath",)) -> Judged:
    """logged_flush_errors of sda, a path of dm-0, on which the leaf lies by way of dm-1."""
    facts, leaf = Facts(), Subject("leaf", "mpatha", "tank")
    facts.put_all(collector.parse(Output(text, "/dev/kmsg (disks)"), HOST))
    facts.put(Fact(leaf, "disks", known((SDA, SDB), "sda and sdb")))
    facts.put(Fact(leaf, "layers", known(layers, "")))
    facts.put(Fact(leaf, "nodes", known(("dm-1", "dm-0"), "")))
    facts.put_all(list(disk_leaves.derive(HOST, facts)))
    found = {(each.subject, each.name): each.value for each in kernel_log.derive(HOST, facts)}
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
    facts.put_all(collector.parse(Output(BOOT + (text if line else ""), "/dev/kmsg (disks)"), HOST))
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
    assert Lines(collector.KEEP).of(f"{first}{line}\n".encode()).decode() == first
