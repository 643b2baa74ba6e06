"""What comes before a fix that alone makes something worse.

The durability model tries each fix as a supposition. Where an answer gets worse, the fix names the other one that comes
first or goes with it. Example: after sync=standard a crash replays the log, which may split pages, so full_page_writes=on
comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from auditor.durability.answers import Rank
from auditor.facts import KINDS, Facts
from auditor.judge import supposition
from auditor.judge.event_table import Answered, EventTable
from auditor.judge.finding import RANK, Finding
from auditor.judge.rule import Template
from auditor.judge.supposition import Change, SuppositionError
from auditor.judge.verdict import Verdict, fill, places, takes_up_files
from auditor.text import harmless

RESTART = "restart"  # of a database
NOT_KNOWN = "(unknown)"
MOST = 24  # tries
CHANGES = 64  # of one try: each may look at all datasets
SUBJECTS = 4_000  # of all tries together: a try on a host with 2,000 datasets takes 65 ms of processor time
TOGETHER = "Together with "
UNSOLVED = "Check that zaudit plan has this step, because alone it makes something worse"

Suppose = Callable[[Sequence[Change]], Facts]


class _Tried(NamedTuple):
    """A finding with what its fix sets, and how much that makes worse alone. ends: answers LOST that it makes better."""

    finding: Finding
    changes: tuple[Change, ...]
    worse: bool
    ends: int


class _Trials:
    """What the model answers before any change, and after some: a limited number of times."""

    def __init__(self, before: Answered, facts: Facts, suppose: Suppose) -> None:
        self.before, self._suppose = before, suppose
        subjects = sum(1 for kind in KINDS for _ in facts.subjects(kind))
        self._left = min(MOST, SUBJECTS // max(subjects, 1))

    def after(self, changes: Iterable[Change]) -> Answered | None:
        """None where the host does not know what is changed, or enough was tried."""
        wanted = in_order(changes)
        if not self._left or len(wanted) > CHANGES:
            return None
        self._left -= 1
        try:
            return EventTable(self._suppose(wanted)).answers()
        except SuppositionError:
            return None


def ordered(found: Sequence[Finding], table: EventTable, facts: Facts, suppose: Suppose) -> list[Finding]:
    """The findings, with what their fixes need by the model. suppose: the facts of the host with changes. The larger the
    host, the fewer fixes are tried."""
    if not any(_counts(each) and each.failed and RANK[each.severity] > RANK["low"] for each in found):
        return list(found)
    trials = _Trials(table.answers(), facts, suppose)
    tried = list(_tried(found, facts, trials))
    needs = {each.finding.id: _needs(each, tried, trials) for each in tried if each.worse and each.finding.failed}
    ends = {each.finding.id: each.ends for each in tried}
    return [_with(each, needs.get(each.id, ""))._replace(ends=ends.get(each.id, 0)) for each in found]


def _counts(finding: Finding) -> bool:
    grave = RANK[finding.severity] > RANK["low"] or finding.rule.elements
    return bool(grave) and any(each.fix.sets for each in finding.verdicts)


def _tried(found: Sequence[Finding], facts: Facts, trials: _Trials) -> Iterator[_Tried]:
    """An unknown finding counts: its setting is there already, or it is then. A large host may have many findings without
    elements. They are tried together, and one by one only if that makes something worse."""
    before = trials.before
    wanted = {each.id: changes for each in found if _counts(each) and (changes := sets(each, facts))}
    others = [each for each in found if each.id in wanted and not each.rule.elements]
    together = trials.after(chain(*(wanted[each.id] for each in others))) if others else {}
    good = {each.id for each in others} if together is not None and not is_worse(before, together) else set()
    for finding in [each for each in found if each.id in wanted.keys() - good]:
        after = trials.after(wanted[finding.id])
        if after is not None:
            ends = sum(rank is Rank.LOST and after.get(key, Rank.SAFE) > rank for key, rank in before.items())
            yield _Tried(finding, wanted[finding.id], is_worse(before, after), ends)


def is_worse(before: Answered, after: Answered) -> bool:
    """Whether an answer is lost or unknown that was better. From the next boot on a loss counts alone: what flushes come to
    then may become unknown by any change."""
    return any(
        rank < before.get(key, Rank.SAFE) and rank <= (Rank.LOST if key.next_boot else Rank.UNKNOWN)
        for key, rank in after.items()
    )


def _needs(one: _Tried, tried: Sequence[_Tried], trials: _Trials) -> str:
    """The other fix as a condition; UNSOLVED where none was found. Empty where the rule says already what comes before."""
    others = [each for each in tried if each.finding.id != one.finding.id]
    alike = [each for each in others if each.finding.rule.id == one.finding.rule.id]
    for group in (*([each] for each in others), alike):
        after = trials.after(chain(one.changes, *(each.changes for each in group))) if group else None
        if after is not None and not is_worse(trials.before, after):
            words = " and ".join(dict.fromkeys(step for each in group for step in _steps(each)))
            first = len(group) == 1 and not group[0].worse
            return f"{'After ' if first else TOGETHER}{words}" if words else ""
    return "" if one.finding.fix.needs else UNSOLVED


def _steps(one: _Tried) -> Iterator[str]:
    """A command, or the settings of a database."""
    commands = [each.command for each in one.finding.verdicts if each.command and each.fix.sets]
    of_database = one.finding.rule.subject == "database"
    yield from map(harmless, () if of_database else commands)
    if of_database or not commands:
        yield from (f"{each.name} = {harmless(each.value)}" for each in one.changes if not each.verb)


def _with(finding: Finding, needs: str) -> Finding:
    """What the model says comes first is more exact than what the rule says of any host."""
    if not needs:
        return finding

    def fixed(verdict: Verdict) -> Verdict:
        others = "" if verdict.fix.needs.startswith("After ") else verdict.fix.needs
        words = f"{needs}, and {others[0].lower()}{others[1:]}" if others else needs
        return verdict._replace(case=verdict.fix._replace(needs=words, condition=None))

    return finding._replace(verdicts=tuple(map(fixed, finding.verdicts)))


# -- what a fix sets ----------------------------------------------------------------------------------------------------


def sets(finding: Finding, facts: Facts) -> tuple[Change, ...]:
    """What its fix sets, of each of its subjects once; nothing where a value is not known, or which subjects there are. A
    database that restarts or reloads its files takes up what else they say."""
    found = list[Change]()
    for verdict in finding.verdicts:
        if verdict.subject.kind != finding.rule.subject:
            return ()
        for template in verdict.fix.sets:
            each = _change(template, verdict, facts)
            if each is None:
                return ()
            found.append(each)
        if found and verdict.subject.kind == "database" and takes_up_files(verdict.fix):
            found.append(supposition.parse(f"{verdict.subject.name} {RESTART}"))
    return in_order(found)


def _change(template: Template, verdict: Verdict, facts: Facts) -> Change | None:
    """With the names put in place of its places: they are not taken apart again."""
    form, subject = supposition.parse(template.source), verdict.subject
    words = fill(template, subject, verdict.origin, facts, shell=False)
    who = places(subject, verdict.origin).get(form.subject.strip("{}"), form.subject)
    value = words.removeprefix(f"{who} {form.name}").removeprefix("=")
    return None if NOT_KNOWN in value else Change(words, who, form.name, value, form.verb)


def in_order(changes: Iterable[Change]) -> tuple[Change, ...]:
    """What restarts a database comes last, and once."""
    return tuple(sorted(dict.fromkeys(changes), key=lambda each: each.name == RESTART))
