"""Types of the rule language: what is misspelt, or compared with what it can never be, is an error when a rule is loaded."""

from __future__ import annotations

import ast
from typing import NamedTuple

from auditor.facts import Kind, Spec, Subject


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
