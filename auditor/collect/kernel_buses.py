"""``dmesg --facility=kern --level=...``: errors of PCI Express links and memory accesses that an IOMMU refused, since the host
booted. A question of its own, as ``kernel_hangs`` says why.

The lines are those of Linux drivers/pci/pcie/aer.c aer_print_error, aer_error_severity_string ("Correctable" was "Corrected"
before 6.0); drivers/iommu/amd/iommu.c amd_iommu_report_page_fault; drivers/iommu/intel/dmar.c dmar_fault_do_one, which names no
domain: 0000 is what hosts have that have one. The kernel says of each device no more than a few of them in a while.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from auditor.collect._kernel_lines import BOOT, compiled, kept, lines
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, flag, tally
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
}
LEVELS = "--level=debug,info,notice,warn,err,crit,alert,emerg"
COMMAND = f"dmesg --facility=kern {LEVELS}"
NONE = Evidence("nothing of the kind in what is left of the kernel's log", COMMAND)
_SHORT = r"[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_DEVICE = rf"[\w-]{{1,40}} ([0-9a-f]{{4,8}}:{_SHORT}): "
_LINES = {
    "boot": BOOT,
    "pcie_corrected": rf"{_DEVICE}(?:AER: )?PCIe Bus Error: severity=Correct(?:ed|able), [ -~]{{1,120}}",
    "pcie_uncorrected": rf"{_DEVICE}(?:AER: )?PCIe Bus Error: severity=Uncorrect(?:ed|able) [ -~]{{1,120}}",
    "dma_faults": (
        rf"(?:{_DEVICE}AMD-Vi: Event logged \[IO_PAGE_FAULT [ -~]{{1,120}}\]"
        rf"|DMAR: \[DMA (?:Read|Write)[ \w]{{0,20}}\] Request device \[({_SHORT})\] (?:PASID \w+ )?fault addr [ -~]{{1,160}})"
    ),
}
_PATTERNS, KEEP = compiled(_LINES), kept(_LINES)


def request(host: Subject, facts: Facts) -> Run:
    return Run(("dmesg", "--facility=kern", LEVELS), package="util-linux", keep=KEEP)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """What is there, also where the beginning of the log is gone, which ``buses_whole`` then says by its absence."""
    told, whole = lines(reply.text, _PATTERNS)
    if whole:
        seen = Evidence("the kernel's log reaches back to its start", f"{COMMAND} | head -1")
        yield Fact(HOST, "buses_whole", Known(True, (seen,)))
    for kind in ("pcie_corrected", "pcie_uncorrected", "dma_faults"):
        named = [(each.part if each.part.count(":") > 1 else f"0000:{each.part}", each.text.strip())
                 for each in told if each.kind == kind]  # fmt: skip
        times, last = Counter(at for at, _ in named), dict(named)
        told_of = tuple(Evidence(f"{last[at]} ({often(count)})", COMMAND) for at, count in times.items())
        yield Fact(HOST, kind, Known(tuple(f"{at}={count}" for at, count in times.items()), told_of or (NONE,)))
