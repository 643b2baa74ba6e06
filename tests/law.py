"""The law of zaudit for one host that is audited twice: where the second audit saw less, it says nothing better.

What failed may become unknown, and what is unknown stays open: in the rules, in how severe they may be, in the exit code, in
the table of events and in the headline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from auditor import audit
from auditor.facts import Facts, Subject
from auditor.judge.event import EVENTS, SEVERITIES, Event, Outcome
from auditor.judge.finding import RANK, exit_code
from auditor.judge.verdict import Verdict
from auditor.recording.recording import Recording, ReplayHost
from auditor.report.model import Report, Standing
from tests import shared

Key = tuple[str, Subject]
OPEN = ("fail", "unknown")
# what each cell and each headline may become: what is lost or unknown is never kept, on whoever's word
CELLS: Mapping[Outcome, frozenset[Outcome]] = {
    "lost": frozenset({"lost", "unknown"}),
    "unknown": frozenset({"lost", "unknown"}),
    "word": frozenset({"lost", "unknown", "word"}),
    "kept": frozenset({"lost", "unknown", "word", "kept"}),
}
BAD: frozenset[Standing] = frozenset({"stalled", "damaged", "lost", "corrupted", "waived", "cannot tell"})
OTHERS: frozenset[Standing] = frozenset({"one failure away", "at risk", "on the word"})
STANDINGS: Mapping[Standing, frozenset[Standing]] = {
    **dict.fromkeys(BAD, BAD),
    "one failure away": BAD | OTHERS,
    # a fault that no event causes: without it the page opens with what an event does, which is as it was
    "at risk": BAD | OTHERS | {"kept"},
    "on the word": BAD | {"on the word"},
    "kept": BAD | OTHERS | {"kept"},
}


@dataclass(frozen=True)
class Audited:
    """A host as it was judged."""

    facts: Facts
    report: Report

    @classmethod
    def of(cls, past: Recording) -> Audited:
        """Raises audit.NothingToAudit."""
        seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
        return cls(seen.facts, audit.judge(seen, shared.audited(), past.targets, "low"))

    @cached_property
    def verdicts(self) -> dict[Key, Verdict]:
        """By rule and subject; of one that is waived as it was before."""
        return {
            (each.rule.id, each.subject): each._replace(outcome=each.was) if each.was else each
            for each in self.report.verdicts
        }

    @cached_property
    def cells(self) -> dict[str, Mapping[Event, Outcome]]:
        """By dataset, and by pool where nobody could list its datasets."""
        return {
            name: {event: column.cells[event].outcome for event in EVENTS}
            for column in self.report.columns
            for name in column.names
        }


def broken(before: Audited, after: Audited) -> Iterator[str]:
    """Each way in which the second says something better, in the same words for all of a kind."""
    for key, change in improved(before.verdicts, after.verdicts):
        yield f"{key[0]} {change}"
    if after.report.standing != "stalled":  # there the pool itself is the worst
        yield from milder(before.verdicts, after.verdicts)
    yield from exit_codes(before.verdicts.values(), after.verdicts.values())
    yield from events(before, after)
    if after.report.standing not in STANDINGS[before.report.standing]:
        yield f"headline {before.report.standing} -> {after.report.standing}"


def improved(before: Mapping[Key, Verdict], after: Mapping[Key, Verdict]) -> Iterator[tuple[Key, str]]:
    """What failed or was unknown and now passes, does not apply, or is gone without a word.

    A subject that is not seen any more is reported where a rule of the same name is unknown that was not, or where the
    reason of one that is unknown names it; and where the rule fails of a subject that has a name with the lost one in it (a
    leaf by its path).
    """
    new = [each for key, each in after.items() if each.outcome == "unknown" and before.get(key) != each]
    renamed = [
        (rule, subject)
        for (rule, subject), each in after.items()
        if each.outcome == "fail" and (rule, subject) not in before
    ]
    for key, was in before.items():
        now = after.get(key)
        if was.outcome not in OPEN or (now and now.outcome in OPEN):
            continue
        if now is not None:
            yield key, f"{was.outcome} -> {now.outcome}"
        elif any(rule == key[0] and key[1].name in subject.name for rule, subject in renamed):
            continue
        elif not any(each.rule.id == key[0] or _names(each, key[1]) for each in new):
            yield key, f"{was.outcome} -> vanished"


def _names(undecided: Verdict, subject: Subject) -> bool:
    return any(subject.name in reason.text for reason in undecided.reasons)


def milder(before: Mapping[Key, Verdict], after: Mapping[Key, Verdict]) -> Iterator[str]:
    """What counts less than it did."""
    for key, was in before.items():
        now = after.get(key)
        if now and was.outcome in OPEN and now.outcome in OPEN and RANK[now.severity] < RANK[was.severity]:
            yield f"{key[0]} {was.severity} -> {now.severity}"


def exit_codes(before: Iterable[Verdict], after: Iterable[Verdict]) -> Iterator[str]:
    """Codes that fell, by what --fail-on says. What a baseline knows, or somebody waives, is in them."""
    was, now = (
        [(each.severity, each.outcome == "fail") for each in side if each.outcome in OPEN] for side in (before, after)
    )
    for least in SEVERITIES:
        if (then := exit_code(was, least)) > (code := exit_code(now, least)):
            yield f"--fail-on {least} {then} -> {code}"


def events(before: Audited, after: Audited) -> Iterator[str]:
    """Cells of the table that became better. A dataset that is not listed any more fares as its pool does; of a pool that does
    not work there is no table, and nobody is calmed."""
    if after.report.standing == "stalled":
        return
    for name, cells in before.cells.items():
        now = after.cells.get(name) or after.cells.get(name.partition("/")[0])
        for event in before.report.events:
            outcome = now[event] if now and event in after.report.events else "kept"
            if outcome not in CELLS[cells[event]]:
                gone = "" if now and event in after.report.events else " (gone)"
                yield f"dataset {event} {cells[event]} -> {outcome}{gone}"
