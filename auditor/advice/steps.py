"""The steps: what each fix that sets something would do, simulated one after the other.

Such a fix is applied to the facts as a supposition, and all is derived and judged again. First comes damage that is
there, then what gains most at the worst cell of the table. Where no single step gains there, two or three that do
together are one. What makes a cell or finding worse waits for the step that makes that good, or is left out with that
reason. Steps that set nothing (hardware, a restart, a decision) are not simulated and come by severity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import NamedTuple

from auditor import audit
from auditor.audit import Look
from auditor.facts import HOST, Evidence, Facts, Kind, Known, Subject
from auditor.judge import supposition
from auditor.judge.finding import RANK, Finding
from auditor.judge.known_bugs import ID as KNOWN_BUGS
from auditor.judge.precedence import RESTART, in_order, sets
from auditor.judge.supposition import Change, SuppositionError
from auditor.report import phrases
from auditor.report.model import Report
from auditor.report.supposed import OUTCOMES, CellName, Side, difference, ranks
from auditor.text import quoted

TOGETHER = 3  # steps of one block at most
LOSING = ("commits", "corruption")  # harms of rules that can be in series
CANDIDATES = 12  # of which pairs and triples are tried
UNSURE = OUTCOMES.index("unknown")  # from this rank on blocks are looked for
PARAMETERS = "/sys/module/zfs/parameters/"
RAW = re.compile(
    r"[^=]+=(.*?)(?:, supposed)?(?: \((?:local|default|received|temporary)\)|, inherited from .*)?", re.DOTALL
)
_WAITS = "after the steps before it"
LOCAL = ("local", "temporary")
PROGRAMS: Mapping[Kind, str] = {"dataset": "zfs", "pool": "zpool"}
WATCH: Mapping[str, str] = {
    **dict.fromkeys(
        ("sync", "logbias", "direct", "zfs_nocacheflush", "zil_nocacheflush", "write_cache", "zfs_txg_timeout"),
        "latency of commits: zpool iostat -l 5",
    ),
    **dict.fromkeys(("primarycache", "secondarycache"), "hits and size of the ARC: arcstat 5"),
    **dict.fromkeys(("quota", "refquota", "reservation", "refreservation"), "space: zfs list -o space"),
}


class Setting(NamedTuple):
    """read: the command that prints the value, or empty. found: the value before the step, first: before all steps. run,
    undo: commands or sentences; empty of what comes with another change."""

    change: Change
    read: str
    found: str
    wanted: str
    run: str
    undo: str
    first: str = ""


class Step(NamedTuple):
    """settings: none of a step that is not simulated. person: why a person makes it, or empty. better: cells. report:
    after it."""

    findings: tuple[Finding, ...]
    settings: tuple[Setting, ...]
    person: str
    better: tuple[CellName, ...] = ()
    report: Report | None = None

    @property
    def severity(self) -> int:
        return max(RANK[each.severity] for each in self.findings)

    @property
    def commands(self) -> tuple[str, ...]:
        found = (verdict.command for each in self.findings for verdict in each.verdicts if verdict.command)
        return tuple(dict.fromkeys(found))

    @property
    def watch(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(WATCH[each.change.name] for each in self.settings if each.change.name in WATCH))


class Left(NamedTuple):
    finding: Finding
    reason: str


class Plan(NamedTuple):
    """after: the report after all simulated steps. pools: (name, GUID) of those that a script must find."""

    now: Report
    after: Report
    steps: tuple[Step, ...]
    left: tuple[Left, ...]
    pools: tuple[tuple[str, str], ...]


class _Candidate(NamedTuple):
    """Findings that the same changes fix."""

    changes: tuple[Change, ...]
    findings: tuple[Finding, ...]

    @property
    def ready(self) -> bool:
        """Does no fix of it say that something comes before?"""
        return not any(verdict.fix.needs.startswith("After") for each in self.findings for verdict in each.verdicts)

    @property
    def loses(self) -> bool:
        return any(each.rule.harm in LOSING for each in self.findings)

    @property
    def severity(self) -> int:
        return max(RANK[each.severity] for each in self.findings)


class _Gain(NamedTuple):
    """What a candidate comes to. order: the more, the sooner. why_not: why it is no step now, or empty."""

    candidate: _Candidate
    state: Side
    order: tuple[int, ...]
    better: tuple[CellName, ...]
    why_not: str


def make(seen: Look, judge: Callable[[Look], Report]) -> Plan:
    """The plan for what was seen. judge: with the rules and the policy of the user."""
    return _Planner(seen, judge).plan()


class _Planner:
    def __init__(self, seen: Look, judge: Callable[[Look], Report]) -> None:
        self._seen, self._judge = seen, judge
        self._first = self._suppose(seen.facts, ())
        self._flat: set[tuple[Change, ...]] = set()  # what changed no cell is not simulated again before its turn
        self._done: dict[tuple[str, str], str] = {}  # (subject, property) -> value that a step has set

    def plan(self) -> Plan:
        simulated = list(self._simulated())
        after = simulated[-1][1] if simulated else self._first
        fixed = {id for step, _ in simulated for each in step.findings for id in [_key(each)]}
        others = [each for each in _failed(after.report) if _key(each) not in fixed]
        by_hand = [Step((each,), (), why) for each in others if (why := reason(each)) and not sets(each, after.facts)]
        left = [Left(each, self._why_left(each, after)) for each in _failed(after.report) if sets(each, after.facts)]
        facts = self._first.facts
        pools = tuple((pool.name, facts.get(pool, "guid").word()) for pool in facts.linked(HOST, "pools"))
        steps = _ordered([step for step, _ in simulated], by_hand, self._first.report)
        return Plan(self._first.report, after.report, tuple(steps), tuple(left), pools)

    # -- simulation ----------------------------------------------------------------------------------------------------

    def _suppose(self, facts: Facts, changes: Sequence[Change]) -> Side:
        look = audit.suppose(self._seen._replace(facts=facts), changes)
        return Side(self._judge(look), look.facts)

    def _simulated(self) -> Iterator[tuple[Step, Side]]:
        """Each step, and the state after it; a script makes those that no person has to make, in a state of its own."""
        state = alone = self._first
        while chosen := self._next(state):
            changes, findings = chosen.candidate
            before = self._first.facts
            settings = tuple(
                _setting(each, state.facts)._replace(first=_setting(each, before).found) for each in changes
            )
            there = {_key(each): each for each in _failed(alone.report)}  # without the steps that a person makes
            why = _person([there.get(_key(each)) for each in findings], settings)
            if not why:
                after = chosen.state if alone is state else self._suppose(alone.facts, changes)
                why = _WAITS if _worse(alone, after) else ""
                alone = alone if why else after
            self._done |= {(each.subject, each.name): each.value for each in changes}
            state = chosen.state
            yield Step(findings, settings, why, chosen.better, state.report), state

    def _next(self, state: Side) -> _Gain | None:
        candidates = list(_candidates(state, self._done))
        flat = sorted((each for each in candidates if each.changes in self._flat), key=lambda each: -each.severity)
        gains = [gain for each in candidates if each not in flat and (gain := self._gain(state, each))]
        self._flat |= {each.candidate.changes for each in gains if not each.candidate.loses and not any(each.order[:2])}
        good = [each for each in gains if not each.why_not]
        if max(ranks(state.report).values(), default=0) >= UNSURE and not any(each.order[0] > 0 for each in good):
            lose = [each for each in candidates if each.loses][:CANDIDATES]
            for size in range(2, TOGETHER + 1):
                blocks = (self._gain(state, _together(each)) for each in combinations(lose, size))
                if found := [each for each in blocks if each and not each.why_not and each.order[0] > 0]:
                    return max(found, key=lambda each: each.order)
        best = max(good, key=lambda each: each.order, default=None)
        if best and not best.candidate.ready:  # what it waits for may be one of these
            ahead = (each for each in good if each.candidate.ready and each.candidate.loses)
            return max(ahead, key=lambda each: each.order, default=best)
        for one in flat:
            if best and (any(best.order[:2]) or best.order[2] >= one.severity):
                break
            if (gain := self._gain(state, one)) and not gain.why_not:
                return gain
        return best

    def _gain(self, state: Side, candidate: _Candidate) -> _Gain | None:
        """None where the host does not know what it sets."""
        try:
            after = self._suppose(state.facts, candidate.changes)
        except SuppositionError:
            return None
        changed = difference(state, after)
        then, now = ranks(state.report), ranks(after.report)
        worst = max(then.values(), default=0)
        at = [name for name, rank in then.items() if rank == worst]
        both = [sum(ranks(each.report, next_boot=True).values()) for each in (state, after)]
        order = (
            sum(worst - now.get(name, 0) for name in at) if worst else 0,
            sum(then.values()) - sum(now.values()) + both[0] - both[1],
            candidate.severity,
        )
        return _Gain(candidate, after, order, changed.better, _worse(state, after))

    def _why_left(self, finding: Finding, state: Side) -> str:
        changes = sets(finding, state.facts)
        if any(self._done.get((each.subject, each.name), each.value) != each.value for each in changes):
            return "a step before it sets the same to another value"
        if all((each.subject, each.name) in self._done for each in changes):
            return "what was counted or recorded before the step says nothing of the time after it: check again"
        gain = self._gain(state, _Candidate(changes, (finding,)))
        return gain.why_not if gain and gain.why_not else "what it sets is not known of this host"


def _together(candidates: Iterable[_Candidate]) -> _Candidate:
    changes, findings = zip(*candidates, strict=True)
    return _Candidate(in_order(chain(*changes)), tuple(chain(*findings)))


def _worse(before: Side, after: Side) -> str:
    """What a change makes worse, in words; nothing where it makes nothing worse."""
    changed = difference(before, after)
    then, later = (ranks(each.report, next_boot=True) for each in (before, after))
    # from the next boot on what is certain counts: a change may make it unknown what flushes come to then
    if worse := (*changed.worse, *(name for name, rank in later.items() if name[2] and rank > then.get(name, 0))):
        dataset, event, take = worse[0]
        return f"alone it makes {phrases.happening([event])} worse for {dataset}{f' (it takes {take})' if take else ''}"
    return f"it brings {changed.new[0].rule} ({changed.new[0].text})" if changed.new else ""


def _failed(report: Report) -> list[Finding]:
    return [each for each in report.findings if each.failed]


def _key(finding: Finding) -> tuple[str, str]:
    return finding.rule.id, finding.place


def _candidates(state: Side, done: Mapping[tuple[str, str], str]) -> Iterator[_Candidate]:
    """By what is set; a property that a step has set is not set again."""
    found: dict[tuple[Change, ...], list[Finding]] = {}
    for finding in _failed(state.report):
        changes = sets(finding, state.facts)
        if changes and not any((each.subject, each.name) in done for each in changes if each.name != RESTART):
            found.setdefault(changes, []).append(finding)
    return (_Candidate(changes, tuple(findings)) for changes, findings in found.items())


def _ordered(simulated: list[Step], by_hand: list[Step], now: Report) -> Iterator[Step]:
    """Damage, then what gains something, then the rest by severity; a restart of the host after what bars it."""
    damage = [each for each in by_hand if each.findings[0].rule.damage]
    rest = [each for each in by_hand if each not in damage]
    bars = any(each.rule.id in phrases.BAR_RESTART for each in _failed(now))
    gaining = len(simulated) - next((i for i, each in enumerate(reversed(simulated)) if each.better), len(simulated))
    yield from damage
    yield from simulated[:gaining]
    late = [*simulated[gaining:], *rest]

    def order(step: Step) -> tuple[bool, int]:
        restarts = any(each.fix.cost == "needs restart" and each.rule.subject == "host" for each in step.findings)
        return restarts and bars, -step.severity

    yield from sorted(late, key=order)


# -- words and commands ------------------------------------------------------------------------------------------------


def reason(finding: Finding) -> str:
    """Why nothing that can be set fixes it, in a word or two."""
    fix = finding.fix
    if finding.rule.id == KNOWN_BUGS:
        return "an upgrade and a restart"
    if fix.cost in ("rebuilds the pool", "destroys data"):
        return fix.cost
    if phrases.needs_hardware(finding):
        return "hardware"
    if phrases.looks(finding):
        return "an administrator has to look first"
    if finding.rule.subject in ("disk", "leaf", "vdev"):
        return "hardware"
    return "a restart" if fix.cost == "needs restart" else "a decision"


def _person(findings: Sequence[Finding | None], settings: Sequence[Setting]) -> str:
    """Why a script must not make it. findings: as they are where nobody has made the steps of a person; None: not there."""
    if None in findings:
        return _WAITS
    for fix in (verdict.fix for each in findings if each for verdict in each.verdicts):
        if fix.needs:
            return f"{fix.needs[0].lower()}{fix.needs[1:]}"
        if fix.cost != "safe":
            return fix.cost
    return "" if all(each.read for each in settings) else "zaudit has no command for it"


def _setting(change: Change, facts: Facts) -> Setting:
    """change: of a supposition that was made, so its subject is there."""
    name, value, who = change.name, change.value, change.subject
    assignment = f"{name}={value}"
    path = ""
    if who == "zfs" and supposition.PARAMETERS.fullmatch(name):
        path, found = f"{PARAMETERS}{name}", _value(facts, HOST, name)
    elif facts.of(disk := Subject("disk", who)) and name == "write_cache":
        path, found = f"/sys/block/{quoted(who)}/queue/write_cache", _value(facts, disk, "sysfs_write_cache")
    if path:
        run, undo = (f"echo {quoted(each)} > {path}" for each in (value, found))
        return Setting(change, f"cat {path}", found, value, run, undo)
    for kind, program in PROGRAMS.items():
        subject = Subject(kind, who)
        fact = facts.of(subject).get(name)
        if isinstance(fact, Known) and name in supposition.properties(subject.kind):
            found = _value(facts, subject, name)
            undo = f"{program} set {quoted(f'{name}={found}')} {quoted(who)}"
            if kind == "dataset" and not fact.evidence[0].text.endswith(tuple(f"({each})" for each in LOCAL)):
                undo = f"zfs inherit {'-S ' * fact.evidence[0].text.endswith('(received)')}{name} {quoted(who)}"
            read = f"{program} get -Hp -o value {name} {quoted(who)}"
            return Setting(change, read, found, value, f"{program} set {quoted(assignment)} {quoted(who)}", undo)
    if change.verb:
        return Setting(change, "", "", "", "", "")
    return Setting(
        change, "", "", value, f"Set {name} = {value} in {who}.", f"Set {name} in {who} back to what it was."
    )


def _value(facts: Facts, subject: Subject, name: str) -> str:
    match facts.get(subject, name):
        case Known(value, (Evidence(text), *_)):
            found = RAW.fullmatch(text)
            return found[1] if found and not text.startswith("supposed: ") else str(value)
        case Known(value, ()):
            return str(value)
    return ""
