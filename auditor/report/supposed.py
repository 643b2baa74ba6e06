"""One host before and after a change: the cells of the table that change, the findings that go and come, and the page of
``zaudit check --suppose``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Unpack

from auditor import codec
from auditor.facts import HOST, Facts, Known
from auditor.judge.event import Event, Severity
from auditor.judge.finding import RANK
from auditor.judge.known_bugs import ID as KNOWN_BUGS
from auditor.report import audit_page, phrases, report_json, terminal
from auditor.report.document import Block, Document, Run, Say, Verdict, labelled, section
from auditor.report.model import Report
from auditor.text import valid_unicode

SCHEMA = "zaudit-supposed/2"
OUTCOMES = ("kept", "word", "unknown", "lost")  # the better first
NOTE = "Supposed, not measured: nothing on this host was changed, and this is no baseline."
BUGS = ("bugs_fixed_later", "bugs_not_fixed")

Outcome = Literal["fail", "unknown"]
CellName = tuple[str, Event, str]  # dataset, event; and what goes, or empty: whatever it is


class Side(NamedTuple):
    """The report, and the facts that it was made from."""

    report: Report
    facts: Facts


class Entry(NamedTuple):
    """A finding, or a known bug of the release. rule: as zaudit explain takes it. outcome: unknown: it could not be decided."""

    rule: str
    where: str
    severity: Severity
    text: str
    outcome: Outcome

    @property
    def failed(self) -> bool:
        return self.outcome == "fail"


class Difference(NamedTuple):
    """gone, new: fail no longer, or now; open: became unknown; stays: fail in both. better, worse: cells."""

    gone: tuple[Entry, ...]
    new: tuple[Entry, ...]
    open: tuple[Entry, ...]
    stays: tuple[Entry, ...]
    better: tuple[CellName, ...]
    worse: tuple[CellName, ...]


def ranks(report: Report, *, next_boot: bool = False) -> dict[CellName, int]:
    """How bad each cell is, as OUTCOMES has it, and for each thing that certainly goes; also of events that cannot happen
    here. next_boot: from then on."""
    found: dict[CellName, int] = {}
    for column in report.columns:
        for event, cell in (dict(column.cells) | dict(column.next_boot if next_boot else {})).items():
            rank = OUTCOMES.index(cell.outcome)
            for name in column.names:
                found[name, event, ""] = rank
                if cell.outcome == "lost":
                    found |= {(name, event, take): rank for take in cell.takes}
    return found


def difference(before: Side, after: Side) -> Difference:
    old, new = entries(before), entries(after)
    then, now = ranks(before.report), ranks(after.report)

    def failed(found: Mapping[object, Entry]) -> dict[object, Entry]:
        return {key: each for key, each in found.items() if each.failed}

    was, has = failed(old), failed(new)
    listed = all(isinstance(after.facts.get(HOST, name), Known) for name in BUGS)  # else none is known to be gone
    graver = {key for key in was.keys() & has.keys() if RANK[has[key].severity] > RANK[was[key].severity]}
    cells = {name: (then.get(name, 0), now.get(name, 0)) for name in (*then, *now)}
    return Difference(
        gone=tuple(each for key, each in was.items() if key not in new and (each.rule != KNOWN_BUGS or listed)),
        new=tuple(each for key, each in has.items() if key not in was or key in graver),
        open=tuple(each for key, each in new.items() if not each.failed and (key not in old or old[key].failed)),
        stays=tuple(each for key, each in has.items() if key in was and key not in graver),
        better=tuple(name for name, (first, second) in cells.items() if second < first),
        worse=tuple(name for name, (first, second) in cells.items() if second > first),
    )


def entries(side: Side) -> dict[object, Entry]:
    """Each finding by rule and place, each known bug of the release by itself; of equal ones the worst."""
    found: dict[object, Entry] = {}
    for finding in side.report.findings:
        if finding.rule.id != KNOWN_BUGS:
            key = (finding.rule.id, finding.place)
            text = phrases.statement(finding) if finding.failed else phrases.question(finding)
            outcome: Outcome = "fail" if finding.failed else "unknown"
            entry = Entry(finding.rule.id, phrases.subjects_of(finding), finding.severity, text, outcome)
            found[key] = max(found.get(key, entry), entry, key=lambda each: (each.failed, RANK[each.severity]))
    for verdict in side.report.verdicts:
        if verdict.rule.head and verdict.outcome in ("fail", "unknown"):
            outcome = "fail" if verdict.outcome == "fail" else "unknown"
            found[verdict.rule.id] = Entry(verdict.rule.id, "", verdict.severity, verdict.rule.title, outcome)
        elif verdict.rule.id == KNOWN_BUGS and verdict.outcome == "unknown":
            why = verdict.reasons[0].text if verdict.reasons else verdict.rule.title
            found[verdict.rule.id] = Entry(verdict.rule.id, "", verdict.severity, why, "unknown")
    if any(each.rule.id == KNOWN_BUGS for each in side.report.verdicts):
        release = _release(side)
        for words in (each for name in BUGS for each in side.facts.get(HOST, name).words()):
            bug = words.rpartition(" (")[0]
            found[KNOWN_BUGS, bug] = Entry(KNOWN_BUGS, "", "low", f"OpenZFS {release} {words}", "fail")
    return found


def _release(side: Side) -> str:
    return side.facts.get(HOST, "zfs_version_text").word("of an unknown release")


def page(before: Side, after: Side, supposed: Sequence[str], **screen: Unpack[terminal.Screen]) -> str:
    """For a person: the table before and after, and what it does to the findings."""
    return terminal.write(_page(before, after, supposed), **screen)


def _page(before: Side, after: Side, supposed: Sequence[str]) -> Document:
    report, words = after.report, "; ".join(supposed)
    where = f"{phrases.listed(report.targets)} on {report.hostname}"
    blocks = (
        Verdict(audit_page.TONES.get(report.standing, "open"), f"{report.headline} (if {words})"),
        section(f"Now: {before.report.headline}", audit_page.events(before.report, audit_page.COLUMNS_SHOWN)),
        section(f"Supposed: {report.headline}", audit_page.events(report, audit_page.COLUMNS_SHOWN)),
        section("", _changes(before, after)),
        Say(f"{NOTE} Exit code {report.exit_code}, now {before.report.exit_code}.", "dim"),
    )
    return Document(f"zaudit: supposed, {where}", (f"SUPPOSED: {words}", where, f"OpenZFS {report.release}"), blocks)


def _changes(before: Side, after: Side) -> Iterator[Block]:
    changed = difference(before, after)
    stays = changed.stays
    if _release(before) == _release(after):
        stays = tuple(each for each in stays if each.where)
    lists = (("gone", changed.gone), ("new", changed.new), ("open", changed.open), ("stays", stays))
    sides = {"gone": before}
    yield labelled(
        (Run(word, "strong"), line) for word, found in lists for line in _lines(found, _release(sides.get(word, after)))
    )
    if not (changed.gone or changed.new or changed.open):
        yield Say("No finding goes, and none comes.")


def _lines(found: Sequence[Entry], release: str) -> Iterator[str]:
    """One for each finding, and one for all known bugs of a release: those have no place."""
    bugs = sorted((each for each in found if each.failed and not each.where), key=lambda each: -RANK[each.severity])
    yield from (_line(each) for each in found if each not in bugs)
    if len(bugs) == 1:
        yield _line(bugs[0])
    elif bugs:
        worst = f"; the worst: {bugs[0].text} ({bugs[0].rule})" if bugs[0].rule != KNOWN_BUGS else ""
        yield f"{bugs[0].severity}  {KNOWN_BUGS}  {len(bugs)} known bugs of OpenZFS {release}{worst}"


def _line(entry: Entry) -> str:
    where = f"{entry.where}: " if entry.where and not entry.text.startswith(entry.where) else ""
    return f"{entry.severity}{'' if entry.failed else '?'}  {entry.rule}  {where}{entry.text}"


class CellDocument(NamedTuple):
    """A dataset at an event."""

    dataset: str
    event: Event


class SupposedDocument(NamedTuple):
    """gone, new, open: findings that fail no longer, that fail now, and that can no longer be decided; stays: that fail in
    both. better, worse: cells of the table."""

    supposed: tuple[str, ...]
    gone: tuple[Entry, ...]
    new: tuple[Entry, ...]
    open: tuple[Entry, ...]
    stays: tuple[Entry, ...]
    better: tuple[CellDocument, ...]
    worse: tuple[CellDocument, ...]
    exit_code: int


def document(before: Side, after: Side, supposed: Sequence[str]) -> str:
    """For a program: both reports whole, and what differs. It is no report itself: no command takes it for one."""
    changed = difference(before, after)
    better, worse = (
        tuple(dict.fromkeys(CellDocument(*each[:2]) for each in cells)) for cells in (changed.better, changed.worse)
    )
    same = changed.gone, changed.new, changed.open, changed.stays
    found = SupposedDocument(tuple(supposed), *same, better, worse, exit_code=after.report.exit_code)
    reports = {"now": report_json.document(before.report), "then": report_json.document(after.report)}
    return json.dumps({"schema": SCHEMA, **codec.plain(found, valid_unicode), **reports}, indent=1) + "\n"
