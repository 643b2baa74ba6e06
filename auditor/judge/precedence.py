"""What a fix must not come before: alone it may make worse what an event leaves.

Fixes are tried one by one as suppositions, and the durability model answers for each. One that makes an answer worse names
the other fix that comes first, or goes with it, so that nothing gets worse. (sync=standard with full_page_writes off replays
pages that the log has split.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from auditor.durability.answers import Rank
from auditor.facts import Facts
from auditor.judge import supposition
from auditor.judge.event_table import Answered, EventTable
from auditor.judge.finding import RANK, Finding
from auditor.judge.rule import Template
from auditor.judge.supposition import Change, SuppositionError
from auditor.judge.verdict import Verdict, fill, places, takes_up_files
from auditor.text import harmless

RESTART = "restart"  # of a database
NOT_KNOWN = "(unknown)"
MOST = 12  # fixes that are tried, of findings that fail
TOGETHER = "Together with "

Suppose = Callable[[Sequence[Change]], Facts]


class _Tried(NamedTuple):
    """A finding with what its fix sets, and how much that makes worse alone. ends: answers LOST that it makes better."""

    finding: Finding
    changes: tuple[Change, ...]
    worse: bool
    ends: int


def ordered(found: Sequence[Finding], table: EventTable, suppose: Suppose) -> list[Finding]:
    """The findings, with what their fixes need by the model. suppose: the facts of the host with changes."""
    before = table.answers()
    tried = list(_tried(found, before, suppose)) if _worth(found) else []
    needs = {
        each.finding.id: _needs(each, tried, before, suppose) for each in tried if each.worse and each.finding.failed
    }
    ends = {each.finding.id: each.ends for each in tried}
    return [_with(each, needs.get(each.id, ""))._replace(ends=ends.get(each.id, 0)) for each in found]


def _worth(found: Sequence[Finding]) -> bool:
    return any(_counts(each) and each.failed and RANK[each.severity] > RANK["low"] for each in found)


def _counts(finding: Finding) -> bool:
    grave = RANK[finding.severity] > RANK["low"] or finding.rule.elements
    return bool(grave) and any(each.fix.sets for each in finding.verdicts)


def _tried(found: Sequence[Finding], before: Answered, suppose: Suppose) -> Iterator[_Tried]:
    """Of an unknown one the setting is good as well: it is set already, or it is set then."""
    facts = suppose(())
    for finding in [each for each in found if _counts(each)][:MOST]:
        changes = sets(finding, facts)
        after = _answers(changes, suppose) if changes else None
        if after is not None:
            ends = sum(rank is Rank.LOST and after.get(key, Rank.SAFE) > rank for key, rank in before.items())
            yield _Tried(finding, changes, is_worse(before, after), ends)


def _answers(changes: Iterable[Change], suppose: Suppose) -> Answered | None:
    try:
        return EventTable(suppose(in_order(changes))).answers()
    except SuppositionError:
        return None


def is_worse(before: Answered, after: Answered) -> bool:
    """Whether an answer is lost or unknown that was better. From the next boot on a loss counts alone: what flushes come to
    then may become unknown by any change."""
    return any(
        rank < before.get(key, Rank.SAFE) and rank <= (Rank.LOST if key.next_boot else Rank.UNKNOWN)
        for key, rank in after.items()
    )


def _needs(one: _Tried, tried: Sequence[_Tried], before: Answered, suppose: Suppose) -> str:
    """Nothing where no other fix helps, or one without words of its own: what the files of a database must say before it
    restarts, its rule says."""
    others = [each for each in tried if each.finding.id != one.finding.id]
    alike = [each for each in others if each.finding.rule.id == one.finding.rule.id]
    for group in (*([each] for each in others), alike):
        after = _answers(chain(one.changes, *(each.changes for each in group)), suppose) if group else None
        if after is not None and not is_worse(before, after):
            words = " and ".join(dict.fromkeys(step for each in group for step in _steps(each)))
            first = len(group) == 1 and not group[0].worse
            return f"{'After ' if first else TOGETHER}{words}" if words else ""
    return ""


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
    """What its fix sets, of each of its subjects once; nothing where a value is not known. A database that restarts or reloads
    its files takes up what else they say."""
    found = list[Change]()
    for verdict in finding.verdicts:
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
