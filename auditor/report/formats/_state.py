"""What a monitor is told: its four states, the line that stands on its page, and the figures beside it."""

from __future__ import annotations

from auditor.report.formats._told import Finding, Told, brief, worst

OK, WARNING, CRITICAL, UNKNOWN = range(4)
WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
LINE, NAMED, ROWS = 800, 3, 20


def state(told: Told) -> int:
    """The worst of what counts. A grave rule that could not be decided is not hidden by a mild one that failed, and nothing
    that is undecided is OK, nor a host of which so many rules were left out that nobody can tell. What is below the threshold
    of the report (--fail-on) does not count, as for its exit code."""
    grave, mild = (
        {each.outcome for each in told.counting if (each.severity in ("critical", "high")) is wanted}
        for wanted in (True, False)
    )
    for outcomes, failure in ((grave, CRITICAL), (mild, WARNING)):
        if "fail" in outcomes:
            return failure
        if "unknown" in outcomes:
            return UNKNOWN
    return UNKNOWN if told.cannot_tell else OK


def line(told: Told) -> str:
    """The answer, and the worst of what counts; of what does not count how much there is."""
    counting = worst(told.counting)
    named = [_shortly(each) for each in counting[:NAMED]]
    more = [f"and {len(counting) - NAMED} more"] if len(counting) > NAMED else []
    beside = len(told.findings) - len(counting)
    below = [f"{beside} below {told.threshold}"] if beside else []
    waived = [f"{len(told.waived)} waived"] if told.waived else []
    parts = "; ".join([", ".join([*named, *more]), *below, *waived]).strip("; ")
    said = f"{told.headline.lower()}: {parts}" if parts else told.headline.lower()
    return f"ZAUDIT {WORDS[state(told)]} - {brief(plain(said), LINE)}"


def rows(told: Told) -> list[str]:
    """A line for each of the worst."""
    found = worst(told.all)
    shown = [
        plain(f"{each.outcome.upper()} {each.severity} {each.rule} {brief(each.where, 120)}: {each.title}")
        for each in found[:ROWS]
    ]
    return shown + ([f"and {len(found) - ROWS} more"] if len(found) > ROWS else [])


def figures(told: Told) -> dict[str, int]:
    """Failures by severity, what is undecided, what somebody answers for, and how many rules were asked."""
    counts = told.counts
    failures = {severity: counts["fail", severity] for severity in ("critical", "high", "medium", "low")}
    undecided = sum(each.outcome == "unknown" for each in told.findings)
    return {**failures, "undecided": undecided, "waived": len(told.waived), "rules": told.coverage["rules"]}


def plain(text: str) -> str:
    """Without what separates texts from figures, and parts of a perf string."""
    return "".join(" " if char in "|;\\\r\n" else char for char in text)


def _shortly(each: Finding) -> str:
    open_ = "undecided: " if each.outcome == "unknown" else ""
    return f"{open_}{each.rule} ({brief(each.place, 80)}, {each.severity})"
