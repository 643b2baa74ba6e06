"""Thresholds: numbers in rules that a site may decide otherwise, by name, each within bounds that keep the rule one.

In a rule file::

    thresholds.nearly_full = { default = 80, least = 50, most = 95, unit = "%", text = "this full is a finding" }
    expect = "pool.capacity_percent < nearly_full"

and in a policy::

    [thresholds]
    pool-nearly-full.nearly_full = 85

They are constants when an expression is compiled. One that the policy decided carries evidence that says so, and therefore
stands in every verdict that rests on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from auditor.facts import KINDS, Evidence, Known

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
        """Whether the site has another value than the rule."""
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
    """The thresholds of a rule file. expressions: those that decide, in one of which each must be used.

    Raises ThresholdError.
    """
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


def constants(thresholds: Iterable[Threshold]) -> dict[str, Known]:
    """Name -> value, for the compiler of expressions."""
    return {each.name: Known(each.value, each.evidence) for each in thresholds}
