"""A baseline: what is accepted on a host, and does not count until it becomes worse. For runs of every night.

An entry is a rule on an element that stays the same over restarts (:mod:`auditor.judge.verdict`). What is inherited is
known where it is set: a new dataset below it is no news, a second drive with errors is. A known failure is worse when a
cell of the event table that hangs on it is worse than at its acceptance; without elements, when it is more severe.
While it is not visible it counts as unknown. What was looked at and is missing is gone, and new if it comes back; a
stopped server is not gone.

What is unknown is accepted where it will be so tomorrow, and counts as soon as it fails or an answer is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Literal, NamedTuple, cast

from auditor import Stop, codec, data
from auditor.durability.host import QUESTIONS
from auditor.facts import HOST, Facts, Kind, Reason, Subject
from auditor.judge.event import EVENTS, MEANS, TAKEN
from auditor.judge.finding import RANK
from auditor.judge.rule import Rule, Severity
from auditor.judge.verdict import MEMBERS, NEW_NAME, Carries, Identities, Verdict, Verdicts
from auditor.text import crowded, harmless

Key = tuple[str, Kind, str]
Outcome = Literal["fail", "unknown"]
ANSWERS = ("no loss", "relies", "unknown", "lost")  # of a cell, from best to worst


class Entry(NamedTuple):
    """One rule on one element. subject: its last name. identity: empty in a file of zaudit 0.2, which knew names alone.
    cells: that hung on it at its acceptance, or None where not noted. number: how many subjects share the identity.
    first, last: days (UTC)."""

    rule: str
    subject: Subject
    identity: str
    outcome: Outcome
    severity: Severity
    cells: tuple[Carries, ...] | None
    number: int
    first: str
    last: str

    @property
    def key(self) -> Key:
        return self.rule, self.subject.kind, self.identity or f"name {self.subject}"

    @property
    def called(self) -> tuple[str, ...]:
        """What a reader may call its subject: a server also as reports do, without its datasets."""
        return str(self.subject), self.subject.name, self.identity, self.identity.partition(" on ")[0]


class Baseline(NamedTuple):
    """Of one host, and of the targets that were named (none: all pools). pools: those that were audited. made: the day."""

    host: str
    targets: tuple[str, ...]
    pools: tuple[str, ...]
    made: str
    entries: Mapping[Key, Entry]

    @property
    def newest(self) -> str:
        return max((self.made, *(each.last for each in self.entries.values())))


class Night(NamedTuple):
    """What a run says of a baseline. worse: of those seen (entry, why it counts). unseen: failures that were not
    visible. kept: whose rule or server did not run. nameless: of an older file, without an identity."""

    baseline: Baseline
    seen: tuple[Entry, ...]
    worse: tuple[tuple[Entry, str], ...]
    unseen: tuple[Entry, ...]
    gone: tuple[Entry, ...]
    kept: tuple[Entry, ...]
    nameless: tuple[Entry, ...]


def apply(
    baseline: Baseline, facts: Facts, verdicts: Iterable[Verdict], rules: Sequence[Rule]
) -> tuple[Verdicts, Night]:
    """The verdicts, of which those that are known say since when; and one more for each known failure that was out of sight."""
    names = Identities(facts)
    baseline, nameless = _named(baseline, facts, names)
    by_id, pools, known = {rule.id: rule for rule in rules}, pools_of(facts), baseline.entries
    tonight = _tonight(verdicts, names)
    open_ = {verdict.rule.id for found in tonight.values() for verdict in found if verdict.unwaived == "unknown"}
    concerned = {rule for rule, _, _ in known}
    decided = {
        key_of(verdict, names)
        for verdict in verdicts
        if verdict.rule.id in concerned and verdict.unwaived in ("pass", "not applicable")
    }
    worse: dict[Key, str] = {}

    def judged(verdict: Verdict) -> Verdict:
        if verdict.outcome in ("fail", "unknown") and (entry := known.get(key := key_of(verdict, names))):
            if not (why := _worse(entry, verdict, _count(tonight[key]))):
                verdict = verdict._replace(known=entry.first)
            elif verdict.outcome == "fail":
                worse.setdefault(key, why)
        return verdict

    known_since = Verdicts.of(verdicts).changed(judged)
    night: dict[str, list[Entry]] = {"seen": [], "unseen": [], "gone": [], "kept": []}
    for entry in known.values():
        night[_fate(entry, by_id, tonight, decided, open_, baseline.pools, pools)].append(entry)
    more = [_out_of_sight(entry, by_id[entry.rule]) for entry in night["unseen"] if entry.rule not in open_]
    seen, unseen, gone, kept = map(tuple, night.values())
    return known_since + more, Night(
        baseline, seen, tuple((known[key], why) for key, why in worse.items()), unseen, gone, kept, nameless
    )


def _named(baseline: Baseline, facts: Facts, names: Identities) -> tuple[Baseline, tuple[Entry, ...]]:
    """With identities for names of an older file that last; and the entries whose name does not: it may be another sda."""
    kept, lost = dict[Key, Entry](), list[Entry]()
    for entry in baseline.entries.values():
        if not entry.identity:
            pool = _pool(entry.subject)
            text = names.of(entry.subject).text
            alone = entry.subject.kind == "vdev" and not MEMBERS.fullmatch(entry.subject.name)
            if entry.subject.kind in ("disk", "leaf", "database") or alone or not text:
                lost.append(entry)
                continue
            if not pool or facts.of(Subject("pool", pool)):
                entry = entry._replace(identity=text)
        kept[entry.key] = entry
    return baseline._replace(entries=kept), tuple(lost)


def _fate(
    entry: Entry,
    rules: Mapping[str, Rule],
    tonight: Mapping[Key, Sequence[Verdict]],
    decided: set[Key],
    open_: set[str],
    before: Sequence[str],
    pools: Sequence[str],
) -> Literal["seen", "unseen", "gone", "kept"]:
    """open_: rules that could not be decided of something; before, pools: audited then, and now."""
    if entry.rule not in rules:
        return "kept"
    if found := tonight.get(entry.key):
        return "seen" if found[0].unwaived == "fail" or entry.outcome == "unknown" else "unseen"
    if entry.outcome == "unknown" or entry.key in decided:
        return "gone"
    wanted = [pool] if (pool := _pool(entry.subject)) else before
    if entry.rule in open_ or not set(wanted) <= set(pools):
        return "unseen"
    return "kept" if entry.subject.kind == "database" else "gone"


def _worse(entry: Entry, verdict: Verdict, count: int) -> str:
    """Why it counts although it is known, or empty."""
    if verdict.outcome != entry.outcome:
        return "unknown when it was accepted, fails now" if verdict.outcome == "fail" else "not seen this time"
    if verdict.outcome == "unknown" and (lost := [each for each in verdict.reasons if each.transient]):
        return lost[0].text
    if count > entry.number:
        return f"{count} of them now, {entry.number} when it was accepted"
    if entry.cells is None or not verdict.rule.elements:
        more = RANK[verdict.severity] > RANK[entry.severity]
        return f"{verdict.severity} now, {entry.severity} when it was accepted" if more else ""
    before = {each[:2]: each.answer for each in entry.cells}
    for event, question, answer in verdict.cells:
        was = before.get((event, question), ANSWERS[0])
        if ANSWERS.index(answer) > ANSWERS.index(was):
            return f"{MEANS[event]}: {TAKEN[question]}: {answer} now, {was} when it was accepted"
    return ""


def _out_of_sight(entry: Entry, rule: Rule) -> Verdict:
    why = f"known since {entry.first}, and not seen this time: its pool was not audited"
    return Verdict(rule, entry.subject, "unknown", rule.gravest, reasons=(Reason(why, lost=True),))


def _tonight(verdicts: Iterable[Verdict], names: Identities) -> dict[Key, list[Verdict]]:
    """Of each key what was found, waived or not, the worst first: failures before what is unknown."""
    found: dict[Key, list[Verdict]] = {}
    for verdict in Verdicts.of(verdicts).open():
        if verdict.unwaived in ("fail", "unknown"):
            found.setdefault(key_of(verdict, names), []).append(verdict)
    for each in found.values():
        each.sort(key=lambda verdict: (verdict.unwaived != "fail", -RANK[verdict.severity]))
    return found


def _count(found: Sequence[Verdict]) -> int:
    """How many things there are behind one identity: cheap adapters give all drives one serial number."""
    return len({each.subject for each in found}) if found[0].subject.kind in NEW_NAME else 1


def updated(night: Night, verdicts: Iterable[Verdict], facts: Facts, *, accept: bool = False) -> Baseline:
    """The baseline of tomorrow: what is there was seen today; what is gone is gone, and so is what a retired rule knew;
    what was not seen stays. accept: all that is found and can be known from now on is known as it is now."""
    names, before, now = Identities(facts), night.baseline.entries, day(facts)
    today = max(now, night.baseline.newest)  # a clock that went back forgets nothing
    kept = (each for each in night.kept if each.rule not in data.retired())
    entries = {each.key: each for each in (*kept, *night.unseen)}
    for key, found in _tonight(verdicts, names).items():
        verdict, old = found[0], before.get(key)
        if key in entries:
            continue
        outcome: Outcome = "fail" if verdict.unwaived == "fail" else "unknown"
        if accept and not any(map(refusal, found)) and key[2]:
            first = old.first if old else today
            entries[key] = Entry(
                key[0], _subject(verdict), key[2], outcome, verdict.severity, verdict.cells, _count(found), first, today
            )
        elif old and old.outcome == outcome:
            milder = min(old.severity, verdict.severity, key=RANK.__getitem__)
            entries[key] = old._replace(subject=_subject(verdict), severity=milder, last=today)
        elif old:
            entries[key] = old
    pools = {*pools_of(facts)}
    if any(not _pool(each.subject) for each in night.unseen):  # of a drive nobody knows in which pool it was
        pools |= {*night.baseline.pools}
    return night.baseline._replace(pools=tuple(sorted(pools)), entries=entries)


def refusal(verdict: Verdict) -> Reason | None:
    """Why what is unknown counts tomorrow whatever is accepted today: there may be an answer then."""
    return next((each for each in verdict.reasons if each.transient), None) if verdict.unwaived == "unknown" else None


def nameless(verdicts: Iterable[Verdict], facts: Facts) -> list[Subject]:
    """What fails and cannot be accepted: the host does not tell what it is, so another one could take its place."""
    names = Identities(facts)
    failed = dict.fromkeys(each.subject for each in verdicts if each.outcome == "fail")
    return [each for each in failed if not names.of(each).text]


def empty(facts: Facts, targets: tuple[str, ...]) -> Baseline:
    return Baseline(host(facts), targets, pools_of(facts), day(facts), {})


def key_of(verdict: Verdict, names: Identities) -> Key:
    """What is inherited stands where it is set."""
    subject = _subject(verdict)
    return verdict.rule.id, subject.kind, names.of(subject).text


def _subject(verdict: Verdict) -> Subject:
    inherited = verdict.origin and verdict.unwaived == "fail"
    return Subject("dataset", verdict.origin) if inherited else verdict.subject


def pools_of(facts: Facts) -> tuple[str, ...]:
    return tuple(sorted(pool.name for pool in facts.linked(HOST, "pools")))


def host(facts: Facts) -> str:
    return facts.get(HOST, "hostname").word("unknown")


def day(facts: Facts) -> str:
    """On which the host was looked at (UTC)."""
    return datetime.fromtimestamp(facts.now, UTC).date().isoformat()


def _pool(subject: Subject) -> str:
    """Of a subject, or empty where its name does not say."""
    match subject.kind:
        case "dataset":
            return subject.name.partition("/")[0]
        case "pool":
            return subject.name
        case _:
            return subject.within


# A baseline as JSON, one known finding a line, sorted, so that a repository shows what changed::
#
#     {"schema": "zaudit-baseline/2", "host": "db1", "targets": [], "pools": ["tank"], "made": "2026-11-22", "known": [
#     {"rule": "disk-wear", "kind": "disk", "pool": "", "name": "sda", "identity": "WD-WX32D90J0A1K", "outcome": "fail", ...}
#     ]}
#
# It can silence rules, so whatever is not understood ends zaudit. The first edition, of zaudit 0.2, has no identities and no
# cells.

SCHEMA, FIRST = "zaudit-baseline/2", "zaudit-baseline/1"
LIMIT = 64 << 20  # bytes of a file


class _Row(NamedTuple):
    """An entry as the file has it. cells: EVENT QUESTION ANSWER."""

    rule: str
    kind: Kind
    pool: str
    name: str
    outcome: Outcome
    severity: Severity
    first: str
    last: str
    identity: str | None = None
    cells: tuple[str, ...] | None = None
    count: int = 1  # type: ignore[assignment]  # a method of tuples


class _File(NamedTuple):
    host: str
    targets: tuple[str, ...]
    pools: tuple[str, ...]
    made: str
    known: tuple[_Row, ...]


class BaselineError(Stop):
    """A baseline that cannot be used, or not for this run; the text names the file and what is wrong."""


def parse(data: bytes, path: str) -> Baseline:
    """From its file. Raises BaselineError."""
    try:
        text = data.decode()
        if crowded(text):
            raise ValueError("more values than a baseline has")
        table = json.loads(text)
        schema = table.get("schema") if isinstance(table, dict) else None
        if schema not in (SCHEMA, FIRST):
            raise ValueError(f"its schema is neither {SCHEMA} nor {FIRST}")
        found = codec.load(_File, table, "baseline", codec.Reading(lenient=True))
        entries = [_entry(each, named=schema == FIRST) for each in found.known]
        known = {each.key: each for each in entries}
        return Baseline(found.host, found.targets, found.pools, _day(found.made), known)
    except (ValueError, RecursionError) as error:  # CodecError among them
        raise BaselineError(f"{path}: not a baseline of zaudit: {harmless(str(error)[:200])}") from None


def text(baseline: Baseline) -> str:
    """The file; in ASCII, so that names that are no UTF-8 read back as they were."""
    head = {"schema": SCHEMA, **{name: getattr(baseline, name) for name in ("host", "targets", "pools", "made")}}
    rows = ",\n".join(json.dumps(_row(each)) for _, each in sorted(baseline.entries.items()))
    return f'{json.dumps(head)[:-1]}, "known": [\n{rows}\n]}}\n'


def must_fit(baseline: Baseline, host: str, targets: tuple[str, ...], path: str) -> None:
    """Raises BaselineError for the baseline of another host, or of other targets: nobody looks there for what it knows."""
    renamed = f" (where the host was renamed: zaudit baseline accept --was {baseline.host})"
    for what, its, ours, way in (
        ("another host", baseline.host, host, renamed),
        ("other targets", baseline.targets, targets, ""),
    ):
        if its != ours:
            said = [harmless(each if isinstance(each, str) else " ".join(each) or "all pools") for each in (its, ours)]
            raise BaselineError(f"{path}: this is the baseline of {what}: {said[0]}, not {said[1]}{harmless(way)}")


def _row(each: Entry) -> dict[str, Any]:
    kind, name, within = each.subject
    head = {"rule": each.rule, "kind": kind, "pool": within, "name": name, "identity": each.identity}
    cells = {} if each.cells is None else {"cells": [" ".join(cell) for cell in each.cells]}
    count = {"count": each.number} if each.number != 1 else {}
    return {
        **head,
        "outcome": each.outcome,
        "severity": each.severity,
        **cells,
        **count,
        "first": each.first,
        "last": each.last,
    }


def _entry(row: _Row, *, named: bool) -> Entry:
    """named: as the first edition knows it, by its name alone. Raises ValueError."""
    if row.count < 1:
        raise ValueError("a count is no number of things")
    cells = None if named or row.cells is None else tuple(map(_cell, row.cells))
    identity = "" if named else row.identity
    if identity is None:
        raise ValueError(f"{row.rule}: identity is missing")
    return Entry(
        row.rule,
        Subject(row.kind, row.name, row.pool),
        identity,
        row.outcome,
        row.severity,
        cells,
        row.count,
        _day(row.first),
        _day(row.last),
    )


def _cell(text: str) -> Carries:
    event, question, answer = text.split(" ")
    if event not in EVENTS or question not in QUESTIONS or answer not in ANSWERS[1:]:
        raise ValueError(f"{text!r} is no cell")
    return Carries(cast(Any, event), cast(Any, question), answer)


def _day(text: str) -> str:
    return date.fromisoformat(text).isoformat()
