"""The battery behind the volume of a MegaRAID or PERC controller: the controller's, as its tool numbers them.

disk.raid_battery_ok of an HPE controller comes from ssacli itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import values
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, flag, unknown

SUBJECT = "disk"
FACTS = {"raid_battery_ok": flag("the battery, capacitor or flash behind the cache of its RAID controller is good")}
NEEDS = ("host.storcli_batteries", "disk.storcli_controller")
GOOD = ("Optimal", "Optl")


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """All batteries of the controller must be good; having none is not."""
    if isinstance(facts.get(disk, "raid_battery_ok"), Known):
        return
    own, batteries = values(facts, disk, "storcli_controller"), facts.get(HOST, "storcli_batteries")
    if isinstance(own, Unknown) or isinstance(batteries, Unknown):
        return  # why ssacli or storcli does not say is known already
    assert isinstance(batteries.value, tuple)
    number = str(own[0].value)
    states = [state for each in batteries.value for own_, _, state in [str(each).partition("=")] if own_ == number]
    if not states:
        yield Fact(disk, "raid_battery_ok", unknown(f"storcli64 /call show all: does not name controller {number}"))
        return
    good = all(state in GOOD for state in states)
    yield Fact(disk, "raid_battery_ok", Known(good, batteries.evidence + own[0].evidence))
