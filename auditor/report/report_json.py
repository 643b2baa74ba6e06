"""The report for a program: a versioned schema (``report/schema.json``), stable ids, everything that was judged.

Within a version keys may be added, and readers ignore those that they do not know; older versions are read for ever
(``report/schema-1.json``: :mod:`auditor.report.folding`).
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from auditor.facts import Evidence, Reason, Subject
from auditor.judge.baseline import Night
from auditor.judge.cell import Cell, Word
from auditor.judge.event import Event
from auditor.judge.event_table import Column
from auditor.judge.finding import Finding
from auditor.judge.known_bugs import Bug
from auditor.judge.policy import LeftOut
from auditor.judge.verdict import Verdict
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
    if report.unasked or report.edited:  # else a replay says the same as the host
        whole_document["recording"] = {
            "zaudit": valid_unicode(report.recorder),
            "lacks": list(map(valid_unicode, report.unasked)),
        }
    if report.edited:
        whole_document["recording"]["edited"] = valid_unicode(report.edited)
    if report.night:
        whole_document["baseline"] = _night(report.night)
    if report.identities:
        whole_document["identities"] = [_identity(*each) for each in sorted(report.identities.items())]
    if report.policy:
        whole_document["policy"] = valid_unicode(report.policy)
    if report.brought:
        brought = [{"dataset": valid_unicode(each.dataset), "why": valid_unicode(each.why)} for each in report.brought]
        whole_document["brought"] = brought
    if report.used:
        whole_document["used_by"] = [
            {
                "dataset": valid_unicode(each.dataset),
                "by": list(map(valid_unicode, each.by)),
                "seen": [_evidence(piece, "") for piece in each.seen],
            }
            for each in report.used
        ]
    if report.seen_from:
        whole_document["seen_from"] = report.seen_from
    if passed:
        passes = ((each.rule.id, each) for each in report.verdicts if each.outcome == "pass")
        whole_document["passes"] = folded(({"rule": rule, **_verdict(each)} for rule, each in passes), names)
    return whole_document | {"names": list(names)}


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
    shown: dict[str, Any] = {"outcome": cell.outcome}
    if cell.takes:
        shown["takes"] = list(cell.takes)
    if cell.parties:
        shown["word"] = [_word(each) for each in cell.parties]
    if cell.rules:
        shown["rules"] = list(cell.rules)
    return shown | {"text": event_words.sentence(cell)}


def _night(night: Night) -> dict[str, Any]:
    """What the baseline knew that was not found: out of sight, or gone."""
    lists = {
        what: [
            {"rule": each.rule, "subject": valid_unicode(str(each.subject)), "severity": each.severity, "first": each.first,
             "last": each.last}
            for each in entries
        ]
        for what, entries in (("unseen", night.unseen), ("gone", night.gone))
    }  # fmt: skip
    worse = [
        {"rule": each.rule, "subject": valid_unicode(str(each.subject)), "why": valid_unicode(why)}
        for each, why in night.worse
    ]
    return {
        "made": night.baseline.made,
        "known": len(night.baseline.entries),
        **lists,
        **({"worse": worse} if worse else {}),
    }


def _identity(subject: Subject, text: str) -> dict[str, str]:
    """What a subject is, as a digest: the same on every night, and no serial number for whoever reads the report."""
    digest = hashlib.sha256(f"{subject.kind}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    pool = {"pool": valid_unicode(subject.within)} if subject.within else {}
    return {"kind": subject.kind, **pool, "name": valid_unicode(subject.name), "id": digest}


def _word(word: Word) -> dict[str, Any]:
    shown: dict[str, Any] = {"party": word.party, "names": [valid_unicode(name) for name in word.names]}
    shown |= {"needed": word.needed} if word.needed else {}
    return shown | (
        {"answered": {"owner": valid_unicode(word.owner), "expires": str(word.until)}} if word.owner else {}
    )


def _left_out(each: LeftOut) -> dict[str, str]:
    shown = {"rule": each.rule, "severity": each.severity, "by": valid_unicode(each.by)}
    return shown | ({"counts_as": each.counts_as} if each.counts_as else {})


def _finding(finding: Finding, report: Report, names: Names) -> dict[str, Any]:
    rule = finding.rule
    verdicts = folded((_part(finding, each) for each in finding.verdicts), names)
    known = {"known": {"since": finding.known}} if finding.known else {}
    return {
        "id": finding.id,
        "rule": rule.id,
        "judged_by": f"zaudit {report.zaudit}, rules {report.rules}",
        "outcome": "fail" if finding.failed else "unknown",
        "severity": finding.severity,
        **({"least": finding.least} if finding.failed and finding.least != finding.severity else {}),
        "harm": rule.harm,
        **_event(finding),
        "title": rule.title if finding.failed else unknown_headline(rule.title),
        "place": valid_unicode(finding.place),
        "where": finding_words.where(finding),
        "impact": rule.impact,
        "fix": {
            "commands": list(dict.fromkeys(each["command"] for each in verdicts if "command" in each)),
            "text": finding.fix.text,
            "cost": finding.fix.cost,
            **({"needs": finding.fix.needs} if finding.fix.needs else {}),
        },
        "references": list(rule.references),
        **({"page": rule.page} if rule.page else {}),
        "verdicts": verdicts,
        **({"bugs": [_bug(each) for each in finding.bugs]} if finding.bugs else {}),
        **({"message": valid_unicode(finding.message)} if finding.message else {}),
        **known,
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
        **({"needs": bug.needs} if bug.needs else {}),
        "here": [valid_unicode(each) for each in bug.here],
        "fixed_in": list(bug.fixed_in),
        "until": bug.until,
        "references": list(bug.references),
    }


def _event(finding: Finding) -> dict[str, str]:
    """The mildest event at which something acknowledged goes or may go."""
    return {"event": finding.event} if finding.event else {}


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
    shown: dict[str, Any] = {"kind": subject.kind, "name": (name := valid_unicode(subject.name))}
    if subject.within:
        shown["pool"] = valid_unicode(subject.within)
    if verdict.message:
        shown["message"] = _unnamed(verdict.message, name)
    if verdict.command:
        shown["command"] = valid_unicode(verdict.command).replace(quoted(name), SUBJECT)
    if verdict.evidence:
        shown["evidence"] = [_evidence(each, name) for each in verdict.evidence if each.text]
    if verdict.reasons:
        shown["reasons"] = [_reason(each, name) for each in verdict.reasons[:REASONS_SHOWN]]
        if (more := len(verdict.reasons) - REASONS_SHOWN) > 0:  # a pool of 10,000 datasets may have as many
            shown["reasons"].append({"text": f"and {more} more reasons"})
    return shown


def _unnamed(text: str, name: str) -> str:
    return valid_unicode(text).replace(name, SUBJECT) if name else valid_unicode(text)


def _evidence(evidence: Evidence, name: str) -> dict[str, str]:
    shown = {"text": _unnamed(evidence.text, name)}
    if evidence.command:
        shown["command"] = valid_unicode(evidence.command)
    if evidence.origin:
        shown["origin"] = valid_unicode(evidence.origin)
    return shown


def _reason(reason: Reason, name: str) -> dict[str, str]:
    return {"text": _unnamed(reason.text, name), **({"remedy": reason.remedy} if reason.remedy else {})}
