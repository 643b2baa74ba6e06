"""/dev/kmsg: errors of PCI Express links, memory accesses that an IOMMU refused, what the firmware
reports of memory and processors, and what SCSI drives say of the commands that failed, since the host booted. A question of its
own, as ``kernel_hangs`` says why.

The lines are those of Linux drivers/pci/pcie/aer.c aer_print_error, aer_error_severity_string ("Correctable" was "Corrected"
before 6.0); drivers/pci/pcie/dpc.c dpc_process_error: a port that shuts the link below it, which often is all that is said;
drivers/iommu/amd/iommu.c amd_iommu_report_page_fault; drivers/iommu/intel/dmar.c dmar_fault_do_one, which names no domain:
0000 is what hosts have that have one; drivers/scsi/scsi_logging.c scsi_format_sense_hdr, scsi_format_extd_sense;
drivers/edac/mce_amd.c decode_error_status; arch/x86/kernel/dumpstack.c show_ip (before 4.10 process_64.c __show_regs, with the
address twice). The kernel says of each device no more than a few of them in a while.

Firmware that looks at errors first hands them to the kernel as records of sections (drivers/acpi/apei/ghes.c
__ghes_print_estatus, drivers/firmware/efi/cper.c cper_estatus_print_section; two records at most in five seconds). A section of
PCI Express counts as an error of the link that it names; one that was not corrected also as one of hardware, whatever it names.
What firmware says of itself, and what it only tells ("info"), is left out; so is what it kept of the time before this boot.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from auditor.collect._kernel_lines import BOOT, COMMAND, WHOLE, Line, compiled, kept, lines
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, flag, tally
from auditor.host import kmsg
from auditor.host.request import Output, Run
from auditor.text import often

PER = "host"
SUBJECT = "host"
FACTS = {
    "buses_whole": flag("the kernel's log, which was looked through for errors of buses, reaches back to its start"),
    "pcie_corrected": tally(
        "PCI ADDRESS=TIMES of errors of a link that were corrected by sending again; one evidence each"
    ),
    "pcie_uncorrected": tally("PCI ADDRESS=TIMES of errors of a link that were not corrected; one evidence each"),
    "dma_faults": tally("PCI ADDRESS=TIMES of accesses to memory that the IOMMU refused; one evidence each"),
    "hardware_errors": tally(
        "WHAT, SEVERITY=TIMES of errors of memory, processors and others that the firmware or the processor reported"
    ),
    "scsi_medium_errors": tally(
        "HOST:CHANNEL:TARGET:LUN=TIMES of commands that failed for the medium, as the drive said; one evidence each"
    ),
    "scsi_hardware_errors": tally(
        "HOST:CHANNEL:TARGET:LUN=TIMES of commands that failed for the drive's own hardware; one evidence each"
    ),
    "zfs_faults_beside": tally(
        "FUNCTION=TIMES of functions in which the kernel faulted: of modules of OpenZFS beside zfs and spl (until 2.1), and of"
        " all of them as old kernels print it"
    ),
}
NONE = Evidence("nothing of the kind in what is left of the kernel's log", COMMAND)
_SHORT = r"[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_SCSI = r"sd (\d+:\d+:\d+:\d+): \[sd[a-z]{1,4}\] +(?:tag#\d+ +)?"
_RECORD = r"\{(\d{1,10})\}\[Hardware Error\]: +"
_DEVICE = rf"[\w-]{{1,40}} ([0-9a-f]{{4,8}}:{_SHORT}): "
_FUNCTION = r"(\w{1,80})(?:\.\w{1,40}){0,4}\+0x[0-9a-f]+/0x[0-9a-f]+"
_BRACKETS = r"RIP: \d+:\[<[0-9a-f]+>\] {1,4}\[<[0-9a-f]+>\] "
_BESIDE = r"\[(?:zcommon|znvpair|zavl|zunicode|icp|zlua|zzstd)\]"
_LINES = {
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
    "scsi_medium_errors": rf"{_SCSI}Sense Key : Medium Error \[(?:current|deferred)\] ?(?:\[descriptor\])? ?",
    "scsi_hardware_errors": rf"{_SCSI}Sense Key : Hardware Error \[(?:current|deferred)\] ?(?:\[descriptor\])? ?",
    "sense": rf"{_SCSI}(?:Add\. Sense: [ -~]{{1,80}}|(?:<<vendor>>)?ASC=0x[0-9a-f]+ (?:<<vendor>>)?ASCQ=0x[0-9a-f]+ ?)",
    "processor": (
        r"\[Hardware Error\]: (?:System Fatal error|Uncorrected, software (?:restartable|containable) error"
        r"|(?:Deferred|Corrected) error, no action required)\."
    ),
    "zfs_faults_beside": (
        rf"(?:(?:RIP: \d+:|pc : ){_FUNCTION} {_BESIDE}|{_BRACKETS}{_FUNCTION} (?:{_BESIDE}|\[(?:zfs|spl)\]))"
    ),
    "record": (
        rf"{_RECORD}(?:Error \d+, type: (?:recoverable|fatal|corrected|info|unknown)"
        rf"|section_type: (?:(?:general|ARM|IA32/X64) processor|memory|PCIe) error|section_type: CXL Protocol Error"
        rf"|device_id: [0-9a-f]{{4,8}}:{_SHORT})"
    ),
}
ALONE = ("hardware_errors", "zfs_faults_beside")
KINDS = tuple(name for name in FACTS if name not in ("buses_whole", *ALONE))
INFO, CORRECTED, PCIE = "info", "corrected", "PCIe error"
SEVERITIES = (INFO, CORRECTED, "unknown", "recoverable", "fatal")  # the least first
_PART = re.compile(r"\{\d+\}\[Hardware Error\]: +(Error \d+, type|section_type|device_id): (.+)")
_BEFORE_SENSE = re.compile(r"^.*\[sd[a-z]+\] +(?:tag#\d+ +)?")
_PATTERNS, KEEP = compiled(_LINES), kept(_LINES)


def request(host: Subject, facts: Facts) -> Run:
    return Run((kmsg.NAME, "buses"), keep=KEEP)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """What is there, also where the beginning of the log is gone, which ``buses_whole`` then says by its absence."""
    told, whole = lines(reply.text, _PATTERNS)
    if whole:
        yield Fact(HOST, "buses_whole", Known(True, (WHOLE,)))
    found = [*_sections(told), *_sensed(told)]
    for each in told:
        if each.kind in ("pcie_corrected", "pcie_uncorrected", "dma_faults"):
            at = each.part.replace("0x", "")
            found.append((each.kind, at if at.count(":") > 1 else f"0000:{at}", each.text))
        elif each.kind == "processor":
            severity = each.text.rpartition(": ")[2].partition(" error")[0].lower().removeprefix("system ")
            found.append(("hardware_errors", f"memory or processor, {severity.partition(',')[0]}", each.text))
        elif each.kind == "zfs_faults_beside":
            found.append((each.kind, each.part, each.text))
    for kind in (*KINDS, *ALONE):
        named = [(what, text.strip()) for fact, what, text in found if fact == kind]
        times, last = Counter(what for what, _ in named), dict(named)
        if kind in ALONE and not times and not whole:  # no derivation looks at buses_whole for it
            continue
        told_of = tuple(Evidence(f"{last[at]} ({often(count)})", COMMAND) for at, count in times.items())
        yield Fact(HOST, kind, Known(tuple(f"{at}={count}" for at, count in times.items()), told_of or (NONE,)))


def _sections(told: Sequence[Line]) -> Iterator[tuple[str, str, str]]:
    """(fact, what, line) of each section of a record of the firmware. Lines of other records, or a user's, may stand between: a
    section counts with the worst severity that its record has named before it."""
    severities: dict[str, list[str]] = {}
    links: set[str] = set()  # records with a section of PCI Express
    for each in told:
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


def _sensed(told: Sequence[Line]) -> Iterator[tuple[str, str, str]]:
    """(fact, drive, line) of each command; what the drive adds stands on its next line."""
    for at, each in enumerate(told):
        if each.kind in ("scsi_medium_errors", "scsi_hardware_errors"):
            after = next((line for line in told[at + 1 : at + 9] if line.part == each.part), None)
            more = _BEFORE_SENSE.sub("", after.text) if after and after.kind == "sense" else ""
            yield each.kind, each.part, f"{each.text.strip()} {more}"
