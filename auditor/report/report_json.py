"""The report for a program: a versioned schema (``report/schema.json``), stable ids, everything that was judged.

Within a version keys may be added, and readers ignore those that they do not know; older versions are read for ever
(``report/schema-1.json``: :mod:`auditor.report.folding`).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from auditor.codec import plain
from auditor.facts import Evidence, Reason, Subject
from auditor.judge.baseline import Entry, Night
from auditor.judge.cell import Cell, Tried, Word
from auditor.judge.event import Event
from auditor.judge.event_table import Column
from auditor.judge.finding import Finding
from auditor.judge.known_bugs import Bug
from auditor.judge.policy import LeftOut
from auditor.judge.verdict import Verdict
from auditor.model.write_cache import ENOUGH, bounds
from auditor.report import event_words, finding_words
from auditor.report.folding import SUBJECT, Names, folded
from auditor.report.model import Report
from auditor.text import quoted, unknown_headline, valid_unicode

NAME = "json"
SCHEMA = "zaudit-report/2"
REASONS_SHOWN = 20
FIRST = "zaudit-report/1"  # each subject had a verdict of its own


def render(report: Report, *, passed: bool = False) -> str:
    """JSON text that ends with a newline. passed: with a list of passes and their evidence."""
    return json.dumps(document(report, passed), indent=1, ensure_ascii=True) + "\n"


def document(report: Report, passed: bool = False) -> dict[str, Any]:
    """The report as plain data, after ``schema.json``."""
    covered, names = report.coverage, Names()
    whole_document: dict[str, Any] = {
        "schema": SCHEMA,
        "zaudit": report.zaudit,
        "rules": report.rules,
        "host": valid_unicode(report.hostname),
        "openzfs": valid_unicode(report.release),
        "taken": datetime.fromtimestamp(report.taken, UTC).isoformat(timespec="seconds"),
        "targets": [valid_unicode(target) for target in report.targets],
        "standing": report.standing,
        "headline": report.headline,
        "threshold": report.threshold,
        "exit_code": report.exit_code,
        "next": valid_unicode(report.next_step),
        "coverage": {
            "rules": covered.rules,
            "decided": covered.decided,
            "undecided": covered.undecided,
            "passed": covered.passed,
            "not_applicable": covered.not_applicable,
            "remedies": [{"remedy": remedy, "rules": count} for remedy, count in covered.remedies],
            "thresholds": [
                {"rule": rule, "name": each.name, "value": each.value, "default": each.default, "unit": each.unit}
                for rule, each in covered.thresholds
            ],
        },
        "events": [_column(column, report.events) for column in report.columns],
        "findings": [_finding(finding, report, names) for finding in report.findings],
        "waived": [_waived(finding, report, names) for finding in report.waived],
        "left_out": [_left_out(each) for each in report.left_out],
    }
    recorded = report.unasked or report.edited  # else a replay says the same as the host
    whole_document |= _present(
        recording=recorded
        and {"zaudit": report.recorder, "lacks": list(report.unasked)} | _present(edited=report.edited),
        baseline=report.night and _night(report.night),
        identities=[_identity(*each) for each in sorted(report.identities.items())],
        policy=report.policy,
        brought=[each._asdict() for each in report.brought],
        used_by=[
            {"dataset": each.dataset, "by": list(each.by), "seen": [_evidence(piece, "") for piece in each.seen]}
            for each in report.used
        ],
        seen_from=report.seen_from,
    )
    if passed:
        passes = ((each.rule.id, each) for each in report.verdicts if each.outcome == "pass")
        whole_document["passes"] = folded(({"rule": rule, **_verdict(each)} for rule, each in passes), names)
    return whole_document | {"names": list(names)}


def _present(**members: Any) -> dict[str, Any]:
    """Those that say something, in Unicode that is valid."""
    return {name: plain(value, valid_unicode) for name, value in members.items() if value}


def _column(column: Column, events: tuple[Event, ...]) -> dict[str, Any]:
    """Datasets to which the same happens, and what each event that can happen here would cost them."""
    later = {event: column.next_boot[event] for event in events if event in column.next_boot}
    return {
        "datasets": [valid_unicode(name) for name in column.names],
        "events": {event: _cell(column.cells[event]) for event in events},
        **({"gone": _cell(column.gone)} if column.gone else {}),
        **({"next_boot": {event: _cell(cell) for event, cell in later.items()}} if later else {}),
    }


def _cell(cell: Cell) -> dict[str, Any]:
    said = _present(takes=cell.takes, word=[_word(each) for each in cell.parties], rules=cell.rules)
    return {"outcome": cell.outcome, **said, "text": event_words.sentence(cell)}


def _night(night: Night) -> dict[str, Any]:
    """What the baseline knew that was not found: out of sight, or gone."""

    def shown(each: Entry, *more: str) -> dict[str, str]:
        return {"rule": each.rule, "subject": str(each.subject)} | {name: getattr(each, name) for name in more}

    known = {"made": night.baseline.made, "known": len(night.baseline.entries)}
    for what, entries in (("unseen", night.unseen), ("gone", night.gone)):
        known[what] = [shown(each, "severity", "first", "last") for each in entries]
    return known | _present(worse=[shown(each) | {"why": why} for each, why in night.worse])


def _identity(subject: Subject, text: str) -> dict[str, str]:
    """What a subject is, as a digest: the same on every night, and no serial number for whoever reads the report."""
    import hashlib

    digest = hashlib.sha256(f"{subject.kind}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return {"kind": subject.kind, **_present(pool=subject.within), "name": subject.name, "id": digest}


def _word(word: Word) -> dict[str, Any]:
    answered = word.owner and {"owner": word.owner, "expires": str(word.until)}
    return {
        "party": word.party,
        "names": list(word.names),
        **_present(needed=word.needed, answered=answered, tried=list(map(_tried, word.tried))),
    }


def _tried(found: Tried) -> dict[str, Any]:
    """Below the largest share of such cuts that may lose, where there were enough of them."""
    below = {"below": round(bounds(0, found.held)[1], 4)} if found.held >= ENOUGH else {}
    return {"name": found.name, "held": found.held, **below, "units": found.units, "lost": found.lost}


def _left_out(each: LeftOut) -> dict[str, str]:
    return {
        "rule": each.rule, "severity": each.severity, "by": valid_unicode(each.by), **_present(counts_as=each.counts_as)
    }  # fmt: skip


def _finding(finding: Finding, report: Report, names: Names) -> dict[str, Any]:
    rule = finding.rule
    verdicts = folded((_part(finding, each) for each in finding.verdicts), names)
    return {
        "id": finding.id,
        "rule": rule.id,
        "judged_by": f"zaudit {report.zaudit}, rules {report.rules}",
        "outcome": "fail" if finding.failed else "unknown",
        "severity": finding.severity,
        **_present(least=finding.failed and finding.least != finding.severity and finding.least),
        "harm": rule.harm,
        **_present(event=finding.event),
        "title": rule.title if finding.failed else unknown_headline(rule.title),
        "place": valid_unicode(finding.place),
        "where": finding_words.where(finding),
        "impact": rule.impact,
        "fix": {
            "commands": list(dict.fromkeys(each["command"] for each in verdicts if "command" in each)),
            "text": finding.fix.text,
            "cost": finding.fix.cost,
            **_present(needs=finding.fix.needs),
        },
        "references": list(rule.references),
        **_present(page=rule.page, url=rule.url),
        "verdicts": verdicts,
        **_present(
            bugs=[_bug(each) for each in finding.bugs],
            message=finding.message,
            known=finding.known and {"since": finding.known},
        ),
    }


def _part(finding: Finding, verdict: Verdict) -> dict[str, Any]:
    """Of known bugs each verdict is of another entry."""
    return _verdict(verdict) | ({"rule": verdict.rule.id, "severity": verdict.severity} if finding.bugs else {})


def _bug(bug: Bug) -> dict[str, Any]:
    return {
        "id": bug.id,
        "title": bug.title,
        "severity": bug.severity,
        "harm": bug.harm,
        "outcome": "fail" if bug.fails else "unknown",
        "affected": bug.releases,
        **_present(needs=bug.needs),
        "here": [valid_unicode(each) for each in bug.here],
        "fixed_in": list(bug.fixed_in),
        "until": bug.until,
        "references": list(bug.references),
    }


def _waived(finding: Finding, report: Report, names: Names) -> dict[str, Any]:
    """As any other, and who answers for it until when. was: what the outcome is without the waiver."""
    waiver = finding.waiver
    assert waiver is not None
    shown = _finding(finding, report, names)
    return shown | {
        "outcome": "waived",
        "was": shown["outcome"],
        "waiver": {
            "scope": waiver.scope,
            "name": valid_unicode(waiver.name),
            "owner": valid_unicode(waiver.owner),
            "reason": valid_unicode(waiver.reason),
            "expires": waiver.expires.isoformat(),
        },
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    """With {subject} for its name, so that others may be found to be equal."""
    subject = verdict.subject
    name = valid_unicode(subject.name)
    shown: dict[str, Any] = {"kind": subject.kind, "name": name} | _present(
        pool=subject.within,
        message=_unnamed(verdict.message, name),
        command=valid_unicode(verdict.command).replace(quoted(name), SUBJECT),
        evidence=[_evidence(each, name) for each in verdict.evidence if each.text],
        reasons=[_reason(each, name) for each in verdict.reasons[:REASONS_SHOWN]],
    )
    if (more := len(verdict.reasons) - REASONS_SHOWN) > 0:  # a pool of 10,000 datasets may have as many
        shown["reasons"].append({"text": f"and {more} more reasons"})
    return shown


def _unnamed(text: str, name: str) -> str:
    return valid_unicode(text).replace(name, SUBJECT) if name else valid_unicode(text)


def _evidence(evidence: Evidence, name: str) -> dict[str, str]:
    return {"text": _unnamed(evidence.text, name), **_present(command=evidence.command, origin=evidence.origin)}


def _reason(reason: Reason, name: str) -> dict[str, str]:
    return {"text": _unnamed(reason.text, name), **_present(remedy=reason.remedy)}
