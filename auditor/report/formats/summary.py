"""One line a host, for a mail or a list of hosts: ``db1: 1 failed, 2 undecided; sync-disabled tank (critical)``; with a
baseline ``db1: 1 new, 3 known; sync-disabled tank (critical)``. What is undecided for one reason is one cause."""

from __future__ import annotations

from auditor.report.formats._state import shortly
from auditor.report.formats._told import Told, causes, worst

MEDIA = "text/plain; charset=utf-8"
NAMED = 3


def render(told: Told) -> str:
    """The line. What is undecided is named as such; that nothing was found is said with what was not asked."""
    fresh = [each for each in told.findings if not each.known]
    failed = sum(each.outcome == "fail" for each in fresh)
    counted = (
        (failed, "new" if told.nightly else "failed"),
        (len(fresh) - failed, "undecided"),
        (len(told.findings) - len(fresh), "known"),
        (len(told.waived), "waived"),
        (len(told.left_out), "left out"),
    )
    counts = ", ".join(f"{count} {word}" for count, word in counted if count)
    found = causes(worst(fresh))
    named = [shortly(each) for each in found[:NAMED]] + ([f"and {len(found) - NAMED} more"] if found[NAMED:] else [])
    nothing = "nothing new" if told.nightly else "nothing found"
    ahead = told.headline.lower() if told.cannot_tell else "" if fresh else nothing
    said = "; ".join(filter(None, [ahead, counts, ", ".join(named)]))
    return f"{told.host}: {said}   (exit code {told.exit_code})\n"
