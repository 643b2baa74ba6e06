"""What ``zpool history`` says with and without ``-l``: a command that one of them lacks was lost, or just given."""

from __future__ import annotations

from collections import Counter

from auditor.collect import zpool_history
from auditor.facts import HOST, Fact, Facts, Known, Subject, unknown
from auditor.text import harmless


def compare(facts: Facts) -> None:
    """All pools."""
    for pool in facts.linked(HOST, "pools"):
        first, second = _lines(pool, "history", facts), _lines(pool, "history_again", facts)
        if first is None or second is None or first == second:
            continue
        only = sorted(((first - second) + (second - first)).elements())[0]
        text = f"of zpool history and zpool history -l only one has {harmless(only)[:80]}"
        for name in zpool_history.FACTS:
            facts.replace(Fact(pool, name, unknown(text, "run zaudit again")))


def _lines(pool: Subject, name: str, facts: Facts) -> Counter[str] | None:
    found = facts.get(pool, name)
    return Counter(map(str, found.value)) if isinstance(found, Known) and isinstance(found.value, tuple) else None
