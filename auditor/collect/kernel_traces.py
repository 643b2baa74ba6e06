"""/dev/kmsg: programs that the kernel found hanging inside of OpenZFS since the host booted.

The kernel names a task that has waited for too long, and prints below where it waits (Linux kernel/hung_task.c
check_hung_task; kernel/sched/core.c sched_show_task). Only the frames of that trace tell whether it waits for OpenZFS: those
of its modules, or of its functions where it is built into the kernel. A frame with a question mark was found on the stack and
may be left over from an earlier call (Documentation/arch/x86/kernel-stacks.rst): it says neither that nor the contrary.

A question of its own, as ``kernel_hangs`` says why: that one asks for OpenZFS's own threads, whose names suffice. A task that
waits for a volume waits in the block layer, and is not seen here.

Each line is a record, and records of other threads may come between. A frame counts for the last such warning if it was logged
within two seconds of it. So no line between them takes it away; a frame that is not the task's adds a finding. The kernel warns
ten times (kernel.hung_task_warnings), and any user can use that up with a FUSE file system that does not answer: after ten
warnings silence means nothing. The name of a task is its user's choice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf

from auditor.collect._kernel_lines import BOOT, COMMAND, Line, compiled, kept, lines
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, tally, words
from auditor.host import kmsg
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
SOON_S = 2.0  # in which even a slow serial console has printed the innermost frames
WARNINGS = 10  # after which the kernel gives no more
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
    return Run((kmsg.NAME, "traces"), keep=KEEP)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """The tasks that hang; that there is none, where the log is whole and no frame is left over. Raises ValueError for a line
    that was not asked for."""
    found, whole = lines(reply.text, _PATTERNS)
    tasks = [each for each in found if each.kind == "task"]
    traces, unsure = _traces(found)
    if not traces and (not whole or unsure or len(tasks) >= WARNINGS):
        return
    times, last = Counter(task.part for task, _ in traces), {task.part: task.text for task, _ in traces}
    none = Evidence("no task hung in OpenZFS, says the kernel's log, which reaches back to its start", COMMAND)
    told = tuple(Evidence(f"{last[name].strip()} ({often(count)})", COMMAND) for name, count in times.items())
    entries = tuple(f"{name}={count}" for name, count in times.items())
    yield Fact(HOST, "hung_in_zfs", Known(entries, told or (none,)))
    stacks = {" ".join(functions): task.text for task, functions in traces}
    where = tuple(Evidence(f"{text.strip()} in {stack}", COMMAND) for stack, text in stacks.items())
    yield Fact(HOST, "hung_traces", Known(tuple(stacks), where or (none,)))


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
