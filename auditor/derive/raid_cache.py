"""Whether the cache of the RAID controller behind a volume survives a power cut, as the controller's own tool says.

ssacli says it of the volume's controller itself, storcli and perccli of the controller by its number.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, join, unknown

SUBJECT = "disk"
FACTS = {
    "raid_cache_protected": flag("the battery, capacitor or flash behind the cache of its RAID controller is good")
}
NEEDS = ("disk.raid_battery_ok", "disk.storcli_controller", "host.storcli_batteries")
GOOD = ("Optimal", "Optl")


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """The tool that knows the volume decides."""
    ssacli, storcli = facts.get(disk, "raid_battery_ok"), _storcli(disk, facts)
    answers = [each for each in (ssacli, storcli) if isinstance(each, Known)]
    missing = [each for each in (ssacli, storcli) if isinstance(each, Unknown)]
    yield Fact(disk, "raid_cache_protected", answers[0] if answers else join(missing))


def _storcli(disk: Subject, facts: Facts) -> Judged:
    """All batteries of the controller must be good; having none is not."""
    own, batteries = facts.get(disk, "storcli_controller"), facts.get(HOST, "storcli_batteries")
    if isinstance(own, Unknown):
        return own
    if isinstance(batteries, Unknown):
        return batteries
    assert isinstance(batteries.value, tuple)
    pairs = [str(each).partition("=") for each in batteries.value]
    states = [state for number, _, state in pairs if number == own.value]
    if not states:
        return unknown(f"storcli64 /call show all: does not name controller {own.value}")
    return Known(all(state in GOOD for state in states), batteries.evidence + own.evidence)
