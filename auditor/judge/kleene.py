"""Kleene's strong connectives on facts, with the evidence or the reasons of what decided.

``False and unknown`` is False, ``True or unknown`` is True; everything else that depends on an unknown is unknown, with
all the reasons. (S. C. Kleene, Introduction to Metamathematics, section 64)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from auditor.facts import Evidence, Judged, Known, Reason, Unknown, join


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
