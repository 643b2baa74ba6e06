"""Verdicts made into findings: grouped at the place where one action mends them, ranked by consequence, in one order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from auditor.facts import Facts, Reason
from auditor.judge import known_bugs
from auditor.judge.event import NEXT, Event
from auditor.judge.rule import SEVERITIES, Fix, Rule, Severity, Threshold
from auditor.judge.verdict import Identities, Verdict, Verdicts

if TYPE_CHECKING:
    from auditor.judge.policy import Waiver

RANK = {severity: rank for rank, severity in enumerate(SEVERITIES)}
EXIT_CODES: dict[Severity, int] = {"low": 11, "medium": 12, "high": 13, "critical": 14}
EXIT_UNDECIDED = 10
HARDWARE = ("pool", "vdev", "leaf", "disk")  # kinds of subjects, from the whole to its parts
PARTS = ("vdev", "leaf", "disk", "database")  # kinds of which one can take the place of another


class Finding(NamedTuple):
    """What one rule found at one place: failed or unknown, for one or more subjects.

    place: where to act (the dataset that a property is inherited from, else the pool, the disks or the host). id: the
    same from run to run, without the severity unless the rule has a worse finding at the same place (lesser). elements:
    what drives, vdevs and servers it is about. known: the day since which a baseline knows all of it, or empty. bugs:
    of the release, the worst first; message: all of them in a sentence. ends: losses that its fix alone ends or makes
    uncertain, of those that are tried (:mod:`auditor.judge.precedence`).
    """

    rule: Rule
    failed: bool
    severity: Severity
    place: str
    verdicts: tuple[Verdict, ...]
    waiver: Waiver | None = None
    lesser: bool = False
    known: str = ""
    bugs: tuple[known_bugs.Bug, ...] = ()
    elements: tuple[str, ...] = ()
    message: str = ""
    ends: int = 0

    @property
    def id(self) -> str:
        import hashlib

        parts = [self.rule.id, "fail" if self.failed else "unknown", self.place]
        parts += [self.waiver.title] if self.waiver else []
        parts += [self.severity] if self.lesser else []
        parts += ["known"] if self.lesser and self.known else []
        parts += sorted(bug.id for bug in self.bugs)  # another bug is another finding
        parts += self.elements  # and so is another drive
        text = "\0".join(parts)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def event(self) -> Event | None:
        """The mildest at which something may go by it."""
        events = {verdict.event for verdict in self.verdicts}
        return next((each for each in NEXT if each in events), None)

    @property
    def least(self) -> Severity:
        """The severity that is certain of a failure: the least of it that may hold, of the subject of which that is most."""
        return max((each.least for each in self.verdicts), key=SEVERITIES.index)

    @property
    def fix(self) -> Fix:
        """How to mend it; where not all of it is the same case, as the rule says for all of them."""
        cases = {each.fix._replace(needs="", condition=None) for each in self.verdicts}
        if len(cases) == 1:
            return self.verdicts[0].fix
        fix = self.rule.fix
        return fix._replace(needs="", condition=None) if fix.condition else fix

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Of an unknown finding: every reason once."""
        return tuple(dict.fromkeys(reason for verdict in self.verdicts for reason in verdict.reasons))


class Coverage(NamedTuple):
    """How much was decided. undecided: rules with an unknown verdict. remedies: what would decide how many, most first.
    thresholds: (rule, threshold) that the site has changed."""

    rules: int
    undecided: int
    passed: int
    not_applicable: int
    remedies: tuple[tuple[str, int], ...]
    thresholds: tuple[tuple[str, Threshold], ...] = ()

    @property
    def decided(self) -> int:
        return self.rules - self.undecided


def findings(verdicts: Iterable[Verdict], facts: Facts) -> list[Finding]:
    """Group and rank. Failures of one rule at one place are one finding; so is what could not be decided there, and what is
    waived there by the same waiver. Known bugs of the release are one, whatever the severity of each."""
    groups: dict[tuple[object, ...], list[Verdict]] = {}
    names, open = Identities(facts), [*Verdicts.of(verdicts).open()]
    for verdict in open:
        if verdict.outcome in ("fail", "unknown", "waived"):
            head = verdict.rule.names[-1]
            key = (
                head,
                _failed(verdict),
                head == known_bugs.ID or verdict.severity,
                _place(verdict, names),
                verdict.waiver,
                bool(verdict.known),
            )
            groups.setdefault(key, []).append(verdict)
    may = sum(each.outcome == "unknown" and known_bugs.counts(each.rule) for each in open)
    found = [_finding(group, may, facts, names) for group in groups.values()]
    seen: set[tuple[object, ...]] = set()
    ranked = []
    for finding in sorted(found, key=_order):
        place = (finding.rule.id, finding.failed, finding.place, finding.waiver)
        ranked.append(finding._replace(lesser=place in seen))
        seen.add(place)
    return ranked


def _finding(verdicts: Sequence[Verdict], may: int, facts: Facts, names: Identities) -> Finding:
    first, *others = known_bugs.worst_first(verdicts) if verdicts[0].rule.names[-1] == known_bugs.ID else verdicts
    rule, bugs, message = known_bugs.together((first, *others), may, facts)
    return Finding(
        rule,
        _failed(first),
        max((each.severity for each in (first, *others)), key=SEVERITIES.index),
        _place(first, names),
        (first, *others),
        first.waiver,
        known=min(each.known for each in (first, *others)),
        bugs=bugs,
        message=message,
        elements=tuple(sorted({names.of(each.subject).text for each in verdicts if each.subject.kind in PARTS})),
    )


def _failed(verdict: Verdict) -> bool:
    return verdict.unwaived == "fail"


def _place(verdict: Verdict, names: Identities) -> str:
    if verdict.origin:
        return verdict.origin
    subject = verdict.subject
    if verdict.rule.origin and _failed(verdict):
        return subject.name
    if subject.kind == "dataset":
        return subject.name.partition("/")[0]
    return subject.within or ("disks" if subject.kind == "disk" else names.of(subject).label)


def _order(finding: Finding) -> tuple[object, ...]:
    """By severity. Then damage before risks by the mildest event, hardware before settings, a pool before its parts, a
    command before a search or an answer. Known bugs of the release come after signs of this host."""
    kind = [*HARDWARE, finding.rule.subject].index(finding.rule.subject)
    when = NEXT.index(finding.event) if finding.event else len(NEXT)
    return (
        *(-RANK[finding.severity], not finding.failed, finding.rule.id == known_bugs.ID),
        *((False, kind) if finding.rule.damage else (True, when, kind)),
        *(not finding.fix.command or bool(finding.rule.answer), finding.rule.id, finding.place, finding.known),
    )


def opening(found: Sequence[Finding], *, cut: bool, other: bool, calm: bool = False) -> Finding | None:
    """The failure that a page opens with, before what an event would lose: damage that is done, or a severe failure of this
    host that no event causes. calm: no event loses anything, and nothing is relied on; then known bugs of its release
    count, too.

    found: in their order. cut: a killed database, a crash or a power cut loses something; only damage of high or critical
    comes before that. other: another event does; every damage comes before that.
    """
    failed = [each for each in found if each.failed and each.severity != "low"]
    severe = [each for each in failed if each.severity != "medium"]
    damage = [each for each in (severe if cut else failed) if each.rule.damage]
    others = [each for each in severe if not each.rule.elements and (calm or each.rule.id != known_bugs.ID)]
    outside = [] if cut or other else others
    return next(iter((*damage, *outside)), None)


def coverage(rules: Sequence[Rule], verdicts: Iterable[Verdict]) -> Coverage:
    """Count rules, not verdicts, nor known bugs: one leaf that could not be seen leaves its rule undecided, waived or not."""
    outcomes: dict[str, set[str]] = {rule.names[-1]: set() for rule in rules}
    remedies: dict[str, set[str]] = {id: set() for id in outcomes}
    for verdict in Verdicts.of(verdicts).outcomes():
        outcomes[verdict.rule.names[-1]].add(verdict.unwaived)
        if verdict.unwaived == "unknown":
            remedies[verdict.rule.names[-1]].update(reason.remedy for reason in verdict.reasons)
    undecided = [id for id, seen in outcomes.items() if "unknown" in seen]
    counts = Counter(remedy for id in undecided for remedy in remedies[id] if remedy)
    return Coverage(
        rules=len(outcomes),
        undecided=len(undecided),
        passed=sum("pass" in seen and not seen & {"fail", "unknown"} for seen in outcomes.values()),
        not_applicable=sum(seen <= {"not applicable"} for seen in outcomes.values()),
        remedies=tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        thresholds=tuple((rule.id, each) for rule in rules for each in rule.thresholds if each.changed),
    )


def exit_code(found: Iterable[tuple[Severity, bool]], threshold: Severity, *, failed_only: bool = False) -> int:
    """0, or by the worst that was found at or above the threshold (11 to 14). found: (severity, whether it failed).

    What is unknown counts as what it may be: the night on which a critical rule could not see is no better than the one
    on which it failed. failed_only: by failures alone, and 10 when only unknown ones are left.
    """
    counted = [(severity, failed) for severity, failed in found if RANK[severity] >= RANK[threshold]]
    codes = [EXIT_CODES[severity] for severity, failed in counted if failed or not failed_only]
    return max(codes, default=EXIT_UNDECIDED if counted else 0)
