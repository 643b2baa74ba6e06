r"""For monitors and mails: the state of a host in a line, the figures next to it, and the worst of what was found.

Nagios, Icinga and what else runs their plugins: a line with figures, more lines below it, and one of four exit codes
(nagios-plugins.org, Development Guidelines: plugin output, performance data; old versions of NRPE take 4 KiB). Checkmk: a
local check, one line, in which ``\n`` stands for the ends of lines; it does not look at the exit code (docs.checkmk.com, Local
checks). node-problem-detector: one line of at most 80 characters, and its exit codes: 0 fine, 1 a problem, all else not known
(pkg/custompluginmonitor/types: Status, max_output_length). A summary: one line a host, for a mail or a list of hosts.
"""

from __future__ import annotations

from collections.abc import Sequence

from auditor.report.formats import Format
from auditor.report.report_reader import Finding, ReportDocument, brief, causes, worst

OK, WARNING, CRITICAL, UNKNOWN = range(4)
WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
LINE, NAMED, ROWS = 800, 3, 20


def state(report: ReportDocument) -> int:
    """The worst of what counts. A grave rule that could not be decided is not hidden by a mild one that failed, and nothing
    that is undecided is OK, nor a host of which so many rules were left out that nobody can tell. What is below the threshold
    of the report (--fail-on) does not count, as for its exit code."""
    grave, mild = (
        {each.outcome for each in report.counting if (each.severity in ("critical", "high")) is wanted}
        for wanted in (True, False)
    )
    for outcomes, failure in ((grave, CRITICAL), (mild, WARNING)):
        if "fail" in outcomes:
            return failure
        if "unknown" in outcomes:
            return UNKNOWN
    return UNKNOWN if report.cannot_tell else OK


def line(report: ReportDocument) -> str:
    """The answer, and the worst of what counts; of what does not count how much there is."""
    counting = causes(worst(report.counting))
    named = [shortly(each) for each in counting[:NAMED]]
    more = [f"and {len(counting) - NAMED} more"] if len(counting) > NAMED else []
    known = len(report.known)
    beside = len(report.findings) - len(report.counting) - known
    below = [f"{beside} below {report.threshold}"] if beside else []
    below += [f"{known} known"] if known else []
    waived = [f"{len(report.waived)} waived"] if report.waived else []
    parts = ", ".join([*named, *more, *below, *waived])
    said = f"{report.headline.lower()}: {parts}" if parts else report.headline.lower()
    return f"ZAUDIT {WORDS[state(report)]} - {brief(plain(said), LINE)}"


def rows(report: ReportDocument) -> list[str]:
    """A line for each of the worst."""
    found = worst(report.all)
    shown = [
        plain(f"{each.standing.upper()} {each.severity} {each.rule} {brief(each.where, 120)}: {each.title}")
        for each in found[:ROWS]
    ]
    return shown + ([f"and {len(found) - ROWS} more"] if len(found) > ROWS else [])


def figures(report: ReportDocument) -> dict[str, int]:
    """Failures by severity, what is unknown, what somebody answers for, and how many rules were asked."""
    counts = report.counts
    failures = {severity: counts["fail", severity] for severity in ("critical", "high", "medium", "low")}
    return {
        **failures,
        "undecided": len(report.undecided),
        "known": len(report.known),
        "waived": len(report.waived),
        "rules": report.coverage["rules"],
    }


def plain(text: str) -> str:
    """Without what separates texts from figures, and parts of a perf string."""
    return "".join(" " if char in "|\\\r\n" else char for char in text.replace(";", ","))


def shortly(cause: Sequence[Finding]) -> str:
    """sync-disabled tank (critical); of what is unknown for one reason the most severe, how many more, and why."""
    worst, others = cause[0], len(cause) - 1
    if worst.outcome == "fail":
        return f"{worst.rule} {brief(worst.place, 80)} ({worst.severity})"
    more = f" and {others} more" if others else ""
    why = f": {brief(worst.says[0], 120)}" if others and worst.says else ""
    return f"unknown: {worst.rule} {brief(worst.place, 80)}{more} (may be {worst.severity}){why}"


# -- Nagios ----------------------------------------------------------------------------------------------------------------

NAGIOS_MOST = 3500


def nagios(report: ReportDocument) -> str:
    numbers = " ".join(f"{name}={value};;;0" for name, value in figures(report).items())
    text, length = [f"{line(report)} | {numbers}"], 0
    for row in rows(report):
        if (length := length + len(row.encode()) + 1) > NAGIOS_MOST - len(text[0].encode()):
            break
        text.append(row)
    return "\n".join(text) + "\n"


# -- Checkmk ---------------------------------------------------------------------------------------------------------------

CHECKMK_SERVICE = '"zaudit"'


def checkmk(report: ReportDocument) -> str:
    numbers = "|".join(f"zaudit_{name}={value}" for name, value in figures(report).items())
    text = r"\n".join([line(report), *rows(report)])
    return f"{state(report)} {CHECKMK_SERVICE} {numbers} {text}\n"


# -- node-problem-detector -------------------------------------------------------------------------------------------------

NPD_LINE = 80
FINE, PROBLEM, NOT_KNOWN = range(3)


def npd(report: ReportDocument) -> str:
    """The worst of what counts, and how much more there is."""
    counting = causes(worst(report.counting))
    if not counting:
        return f"{brief(plain(report.headline.lower()), NPD_LINE)}\n"
    more = f" (+{len(counting) - 1})" if counting[1:] else ""
    return f"{brief(plain(shortly(counting[0])), NPD_LINE - len(more))}{more}\n"


def npd_status(report: ReportDocument) -> int:
    return {OK: FINE, UNKNOWN: NOT_KNOWN}.get(state(report), PROBLEM)


# -- a line a host ---------------------------------------------------------------------------------------------------------


def summary(report: ReportDocument) -> str:
    """The line. What is unknown is named as such, also where nothing was found."""
    fresh = [each for each in report.findings if not each.known]
    failed = sum(each.outcome == "fail" for each in fresh)
    counted = (
        (failed, "new" if report.nightly else "failed"),
        (len(fresh) - failed, "unknown"),
        (len(report.findings) - len(fresh), "known"),
        (len(report.waived), "waived"),
        (len(report.left_out), "left out"),
    )
    counts = ", ".join(f"{count} {word}" for count, word in counted if count)
    found = causes(worst(fresh))
    named = [shortly(each) for each in found[:NAMED]] + ([f"and {len(found) - NAMED} more"] if found[NAMED:] else [])
    nothing = "nothing new" if report.nightly else "nothing found"
    ahead = report.headline.lower() if report.cannot_tell else "" if fresh else nothing
    said = "; ".join(filter(None, [ahead, counts, ", ".join(named)]))
    return f"{report.host}: {said}   (exit code {report.exit_code})\n"


FORMATS = {
    "nagios": Format(nagios, failed=lambda why, _: f"ZAUDIT UNKNOWN - {brief(plain(why), LINE)}\n", status=state),
    "checkmk": Format(
        checkmk, failed=lambda why, _: f"{UNKNOWN} {CHECKMK_SERVICE} - ZAUDIT UNKNOWN - {brief(plain(why), LINE)}\n"
    ),
    "npd": Format(npd, failed=lambda why, _: f"{brief(plain(why), NPD_LINE)}\n", status=npd_status),
    "summary": Format(text=summary),
}
