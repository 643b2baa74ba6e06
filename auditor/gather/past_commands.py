"""What ``zpool history`` says with and without ``-i``: a command that one of them lacks was lost, or just given."""

from __future__ import annotations

import re
from collections import Counter

from auditor.facts import HOST, Fact, Facts, Known, Subject, unknown
from auditor.sources import zpool_history
from auditor.text import harmless

_COMMAND = re.compile(zpool_history.COMMANDS)


def compare(facts: Facts) -> None:
    """All pools."""
    for pool in facts.linked(HOST, "pools"):
        first, second = _lines(pool, "history", facts), _lines(pool, "history_again", facts)
        if first is None or second is None or first == second:
            continue
        only = sorted(((first - second) + (second - first)).elements())[0]
        text = f"of zpool history and zpool history -i only one has {harmless(only)[:80]}"
        for name in zpool_history.history.facts:
            facts.replace(Fact(pool, name, unknown(text, "run zaudit again")))


def _lines(pool: Subject, name: str, facts: Facts) -> Counter[str] | None:
    """How often each command stands there; a line that only names one is none."""
    found = facts.get(pool, name)
    if not isinstance(found, Known) or not isinstance(found.value, tuple):
        return None
    return Counter(line for line in map(str, found.value) if _COMMAND.search(line))
