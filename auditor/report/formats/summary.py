"""One line a host, for a mail or a list of hosts: ``db1: 1 critical, 2 undecided: sync-disabled tank (critical)``."""

from __future__ import annotations

from auditor.report.formats._told import Told, brief, worst

MEDIA = "text/plain; charset=utf-8"
NAMED, PLACE = 3, 80


def render(told: Told) -> str:
    """The line. What is undecided is named as such; that nothing was found is said with what was not asked."""
    failed = [each for each in told.findings if each.outcome == "fail"]
    undecided = [each for each in told.findings if each.outcome == "unknown"]
    counts = [f"{len(some)} {word}" for some, word in ((failed, "failed"), (undecided, "undecided"), (told.waived, "waived"),
                                                        (told.left_out, "left out")) if some]  # fmt: skip
    named = [
        f"{each.rule} {brief(each.place, PLACE)} ({'' if each.outcome == 'fail' else 'undecided, may be '}{each.severity})"
        for each in worst(told.findings)[:NAMED]
    ]
    more = [f"and {len(told.findings) - NAMED} more"] if len(told.findings) > NAMED else []
    ahead = told.headline.lower() if told.cannot_tell else "" if told.findings else "nothing found"
    said = "; ".join(filter(None, [ahead, ", ".join(counts), ", ".join([*named, *more])]))
    return f"{told.host}: {said}   (exit code {told.exit_code})\n"
