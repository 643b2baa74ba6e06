"""/dev/kmsg: what the kernel logged of failing disks and pools since it booted.

The kernel keeps the newest messages only. That none is there means that nothing happened only where its first message is still
there. Without root it is readable where kernel.dmesg_restrict is 0.

Only the lines that are named here are kept, and recorded (block/blk-mq.c blk_print_req_error, before 5.16 block/blk-core.c
print_req_error; fs/buffer.c buffer_io_error; drivers/nvme/host/pci.c nvme_timeout, nvme_warn_reset; drivers/ata/libata-eh.c
ata_eh_link_report, ata_eh_reset; drivers/scsi/sd.c sd_read_cache_type; OpenZFS module/zfs/zio.c zio_suspend,
module/os/linux/zfs/vdev_disk.c vdev_disk_error). A command that failed is tried again by libata: what it comes to is said by
the block layer. The block layer says no more than ten lines in five seconds, and one failure may be told by several layers.

"Write cache: enabled" takes no "Assuming" back: a user can write that line (``_kernel_lines``). How the kernel treats the cache
now is in sysfs.

Recordings with the answer to ``dmesg -k`` were kept without the lines of ATA, of pages and of OpenZFS: their silence says
nothing of these, and they answer nothing here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from auditor.collect._kernel_lines import BOOT, COMMAND, HEAD, WHOLE, answered, compiled, matched
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, flag, tally
from auditor.host import kmsg
from auditor.host.request import Output, Run
from auditor.text import often

PER = "host"
SUBJECT = "host"
FACTS = {
    "kernel_log_whole": flag("the kernel's log reaches back to its start"),
    "kernel_log_io_errors": tally(
        "DEVICE=NUMBER of messages of reads and writes that failed, or PATH=NUMBER where OpenZFS says it; one evidence each"
    ),
    "kernel_log_flush_errors": tally("DEVICE=NUMBER of cache flushes that failed; one evidence each"),
    "kernel_log_flush_path_errors": tally(
        "DEVICE=NUMBER of these that may be the fault of the path: dm-multipath repeats them on another; one evidence each"
    ),
    "kernel_log_resets": tally(
        "NAME=NUMBER of messages of NVMe controllers and ATA ports of commands that timed out, failed at first, or resets"
    ),
    "kernel_log_trim_errors": tally(
        "DEVICE=NUMBER, or of ATA ports NAME=NUMBER, of TRIM commands that failed; one evidence each"
    ),
    "kernel_log_suspended": tally("POOL=NUMBER of suspensions of each pool; one evidence each"),
    "kernel_log_assumed": tally(
        "DEVICE=1 of each whose cache the kernel could not ask about, and took for write through"
    ),
}
# DISCARD, SECURE_ERASE, WRITE_ZEROES: drives refuse what they cannot do (include/linux/blk_types.h enum req_op)
NO_HARM = frozenset({"0x3", "0x5", "0x9"})
FLUSH, WRITE, DISCARD = "0x2", "0x1", "0x3"
# what a drive refuses because it cannot do it fails otherwise (blk-core.c blk_errors)
TRIM_FAILURES = frozenset({"I/O", "timeout", "recoverable transport"})
# drivers/ata/libata-scsi.c ata_scsi_write_same_xlat: queued, and not
TRIM_COMMANDS = ("SEND FPDMA QUEUED", "DATA SET MANAGEMENT")
# every other error may be the path's fault, and is repeated on another path (blk_types.h blk_path_error, blk-core.c
# blk_errors; "critical nexus" is "reservation conflict" before 6.4)
NO_PATH_ERROR = frozenset(
    {
        "operation not supported",
        "critical space allocation",
        "critical target",
        "critical nexus",
        "reservation conflict",
        "critical medium",
        "protection",
    }
)
FAILURES = frozenset(
    {"I/O", "critical medium", "critical target", "timeout", "protection", "recoverable transport", "device offline"}
)
READ_OR_WRITE = frozenset("12")  # of OpenZFS (include/sys/fs/zfs.h enum zio_type)

# the block layer names the disk, the cache of pages above it the partition
_PARTITION = re.compile(r"^(?:((?:sd|vd|xvd|hd)[a-z]+)\d+|(nvme\d+n\d+|mmcblk\d+)p\d+)$")
SEVERAL = ("nvme", "ata")  # patterns with several kinds of lines, each with a group at its end

_LINES = {
    "boot": BOOT,
    "error": (
        r"(?:\w+: )?(?P<what>[A-Za-z/ ]+) error, dev (?P<dev>[\w!-]+), sector \d+"
        r"(?: op (?P<op>0x[0-9a-f]+)(?::\(\w+\))?)?(?: flags (?:0x)?[0-9a-f]+)?(?: phys_seg (?P<segments>\d+))?"
        r"(?: prio class \d+)?"
    ),
    "page": (
        r"Buffer I/O error on dev(?:ice)? (?P<page>[\w!-]+), logical block \d+"
        r"(?:, (?:lost )?a?sync page (?:read|write))?"
    ),
    "zio": r"zio pool=[^=]+ vdev=(?P<path>/[^=]+) error=\d+ type=(?P<type>\d) offset=\d+ size=\d+ flags=[0-9a-f]+",
    "nvme": (
        r"nvme (?P<nvme>nvme\d+): (?:I/O (?P<late>[^,]*) timeout, .*|(?P<down>controller is down; will reset: .*)"
        r"|(?P<lost>Device not ready; aborting .*|Disabling device after reset failure: .*|Removing after probe failure .*))"
    ),
    "ata": (
        r"(?P<ata>ata\d+)(?:\.\d+)?: (?:(?P<trouble>exception) Emask .*|(?P<command>failed command): .*"
        r"|(?P<link>(?:hard|soft) resetting) link|(?P<gone>disable device|disabled))"
    ),
    "pool": r"WARNING: Pool '(?P<pool>[^'=]+)' has encountered an uncorrectable I/O failure and has been suspended\.",
    "cache": (
        r"sd [\d:]+: \[(?P<sd>sd[a-z]+)\] "
        r"(?:(?P<assumed>Assuming) drive cache: write (?P<mode>through|back)|Write cache: .*)"
    ),
}
_PATTERNS = compiled(_LINES)
KEEP = f"{HEAD}(?:{'|'.join(re.sub(r'[?]P<[a-z]+>', '?:', pattern) for pattern in _LINES.values())})$"


def request(host: Subject, facts: Facts) -> Run:
    """Of the kernel alone; it neither clears the log nor changes what the console shows."""
    return Run((kmsg.NAME, "disks"), keep=KEEP)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """What it holds, and that it is whole where it is; raises ValueError for a line that is none of these, or half of one."""
    told, whole = answered(reply.text)
    if whole:
        yield Fact(HOST, "kernel_log_whole", Known(True, (WHOLE,)))
    yield from counted(told)


def counted(told: Sequence[str]) -> Iterator[Fact]:
    """What these lines say. Raises ValueError for one that was not asked for."""
    found: dict[str, Counter[tuple[str, str]]] = {name: Counter() for name in FACTS if name != "kernel_log_whole"}
    last: dict[tuple[str, tuple[str, str]], str] = {}
    for name, match in matched(told, _PATTERNS):
        for fact, device in _told(name, match.groupdict(), match[0]):
            what = device, str(match.lastgroup) if name in SEVERAL else name
            found[fact][what] += 1
            last[fact, what] = match[0]
    for fact, times_of in found.items():
        lines = [Evidence(f"{last[fact, each].strip()} ({often(times)})", COMMAND) for each, times in times_of.items()]
        none = Evidence("nothing of the kind in what is left of the kernel's log", COMMAND)
        entries = tuple(f"{device}={times}" for (device, _), times in times_of.items())
        yield Fact(HOST, fact, Known(entries, (*lines,) or (none,)))


def _told(name: str, part: Mapping[str, str | None], line: str) -> list[tuple[str, str]]:
    """Each (fact, device) of a line; none: it says nothing bad."""
    match name:
        case "boot":
            return []
        case "nvme":
            return [("kernel_log_resets", str(part[name]))]
        case "ata":
            trim = part["command"] and line.partition("failed command: ")[2].startswith(TRIM_COMMANDS)
            names = ("kernel_log_resets", "kernel_log_trim_errors") if trim else ("kernel_log_resets",)
            return [(each, str(part[name])) for each in names]
        case "pool":
            return [("kernel_log_suspended", str(part["pool"]))]
        case "cache":
            assumed = part["assumed"] and part["mode"] == "through"
            return [("kernel_log_assumed", str(part["sd"]))] if assumed else []
        case "page":
            return [("kernel_log_io_errors", _PARTITION.sub(r"\1\2", str(part["page"])))]
        case "zio":
            return [("kernel_log_io_errors", str(part["path"]))] if str(part["type"]) in READ_OR_WRITE else []
    # one path of an NVMe device (nvme0c1n1) is the device
    device, what = re.sub(r"^(nvme\d+)c\d+(n\d+)$", r"\1\2", str(part["dev"])), part["what"]
    if part["op"] == FLUSH or (part["op"] == WRITE and part["segments"] == "0"):  # an empty write is a flush
        of_path = what not in NO_PATH_ERROR
        names = ("kernel_log_flush_errors", "kernel_log_flush_path_errors") if of_path else ("kernel_log_flush_errors",)
        return [(each, device) for each in names]
    if part["op"] == DISCARD and what in TRIM_FAILURES:
        return [("kernel_log_trim_errors", device)]
    return [("kernel_log_io_errors", device)] if what in FAILURES and part["op"] not in NO_HARM else []
