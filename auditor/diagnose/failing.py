"""Devices that fail, or that do not answer, while commits wait for them. Pure.

A flush that fails is counted as one that completed, and fsync returns after it as after any other (auditor/verify/failures.py
has the places): the kernel's log alone tells. A device that does not answer has I/O outstanding and completes none: field 9 of
/sys/block/X/stat. (Linux Documentation/admin-guide/iostats.rst)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.diagnose.counters import Leg
from auditor.diagnose.model import Cause, Evidence
from auditor.facts import Facts, Known, Subject
from auditor.text import quoted
from auditor.verify.failures import FLUSHES, Failure

LOG = "dmesg --level err,warn"
LONG_S = 5.0  # without a single completion, where I/O is outstanding all the time


def flushes(failed: Sequence[Failure], facts: Facts) -> Iterator[Cause]:
    """Failed flushes of disks of which it is not known that they keep what they acknowledged."""
    for each in failed:
        if each.kind == FLUSHES and not _keeps(each, facts):
            text = f"{each.text}: fsync returned success, and what was written may be lost when the power goes"
            yield Cause(
                "flush-failed", text, (Evidence(each.text, LOG),), _replace(each.disk), "flush-failed-logged", True
            )


def failing(failed: Sequence[Failure], facts: Facts) -> Iterator[Cause]:
    """Everything else that the kernel logged of a disk of the pool."""
    for each in failed:
        if each.kind != FLUSHES or _keeps(each, facts):
            yield Cause(
                "device-fails",
                each.text,
                (Evidence(each.text, LOG),),
                _replace(each.disk),
                "drive-path-faults",
                True,
            )


def hung(legs: Sequence[Leg], seconds: float) -> Iterator[Cause]:
    """Devices that completed nothing although they had something to do all the time."""
    for leg in legs:
        if leg.stuck and seconds >= LONG_S:
            many = "one I/O" if leg.stuck == 1 else f"{leg.stuck} I/Os"
            text = f"{leg.device} completed nothing in {seconds:.0f} s, with {many} outstanding: commits wait for it"
            evidence = (Evidence(f"{leg.device}: {many} in flight", f"cat {quoted(f'/sys/block/{leg.device}/stat')}"),)
            yield Cause("device-hung", text, evidence, _replace(leg.device), "", True)


def _keeps(failure: Failure, facts: Facts) -> bool:
    found = facts.get(Subject("disk", failure.disk), "keeps_acknowledged")
    return isinstance(found, Known) and found.value is True


def _replace(device: str) -> str:
    return f"Look at {device}, its cable, path and controller first (smartctl -x, nvme list); replace what fails."
