"""What the user decides: which rules run, and from which severity on the exit code speaks."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.errors import Stop
from auditor.judge.rule import Rule


class PolicyError(Stop, ValueError):
    """A choice that cannot be followed, and why."""


def select(rules: Sequence[Rule], only: Sequence[str], skip: Sequence[str]) -> list[Rule]:
    """The rules to run. Raises PolicyError for an id that no rule has, and when nothing is left to run."""
    ids = {rule.id for rule in rules}
    for id in (*only, *skip):
        if id not in ids:
            raise PolicyError(f"no rule {id!r} (zaudit rules lists them)")
    chosen = [rule for rule in rules if (not only or rule.id in only) and rule.id not in skip]
    if not chosen:
        raise PolicyError("no rule is left to run")
    return chosen
