"""A baseline: what is known of a host and does not count any more, until it becomes graver. For runs of every night.

It is by rule and subject; what is inherited is known at the dataset where it is set, so that a new dataset below it is no
news, while a second drive with errors is. A known failure that nobody could see tonight counts as undecided, and is known again
when it is seen again. What was looked at and is not there any more is gone, and would be new if it came back. What is undecided
is known only where somebody accepted it as that, and counts as soon as it fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from auditor import data
from auditor.facts import HOST, Facts, Known, Reason, Subject
from auditor.judge.finding import RANK
from auditor.judge.rule import Rule, Severity
from auditor.judge.verdict import Verdict

Key = tuple[str, Subject]
Outcome = Literal["fail", "unknown"]


class Entry(NamedTuple):
    """One rule on one subject. first, last: days (UTC) on which it was seen."""

    rule: str
    subject: Subject
    outcome: Outcome
    severity: Severity
    first: str
    last: str

    @property
    def key(self) -> Key:
        return self.rule, self.subject


class Baseline(NamedTuple):
    """Of one host, and of the targets that were named (none: all pools). pools: those that were audited. made: the day."""

    host: str
    targets: tuple[str, ...]
    pools: tuple[str, ...]
    made: str
    entries: Mapping[Key, Entry]


class Night(NamedTuple):
    """What a run says of a baseline. seen: those that are as they were, or milder; unseen: failures that could not be seen this
    time; gone: those that are not any more; kept: whose rule did not run."""

    baseline: Baseline
    seen: tuple[Entry, ...]
    unseen: tuple[Entry, ...]
    gone: tuple[Entry, ...]
    kept: tuple[Entry, ...]


def apply(
    baseline: Baseline, facts: Facts, verdicts: Sequence[Verdict], rules: Sequence[Rule]
) -> tuple[list[Verdict], Night]:
    """The verdicts, of which those that are known say since when; and one more for each known failure that was out of sight."""
    by_id, pools = {rule.id: rule for rule in rules}, pools_of(facts)
    tonight = _tonight(verdicts)
    open_ = {verdict.rule.id for verdict in tonight.values() if _outcome(verdict) == "unknown"}
    concerned = {rule for rule, _ in baseline.entries}
    decided = {
        (verdict.rule.id, verdict.subject)
        for verdict in verdicts
        if verdict.rule.id in concerned and _outcome(verdict) in ("pass", "not applicable")
    }
    judged = []
    for verdict in verdicts:
        if verdict.outcome in ("fail", "unknown") and (entry := baseline.entries.get(key_of(verdict))):
            verdict = verdict._replace(known=entry.first) if _covers(entry, verdict) else verdict
        judged.append(verdict)
    night: dict[str, list[Entry]] = {"seen": [], "unseen": [], "gone": [], "kept": []}
    for entry in baseline.entries.values():
        night[_fate(entry, by_id, tonight, decided, open_, baseline.pools, pools)].append(entry)
    judged += [_out_of_sight(entry, by_id[entry.rule]) for entry in night["unseen"] if entry.rule not in open_]
    return judged, Night(baseline, *map(tuple, night.values()))


def _fate(
    entry: Entry,
    rules: Mapping[str, Rule],
    tonight: Mapping[Key, Verdict],
    decided: set[Key],
    open_: set[str],
    before: Sequence[str],
    pools: Sequence[str],
) -> Literal["seen", "unseen", "gone", "kept"]:
    """open_: rules that could not be decided of something; before, pools: audited then, and now."""
    if entry.rule not in rules:
        return "kept"
    if found := tonight.get(entry.key):
        return "seen" if _outcome(found) == "fail" or entry.outcome == "unknown" else "unseen"
    if entry.outcome == "unknown" or entry.key in decided:
        return "gone"
    wanted = [pool] if (pool := _pool(entry.subject)) else before
    return "unseen" if entry.rule in open_ or not set(wanted) <= set(pools) else "gone"


def _covers(entry: Entry, verdict: Verdict) -> bool:
    """Whether it is no worse than it was. What could not be told and fails is worse; what failed may have become worse."""
    return verdict.outcome == entry.outcome and RANK[verdict.severity] <= RANK[entry.severity]


def _out_of_sight(entry: Entry, rule: Rule) -> Verdict:
    why = f"known since {entry.first}, and not seen this time: its pool was not audited"
    return Verdict(rule, entry.subject, "unknown", rule.gravest, reasons=(Reason(why),))


def _tonight(verdicts: Iterable[Verdict]) -> dict[Key, Verdict]:
    """The worst of each key, waived or not: failures before what is undecided."""
    found: dict[Key, Verdict] = {}
    for verdict in verdicts:
        if _outcome(verdict) in ("fail", "unknown"):
            other = found.setdefault(key_of(verdict), verdict)
            if other is not verdict and _weight(verdict) > _weight(other):
                found[key_of(verdict)] = verdict
    return found


def _weight(verdict: Verdict) -> tuple[bool, int]:
    return _outcome(verdict) == "fail", RANK[verdict.severity]


def _outcome(verdict: Verdict) -> str:
    """Of a waived one: what it was before."""
    return verdict.was or verdict.outcome


def updated(night: Night, verdicts: Iterable[Verdict], facts: Facts, accept: frozenset[str] = frozenset()) -> Baseline:
    """The baseline of tomorrow: what was seen is as grave as it is now, or as it was where it became graver; what is gone is
    gone, and so is what a retired rule knew; what was not seen stays. accept: the outcomes ("fail", "unknown") of which all is
    known from now on as it is now."""
    today, before = day(facts), night.baseline.entries
    kept = (each for each in night.kept if each.rule not in data.retired())
    entries = {each.key: each for each in (*kept, *night.unseen)}
    for key, verdict in _tonight(verdicts).items():
        outcome: Outcome = "fail" if _outcome(verdict) == "fail" else "unknown"
        old = before.get(key)
        if key in entries:
            continue
        if outcome in accept:
            entries[key] = Entry(*key, outcome, verdict.severity, old.first if old else today, today)
        elif old and old.outcome == outcome:
            entries[key] = old._replace(severity=min(old.severity, verdict.severity, key=RANK.__getitem__), last=today)
        elif old:
            entries[key] = old
    return night.baseline._replace(pools=pools_of(facts), entries=entries)


def empty(facts: Facts, targets: tuple[str, ...]) -> Baseline:
    """Of a host of which nothing is known yet."""
    return Baseline(host(facts), targets, pools_of(facts), day(facts), {})


def key_of(verdict: Verdict) -> Key:
    """What is inherited stands where it is set."""
    inherited = verdict.origin and _outcome(verdict) == "fail"
    return verdict.rule.id, Subject("dataset", verdict.origin) if inherited else verdict.subject


def pools_of(facts: Facts) -> tuple[str, ...]:
    """The pools that are audited."""
    return tuple(sorted(pool.name for pool in facts.linked(HOST, "pools")))


def host(facts: Facts) -> str:
    """The name of the host, or "unknown"."""
    found = facts.get(HOST, "hostname")
    return str(found.value) if isinstance(found, Known) else "unknown"


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
