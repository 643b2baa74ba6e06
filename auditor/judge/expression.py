"""Rule expressions: Python's own grammar, cut down, with Kleene's third truth value.

What an expression comes to is a fact like any other: Known with the evidence that decided it, or Unknown with the reasons.

``all`` over nothing is unknown, not true as in Python: of what was not there nothing was seen. So is ``any``, but for
links of which "there are none" is an answer (``none_tells``).

Types are checked when a rule is loaded: a misspelt fact, or a word that a fact can never be, is an error there and then,
never an eternal unknown.

A rule may come from anybody (``--rules DIR``), so it is bounded: how long and how deeply nested an expression is, how large
a number in it may become, and how often one rule may go through links. What goes beyond the first two is an error of the
rule, beyond the others unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from auditor.facts import HOST, Evidence, Facts, Judged, Kind, Known, Reason, Spec, Subject, Unknown, join, unknown
from auditor.text import quoted

LARGEST = 2**128  # magnitude of a number
STEPS = 1_000_000  # linked subjects that one rule may look at, over all subjects that it judges


class Budget:
    """What is left of STEPS; shared by all that one rule judges."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = STEPS

    def one_more(self) -> Unknown | None:
        """Take one step, or say why there is none left."""
        self.left -= 1
        return unknown(f"the rule goes through more than {STEPS} subjects") if self.left < 0 else None


class Scope:
    """The facts, and which subject each name stands for; root is the subject that is judged.

    read: what was read of the root so far: names of its facts, and "" when it was asked who it is. Together with the
    values of those facts (which lead to all others) they determine what was evaluated.
    """

    __slots__ = ("budget", "facts", "names", "read", "root")

    def __init__(self, facts: Facts, root: Subject, budget: Budget | None = None) -> None:
        self.facts = facts
        self.budget = budget or Budget()
        self.root = root
        self.names: dict[str, Subject] = {"host": HOST, root.kind: root}
        self.read: dict[str, None] = {}


Evaluate = Callable[[Scope], Judged]


class Expression(NamedTuple):
    """A compiled expression."""

    source: str
    type: Type
    evaluate: Evaluate


def fact(subject: Subject, name: str, scope: Scope) -> Judged:
    """A fact of a subject, as seen from the one that is judged."""
    found = scope.facts.get(subject, name)
    if subject == scope.root:
        scope.read[name] = None
        return found
    return found if isinstance(found, Unknown) else bind(found, subject)


def subject_of(scope: Scope, name: str) -> Known:
    subject = scope.names[name]
    if subject == scope.root:
        scope.read[""] = None
    return Known(subject, ())


def bind(found: Known, subject: Subject) -> Known:
    """The same value as seen from another subject: its evidence says whose it is."""
    return Known(
        found.value,
        tuple(
            Evidence(
                each.text if subject == HOST or not each.text else f"{subject}: {each.text}",
                each.command.replace("{subject}", quoted(subject.name)),
                each.origin,
            )
            for each in found.evidence
        ),
    )


# Kleene's strong connectives on facts, with the evidence or the reasons of what decided.
#
# ``False and unknown`` is False, ``True or unknown`` is True; everything else that depends on an unknown is unknown, with all
# the reasons. (S. C. Kleene, Introduction to Metamathematics, section 64)


def connective(operands: Iterable[Judged], decisive: bool) -> Judged:
    """``or`` (decisive True) and ``and`` (decisive False): one decisive operand settles it whatever the others are, so
    those after it are not asked for."""
    unknowns: list[Unknown] = []
    evidence: list[Evidence] = []
    for operand in operands:
        if isinstance(operand, Unknown):
            unknowns.append(operand)
        elif operand.value is decisive:
            return operand
        else:
            evidence.extend(operand.evidence)
    return join(unknowns) if unknowns else Known(not decisive, tuple(dict.fromkeys(evidence)))


def negation(operand: Judged) -> Judged:
    """``not``: an unknown stays one."""
    return operand if isinstance(operand, Unknown) else Known(not operand.value, operand.evidence)


def strict(apply: Callable[[Any, Any], Any], left: Judged, right: Judged) -> Judged:
    """An operation that needs both operands."""
    if isinstance(left, Unknown):
        return join([left, right]) if isinstance(right, Unknown) else left
    if isinstance(right, Unknown):
        return right
    try:
        value = apply(left.value, right.value)
    except (ZeroDivisionError, OverflowError, ValueError):
        return Unknown((Reason(f"no number comes of {left.value} and {right.value}"),))
    except TypeError:  # a word in a tuple of numbers, or a number looked for in a text
        return Unknown((Reason(f"{left.value} and {right.value} cannot be compared"),))
    return Known(value, left.evidence + right.evidence)


# Types of the rule language: what is misspelt, or compared with what it can never be, is an error when a rule is loaded.


class ExpressionError(ValueError):
    """An expression that is not of the language, or that asks for a fact that nobody provides."""


class Type(NamedTuple):
    """base: bool, number, str, tuple, subject or subjects. values: of a closed set of words. kind: of subjects.
    none_tells: of subjects, that there are none is an answer. tallied: of a tuple, its texts are NAME=TIMES."""

    base: str
    values: tuple[str, ...] = ()
    kind: Kind | None = None
    none_tells: bool = False
    tallied: bool = False

    def __str__(self) -> str:
        return f"{self.base} of kind {self.kind}" if self.kind else self.base


BOOL, NUMBER, STR, TUPLE = Type("bool"), Type("number"), Type("str"), Type("tuple")


def of_constant(value: bool | int | float | str) -> Type:
    if isinstance(value, bool):
        return BOOL
    return Type("str", (value,)) if isinstance(value, str) else NUMBER


def of_fact(spec: Spec) -> Type:
    if spec.type is Subject:
        return Type("subjects" if spec.many else "subject", kind=spec.kind, none_tells=spec.none_tells)
    if spec.type is str:
        return Type("str", ("", *spec.values) if spec.values else ())
    if spec.row:
        return Type("table")
    if spec.tallied:
        return Type("tuple", tallied=True)
    return {bool: BOOL, int: NUMBER, float: NUMBER, tuple: TUPLE}[spec.type]


def check_comparison(left: Type, op: ast.cmpop, right: Type, node: ast.Compare) -> None:
    """Same types only; words against the closed set of the fact; order only for numbers and versions."""
    if isinstance(op, ast.Is | ast.IsNot):
        raise ExpressionError(f"{ast.unparse(node)!r}: 'is' is not part of the rule language")
    if isinstance(op, ast.In | ast.NotIn):
        if right.base not in ("tuple", "str") or left.base not in ("str", "number"):
            raise ExpressionError(f"{ast.unparse(node)!r}: cannot look for a {left} in a {right}")
        closed, asked = left, right
    else:
        if left.base != right.base or (left.base in ("subject", "subjects") and left.kind != right.kind):
            raise ExpressionError(f"{ast.unparse(node)!r} compares a {left} with a {right}")
        if not isinstance(op, ast.Eq | ast.NotEq) and left.base not in ("number", "tuple"):
            raise ExpressionError(f"{ast.unparse(node)!r}: a {left} cannot be ordered")
        closed, asked = (left, right) if left.values[:1] == ("",) else (right, left)
    if closed.values[:1] == ("",) and closed.base == "str":
        wrong = [value for value in asked.values if value not in closed.values]
        if wrong:
            raise ExpressionError(
                f"{ast.unparse(node)!r}: {wrong[0]!r} is not a possible value; it is one of {', '.join(closed.values[1:])}"
            )
