"""/dev/kmsg: what went wrong in OpenZFS itself, and with SCSI drives and their controllers, since the host booted. A separate
question, as ``kernel_hangs`` says why. Its answers also hold the lines of programs that were killed when memory ran out.

The lines are those of OpenZFS module/os/linux/spl/spl-err.c spl_panic, vcmn_err; module/zfs/zil.c zil_replay_error, zil_parse;
Linux arch/x86/kernel/dumpstack.c show_ip; drivers/scsi/scsi_error.c scsi_report_sense;
drivers/scsi/mpt3sas/mpt3sas_scsih.c scsih_abort, mpt3sas_base.c; drivers/scsi/mpi3mr/mpi3mr_os.c;
drivers/scsi/megaraid/megaraid_sas_fusion.c.

Every disk reports its power-on once when it is attached; before it is a disk ("scsi 0:0:1:0") it is not counted. Commands
that a program sends by itself (smartctl) time out sooner than the 30 s of the block layer, and are not counted, either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from auditor.collect._kernel_lines import BOOT, COMMAND, WHOLE, compiled, kept, lines
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, flag, tally, words
from auditor.host import kmsg
from auditor.host.request import Output, Run
from auditor.text import often

PER = "host"
SUBJECT = "host"
FACTS = {
    "faults_whole": flag("the kernel's log, which was looked through for faults, reaches back to its start"),
    "zfs_panics": tally("PLACE=TIMES of each place at which OpenZFS stopped a thread of its own since the host booted"),
    "zfs_stopped_in": words(
        "functions of OpenZFS that stopped a thread so, where the line names one; one evidence each"
    ),
    "zfs_oopses": tally(
        "FUNCTION=TIMES of functions of OpenZFS in which the kernel faulted or was stuck since it booted"
    ),
    "log_replay_errors": tally(
        "DATASET=TIMES of records of the intent log that could not be replayed since the host booted"
    ),
    "controller_faults": tally("CONTROLLER=TIMES of faults and resets of storage controllers since the host booted"),
    "scsi_power_ons": tally(
        "HOST:CHANNEL:TARGET:LUN=TIMES of power-ons and resets that drives reported; one evidence each"
    ),
    "scsi_aborts": tally("HOST:CHANNEL:TARGET:LUN=TIMES of commands and drives that SCSI gave up; one evidence each"),
}
NONE = Evidence("nothing of the kind in what is left of the kernel's log", COMMAND)
_SCSI = r"sd (\d+:\d+:\d+:\d+): "
_LINES = {
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
_PATTERNS, KEEP = compiled(_LINES), kept(_LINES)
_STOPPED_IN = re.compile(r"PANIC at [\w.-]+:\d+:(\w+)\(\)")


def request(host: Subject, facts: Facts) -> Run:
    return Run((kmsg.NAME, "faults"), keep=KEEP)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """What is there; of disks also where the beginning is gone, which ``faults_whole`` then says by its absence."""
    told, whole = lines(reply.text, _PATTERNS)
    if whole:
        yield Fact(HOST, "faults_whole", Known(True, (WHOLE,)))
    found = [(each.kind, each.part or "OpenZFS", each.text.strip()) for each in told]
    stopped = {hit[1]: text for kind, _, text in found if kind == "zfs_panics" and (hit := _STOPPED_IN.search(text))}
    if stopped or whole:
        yield Fact(
            HOST,
            "zfs_stopped_in",
            Known(tuple(stopped), tuple(Evidence(text, COMMAND) for text in stopped.values()) or (NONE,)),
        )
    for fact in FACTS:
        named = [(what, text) for kind, what, text in found if kind == fact]
        times, last = Counter(what for what, _ in named), dict(named)
        if fact not in ("faults_whole", "zfs_stopped_in") and (times or whole or fact.startswith("scsi_")):
            lines_of = tuple(Evidence(f"{last[what]} ({often(count)})", COMMAND) for what, count in times.items())
            entries = tuple(f"{what}={count}" for what, count in times.items())
            yield Fact(HOST, fact, Known(entries, lines_of or (NONE,)))
