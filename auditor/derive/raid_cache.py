"""Whether the caches behind a RAID volume survive a power cut: the controller's, and those of its drives.

ssacli says it of the volume's controller itself, storcli and perccli of the controller by its number. A battery keeps what
the controller holds, not what a drive holds. Linux completes the flush of a volume itself where the firmware of a MegaRAID
controller does not take it (megaraid_sas: fw_sync_cache_support), so that the drives may never be told to empty theirs.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import drives
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    flag,
    join,
    pairs_of,
    unknown,
    word,
)

SUBJECT = "disk"
FACTS = {
    "raid_cache_protected": flag("the battery, capacitor or flash behind the cache of its RAID controller is good"),
    "raid_drive_cache": word("the write caches of the drives behind a RAID volume", "off", "on", "on, protected"),
}
GOOD = ("Optimal", "Optl")


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """Of the battery the tool that knows the volume decides."""
    ssacli, storcli = facts.get(disk, "raid_battery_ok"), _storcli(disk, facts)
    answers = [each for each in (ssacli, storcli) if isinstance(each, Known)]
    missing = [each for each in (ssacli, storcli) if isinstance(each, Unknown)]
    yield Fact(disk, "raid_cache_protected", answers[0] if answers else join(missing))
    yield Fact(disk, "raid_drive_cache", _drive_cache(disk, facts))


def _drive_cache(disk: Subject, facts: Facts) -> Judged:
    """Whatever the policy is, drives that are all known to protect what they acknowledged need none."""
    policy, models = facts.get(disk, "raid_disk_cache"), facts.get(disk, "raid_drive_models")
    if isinstance(policy, Known) and policy.value == "disabled":
        return Known("off", policy.evidence)
    named = models.value if isinstance(models, Known) and isinstance(models.value, tuple) else ()
    behind = [drives.match(str(model)) for model in named]
    if isinstance(models, Known) and behind and all(drive and drive.plp == "plp-full" for drive in behind):
        seen = Evidence("power-loss protection of all drives behind it (drives.toml)")
        return Known("on, protected", (seen, *models.evidence))
    if isinstance(policy, Unknown):
        return policy
    if policy.value == "default":
        return unknown(f"{policy.evidence[0].text}: whether the drives behind {disk} cache writes is not said")
    return Known("on", policy.evidence + (models.evidence if isinstance(models, Known) else ()))


def _storcli(disk: Subject, facts: Facts) -> Judged:
    """All batteries of the controller must be good; having none is not."""
    own, batteries = facts.get(disk, "storcli_controller"), facts.get(HOST, "storcli_batteries")
    if isinstance(own, Unknown):
        return own
    if isinstance(batteries, Unknown):
        return batteries
    states = [state for number, state in pairs_of(batteries) if number == own.value]
    if not states:
        return unknown(f"storcli64 /call show all: does not name controller {own.value}")
    return Known(all(state in GOOD for state in states), batteries.evidence + own.evidence)
