"""Rules on facts: one verdict for each rule and each subject of its kind, and one for every hole.

A hole is a link that is not known: where the leaves of a pool could not be listed, each rule about leaves is unknown on
the pool.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from auditor.durability.host import Question
from auditor.facts import DATA, HOST, Evidence, Facts, Judged, Kind, Known, Reason, Subject, Unknown, is_true
from auditor.judge.event import SEVERITIES, Event
from auditor.judge.expression import Budget, Expression, Scope
from auditor.judge.rule import FORMS, Figure, Fix, Outcome, Place, Rule, Severity, Template
from auditor.text import quoted

if TYPE_CHECKING:
    from auditor.judge.policy import Waiver


NEW_NAME = ("disk", "leaf", "vdev", "pool", "database")  # kinds of which a restart or a command may change the name
MEMBERS = re.compile(r"(?:mirror|raidz\d|draid\d.*|spare|replacing|indirect|hole)-\d+")
_PART = re.compile(r"(?:-part|(?<=\d)p|(?<=\Dd[a-z]))(\d+)$")
_LASTING = re.compile(r"/dev/(?:disk/by-|mapper/)|/(?!dev/)")
_NUMBERED = re.compile(r" (?:\d+|self)$")
_SAYS_NOTHING = re.compile(r"[0:.\s-]*|none|unknown|not[ _]specified|n/a", re.I)


class Identity(NamedTuple):
    """text: the same on every night, another one for another thing; empty where the host does not tell. label: for a reader."""

    text: str
    label: str


class Identities:
    """Of the subjects of one host."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._found: dict[Subject, Identity] = {}

    def of(self, subject: Subject) -> Identity:
        if subject not in self._found:
            self._found[subject] = self._identity(subject)
        return self._found[subject]

    def _identity(self, subject: Subject) -> Identity:
        match subject.kind:
            case "pool":
                return Identity(self._pool(subject.name), subject.name)
            case "vdev":
                return Identity(self._vdev(subject), str(subject))
            case "leaf":
                return Identity(self._leaf(subject), str(subject))
            case "disk":
                return Identity(self._disk(subject), subject.name)
            case "database":
                return self._database(subject)
            case _:
                return Identity(str(subject), str(subject))

    def _pool(self, name: str) -> str:
        pool = Subject("pool", name)
        return self._word(pool, "guid") or self._word(pool, "list_guid") or name

    def _vdev(self, vdev: Subject) -> str:
        if MEMBERS.fullmatch(vdev.name):
            return f"{self._pool(vdev.within)} {vdev.name}"
        leaves = {self.of(leaf).text for leaf in self._facts.linked(vdev, "leaves")}
        guid = self._word(vdev, "guid")
        return leaves.pop() if len(leaves) == 1 else f"{self._pool(vdev.within)} {guid}" if guid else ""

    def _leaf(self, leaf: Subject) -> str:
        pool, path = self._pool(leaf.within), self._word(leaf, "path")
        drives = sorted({self._drive(disk) for disk in self._facts.linked(leaf, "disks")})
        if drives and all(drives):
            part = _PART.search(path or leaf.name)
            return f"{pool} {' '.join(drives)}{f' part {part[1]}' if part else ''}"
        if guid := self._word(leaf, "guid"):
            return f"{pool} {guid}"
        return f"{pool} {leaf.name}" if _LASTING.match(path or leaf.name) else ""

    def _drive(self, disk: Subject) -> str:
        """By what it reports."""
        return self._word(disk, "serial") or self._word(disk, "wwn")

    def _disk(self, disk: Subject) -> str:
        if own := self._drive(disk):
            return own
        users = self._facts.linked(disk, "used_by")
        guids = sorted(self._word(leaf, "guid") for leaf in users)
        return " ".join(guids) if all(guids) else ""

    def _database(self, database: Subject) -> Identity:
        """Servers in containers may all have their data in the same place, each as it sees it."""
        engine, home = self._word(database, "engine"), self._word(database, "data_directory")
        if not _NUMBERED.search(database.name):  # those of one user, together
            return Identity(database.name, database.name)
        if not home.startswith("/"):
            return Identity("", database.name)
        label = f"{engine} {home}"
        below = sorted(each.name for each in self._facts.linked(database, "data_datasets"))
        return Identity(f"{label} on {' '.join(below)}" if below else label, label)

    def _word(self, subject: Subject, name: str) -> str:
        """A fact as text; empty where it is not known or says nothing."""
        found = self._facts.get(subject, name).word().strip()
        return "" if _SAYS_NOTHING.fullmatch(found) else found


def identities(facts: Facts) -> dict[Subject, str]:
    """Of all subjects whose names may change, as far as the host tells."""
    names = Identities(facts)
    listed = (each for kind in NEW_NAME for each in facts.subjects(kind))  # type: ignore[arg-type]
    return {each: text for each in listed if each != HOST and (text := names.of(each).text)}


# how subjects of a kind are reached: (kind of the parent, its link)
ROUTES: dict[Kind, tuple[tuple[Kind, str], ...]] = {
    "host": (),
    "pool": (("host", "pools"),),
    "dataset": (("pool", "datasets"),),
    "vdev": (("pool", "vdevs"),),
    "leaf": (("pool", "leaves"),),
    "disk": (("leaf", "disks"),),
    "database": (("host", "databases"),),
    "run": (("host", "runs"),),
    "waiver": (("host", "waivers"),),
}


MODIFIES = re.compile(r"zpool (add|attach|checkpoint|remove|replace|scrub|set) |zfs set ")
DURABLE = {"on", "1", "remote_apply"}  # values of what changes_at_restart compares that lose no commit
WORDS = "\0"  # between the words of a list in a command, each of which is quoted for itself


class Carries(NamedTuple):
    """A cell of the event table that hangs on a failure. answer: relies, unknown or lost."""

    event: Event
    question: Question
    answer: str


class Verdict(NamedTuple):
    """What one rule says of one subject.

    origin: the dataset where it is fixed; empty: at the subject. evidence: of a pass or fail; reasons: of an unknown.
    was: the outcome without the waiver. least: how severe it is at least, where the case is unknown. event: the mildest
    at which something may go; relies: the parties on whose promise all of that depends. amount: how much a failure
    takes. known: the day since which a baseline knows it, or empty. case: of the rule's fix. cells: that hang on it.
    """

    rule: Rule
    subject: Subject
    outcome: Outcome | Literal["waived"]
    severity: Severity
    message: str = ""
    command: str = ""
    origin: str = ""
    evidence: tuple[Evidence, ...] = ()
    reasons: tuple[Reason, ...] = ()
    was: Outcome | Literal[""] = ""
    waiver: Waiver | None = None
    least: Severity = "low"
    event: Event | Literal[""] = ""
    relies: tuple[str, ...] = ()
    amount: str = ""
    known: str = ""
    case: Fix | None = None
    cells: tuple[Carries, ...] = ()

    @property
    def fix(self) -> Fix:
        return self.case or self.rule.fix

    @property
    def unwaived(self) -> str:
        """The outcome without a waiver."""
        return self.was or self.outcome


Rest = tuple[Any, ...]  # of a verdict, all but its rule and subject


class _Part(NamedTuple):
    """Verdicts of one rule. entries: of each subject; open: the places of those that are whole."""

    rule: Rule
    subjects: Sequence[Subject]
    entries: Sequence[Verdict | Rest]
    open: Sequence[int]


class Verdicts:
    """By rule, then in the order of the subjects. A host with 10,000 datasets has 300,000; of those that pass or do not apply
    like subjects share one, which is made whole while somebody looks at it."""

    def __init__(self, parts: Iterable[_Part], others: Iterable[Verdict] = ()) -> None:
        self._parts, self._others = tuple(parts), tuple(others)

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Verdicts:
        """They themselves, or what was made one by one."""
        return verdicts if isinstance(verdicts, cls) else cls((), verdicts)

    def __iter__(self) -> Iterator[Verdict]:
        for rule, subjects, entries, _ in self._parts:
            for subject, entry in zip(subjects, entries, strict=True):
                yield entry if isinstance(entry, Verdict) else tuple.__new__(Verdict, (rule, subject, *entry))
        yield from self._others

    def __len__(self) -> int:
        return sum(len(part.entries) for part in self._parts) + len(self._others)

    def open(self) -> Iterator[Verdict]:
        """Those that are whole: all but what passes or does not apply."""
        for part in self._parts:
            yield from (each for place in part.open if isinstance(each := part.entries[place], Verdict))
        yield from self._others

    def outcomes(self) -> Iterator[Verdict]:
        """All that are open, and of those that are alike one."""
        for rule, subjects, entries, _ in self._parts:
            for place in {id(entry): place for place, entry in enumerate(entries)}.values():
                entry = entries[place]
                yield entry if isinstance(entry, Verdict) else tuple.__new__(Verdict, (rule, subjects[place], *entry))
        yield from self._others

    def __add__(self, more: Iterable[Verdict]) -> Verdicts:
        others = Verdicts.of(more)
        return Verdicts(self._parts + others._parts, self._others + others._others)

    def changed(self, change: Callable[[Verdict], Verdict]) -> Verdicts:
        """With others in place of those that are open."""
        parts = []
        for part in self._parts:
            entries = list(part.entries) if part.open else part.entries
            for place in part.open:
                if isinstance(entries, list) and isinstance(entry := entries[place], Verdict):
                    entries[place] = change(entry)
            parts.append(part._replace(entries=entries))
        return Verdicts(parts, map(change, self._others))


class _Reached:
    """The subjects of one kind, and the holes: (parent, why its link is not known)."""

    def __init__(self, kind: Kind, facts: Facts) -> None:
        self.subjects, self.holes = _reach(kind, facts)
        self._own = [facts.of(subject) for subject in self.subjects]
        self._all: dict[str, tuple[Judged | None, ...]] = {}
        self._columns: dict[str, array[int]] = {}

    def alike(self, names: tuple[str, ...]) -> list[list[int]]:
        """For each subject, the places of all whose facts of these names are the same objects."""
        groups: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        keys = zip(*map(self._column, names), strict=True) if names else (() for _ in self.subjects)
        found = [groups[key] for key in keys]
        for place, group in enumerate(found):
            group.append(place)
        return found

    def _column(self, name: str) -> array[int]:
        if name not in self._columns:
            if not self._columns and self._own:
                # all that the last one has, of each at once: to come back to 10,000 stores for each name costs more
                names = tuple(self._own[-1])
                rows = [tuple(map(own.get, names)) for own in self._own]
                self._all = dict(zip(names, zip(*rows, strict=True), strict=True))
            column = self._all.pop(name, None) or [own.get(name) for own in self._own]
            self._columns[name] = array("Q", map(id, column))
        return self._columns[name]


def judge(rules: Sequence[Rule], facts: Facts) -> Verdicts:
    reached = {kind: _Reached(kind, facts) for kind in ROUTES}
    return Verdicts(_judge_rule(rule, facts, reached[rule.subject]) for rule in rules)


def _reach(kind: Kind, facts: Facts) -> tuple[list[Subject], list[tuple[Subject, Unknown]]]:
    """The subjects of a kind that the links lead to, and the holes: (parent, why its link is not known)."""
    if kind == "host":
        return [HOST], []
    subjects: dict[Subject, None] = {}
    holes: dict[Subject, Unknown] = {}
    for parent_kind, link in ROUTES[kind]:
        parents, parent_holes = _reach(parent_kind, facts)
        holes.update(parent_holes)
        for parent in parents:
            found = facts.get(parent, link)
            if isinstance(found, Unknown):
                holes[parent] = found
            else:
                subjects.update(dict.fromkeys(facts.linked(parent, link)))
    return list(subjects), list(holes.items())


def _judge_rule(rule: Rule, facts: Facts, reached: _Reached) -> _Part:
    # Where what was read is the same objects, the verdict is the same: thousands of datasets share a few. The store is
    # not written to while rules are judged, so the identities hold.
    rests: list[Rest] = [()] * len(reached.subjects)
    groups = dict[tuple[str, ...], list[list[int]]]()  # which no other rule asks for again
    open, budget = list[int](), Budget()
    for place, subject in enumerate(reached.subjects):
        if not rests[place]:
            scope = Scope(facts, subject, budget)
            rests[place] = rest = _judge(rule, scope)[2:]
            alike = [place]
            if len(rests) > 1 and "" not in scope.read:
                if (read := tuple(scope.read)) not in groups:
                    groups[read] = reached.alike(read)
                alike = groups[read][place]
            for like in alike:
                rests[like] = rest
            if rest[0] in ("fail", "unknown"):
                open += alike
    entries: list[Verdict | Rest] = [*rests]
    for place in sorted(open):
        whole = Verdict(rule, reached.subjects[place], *rests[place])
        entries[place] = _worded(whole, facts) if whole.outcome == "fail" else whole
    entries += (Verdict(rule, at, "unknown", rule.gravest, reasons=why.reasons) for at, why in reached.holes)
    open += range(len(rests), len(entries))
    return _Part(rule, [*reached.subjects, *(at for at, _ in reached.holes)], entries, sorted(open))


def judge_one(rule: Rule, subject: Subject, facts: Facts) -> Verdict:
    """What one rule says of one subject, without the words of a finding."""
    return _judge(rule, Scope(facts, subject))


def _judge(rule: Rule, scope: Scope) -> Verdict:
    subject = scope.root
    if rule.when is not None:
        applies = rule.when.evaluate(scope)
        if isinstance(applies, Unknown):
            # "expect" may hold whatever "when" would be
            holds = rule.expect.evaluate(scope)
            if not is_true(holds):
                return _counting(rule, scope, "unknown", reasons=applies.reasons)
            return Verdict(rule, subject, "pass", rule.severity, evidence=holds.evidence)
        if applies.value is False:
            return Verdict(rule, subject, "not applicable", rule.severity, evidence=applies.evidence)
        context = applies.evidence
    else:
        context = ()
    holds = rule.expect.evaluate(scope)
    if isinstance(holds, Unknown):
        return _counting(rule, scope, "unknown", reasons=holds.reasons)
    evidence = tuple(dict.fromkeys(holds.evidence + context))
    if holds.value is True:
        return Verdict(rule, subject, "pass", rule.severity, evidence=evidence)
    return _counting(rule, scope, "fail", evidence=evidence)


def _counting(
    rule: Rule,
    scope: Scope,
    outcome: Literal["fail", "unknown"],
    *,
    evidence: tuple[Evidence, ...] = (),
    reasons: tuple[Reason, ...] = (),
) -> Verdict:
    """As severe as the most severe that it may be: an answer that is lost never lowers it."""
    possible = sorted(_possible(rule, scope), key=SEVERITIES.index)
    return Verdict(rule, scope.root, outcome, possible[-1], evidence=evidence, reasons=reasons, least=possible[0])


def _possible(rule: Rule, scope: Scope) -> Iterator[Severity]:
    """How severe it may be here: one where every case before it is known to hold or not to hold."""
    for case in rule.cases:
        result = case.when.evaluate(scope)
        if isinstance(result, Unknown):
            yield case.severity or rule.severity
        elif result.value is True:
            yield case.severity or rule.severity
            return
    yield rule.severity


def _conditions(fix: Fix, command: str, subject: Subject, facts: Facts) -> Iterator[str]:
    """Before any fix of its kind: a suspended pool takes no change; a restart or reload of a database takes up its files."""
    pool = Subject("pool", places(subject, "")["pool"])
    if MODIFIES.match(command) and not pool_works(pool, facts):
        yield "Once the pool is no longer suspended"
    if subject.kind == "database" and takes_up_files(fix):
        changes = map(str, facts.get(subject, "changes_at_restart").words())
        found = [each.partition(" is ") for each in changes]
        split = [(name, *rest.removesuffix(" in its files").partition(" now but ")[::2]) for name, _, rest in found]
        others = [each for each in split if each[0] not in fix.text and each[2].lower() not in DURABLE]
        if others:
            loads = "restart" if fix.cost == "needs restart" else "reload"
            yield f"Once its files say {' and '.join(_written(*each) for each in others)}, as a {loads} loads them"


def _written(name: str, now: str, then: str) -> str:
    """What its files have to say of a setting before they count: nobody is told to write down what loses commits."""
    wanted = f"{name} = {now}" if now.lower() in DURABLE else f"the {name} that you want"
    return f"{wanted} ({then} there now, {now} in the server)"


def takes_up_files(fix: Fix) -> bool:
    """Does a database read all of its files again for it?"""
    return fix.cost == "needs restart" or (bool(fix.sets) and "reload" in fix.text)


def _worded(verdict: Verdict, facts: Facts) -> Verdict:
    """A failure with the words for its own subject: message, place and command."""
    rule, subject = verdict.rule, verdict.subject
    origin = _origin(rule, subject, facts)
    told = next((each.message for each in rule.cases if _holds(each.when, subject, facts)), None) or rule.message
    message = fill(told, subject, origin, facts, shell=False) if told else ""
    fix = next((each for each, holds in rule.fix.cases if _holds(holds, subject, facts)), rule.fix)
    command = fill(fix.command, subject, origin, facts, shell=True) if fix.command else ""
    if fix.condition:
        fix = fix._replace(needs=fill(fix.condition, subject, origin, facts, shell=False))
    if conditions := [*_conditions(fix, command, subject, facts)]:
        conditions += [fix.needs] if fix.needs else []
        joined = ", and ".join((conditions[0], *(f"{each[0].lower()}{each[1:]}" for each in conditions[1:])))
        fix = fix._replace(needs=joined)
    first, others = verdict.evidence[:1], verdict.evidence[1:]
    evidence = tuple(dict.fromkeys((*first, *rule.decided, *others)))  # not below what a report has room for
    amount = fill(rule.amount, subject, origin, facts, shell=False) if rule.amount else ""
    return verdict._replace(
        origin=origin,
        message=message,
        command=command,
        evidence=evidence,
        amount="" if "(unknown)" in amount else amount,
        case=None if fix is rule.fix else fix,
    )


def pool_works(pool: Subject, facts: Facts) -> bool:
    """Is it not suspended, and has each data vdev enough devices? Else it keeps nothing that could be lost, and OpenZFS refuses
    to change it (zfs_ioctl.c POOL_CHECK_SUSPENDED). A pool works without its log vdev."""
    data = (vdev for vdev in facts.linked(pool, "vdevs") if facts.get(vdev, "allocation_class").word() in DATA)
    return not any(map(is_true, (facts.get(pool, "suspended"), *(facts.get(vdev, "too_few_devices") for vdev in data))))


def _holds(condition: Expression, subject: Subject, facts: Facts) -> bool:
    return is_true(condition.evaluate(Scope(facts, subject)))


def _origin(rule: Rule, subject: Subject, facts: Facts) -> str:
    """The dataset at which the deciding property is set, the root where nobody set it, or empty: at the subject."""
    if rule.origin:
        match facts.get(subject, rule.origin):
            case Known(evidence=(Evidence(text, _, origin), *_)):
                return origin or (subject.name.partition("/")[0] if text.endswith("(default)") else "")
    return ""


def fill(template: Template, subject: Subject, origin: str, facts: Facts, *, shell: bool) -> str:
    """With its values: unknown is "(unknown)", in a command "UNKNOWN"; an empty list is "none" for a reader."""
    scope = Scope(facts, subject)
    words = []
    for part in template.parts:
        if isinstance(part, str):
            words.append(part)
            continue
        value: str | None
        match part:
            case Place():
                value = places(subject, origin)[part.word]
            case Figure():
                value = _figure(part, scope)
            case _:
                value = _value(part, scope, shell)
        if value is None:
            words.append("UNKNOWN" if shell else "(unknown)")
        else:
            words.append(" ".join(map(quoted, value.split(WORDS))) if shell else value)
    return "".join(words)


def places(subject: Subject, origin: str) -> dict[str, str]:
    pool = subject.within or subject.name.partition("/")[0]
    return {"subject": subject.name, "origin": origin or subject.name, "pool": pool}


def _figure(figure: Figure, scope: Scope) -> str | None:
    result = figure.value.evaluate(scope)
    number = result.value if isinstance(result, Known) else None
    return FORMS[figure.form](number) if isinstance(number, int | float) else None


def _value(expression: Expression, scope: Scope, shell: bool) -> str | None:
    result: Judged = expression.evaluate(scope)
    if isinstance(result, Unknown):
        return None
    match result.value:
        case Subject() as subject:
            return subject.name
        case () if not shell:
            return "none"
        case tuple() as many if shell:
            return WORDS.join(each.name if isinstance(each, Subject) else str(each) for each in many)
        case tuple() as many:
            return ", ".join(each.name if isinstance(each, Subject) else str(each) for each in many)
        case bool() as switch:
            return "on" if switch else "off"
        case float() as number:
            return f"{number:.1f}".removesuffix(".0")
        case value:
            return str(value)
