"""What a run shows of each leaf: whether flushes reach its disks. The counters since boot are often too young to tell; a run
that made thousands of syncs is not, and where no setting explains a loss, this is what names the way out (``zpool reopen``).
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Evidence, Fact, Facts, Known, Subject, Unknown
from auditor.text import harmless
from auditor.verify.model import FOREIGN_LOAD, Chain
from auditor.verify.result import Device, Run


def facts_of(run: Run, seen: Chain, pool: Subject, facts: Facts) -> Iterator[Fact]:
    """``leaf.flushes_reach_disk``: False where one disk lost its flushes in this run, True where each was seen to get them and
    the counters since boot left it open, and nobody else was seen to flush it. run: the log run, which the chain followed."""
    foreign = [reason for reason in seen.reasons if reason.startswith(FOREIGN_LOAD)]
    shown = {device.disk: _shown(device, seen) for device in run.devices}
    shared = {disk for disk in shown if any(f"flushes of {harmless(disk)} " in reason for reason in foreign)}
    for name in dict.fromkeys(leaf for device in run.devices for leaf in device.leaves):
        leaf = Subject("leaf", name, pool.name)
        found = [shown.get(disk.name) for disk in facts.linked(leaf, "disks")]
        lost = tuple(piece for each in found if each and each.value is False for piece in each.evidence)
        if lost:
            yield Fact(leaf, "flushes_reach_disk", Known(False, lost))
        elif shared & {disk.name for disk in facts.linked(leaf, "disks")}:
            continue
        elif found and all(found) and isinstance(facts.get(leaf, "flushes_reach_disk"), Unknown):
            got = tuple(piece for each in found if each for piece in each.evidence)
            yield Fact(leaf, "flushes_reach_disk", Known(True, got))


def _shown(device: Device, seen: Chain) -> Known | None:
    """Of one disk, where its link says so by flushes; None where it needs none, was not written to or was not seen."""
    link = next((each for each in seen.links if each.name == harmless(device.disk)), None)
    if link is None or device.flushes is None or not device.writes or device.volatile is False:
        return None
    text = f"{device.disk}: {device.flushes:,} flushes for {device.writes:,} writes while sync writes were followed"
    evidence = (Evidence(text, f"cat /sys/block/{device.disk}/stat   # fields 16 and 5"),)
    if link.status == "contradicts" and device.volatile:
        return Known(False, evidence)
    return Known(True, evidence) if link.status == "accounts" and device.flushes else None
