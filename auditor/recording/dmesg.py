"""How older recordings asked for the kernel's log: each question ran dmesg with other options. Now /dev/kmsg is read.

Whether dmesg read /dev/kmsg or syslog(2) is not in the recording. Among the lines of syslog(2) a user's look like the kernel's.
So a line of dmesg may add a finding and takes none away. Nothing is ever added here.
"""

from __future__ import annotations

from collections.abc import Mapping

from auditor.host import kmsg
from auditor.host.request import Capture

_LEVELS = "emerg,alert,crit,err,warn,notice,info"
# command -> the question of now
ASKED: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("dmesg", "--kernel"): (kmsg.NAME, "disks"),
    ("dmesg", "--facility=kern"): (kmsg.NAME, "hangs"),
    ("dmesg", "--facility=kern", f"--level={_LEVELS}"): (kmsg.NAME, "faults"),
    ("dmesg", "--facility=kern", f"--level={_LEVELS},debug"): (kmsg.NAME, "traces"),
    ("dmesg", "--facility=kern", "--level=debug,info,notice,warn,err,crit,alert,emerg"): (kmsg.NAME, "buses"),
}
FIRST = b"dmesg\n"  # the line before such an answer, where a live one says which records it holds


def answers(commands: Mapping[tuple[str, ...], Capture]) -> dict[tuple[str, ...], Capture]:
    """What a recording holds, with what dmesg said as the answer to today's question, where that was not asked itself."""
    found = {ASKED[argv]: _answer(each) for argv, each in commands.items() if argv in ASKED}
    return {**found, **commands}


def _answer(said: Capture) -> Capture:
    if said.fault == "not installed":
        return said._replace(fault="dmesg was not installed")
    return said._replace(stdout=FIRST + said.stdout) if said.exit == 0 else said
