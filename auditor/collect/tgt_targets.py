"""``tgtadm --op show``: the logical units of tgt, the target in user space, and whether it passes flushes on.

Its backing store "rdwr", the default, answers SYNCHRONIZE CACHE with fdatasync, and syncs each write where write-cache is off.
"aio" skips SYNCHRONIZE CACHE and says that it was done, and writes with O_DIRECT and nothing else: what an initiator was told
is stable waits in the memory of OpenZFS. The others have no path on this host, or pass commands on to a SCSI device.
(tgt usr/bs_rdwr.c bs_rdwr_request; usr/bs_aio.c bs_aio_cmd_submit, bs_aio_open)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, TargetUnit, rows
from auditor.host.request import Output, Run, Skip

PER = "host"
SUBJECT = "host"
FACTS = {"tgt_targets": rows(TargetUnit, "each logical unit of tgt")}
COMMAND = "tgtadm --lld iscsi --mode target --op show"
# no account, initiator or serial number; where a target begins and ends, so that what is cut off does not look whole
KEEP = r"^Target \d+: |^ +LUN: \d+$|^ +Readonly: |^ +Backing store (type|path): |^ +ACL information:$"
PASSED_ON = frozenset({"null", "sg", "sheepdog", "rbd", "glfs"})
HOW = {"rdwr": "keeps", "aio": "drops"}
_LINE = re.compile(
    r"(?P<T>Target) \d+: .*| +(?P<L>LUN): \d+| +Readonly: (?P<R>Yes|No)| +Backing store type: (?P<S>\S+)"
    r"| +Backing store path: (?P<P>.*)| +(?P<E>ACL) information:"
)
_WHOLE = re.compile("(?:T(?:LRSP)+E)*")


def request(host: Subject, facts: Facts) -> Run | Skip:
    """Of the daemon that left its lock file; the tool speaks to that one, as root."""
    match facts.get(HOST, "tgt_daemons"):
        case Known(()):
            return Skip("tgt does not run here", applies=False)
        case Known((_,)):
            return Run(tuple(COMMAND.split()), package="tgt", keep=KEEP)
        case Known():
            return Skip("more than one daemon of tgt runs here")
    return Skip("whether tgt runs here is not known")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """Raises ValueError for what is no whole list of targets."""
    lines = [_LINE.fullmatch(line) for line in reply.text.splitlines()]
    said = [(str(line.lastgroup), line[str(line.lastgroup)]) for line in lines if line]
    if len(said) < len(lines) or not _WHOLE.fullmatch("".join(kind for kind, _ in said)):
        raise ValueError("its logical units are not understood")
    values = ([value for kind, value in said if kind == each] for each in "RSP")
    found = {}
    for readonly, store, path in zip(*values, strict=True):
        if store not in PASSED_ON and path != "None":
            how = "keeps" if readonly == "Yes" else HOW.get(store, "unsure")
            found[TargetUnit(f"tgt-{store}", how, path)] = Evidence(f"tgt: {path}, backing store {store}", COMMAND)
    none = Evidence("tgt has no logical unit on a file or a block device", COMMAND)
    yield Fact(HOST, "tgt_targets", Known(tuple(found), tuple(found.values()) or (none,)))
