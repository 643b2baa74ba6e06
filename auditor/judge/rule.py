"""Rules: one TOML file each, loaded strictly. Whatever is misspelt, missing or of the wrong type is an error with the
file's name, so that a rule can never silently judge nothing."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

from auditor.errors import Stop
from auditor.facts import KINDS, Evidence, Kind
from auditor.judge.expression import (
    Expression,
    ExpressionError,
    Registry,
    compile_condition,
    compile_expression,
    deferred,
)
from auditor.judge.threshold import Decided, Threshold, ThresholdError, constants, of_rule

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Severity = Literal["low", "medium", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
Harm = Literal["commits", "corruption", "availability", "latency", "measurement", "hygiene"]
HARMS: tuple[Harm, ...] = get_args(Harm)
Outcome = Literal["pass", "fail", "unknown", "not applicable"]
Compile = Callable[[str, Kind, Registry], Expression]
COSTS = ("safe", "needs restart", "rebuilds the pool", "destroys data")

NOTHING_DECIDED: Mapping[str, Decided] = {}
ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
REQUIRED = {"title", "severity", "subject", "harm", "expect", "impact", "why", "fix", "references", "example"}
OPTIONAL = {"when", "origin", "message", "conflicts", "severity_if", "thresholds"}


class RuleError(Stop, ValueError):
    """A rule file that cannot be used; the text names the file and what is wrong."""


class Place(NamedTuple):
    """origin: where the finding is mended; subject: what was judged; pool: the pool of it. Names, not facts."""

    word: str


PLACES = ("origin", "subject", "pool")


class Template(NamedTuple):
    """Text with ``{expression}`` in it."""

    source: str
    parts: tuple[str | Place | Expression, ...]


class Fix(NamedTuple):
    """How to mend it. command: one line to paste, or empty; cost: one of COSTS."""

    command: Template | None
    text: str
    cost: str


class Example(NamedTuple):
    """given: fact -> value, {"unknown": reason}, or table(s) of facts of linked subjects."""

    name: str
    given: Mapping[str, Any]
    verdict: Outcome
    severity: Severity | None


class Rule(NamedTuple):
    """One rule. expect must hold where when holds; severity_if: the first that is true replaces severity."""

    id: str
    title: str
    severity: Severity
    severity_if: tuple[tuple[Severity, Expression], ...]
    subject: Kind
    harm: Harm
    when: Expression | None
    expect: Expression
    origin: str
    message: Template | None
    impact: str
    why: str
    fix: Fix
    references: tuple[str, ...]
    conflicts: tuple[str, ...]
    examples: tuple[Example, ...]
    path: str
    thresholds: tuple[Threshold, ...] = ()

    @property
    def decided(self) -> tuple[Evidence, ...]:
        """What the site has changed of its thresholds."""
        return tuple(piece for each in self.thresholds for piece in each.evidence)


def load_folder(
    folder: Traversable,
    registry: Registry,
    *,
    examples: bool = True,
    decided: Mapping[str, Mapping[str, Decided]] = MappingProxyType({}),
) -> list[Rule]:
    """Every rule of a folder, by id. A file that is not a rule is an error, and so is an empty folder.

    decided: by rule and name, the thresholds of a policy.
    """
    if not folder.is_dir():
        raise RuleError(f"{folder}: no such folder of rules")
    rules = []
    for path in sorted(folder.iterdir(), key=lambda each: each.name):
        if path.name.endswith(".toml"):
            id = path.name.removesuffix(".toml")
            mine = decided.get(id, NOTHING_DECIDED)
            rules.append(load(id, str(path), path.read_bytes(), registry, examples=examples, decided=mine))
        elif path.name not in ("README.md", "__pycache__", "__init__.py"):
            raise RuleError(f"{path}: a stray file in a folder of rules (rules end in .toml)")
    if not rules:
        raise RuleError(f"{folder}: no rule in it")
    return rules


def merge(folders: Iterable[list[Rule]]) -> list[Rule]:
    """Rules of several folders together; the same id twice is an error."""
    merged: dict[str, Rule] = {}
    for rule in (rule for folder in folders for rule in folder):
        if rule.id in merged:
            raise RuleError(f"{rule.path}: rule {rule.id} exists already, in {merged[rule.id].path}")
        merged[rule.id] = rule
    return [merged[id] for id in sorted(merged)]


def load(
    id: str,
    path: str,
    data: bytes,
    registry: Registry,
    *,
    examples: bool = True,
    decided: Mapping[str, Decided] = NOTHING_DECIDED,
) -> Rule:
    """One rule from the bytes of its file; raises RuleError. examples: False leaves them out, which stand last in a file
    and are half of it."""
    try:
        if not ID.fullmatch(id):
            raise RuleError("the file name is the rule's id: lower-case words joined by hyphens")
        text = data.decode("utf-8")
        table = tomllib.loads(text if examples else text.partition("\n[[example]]")[0])
        return from_table(id, path, table if examples else {**table, "example": None}, registry, decided)
    except (RuleError, ExpressionError, ThresholdError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RuleError(f"{path}: {error}") from None


def from_table(
    id: str, path: str, table: Mapping[str, Any], registry: Registry, decided: Mapping[str, Decided] = NOTHING_DECIDED
) -> Rule:
    """One rule from the content of its file; raises RuleError, ExpressionError or ThresholdError.

    ``example``: None leaves them out, for a rule that was tested with them: its expressions are compiled when they are
    first asked for.
    """
    _keys(table, REQUIRED, OPTIONAL, "a rule")
    kind = cast(Kind, _one_of(table, "subject", KINDS))
    origin = _text(table, "origin") if "origin" in table else ""
    if origin and (origin.partition(".")[0] != kind or (kind, origin.partition(".")[2]) not in registry):
        raise RuleError(f"origin = {origin!r}: not a fact of the rule's subject")
    tested = table["example"] is None
    thresholds = tuple(of_rule(table["thresholds"], decided, _conditions(table))) if "thresholds" in table else ()
    condition, value = (deferred, deferred) if tested else (compile_condition, compile_expression)
    if thresholds:
        condition, value = (partial(each, constants=constants(thresholds)) for each in (condition, value))
    when = condition(_text(table, "when"), kind, registry) if "when" in table else None
    return Rule(
        id=id,
        title=_headline(table),
        severity=cast(Severity, _one_of(table, "severity", SEVERITIES)),
        severity_if=tuple(_severities(table.get("severity_if", {}), kind, registry, condition)),
        subject=kind,
        harm=cast(Harm, _one_of(table, "harm", HARMS)),
        when=when,
        expect=condition(_text(table, "expect"), kind, registry),
        origin=origin.partition(".")[2],
        message=_template(_text(table, "message"), kind, registry, value) if "message" in table else None,
        impact=_text(table, "impact"),
        why=_text(table, "why"),
        fix=_fix(table["fix"], kind, registry, value),
        references=_texts(table, "references", least=1),
        conflicts=_texts(table, "conflicts", least=0),
        examples=_examples(table["example"], with_when=when is not None) if not tested else (),
        path=path,
        thresholds=thresholds,
    )


def _conditions(table: Mapping[str, Any]) -> list[str]:
    """The expressions that decide."""
    graver = table.get("severity_if", {})
    return [str(each) for each in (table.get("when", ""), table["expect"], *(graver.values() if graver else ()))]


def _keys(table: Mapping[str, Any], required: set[str], optional: set[str], what: str) -> None:
    if missing := sorted(required - table.keys()):
        raise RuleError(f"{what} needs {', '.join(missing)}")
    if stray := sorted(table.keys() - required - optional):
        raise RuleError(f"{what} has no key {stray[0]!r}; there are {', '.join(sorted(required | optional))}")


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table[key]
    if not isinstance(value, str) or not value.strip():
        raise RuleError(f"{key} must be text")
    return " ".join(value.split()) if key != "why" else value.strip()


def _texts(table: Mapping[str, Any], key: str, least: int) -> tuple[str, ...]:
    values = table.get(key, [])
    if (
        not isinstance(values, list)
        or len(values) < least
        or not all(isinstance(each, str) and each for each in values)
    ):
        raise RuleError(f"{key} must be a list of at least {least} texts")
    return tuple(values)


def _one_of(table: Mapping[str, Any], key: str, allowed: tuple[str, ...]) -> str:
    value = table[key]
    if value not in allowed:
        raise RuleError(f"{key} = {value!r}: it is one of {', '.join(allowed)}")
    return str(value)


def _headline(table: Mapping[str, Any]) -> str:
    title = _text(table, "title")
    if title.endswith(".") or len(title) > 100 or title[0].islower():
        raise RuleError("title must be a headline: capital letter, no full stop, at most 100 characters")
    return title


def _severities(
    table: Mapping[str, Any], kind: Kind, registry: Registry, condition: Compile
) -> Iterable[tuple[Severity, Expression]]:
    if not isinstance(table, dict):
        raise RuleError("severity_if must be a table: severity = condition")
    for severity in table:
        _one_of({"severity_if": severity}, "severity_if", SEVERITIES)
        yield cast(Severity, severity), condition(_text(table, severity), kind, registry)


def _template(source: str, kind: Kind, registry: Registry, value: Compile) -> Template:
    """``{origin}``, ``{subject}`` and ``{pool}`` are places; everything else in braces is an expression."""
    parts: list[str | Place | Expression] = []
    for i, piece in enumerate(PLACEHOLDER.split(source)):
        if i % 2 == 0:
            if "{" in piece or "}" in piece:
                raise RuleError(f"unbalanced braces in {source!r}")
            parts.append(piece)
        elif piece in PLACES:
            parts.append(Place(piece))
        else:
            parts.append(value(piece, kind, registry))
    return Template(source, tuple(parts))


def _fix(table: Any, kind: Kind, registry: Registry, value: Compile) -> Fix:
    if not isinstance(table, dict):
        raise RuleError("fix must be a table")
    _keys(table, {"text", "cost"}, {"command"}, "fix")
    command = _template(_text(table, "command"), kind, registry, value) if "command" in table else None
    return Fix(command, _text(table, "text"), _one_of(table, "cost", COSTS))


def _examples(tables: Any, with_when: bool) -> tuple[Example, ...]:
    if not isinstance(tables, list):
        raise RuleError("examples are [[example]] tables")
    examples = []
    for table in tables:
        _keys(table, {"name", "given", "verdict"}, {"severity"}, "an example")
        verdict = cast(Outcome, _one_of(table, "verdict", get_args(Outcome)))
        severity = cast(Severity, _one_of(table, "severity", SEVERITIES)) if "severity" in table else None
        if not isinstance(table["given"], dict):
            raise RuleError("given must be a table")
        examples.append(Example(_text(table, "name"), table["given"], verdict, severity))
    wanted = {"pass", "fail", "unknown"} | ({"not applicable"} if with_when else set())
    if missing := sorted(wanted - {example.verdict for example in examples}):
        raise RuleError(f"no example shows the verdict {missing[0]!r}")
    return tuple(examples)
