"""/dev/kmsg: threads of OpenZFS that the kernel found hanging, and machine checks, since it booted.

That there is none counts only where the kernel's first message is still there, as in ``kernel_log``, of which this is another
question: what chooses the lines of that one cannot change without its recordings becoming worthless. Only its name shows that a
thread is one of OpenZFS, and any user can give that name to a program: that adds a finding. The kernel warns ten times at most
of tasks (``kernel_traces``). (Linux kernel/hung_task.c check_hung_task; arch/x86/kernel/cpu/mce/core.c)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from auditor.collect._kernel_lines import BOOT, COMMAND, compiled, kept, lines
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, tally
from auditor.host import kmsg
from auditor.host.request import Output, Run
from auditor.text import often

PER = "host"
SUBJECT = "host"
FACTS = {
    "hung_tasks": tally("THREAD=TIMES of each thread of OpenZFS that the kernel found hanging since it booted"),
    "machine_checks": tally("mce=TIMES of messages of machine checks, errors of memory and processor, since it booted"),
}
_LINES = {
    "boot": BOOT,
    "hung": (
        r"INFO: task (txg_(?:sync|quiesce)|z_[a-z_]{1,20}|zil_[a-z_]{1,20}|zvol[a-z_]{0,20}|dp_[a-z_]{1,20}):\d+"
        r" blocked for more than \d+ seconds\."
    ),
    "check": r"mce: \[Hardware Error\]: .*",
}
_PATTERNS, KEEP = compiled(_LINES), kept(_LINES)


def request(host: Subject, facts: Facts) -> Run:
    return Run((kmsg.NAME, "hangs"), keep=KEEP)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """What is there; that nothing is, where the log is whole. Raises ValueError for a line that was not asked for."""
    found, whole = lines(reply.text, _PATTERNS)
    none = Evidence("nothing of the kind in the kernel's log, which reaches back to its start", COMMAND)
    for fact, kind in (("hung_tasks", "hung"), ("machine_checks", "check")):
        named = [(each.part or "mce", each.text.strip()) for each in found if each.kind == kind]
        times, last = Counter(what for what, _ in named), dict(named)
        if times or whole:
            seen = tuple(Evidence(f"{last[what]} ({often(count)})", COMMAND) for what, count in times.items())
            yield Fact(HOST, fact, Known(tuple(f"{what}={count}" for what, count in times.items()), seen or (none,)))
