"""/dev/kmsg: what the kernel has logged since it booted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from auditor.facts import HOST, Evidence, Fact, Known, Spec, Subject
from auditor.host import builtin
from auditor.host.request import Output, Run
from auditor.sources.source import source
from auditor.text import often

# a time and, with CONFIG_PRINTK_CALLER, a thread or CPU
HEAD = r"^(?:\[ *\d+\.\d+\])?(?:\[ *[TC]\d+\])? ?"
BOOT = r"Linux version \S+ .*"
COMMAND = "dmesg -k"  # shows the same to a reader
NONE = "nothing of the kind in what is left of the kernel's log"
WHOLE = Evidence("the kernel's log reaches back to its start", f"{COMMAND} | head -1")
_RECORDS = re.compile(r"records (\d{1,20}) to \d{1,20}(, some lost)?")
_DMESG = "dmesg"
# the kernel's own has no time yet: any user may run a program called "Linux version 6" that ends by a fault, which is logged
_FIRST = re.compile(rf"\[ *0\.000000\](?:\[ *[TC]\d+\])? ?{BOOT}")
_TIME = re.compile(r"\[ *(\d+\.\d+)\]")


_GROUP = re.compile(r"(?<!\\)[(](?:[?]P<[a-z]+>|(?![?]))")


def question(name: str, of: Mapping[str, str]) -> Run:
    """For the lines of these kinds: one pattern without groups that capture."""
    return Run(
        (builtin.KMSG, name), keep=f"{HEAD}(?:{'|'.join(_GROUP.sub('(?:', pattern) for pattern in of.values())})$"
    )


class Line(NamedTuple):
    """One of the lines that were asked for. kind: the name of its pattern."""

    kind: str
    match: re.Match[str]

    @property
    def text(self) -> str:
        return self.match[0]

    @property
    def part(self) -> str:
        return next((each for each in self.match.groups() if each), "")

    @property
    def seconds(self) -> float | None:
        """When it was logged, since the start; None where it does not say."""
        found = _TIME.match(self.text)
        return float(found[1]) if found else None


def log_lines(text: str, of: Mapping[str, str]) -> tuple[list[Line], bool]:
    """(those that were asked for, whether the log is all there since its start); ``boot`` is the pattern of its first line.
    Raises ValueError where it is no answer, and for a line that was not asked for, or half of one."""
    first, *lines = text.split("\n")
    if not lines or lines.pop():
        raise ValueError("the last line is cut off")
    if records := _RECORDS.fullmatch(first):
        whole = int(records[1]) == 0 and not records[2]
    elif first == _DMESG:
        whole = [at for at, line in enumerate(lines) if _FIRST.fullmatch(line)] == [0]
    else:
        raise ValueError(f"the first line does not say which records these are: {first[:80]}")
    return [each for each in (_line(line, of) for line in lines) if each.kind != "boot"], whole


def _line(text: str, of: Mapping[str, str]) -> Line:
    """of: a pattern for each kind, after what lines begin with. ASCII, as the reader's patterns of bytes are: a line that only
    the reader matches would spoil the whole answer. They take long to compile, and few logs have such lines."""
    for kind, pattern in of.items():
        if match := re.fullmatch(f"{HEAD}{pattern}", text, re.ASCII):
            return Line(kind, match)
    raise ValueError(f"an unexpected line: {text[:80]}")


def tally_fact(fact: str, named: Sequence[tuple[tuple[str, ...], str]], none: str = NONE) -> Fact:
    """How often each was named, with the last line that did. named: ((what, its kind if it has several), line)."""
    times, last = Counter(what for what, _ in named), dict(named)
    lines = tuple(Evidence(f"{last[what].strip()} ({often(count)})", COMMAND) for what, count in times.items())
    entries = tuple(f"{what[0]}={count}" for what, count in times.items())
    return Fact(HOST, fact, Known(entries, lines or (Evidence(none, COMMAND),)))


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
        *("operation not supported", "critical space allocation", "critical target", "critical nexus"),
        *("reservation conflict", "critical medium", "protection"),
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
_DISKS = question("disks", _LINES)
KEEP = _DISKS.keep


@source(
    "kernel_log",
    "host",
    ask=_DISKS,
    facts={
        "kernel_log_whole": Spec.flag("the kernel's log reaches back to its start"),
        "kernel_log_io_errors": Spec.tally(
            "DEVICE=NUMBER of messages of reads and writes that failed, or PATH=NUMBER where OpenZFS says it; one evidence each"
        ),
        "kernel_log_flush_errors": Spec.tally("DEVICE=NUMBER of cache flushes that failed; one evidence each"),
        "kernel_log_flush_path_errors": Spec.tally(
            "DEVICE=NUMBER of these that may be the fault of the path: dm-multipath repeats them on another; one evidence each"
        ),
        "kernel_log_resets": Spec.tally(
            "NAME=NUMBER of messages of NVMe controllers and ATA ports of commands that timed out, failed at first, or resets"
        ),
        "kernel_log_trim_errors": Spec.tally(
            "DEVICE=NUMBER, or of ATA ports NAME=NUMBER, of TRIM commands that failed; one evidence each"
        ),
        "kernel_log_suspended": Spec.tally("POOL=NUMBER of suspensions of each pool; one evidence each"),
        "kernel_log_assumed": Spec.tally(
            "DEVICE=1 of each whose cache the kernel could not ask about, and took for write through"
        ),
    },
)
def log(reply: Output, host: Subject) -> Iterator[Fact]:
    """/dev/kmsg: what the kernel logged of failing disks and pools since it booted. It keeps the newest messages only, so
    silence counts only where its first message is still there. Without root it is readable where kernel.dmesg_restrict is
    0.

    Only the lines that are named here are kept, and recorded (block/blk-mq.c blk_print_req_error, before 5.16
    block/blk-core.c print_req_error; fs/buffer.c buffer_io_error; drivers/nvme/host/pci.c nvme_timeout, nvme_warn_reset;
    drivers/ata/libata-eh.c ata_eh_link_report, ata_eh_reset; drivers/scsi/sd.c sd_read_cache_type; OpenZFS module/zfs/zio.c
    zio_suspend, module/os/linux/zfs/vdev_disk.c vdev_disk_error). libata tries a failed command again, and the block layer
    says what comes of it: ten lines in five seconds at most. Several layers may tell one failure.

    "Write cache: enabled" takes no "Assuming" back, as a user can write that line (``_kernel_lines``). Recordings of
    ``dmesg -k`` lack the lines of ATA, pages and OpenZFS, and answer nothing here. Raises ValueError for a line that is
    none of these, or half of one."""
    found, whole = log_lines(reply.text, _LINES)
    if whole:
        yield Fact(HOST, "kernel_log_whole", Known(True, (WHOLE,)))
    yield from _counts(found)


def counts(lines: Sequence[str]) -> Iterator[Fact]:
    return _counts([_line(each, _LINES) for each in lines])


def _counts(lines: Sequence[Line]) -> Iterator[Fact]:
    named = [(fact, device, line) for line in lines for fact, device in _named_in(line)]
    for name in log.facts:
        if name != "kernel_log_whole":
            kinds = (((device, _kind(line)), line.text) for fact, device, line in named if fact == name)
            yield tally_fact(name, list(kinds))


def _kind(line: Line) -> str:
    return str(line.match.lastgroup) if line.kind in SEVERAL else line.kind


def _named_in(line: Line) -> list[tuple[str, str]]:
    """Each (fact, device) of a line; none: it says nothing bad."""
    part = line.match.groupdict()
    match line.kind:
        case "boot":
            return []
        case "nvme":
            return [("kernel_log_resets", part["nvme"])]
        case "ata":
            trim = part["command"] and line.text.partition("failed command: ")[2].startswith(TRIM_COMMANDS)
            names = ("kernel_log_resets", "kernel_log_trim_errors") if trim else ("kernel_log_resets",)
            return [(each, part["ata"]) for each in names]
        case "pool":
            return [("kernel_log_suspended", part["pool"])]
        case "cache":
            assumed = part["assumed"] and part["mode"] == "through"
            return [("kernel_log_assumed", part["sd"])] if assumed else []
        case "page":
            return [("kernel_log_io_errors", _PARTITION.sub(r"\1\2", part["page"]))]
        case "zio":
            return [("kernel_log_io_errors", part["path"])] if part["type"] in READ_OR_WRITE else []
    # one path of an NVMe device (nvme0c1n1) is the device
    device, what = re.sub(r"^(nvme\d+)c\d+(n\d+)$", r"\1\2", part["dev"]), part["what"]
    if part["op"] == FLUSH or (part["op"] == WRITE and part["segments"] == "0"):  # an empty write is a flush
        of_path = what not in NO_PATH_ERROR
        names = ("kernel_log_flush_errors", "kernel_log_flush_path_errors") if of_path else ("kernel_log_flush_errors",)
        return [(each, device) for each in names]
    if part["op"] == DISCARD and what in TRIM_FAILURES:
        return [("kernel_log_trim_errors", device)]
    return [("kernel_log_io_errors", device)] if what in FAILURES and part["op"] not in NO_HARM else []


_HANGS_LINES = {
    "boot": BOOT,
    "hung": (
        r"INFO: task (txg_(?:sync|quiesce)|z_[a-z_]{1,20}|zil_[a-z_]{1,20}|zvol[a-z_]{0,20}|dp_[a-z_]{1,20}):\d+"
        r" blocked for more than \d+ seconds\."
    ),
    "check": r"mce: \[Hardware Error\]: .*",
}


@source(
    "kernel_hangs",
    "host",
    ask=question("hangs", _HANGS_LINES),
    facts={
        "hung_tasks": Spec.tally(
            "THREAD=TIMES of each thread of OpenZFS that the kernel found hanging since it booted"
        ),
        "machine_checks": Spec.tally(
            "mce=TIMES of messages of machine checks, errors of memory and processor, since it booted"
        ),
    },
)
def hangs(reply: Output, host: Subject) -> Iterator[Fact]:
    """/dev/kmsg: threads of OpenZFS that the kernel found hanging, and machine checks, since it booted. A separate
    question: a change of the lines of ``kernel_log`` would make its recordings worthless.

    Only its name shows a thread of OpenZFS; a user can give a program that name, which adds a finding. The kernel warns of
    ten tasks at most (``kernel_traces``). (Linux kernel/hung_task.c check_hung_task; arch/x86/kernel/cpu/mce/core.c) That
    nothing is there counts where the log is whole. Raises ValueError for an unexpected line."""
    found, whole = log_lines(reply.text, _HANGS_LINES)
    none = "nothing of the kind in the kernel's log, which reaches back to its start"
    for fact, kind in (("hung_tasks", "hung"), ("machine_checks", "check")):
        named = [((each.part or "mce",), each.text) for each in found if each.kind == kind]
        if named or whole:
            yield tally_fact(fact, named, none)


_SCSI = r"sd (\d+:\d+:\d+:\d+): "
_FAULTS_LINES = {
    "boot": BOOT,
    "zfs_panics": r"PANIC(?: at ([\w.-]+:\d+):\w+\(\)|: (?!double fault|early exception)[!-~][ -~]*)",
    "zfs_oopses": r"(?:RIP: \d+:|pc : )(\w{1,80})(?:\.\w{1,40}){0,4}\+0x[0-9a-f]+/0x[0-9a-f]+ \[(?:zfs|spl)\]",
    "log_replay_errors": (
        r"WARNING: ZFS (?:replay transaction|read log block) error \d+, dataset ([^,=]+), seq 0x[0-9a-f]+"
        r"(?:, txtype \d+ ?(?:CI)?)?"
    ),
    "oom_kills": r"Out of memory(?: \(oom_kill_allocating_task\))?: Kill(?:ed)? process \d+ \(([ -~]{1,15})\)(?: [ -~]*|, .*)?",
    "controller_faults": (
        r"(?:(mpt[23]sas(?:_cm)?\d+): (?:fault_state\(0x[0-9a-f]+\)!|SAS host is non-operational !!!!).*"
        r"|megaraid_sas ([0-9a-f:.]+): resetting fusion adapter scsi\d+\.)"
    ),
    "scsi_power_ons": rf"{_SCSI}Power-on or device reset occurred",
    "scsi_aborts": (
        rf"{_SCSI}(?:[Aa]ttempting [Tt]ask [Aa]bort! ?scmd\([0-9a-fx]+\)"
        r"(?:, outstanding for \d+ ms & timeout (?:[3-9]\d{4}|\d{6,9}) ms)?"
        r"|Device offlined - not ready after error recovery)"
    ),
}
_STOPPED_IN = re.compile(r"PANIC at [\w.-]+:\d+:(\w+)\(\)")


@source(
    "kernel_faults",
    "host",
    ask=question("faults", _FAULTS_LINES),
    facts={
        "faults_whole": Spec.flag("the kernel's log, which was looked through for faults, reaches back to its start"),
        "zfs_panics": Spec.tally(
            "PLACE=TIMES of each place at which OpenZFS stopped one of its threads since the host booted"
        ),
        "zfs_stopped_in": Spec.words(
            "functions of OpenZFS that stopped a thread so, where the line names one; one evidence each"
        ),
        "zfs_oopses": Spec.tally(
            "FUNCTION=TIMES of functions of OpenZFS in which the kernel faulted or was stuck since it booted"
        ),
        "log_replay_errors": Spec.tally(
            "DATASET=TIMES of records of the intent log that could not be replayed since the host booted"
        ),
        "controller_faults": Spec.tally(
            "CONTROLLER=TIMES of faults and resets of storage controllers since the host booted"
        ),
        "scsi_power_ons": Spec.tally(
            "HOST:CHANNEL:TARGET:LUN=TIMES of power-ons and resets that drives reported; one evidence each"
        ),
        "scsi_aborts": Spec.tally(
            "HOST:CHANNEL:TARGET:LUN=TIMES of commands and drives that SCSI gave up; one evidence each"
        ),
    },
)
def faults(reply: Output, host: Subject) -> Iterator[Fact]:
    """/dev/kmsg: what went wrong in OpenZFS itself, and with SCSI drives and their controllers, since the host booted. A
    separate question, as ``kernel_hangs`` says why; its answers also hold the lines of programs killed for lack of memory.

    The lines are those of OpenZFS module/os/linux/spl/spl-err.c spl_panic, vcmn_err; module/zfs/zil.c zil_replay_error,
    zil_parse; Linux arch/x86/kernel/dumpstack.c show_ip; drivers/scsi/scsi_error.c scsi_report_sense;
    drivers/scsi/mpt3sas/mpt3sas_scsih.c scsih_abort, mpt3sas_base.c; drivers/scsi/mpi3mr/mpi3mr_os.c;
    drivers/scsi/megaraid/megaraid_sas_fusion.c.

    Not counted: the power-on of a disk before it is one ("scsi 0:0:1:0"), and commands that time out before the 30 s of the
    block layer, which a program sent (smartctl). Of SCSI also what is there where the beginning is gone: then
    ``faults_whole`` is absent."""
    lines, whole = log_lines(reply.text, _FAULTS_LINES)
    if whole:
        yield Fact(HOST, "faults_whole", Known(True, (WHOLE,)))
    found = [(each.kind, each.part or "OpenZFS", each.text.strip()) for each in lines]
    stopped = {hit[1]: text for kind, _, text in found if kind == "zfs_panics" and (hit := _STOPPED_IN.search(text))}
    if stopped or whole:
        places = tuple(Evidence(text, COMMAND) for text in stopped.values())
        yield Fact(HOST, "zfs_stopped_in", Known(tuple(stopped), places or (Evidence(NONE, COMMAND),)))
    for fact in faults.facts:
        named = [((what,), text) for kind, what, text in found if kind == fact]
        if fact not in ("faults_whole", "zfs_stopped_in") and (named or whole or fact.startswith("scsi_")):
            yield tally_fact(fact, named)


SOON_S = 2.0  # in which even a slow serial console has printed the innermost frames
WARNINGS = 10  # after which the kernel gives no more
_ADDRESS = r"(?:\[<[0-9a-f]+>\] )?"
_PLACE = r"\+0x[0-9a-f]+/0x[0-9a-f]+"
_TRACES_LINES = {
    "boot": BOOT,
    "task": r"INFO: task ([ -~]{1,40}):\d+ blocked (?:[a-zA-Z/ -]{1,40} )?for more than \d+ seconds\.",
    "trace": r"Call [Tt]race:",
    "frame": (
        rf" *{_ADDRESS}(\? )?(?:[\w.]{{1,120}}{_PLACE} \[(?:zfs|spl)(?: [0-9a-f]+)?\]"
        rf"|(?:dbuf|dmu|txg|zfs|zil|zio|zpl|zvol)_[\w.]{{1,120}}{_PLACE})"
    ),
}
_FUNCTION = re.compile(rf"(?<![\w.])([\w.]{{1,120}}){_PLACE}")


@source(
    "kernel_traces",
    "host",
    ask=question("traces", _TRACES_LINES),
    facts={
        "hung_in_zfs": Spec.tally(
            "PROGRAM=TIMES of each task that the kernel found hanging in a function of OpenZFS since it booted"
        ),
        "hung_traces": Spec.words(
            "FUNCTION FUNCTION... of each such trace: those of OpenZFS that are surely in it, innermost first,"
            " without .part.N and the like"
        ),
    },
)
def traces(reply: Output, host: Subject) -> Iterator[Fact]:
    """/dev/kmsg: programs that the kernel found hanging inside of OpenZFS since the host booted. A separate question, as
    ``kernel_hangs`` says why.

    The kernel names a task that has waited for too long, and prints below where it waits (Linux kernel/hung_task.c
    check_hung_task; kernel/sched/core.c sched_show_task). It waits for OpenZFS where a frame is of its modules, or of its
    functions where it is built in. A frame with a question mark may be left over from an earlier call, and decides nothing
    (Documentation/arch/x86/kernel-stacks.rst). A task that waits for a volume waits in the block layer, and is not seen.

    Records of other threads may come between: a frame counts for the last warning within two seconds, and one of another
    thread adds a finding. The kernel warns ten times (kernel.hung_task_warnings), and a user can use that up with a FUSE
    file system: after ten warnings silence means nothing. That no task hangs counts where the log is whole and no frame is
    left over. Raises ValueError for an unexpected line."""
    found, whole = log_lines(reply.text, _TRACES_LINES)
    tasks = [each for each in found if each.kind == "task"]
    traces, unsure = _traces(found)
    if not traces and (not whole or unsure or len(tasks) >= WARNINGS):
        return
    none = "no task hung in OpenZFS, says the kernel's log, which reaches back to its start"
    yield tally_fact("hung_in_zfs", [((task.part,), task.text) for task, _ in traces], none)
    stacks = {" ".join(functions): task.text for task, functions in traces}
    where = tuple(Evidence(f"{text.strip()} in {stack}", COMMAND) for stack, text in stacks.items())
    yield Fact(HOST, "hung_traces", Known(tuple(stacks), where or (Evidence(none, COMMAND),)))


def _traces(found: Sequence[Line]) -> tuple[list[tuple[Line, list[str]]], bool]:
    """(each task with the functions of OpenZFS in which it surely waits, whether a frame may be left over)."""
    traces: list[tuple[Line, list[str]]] = []
    task, functions, until, unsure = None, list[str](), -inf, False
    for each in found:
        at = each.seconds
        if each.kind == "task" and (soon := inf if at is None else at + SOON_S) >= until:
            task, functions, until = each, [], soon
        elif each.kind == "frame" and task and (at is None or at <= until):
            unsure |= bool(each.part)
            if not each.part and (function := _FUNCTION.search(each.text)):
                if not functions:
                    traces.append((task, functions))
                functions.append(function[1].partition(".")[0])
    return traces, unsure


_BUSES_FACTS = {
    "buses_whole": Spec.flag(
        "the kernel's log, which was looked through for errors of buses, reaches back to its start"
    ),
    "pcie_corrected": Spec.tally(
        "PCI ADDRESS=TIMES of errors of a link that were corrected by sending again; one evidence each"
    ),
    "pcie_uncorrected": Spec.tally("PCI ADDRESS=TIMES of errors of a link that were not corrected; one evidence each"),
    "dma_faults": Spec.tally("PCI ADDRESS=TIMES of accesses to memory that the IOMMU refused; one evidence each"),
    "hardware_errors": Spec.tally(
        "WHAT, SEVERITY=TIMES of errors of memory, processors and others that the firmware or the processor reported"
    ),
    "scsi_medium_errors": Spec.tally(
        "HOST:CHANNEL:TARGET:LUN=TIMES of commands that failed for the medium, as the drive said; one evidence each"
    ),
    "scsi_hardware_errors": Spec.tally(
        "HOST:CHANNEL:TARGET:LUN=TIMES of commands that failed for the drive's own hardware; one evidence each"
    ),
    "zfs_faults_beside": Spec.tally(
        "FUNCTION=TIMES of functions in which the kernel faulted: of modules of OpenZFS next to zfs and spl (until 2.1), and of"
        " all of them as old kernels print it"
    ),
}
_SHORT = r"[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_BUSES_SCSI = r"sd (\d+:\d+:\d+:\d+): \[sd[a-z]{1,4}\] +(?:tag#\d+ +)?"
_RECORD = r"\{(\d{1,10})\}\[Hardware Error\]: +"
_DEVICE = rf"[\w-]{{1,40}} ([0-9a-f]{{4,8}}:{_SHORT}): "
_BUSES_FUNCTION = r"(\w{1,80})(?:\.\w{1,40}){0,4}\+0x[0-9a-f]+/0x[0-9a-f]+"
_BRACKETS = r"RIP: \d+:\[<[0-9a-f]+>\] {1,4}\[<[0-9a-f]+>\] "
_BESIDE = r"\[(?:zcommon|znvpair|zavl|zunicode|icp|zlua|zzstd)\]"
_BUSES_LINES = {
    "boot": BOOT,
    "pcie_corrected": rf"{_DEVICE}(?:AER: )?PCIe Bus Error: severity=Correct(?:ed|able), [ -~]{{1,120}}",
    "pcie_uncorrected": (
        rf"{_DEVICE}(?:(?:AER: )?PCIe Bus Error: severity=Uncorrect(?:ed|able) [ -~]{{1,120}}"
        rf"|DPC: containment event, status:0x[0-9a-f]{{4}}[ -~]{{0,120}})"
    ),
    "dma_faults": (
        rf"(?:{_DEVICE}AMD-Vi: Event logged \[IO_PAGE_FAULT [ -~]{{1,120}}\]"
        rf"|AMD-Vi: Event logged \[IO_PAGE_FAULT device=((?:[0-9a-f]{{4,8}}:)?{_SHORT}) [ -~]{{1,120}}\]"
        rf"|DMAR: ?\[DMA (?:Read|Write)[ \w]{{0,20}}\] Request device \[((?:0x)?[0-9a-f]{{2}}:(?:0x)?[0-9a-f]{{2}}\.[0-7])\]"
        rf" (?:PASID \w+ )?fault addr [ -~]{{1,160}})"
    ),
    "scsi_medium_errors": rf"{_BUSES_SCSI}Sense Key : Medium Error \[(?:current|deferred)\] ?(?:\[descriptor\])? ?",
    "scsi_hardware_errors": rf"{_BUSES_SCSI}Sense Key : Hardware Error \[(?:current|deferred)\] ?(?:\[descriptor\])? ?",
    "sense": rf"{_BUSES_SCSI}(?:Add\. Sense: [ -~]{{1,80}}|(?:<<vendor>>)?ASC=0x[0-9a-f]+ (?:<<vendor>>)?ASCQ=0x[0-9a-f]+ ?)",
    "processor": (
        r"\[Hardware Error\]: (?:System Fatal error|Uncorrected, software (?:restartable|containable) error"
        r"|(?:Deferred|Corrected) error, no action required)\."
    ),
    "zfs_faults_beside": (
        rf"(?:(?:RIP: \d+:|pc : ){_BUSES_FUNCTION} {_BESIDE}|{_BRACKETS}{_BUSES_FUNCTION} (?:{_BESIDE}|\[(?:zfs|spl)\]))"
    ),
    "record": (
        rf"{_RECORD}(?:Error \d+, type: (?:recoverable|fatal|corrected|info|unknown)"
        rf"|section_type: (?:(?:general|ARM|IA32/X64) processor|memory|PCIe) error|section_type: CXL Protocol Error"
        rf"|device_id: [0-9a-f]{{4,8}}:{_SHORT})"
    ),
}
ALONE = ("hardware_errors", "zfs_faults_beside")
KINDS = tuple(name for name in _BUSES_FACTS if name not in ("buses_whole", *ALONE))
INFO, CORRECTED, PCIE = "info", "corrected", "PCIe error"
SEVERITIES = (INFO, CORRECTED, "unknown", "recoverable", "fatal")  # the least first
_PART = re.compile(r"\{\d+\}\[Hardware Error\]: +(Error \d+, type|section_type|device_id): (.+)")
_BEFORE_SENSE = re.compile(r"^.*\[sd[a-z]+\] +(?:tag#\d+ +)?")


@source("kernel_buses", "host", ask=question("buses", _BUSES_LINES), facts=_BUSES_FACTS)
def buses(reply: Output, host: Subject) -> Iterator[Fact]:
    """/dev/kmsg: errors of PCI Express links, memory accesses that an IOMMU refused, what the firmware reports of memory
    and processors, and what SCSI drives say of failed commands, since the host booted. A separate question, as
    ``kernel_hangs`` says why.

    The lines are those of Linux drivers/pci/pcie/aer.c aer_print_error, aer_error_severity_string ("Correctable" was
    "Corrected" before 6.0); drivers/pci/pcie/dpc.c dpc_process_error, often the only line; drivers/iommu/amd/iommu.c
    amd_iommu_report_page_fault; drivers/iommu/intel/dmar.c dmar_fault_do_one, which names no domain (mostly 0000);
    drivers/scsi/scsi_logging.c scsi_format_sense_hdr, scsi_format_extd_sense; drivers/edac/mce_amd.c decode_error_status;
    arch/x86/kernel/dumpstack.c show_ip (before 4.10 process_64.c __show_regs, with the address twice). All are
    rate-limited.

    Firmware that handles errors first hands records of sections to the kernel (drivers/acpi/apei/ghes.c
    __ghes_print_estatus, drivers/firmware/efi/cper.c cper_estatus_print_section; two in five seconds). A section of PCI
    Express counts as an error of its link; uncorrected also as one of hardware. "info", and what was kept of the time
    before this boot, is left out. What is there counts also where the beginning of the log is gone: then ``buses_whole`` is
    absent."""
    lines, whole = log_lines(reply.text, _BUSES_LINES)
    if whole:
        yield Fact(HOST, "buses_whole", Known(True, (WHOLE,)))
    found = [*_sections(lines), *_sense_errors(lines)]
    for each in lines:
        if each.kind in ("pcie_corrected", "pcie_uncorrected", "dma_faults"):
            at = each.part.replace("0x", "")
            found.append((each.kind, at if at.count(":") > 1 else f"0000:{at}", each.text))
        elif each.kind == "processor":
            severity = each.text.rpartition(": ")[2].partition(" error")[0].lower().removeprefix("system ")
            found.append(("hardware_errors", f"memory or processor, {severity.partition(',')[0]}", each.text))
        elif each.kind == "zfs_faults_beside":
            found.append((each.kind, each.part, each.text))
    for kind in (*KINDS, *ALONE):
        named = [((what,), text) for fact, what, text in found if fact == kind]
        if named or whole or kind not in ALONE:  # no derivation looks at buses_whole for these
            yield tally_fact(kind, named)


def _sections(lines: Sequence[Line]) -> Iterator[tuple[str, str, str]]:
    """(fact, what, line) of each section of a record of the firmware. Lines of other records, or a user's, may stand between: a
    section counts with the worst severity that its record has named before it."""
    severities: dict[str, list[str]] = {}
    links: set[str] = set()  # records with a section of PCI Express
    for each in lines:
        if each.kind != "record" or not (part := _PART.search(each.text)):
            continue
        what, value, record = part[1], part[2], each.part
        severity = max(severities.get(record, [INFO]), key=SEVERITIES.index)
        if what == "device_id" and record in links and severity != INFO:
            link = "pcie_corrected" if severity == CORRECTED else "pcie_uncorrected"
            yield link, value, f"PCIe error, {severity}, {each.text.strip()}"
        elif what == "section_type":
            if value == PCIE:
                links.add(record)
            if severity != INFO and (value != PCIE or severity != CORRECTED):
                yield "hardware_errors", f"{value}, {severity}", each.text
        elif what != "device_id":
            severities.setdefault(record, []).append(value)


def _sense_errors(lines: Sequence[Line]) -> Iterator[tuple[str, str, str]]:
    """(fact, drive, line) of each command; what the drive adds stands on its next line."""
    for at, each in enumerate(lines):
        if each.kind in ("scsi_medium_errors", "scsi_hardware_errors"):
            after = next((line for line in lines[at + 1 : at + 9] if line.part == each.part), None)
            more = _BEFORE_SENSE.sub("", after.text) if after and after.kind == "sense" else ""
            yield each.kind, each.part, f"{each.text.strip()} {more}"
