"""What a rule is; :mod:`auditor.judge.rule_file` reads one from its file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

from auditor import Stop
from auditor.data import durability
from auditor.data.platforms import ANY
from auditor.facts import KINDS, Evidence, Kind, Known
from auditor.judge.event import SEVERITIES as SEVERITIES
from auditor.judge.event import Severity as Severity
from auditor.judge.expression import Expression
from auditor.text import size

Harm = Literal["commits", "corruption", "availability", "latency", "measurement", "hygiene"]
HARMS: tuple[Harm, ...] = get_args(Harm)
Outcome = Literal["pass", "fail", "unknown", "not applicable"]
COSTS = ("safe", "needs restart", "rebuilds the pool", "destroys data")


class RuleError(Stop, ValueError):
    """A rule file that cannot be used; the text names the file and what is wrong."""


class Place(NamedTuple):
    """origin: where the finding is fixed; subject: what was judged; pool: the pool of it. Names, not facts."""

    word: str


PLACES = ("origin", "subject", "pool")


class Figure(NamedTuple):
    """A number in the units of people. form: one of FORMS."""

    value: Expression
    form: str


FORMS: dict[str, Callable[[float], str]] = {"size": size, "count": "{:,}".format}


class Template(NamedTuple):
    """Text with ``{expression}`` in it, or ``{expression:form}``."""

    source: str
    parts: tuple[str | Place | Expression | Figure, ...]


class Fix(NamedTuple):
    """How to mend it. command: one line to paste, or empty; cost: one of COSTS. cases: the first whose condition is known to
    be true counts in place of it; means: that condition in words. needs: the condition on which the command helps, printed
    before it, or empty; of a verdict with the values of condition in it. sets: what it changes, each as a supposition
    (:mod:`auditor.judge.supposition`)."""

    command: Template | None
    text: str
    cost: str
    cases: tuple[tuple[Fix, Expression], ...] = ()
    needs: str = ""
    sets: tuple[Template, ...] = ()
    condition: Template | None = None
    means: str = ""


class Case(NamedTuple):
    """How severe a failure is where a condition holds, and its message; None: as the rule says. means: the condition in
    words, to follow "if"."""

    severity: Severity | None
    when: Expression
    message: Template | None
    means: str


class Example(NamedTuple):
    """given: fact -> value, {"unknown": reason}, or table(s) of facts of linked subjects."""

    name: str
    given: Mapping[str, Any]
    verdict: Outcome
    severity: Severity | None


class Texts(NamedTuple):
    """impact: for a finding; why, references, conflicts: for its page; unprovoked: why no host of the tests makes it fail."""

    impact: str
    why: str
    fix: Fix
    references: tuple[str, ...]
    conflicts: tuple[str, ...]
    unprovoked: str = ""


class Rule(NamedTuple):
    """One rule. expect must hold where when holds. elements: of a commit's path, which its failure breaks: the
    durability model says how severe that is here. severity: of what the model does not know, or where nothing hangs on
    the elements; cases: the first that is true counts in its place. answer: what a policy can say to what is relied on.
    outside: of a rule about commits or corruption without elements, why. amount: "up to 5.4 s of commits". damage: harm
    that is done already. next_boot: in force from the next boot or restart on: it explains those rows alone, with its
    own severity. page: of our own rules, in the repository; url: as the site has published it. said: by platform;
    platform: of the host that is judged. head: of an entry of a table, the rule of its finding. fixed: a policy set its
    severity."""

    id: str
    title: str
    severity: Severity
    cases: tuple[Case, ...]
    subject: Kind
    harm: Harm
    when: Expression | None
    expect: Expression
    origin: str
    message: Template | None
    said: Callable[[str], Texts]
    examples: tuple[Example, ...]
    path: str
    thresholds: tuple[Threshold, ...] = ()
    outside: str = ""
    amount: Template | None = None
    damage: bool = False
    next_boot: bool = False
    page: str = ""
    url: str = ""
    platform: str = ANY
    head: Rule | None = None
    elements: tuple[str, ...] = ()
    answer: str = ""
    fixed: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What a policy can call it: its id, or that of its head for all entries of the table."""
        return (self.id, self.head.id) if self.head else (self.id,)

    @property
    def of_verify(self) -> bool:
        """Does it judge a run of zaudit verify? Then it is no rule of a check."""
        return self.subject == "run"

    @property
    def severities(self) -> tuple[Severity, ...]:
        return (*(case.severity for case in self.cases if case.severity), self.severity)

    @property
    def gravest(self) -> Severity:
        by_model = map(gravest_of, self.elements) if self.by_model else ()
        return max((*self.severities, *by_model), key=SEVERITIES.index)

    @property
    def by_model(self) -> bool:
        """Does the durability model rank it?"""
        return bool(self.elements) and not self.fixed and not self.next_boot

    @property
    def decided(self) -> tuple[Evidence, ...]:
        return tuple(piece for each in self.thresholds for piece in each.evidence)

    @property
    def impact(self) -> str:
        return self.said(self.platform).impact

    @property
    def why(self) -> str:
        return self.said(self.platform).why

    @property
    def fix(self) -> Fix:
        return self.said(self.platform).fix

    @property
    def references(self) -> tuple[str, ...]:
        return self.said(self.platform).references

    @property
    def conflicts(self) -> tuple[str, ...]:
        return self.said(self.platform).conflicts


@cache
def gravest_of(element: str) -> Severity:
    """The most that an element costs alone; one that costs nothing alone makes others worse."""
    severities = durability.load().severities
    found = {severities[cell].severity for cell in _costs(element)}
    return max((each for each in SEVERITIES if each in found), key=SEVERITIES.index, default="low")


@cache
def events_of(element: str) -> frozenset[str]:
    """At which an element costs something alone."""
    return frozenset(event for _, event, _ in _costs(element))


def _costs(element: str) -> list[tuple[str, str, str]]:
    """(question, event, answer) of what breaks it, in durability.toml."""
    rows = [
        row for row in durability.load().rows if len(row.elements) == 1 and row.elements[0] in durability.ROWS[element]
    ]
    cells = [(question, event, answer) for row in rows for (question, event), answer in row.cells.items()]
    return [cell for cell in cells if cell[2] != "no loss"]


def digest(rules: Iterable[Rule]) -> str:
    """16 characters by which one knows again what judged: the same where the same conditions lead to the same verdicts of the
    same severity. Words and examples do not count, and neither does what a policy makes of thresholds."""
    import hashlib

    told = [
        (
            *(rule.id, rule.subject, rule.severity, *rule.elements, rule.answer, rule.harm, rule.origin),
            rule.expect.source,
            rule.when.source if rule.when else "",
            *(f"{case.severity}: {case.when.source}" for case in rule.cases),
            *sorted(f"{each.name}={each.default}" for each in rule.thresholds),
        )
        for rule in rules
    ]
    return hashlib.sha256(repr(sorted(told)).encode()).hexdigest()[:16]


def merge(folders: Iterable[list[Rule]]) -> list[Rule]:
    """Rules of several folders together; the same id twice is an error."""
    merged: dict[str, Rule] = {}
    for rule in (rule for folder in folders for rule in folder):
        if rule.id in merged:
            raise RuleError(f"{rule.path}: rule {rule.id} exists already, in {merged[rule.id].path}")
        merged[rule.id] = rule
    return [merged[id] for id in sorted(merged)]


# Thresholds: numbers in rules that a site may change within bounds. In a rule file, and in a policy::
#
#     thresholds.nearly_full = { default = 80, least = 50, most = 95, unit = "%", text = "this full is a finding" }
#     expect = "pool.capacity_percent < nearly_full"
#
#     [thresholds]
#     pool-nearly-full.nearly_full = 85
#
# They are constants of the compiler. A changed one has evidence that says so, in every verdict that rests on it.


Number = int | float
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
KEYS = {"default", "least", "most", "unit", "text"}
TAKEN = frozenset({*KINDS, "origin", "any", "all", "len"})


class ThresholdError(ValueError):
    """A threshold that a rule cannot have."""


class Decided(NamedTuple):
    """What a policy says of one threshold. line: where; command: what shows it."""

    value: Number
    line: int
    command: str


class Threshold(NamedTuple):
    """One number. least, most: what a policy may make of it. decided: what it made of it, or None."""

    name: str
    default: Number
    least: Number
    most: Number
    unit: str
    text: str
    decided: Decided | None = None

    @property
    def value(self) -> Number:
        return self.decided.value if self.decided else self.default

    @property
    def changed(self) -> bool:
        return self.value != self.default

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        if not self.decided or not self.changed:
            return ()
        text = f"site policy: {self.name} {self.spell(self.value)}, default {self.spell(self.default)}"
        return (Evidence(text, self.decided.command),)

    def spell(self, value: Number) -> str:
        return f"{value:g} {self.unit}" if isinstance(value, float) else f"{value} {self.unit}"

    def refusal(self, value: Number) -> str:
        """Why a policy may not set this value, or empty."""
        if isinstance(self.default, int) and not isinstance(value, int):
            return "it must be a whole number"
        if not self.least <= value <= self.most:
            return f"it may be {self.spell(self.least)} to {self.spell(self.most)}"
        return ""


def of_rule(tables: Any, decided: Mapping[str, Decided], expressions: Iterable[str]) -> Iterator[Threshold]:
    """expressions: those that decide; each threshold must be used in one of them. Raises ThresholdError."""
    if not isinstance(tables, dict):
        raise ThresholdError("thresholds must be a table")
    used = {word for each in expressions for word in re.findall(r"\w+", each)}
    for name, table in tables.items():
        if not NAME.fullmatch(name) or name in TAKEN:
            raise ThresholdError(f"{name!r} cannot be the name of a threshold")
        if not isinstance(table, dict) or table.keys() != KEYS:
            raise ThresholdError(f"threshold {name} must be a table of {', '.join(sorted(KEYS))}")
        numbers = [table[key] for key in ("least", "default", "most")]
        if not all(is_number(each) for each in numbers) or numbers != sorted(numbers):
            raise ThresholdError(f"threshold {name}: least, default and most must be numbers, in this order")
        if not all(isinstance(table[key], str) and table[key].strip() for key in ("unit", "text")):
            raise ThresholdError(f"threshold {name}: unit and text must be text")
        if name not in used:
            raise ThresholdError(f"threshold {name} is used in no expression")
        yield Threshold(name, **table, decided=decided.get(name))


def is_number(value: object) -> bool:
    """Whether it is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18


def constants_of(thresholds: Iterable[Threshold]) -> dict[str, Known]:
    """Name -> value, for the compiler of expressions."""
    return {each.name: Known(each.value, each.evidence) for each in thresholds}
