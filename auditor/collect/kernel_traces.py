"""``dmesg --facility=kern --level=...``: programs that the kernel found hanging inside of OpenZFS since the host booted.

The kernel names a task that has waited for too long, and prints below where it waits (Linux kernel/hung_task.c
check_hung_task; kernel/sched/core.c sched_show_task). Only the frames of that trace tell whether it waits for OpenZFS: those
of its modules, or of its functions where it is built into the kernel. A frame with a question mark was found on the stack and
may be left over from an earlier call (Documentation/arch/x86/kernel-stacks.rst): it says neither that nor the contrary.

A question of its own, as ``kernel_hangs`` says why: that one asks for OpenZFS's own threads, whose names suffice. A task that
waits for a volume waits in the block layer, and is not seen here; nor are names of threads trusted, which anybody may choose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from auditor.collect._kernel_lines import BOOT, compiled, kept, lines
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, tally, words
from auditor.host.request import Output, Run
from auditor.text import often

PER = "host"
SUBJECT = "host"
FACTS = {
    "hung_in_zfs": tally(
        "PROGRAM=TIMES of each task that the kernel found hanging in a function of OpenZFS since it booted"
    ),
    "hung_traces": words(
        "FUNCTION FUNCTION... of each such trace: those of OpenZFS that are surely in it, innermost first,"
        " without .part.N and the like"
    ),
}
LEVELS = "--level=emerg,alert,crit,err,warn,notice,info,debug"
COMMAND = f"dmesg --facility=kern {LEVELS}"
_ADDRESS = r"(?:\[<[0-9a-f]+>\] )?"
_PLACE = r"\+0x[0-9a-f]+/0x[0-9a-f]+"
_LINES = {
    "boot": BOOT,
    "task": r"INFO: task ([ -~]{1,40}):\d+ blocked (?:[a-zA-Z/ -]{1,40} )?for more than \d+ seconds\.",
    "trace": r"Call [Tt]race:",
    "frame": (
        rf" *{_ADDRESS}(\? )?(?:[\w.]{{1,120}}{_PLACE} \[(?:zfs|spl)(?: [0-9a-f]+)?\]"
        rf"|(?:dbuf|dmu|txg|zfs|zil|zio|zpl|zvol)_[\w.]{{1,120}}{_PLACE})"
    ),
}
_FUNCTION = re.compile(rf"(?<![\w.])([\w.]{{1,120}}){_PLACE}")
_PATTERNS, KEEP = compiled(_LINES), kept(_LINES)


def request(host: Subject, facts: Facts) -> Run:
    return Run(("dmesg", "--facility=kern", LEVELS), package="util-linux", keep=KEEP)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """What is there; that nothing is, where the log is whole and each trace of a task tells. Raises ValueError for a line that
    was not asked for."""
    found, whole = lines(reply.text, _PATTERNS)
    times, seen, unsure, stacks = Counter[str](), dict[str, str](), False, dict[str, str]()
    task, text, traces, frames, sure = "", "", 0, False, list[str]()
    for each in [*found, None]:
        if each and each.kind == "frame" and traces == 1:
            frames = True
            if not each.part and (function := _FUNCTION.search(each.text)):
                sure.append(function[1].partition(".")[0])
        elif each and each.kind == "trace":
            traces += 1
        elif each is None or each.kind == "task":
            if task and sure:
                times[task] += 1
                seen[task] = text
                stacks[" ".join(sure)] = text
            unsure |= bool(task) and not sure and (not traces or frames)
            task, text = (each.part, each.text) if each else ("", "")
            traces, frames, sure = 0, False, []
    if times or (whole and not unsure):
        none = Evidence("no task hung in OpenZFS, says the kernel's log, which reaches back to its start", COMMAND)
        told = tuple(Evidence(f"{seen[name].strip()} ({often(count)})", COMMAND) for name, count in times.items())
        entries = tuple(f"{name}={count}" for name, count in times.items())
        yield Fact(HOST, "hung_in_zfs", Known(entries, told or (none,)))
        where = tuple(Evidence(f"{text.strip()} in {stack}", COMMAND) for stack, text in stacks.items())
        yield Fact(HOST, "hung_traces", Known(tuple(stacks), where or (none,)))
