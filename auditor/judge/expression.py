"""Rule expressions: Python's own grammar, cut down, with Kleene's third truth value.

What an expression comes to is a fact like any other: Known with the evidence that decided it, or Unknown with the reasons
(:mod:`auditor.judge.kleene`).

``all`` over nothing is unknown, not true as in Python: of what was not there nothing was seen. So is ``any``, but for
links of which "there are none" is an answer (``none_tells``).

Types are checked when a rule is loaded: a misspelt fact, or a word that a fact can never be, is an error there and then,
never an eternal unknown.

A rule may come from anybody (``--rules DIR``), so it is bounded: how long and how deeply nested an expression is, how large
a number in it may become, and how often one rule may go through links. What goes beyond the first two is an error of the
rule, beyond the others unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from auditor.facts import HOST, Evidence, Facts, Judged, Known, Subject, Unknown, unknown
from auditor.judge.types import Type
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
    """The subject that a name stands for."""
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
