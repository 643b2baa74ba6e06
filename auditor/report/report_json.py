"""The report for a program: a versioned schema (``report/schema.json``), stable ids, everything that was judged.

Within a version keys may be added, and readers ignore those that they do not know; older versions are read for ever
(``report/schema-1.json``: :mod:`auditor.report.report_json`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from auditor.codec import plain
from auditor.facts import Evidence, Subject
from auditor.judge.baseline import Entry, Night
from auditor.judge.event import Cell, Event, Tried, Word
from auditor.judge.event_table import Column
from auditor.judge.finding import Finding
from auditor.judge.known_bugs import Bug
from auditor.judge.verdict import Verdict, identities
from auditor.model.write_cache import ENOUGH, bounds
from auditor.report import phrases
from auditor.report.model import Report
from auditor.text import quoted, unknown_headline, valid_unicode

SCHEMA = "zaudit-report/2"
REASONS_SHOWN = 20
COUNTED = ("rules", "decided", "undecided", "passed", "not_applicable")
FIRST = "zaudit-report/1"  # each subject had a verdict of its own


def render(report: Report, *, passed: bool = False) -> str:
    """JSON text that ends with a newline. passed: with a list of passes and their evidence."""
    return json.dumps(document(report, passed), indent=1, ensure_ascii=True) + "\n"


def document(report: Report, passed: bool = False) -> dict[str, Any]:
    """The report as plain data, after ``schema.json``."""
    covered, names = report.coverage, dict[str, int]()
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
            **{name: getattr(covered, name) for name in COUNTED},
            "remedies": [{"remedy": remedy, "rules": count} for remedy, count in covered.remedies],
            "thresholds": [
                {"rule": rule, "name": each.name, "value": each.value, "default": each.default, "unit": each.unit}
                for rule, each in covered.thresholds
            ],
        },
        "events": [_column(column, report.events) for column in report.columns],
        "findings": [_finding(finding, report, names) for finding in report.findings],
        "waived": [_waived(finding, report, names) for finding in report.waived],
        "left_out": [_present(**each._asdict()) for each in report.left_out],
    }
    recorded = report.unasked or report.edited  # else a replay says the same as the host
    whole_document |= _present(
        recording=recorded
        and {"zaudit": report.recorder, "lacks": list(report.unasked)} | _present(edited=report.edited),
        baseline=report.night and _night(report.night),
        identities=[_identity(*each) for each in sorted(identities(report.facts).items())],
        policy=report.policy,
        brought=[{"dataset": dataset, "why": why} for dataset, why in report.brought.items()],
        used_by=[
            {"dataset": dataset, "by": list(users.words()), "seen": [_evidence(each, "") for each in users.evidence]}
            for dataset, users in report.used.items()
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
        "events": {event: _cell(column.cells[event], event) for event in events},
        **({"gone": _cell(column.gone)} if column.gone else {}),
        **({"next_boot": {event: _cell(cell, event) for event, cell in later.items()}} if later else {}),
    }


def _cell(cell: Cell, *events: Event) -> dict[str, Any]:
    said = _present(takes=cell.takes, word=[_word(each) for each in cell.parties], rules=cell.rules)
    return {"outcome": cell.outcome, **said, "text": phrases.sentence(cell, events)}


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


def _finding(finding: Finding, report: Report, names: dict[str, int]) -> dict[str, Any]:
    rule = finding.rule
    parts = (
        _verdict(each)
        | ({"rule": each.rule.id, "severity": each.severity} if finding.bugs else {})  # each another entry
        for each in finding.verdicts
    )
    verdicts = folded(parts, names)
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
        "where": phrases.subjects_of(finding),
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


def _waived(finding: Finding, report: Report, names: dict[str, int]) -> dict[str, Any]:
    """As any other, and who answers for it until when. was: what the outcome is without the waiver."""
    waiver = finding.waiver
    assert waiver is not None
    shown = _finding(finding, report, names)
    return shown | {
        "outcome": "waived",
        "was": shown["outcome"],
        "waiver": {
            **{name: valid_unicode(getattr(waiver, name)) for name in ("scope", "name", "owner", "reason")},
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
        reasons=[
            {"text": _unnamed(each.text, name), **_present(remedy=each.remedy)}
            for each in verdict.reasons[:REASONS_SHOWN]
        ],
    )
    if (more := len(verdict.reasons) - REASONS_SHOWN) > 0:  # a pool of 10,000 datasets may have as many
        shown["reasons"].append({"text": f"and {more} more reasons"})
    return shown


def _unnamed(text: str, name: str) -> str:
    return valid_unicode(text).replace(name, SUBJECT) if name else valid_unicode(text)


def _evidence(evidence: Evidence, name: str) -> dict[str, str]:
    return {"text": _unnamed(evidence.text, name), **_present(command=evidence.command, origin=evidence.origin)}


# What reads alike is written once. ``names`` of the report has each name; verdicts that differ in nothing but their
# subject are one, whose ``names`` are places in that list, as the kernel writes lists of processors: ``0-3,7``. In
# their texts ``{subject}`` stands for the name, and in a command for the name quoted. :func:`unfolded` also reads the
# first edition, a verdict for each subject.


SUBJECT = "{subject}"
MOST = 4_000_000  # verdicts of a report that is read
ROOM = 512 << 20  # characters of the names that are set into their texts: anybody can want a megabyte a million times
PART = 32  # characters for which a piece of evidence counts
Group = dict[str, Any]


def spelt(places: Iterable[int]) -> str:
    """0-3,7"""
    runs: list[list[int]] = []
    for each in sorted(places):
        if runs and runs[-1][1] == each - 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def places(text: str, count: int) -> Iterator[int]:
    """The other way round; raises ValueError for what is no place among so many."""
    for first, last in runs(text, count):
        yield from range(first, last + 1)


def runs(text: str, count: int) -> Iterator[tuple[int, int]]:
    """The first and last place of each run. Raises ValueError."""
    for run in text.split(","):
        first, dash, last = run.partition("-")
        if not text.isascii() or not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{text[:40]!r} is no list of names")
        end = int(last or first)
        if end >= count or int(first) > end:
            raise ValueError(f"{run[:40]!r} is none of {count} names")
        yield int(first), end


def folded(verdicts: Iterable[Mapping[str, Any]], names: dict[str, int]) -> list[Group]:
    """Equal verdicts as one, in the order of the first of each. names: of the report, each with its place."""
    groups: dict[object, tuple[Mapping[str, Any], list[str]]] = {}
    for each in verdicts:
        key = _frozen({name: value for name, value in each.items() if name != "name"})
        groups.setdefault(key, (each, []))[1].append(each["name"])
    return [_group(first, members, names) for first, members in groups.values()]


def _group(first: Mapping[str, Any], members: Sequence[str], names: dict[str, int]) -> Group:
    rest = {key: value for key, value in first.items() if key not in ("kind", "name")}
    if len(members) == 1:  # nobody need set anything in
        rest = _spell(rest, members[0])
    return {"kind": first["kind"], "names": spelt(names.setdefault(each, len(names)) for each in members), **rest}


def _frozen(value: Any) -> object:
    if isinstance(value, Mapping):
        return tuple((key, _frozen(each)) for key, each in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _spell(verdict: Mapping[str, Any], name: str) -> dict[str, Any]:
    """With the name in place of {subject}."""
    return {key: _set_in(key, value, name, quoted(name)) for key, value in verdict.items()}


def _set_in(key: str, value: Any, name: str, in_shell: str) -> Any:
    match value:
        case str():
            return value.replace(SUBJECT, in_shell if key == "command" else name) if SUBJECT in value else value
        case list():
            return [{part: _set_in(part, text, name, in_shell) for part, text in each.items()} for each in value]
        case _:
            return value


def unfolded(document: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """(finding, a verdict of it) for each subject. Raises what malformed reports raise (changes.refusing)."""
    names = document.get("names", [])
    told, room = 0, Room()
    for finding in (*document["findings"], *document.get("waived", ())):
        for verdict in spread(finding["verdicts"] if "verdicts" in finding else finding["subjects"], names, room):
            if (told := told + 1) > MOST:
                raise ValueError(f"more than {MOST:,} verdicts")
            yield finding, verdict


class Room:
    """How much may still be made of a report by telling apart what it tells once."""

    def __init__(self) -> None:
        self._left = ROOM

    def take(self, size: int) -> None:
        """Raises ValueError where there is not so much."""
        self._left -= size
        if self._left < 0:
            raise ValueError("a verdict of many subjects says more than a report does")


def spread(
    verdicts: Iterable[Mapping[str, Any]], names: Sequence[Any], room: Room | None = None
) -> Iterator[Mapping[str, Any]]:
    """A verdict for each subject, with its name; in the first edition they are so. Raises ValueError."""
    room = room or Room()
    for verdict in verdicts:
        if "names" not in verdict:
            yield verdict
            continue
        rest = {key: value for key, value in verdict.items() if key != "names"}
        parts = sum(len(value) for value in rest.values() if isinstance(value, list))
        marks = sum(map(_marks, rest.values()))
        for place in places(verdict["names"], len(names)):
            name = str(names[place])
            room.take(PART * parts + marks * len(quoted(name) if marks else ""))
            yield {**_spell(rest, name), "name": name}


def _marks(value: Any) -> int:
    match value:
        case str():
            return value.count(SUBJECT)
        case list():
            return sum(text.count(SUBJECT) for each in value for text in each.values() if isinstance(text, str))
        case _:
            return 0
