"""For the textfile collector of node_exporter: one family of metrics for each question that an alert asks.

The file is served until it is written anew, so that the time of the last look is a metric of its own, and what an alert must
look at first. The number of series is bounded: at most FINDINGS findings one by one, the gravest first, and how many there are
beside them. No label has the serial number of a drive. (Format: prometheus.io, exposition formats, 0.0.4; node_exporter
refuses timestamps)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time

from auditor.judge.event import EVENTS
from auditor.report.formats import Format
from auditor.report.report_reader import CELLS, ReportDocument, brief, worst

FINDINGS, WAIVERS, LABEL = 200, 50, 200
Series = Iterable[tuple[Mapping[str, str], float]]
HELP = {
    "last_run_timestamp_seconds": "When the host was looked at, seconds since the epoch.",
    "info": "Who judged by which rules, and the answer to a power cut.",
    "exit_code": "0, or 10 (unknown), 11 (low) to 14 (critical).",
    "rules": "Rules by what came of them; those with a failure are the rest of all.",
    "left_out": "Rules left out or made less severe by choice.",
    "findings": "Findings by outcome and severity; what a baseline knows is a separate outcome.",
    "event_datasets": "Datasets by what an event would cost them.",
    "finding": "One for each finding, the most severe ones.",
    "finding_left_out": "Findings that are counted and not told one by one.",
    "known_bug": "One for each known bug of the release, of all that a finding counts.",
    "waiver_expires_timestamp_seconds": "When the last day of a waiver is over, seconds since the epoch.",
    "last_run_success": "1: a report was made; 0: zaudit ended without one.",
    "last_attempt_timestamp_seconds": "When zaudit ended without a report.",
}


def render(report: ReportDocument) -> str:
    return "".join(_families(report))


def failed(text: str, now: float) -> str:
    """When there is no report: what the last run came to replaces what an older one said."""
    return _success(0) + _family("last_attempt_timestamp_seconds", [({}, now)])


def _families(report: ReportDocument) -> Iterator[str]:
    names = {"version": report.zaudit, "rules": report.rules, "openzfs": report.openzfs, "standing": report.standing}
    words = {each: each for each in ("passed", "undecided", "not_applicable")} | {"all": "rules"}
    rules = [({"outcome": outcome}, report.coverage[key]) for outcome, key in words.items()]
    counts = [({"outcome": outcome, "severity": severity}, n) for (outcome, severity), n in report.counts.items()]
    shown = list(_each(report))
    yield _family("last_run_timestamp_seconds", [({}, report.taken)])
    yield _success(1)
    yield _family("info", [(names, 1)])
    yield _family("exit_code", [({}, report.exit_code)])
    yield _family("rules", rules)
    yield _family("left_out", [({}, len(report.left_out))])
    yield _family("findings", counts)
    yield _family("event_datasets", _events(report))
    yield _family("finding", shown[:FINDINGS])
    yield _family("finding_left_out", [({}, len(shown[FINDINGS:]))])
    yield _family("known_bug", _bugs(report))
    yield _family("waiver_expires_timestamp_seconds", _waivers(report)[:WAIVERS])


def _success(value: int) -> str:
    return _family("last_run_success", [({}, value)])


def _events(report: ReportDocument) -> Series:
    """Every outcome of each event that can happen to this host, zeros too; databases that were not seen are one."""
    counts = Counter[tuple[str, str]]()
    for names, cells in report.events:
        for event, (outcome, _) in cells.items():
            counts[event, outcome] += max(len(names), 1)
    events = [event for event in EVENTS if any(event in cells for _, cells in report.events)]
    return [({"event": event, "outcome": outcome}, counts[event, outcome]) for event in events for outcome in CELLS]


def _each(report: ReportDocument) -> Series:
    seen = set()
    for each in worst(report.all):
        labels = {
            "rule": each.rule,
            "outcome": each.standing,
            "severity": each.severity,
            "harm": each.harm,
            "event": each.event,
            "place": brief(each.place, LABEL),
        }
        if (key := tuple(labels.values())) not in seen:
            seen.add(key)
            yield labels, 1


def _bugs(report: ReportDocument) -> Series:
    """Each by its own name: a bug that joins changes no other series."""
    found = dict.fromkeys((bug, each.standing, severity) for each in report.all for bug, severity in each.bugs)
    return [({"bug": bug, "outcome": outcome, "severity": severity}, 1) for bug, outcome, severity in found][:FINDINGS]


def _waivers(report: ReportDocument) -> list[tuple[dict[str, str], float]]:
    """For each rule and owner the first that runs out, the earliest first."""
    ends: dict[tuple[str, str], float] = {}
    for each in report.waived:
        assert each.waiver
        key = each.rule, brief(each.waiver.owner, LABEL)
        end = datetime.combine(date.fromisoformat(each.waiver.expires), time.max, UTC).timestamp()
        ends[key] = min(ends.get(key, math.inf), end)
    return [
        ({"rule": rule, "owner": owner}, end) for (rule, owner), end in sorted(ends.items(), key=lambda each: each[1])
    ]


def _family(name: str, series: Series) -> str:
    rows = "".join(f"zaudit_{name}{_labels(labels)} {int(value)}\n" for labels, value in series)
    return f"# HELP zaudit_{name} {HELP[name]}\n# TYPE zaudit_{name} gauge\n{rows}" if rows else ""


def _labels(labels: Mapping[str, str]) -> str:
    said = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{said}}}" if said else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


FORMATS = {"prometheus": Format(text=render, failed=failed, mode=0o644)}  # node_exporter has a user of its own
