"""Nothing is decided by the alphabet of module names, nor by the order of keys in a table."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from auditor import audit, codec, data, registry
from auditor import selftest as law
from auditor.data import releases
from auditor.facts import Facts, Known
from auditor.judge import rule_file
from auditor.judge.rule import digest
from auditor.recording import recording
from auditor.sources.source import Source
from tests.folded import for_each
from tests.golden import HOSTS

SHUFFLED = random.Random(7)
LOOKED_AT = (
    "2.3-sync-disabled-local",
    "2.4-consistent-reading",
    "2.1-slog-legs-on-one-disk",
    "2.3-db-postgres-on-zvol",
)


def before(name: str) -> set[str]:
    """All collectors whose word counts before that of this one."""
    direct = registry.sources()[name].after
    return {*direct, *(each for other in direct for each in before(other))}


def test_of_two_collectors_that_know_a_fact_one_says_that_it_gives_way() -> None:
    givers = defaultdict(list)
    for name, module in registry.sources().items():
        for key, _ in registry.specs(module):
            givers[key].append(name)
    pairs = {pair for names in givers.values() for pair in combinations(names, 2)}
    assert len(pairs) > 5
    assert [(one, other) for one, other in sorted(pairs) if one not in before(other) and other not in before(one)] == []
    order = list(registry.sources())
    assert all(order.index(first) < order.index(name) for name in order for first in before(name))


def backwards(sources: Mapping[str, Source]) -> dict[str, Source]:
    """The same collectors as if the alphabet ran backwards."""
    ranks = {name: len(before(name)) for name in sources}
    return {name: sources[name] for name in sorted(sorted(sources, reverse=True), key=lambda name: ranks[name])}


def plain(facts: Facts) -> dict[Any, Any]:
    """What is known, of what, and of what it is not known."""
    return {(each.subject, each.name): each.value if isinstance(each.value, Known) else "" for each in facts}


@pytest.mark.parametrize("case", LOOKED_AT)
def test_no_fact_hangs_on_the_names_of_modules(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    past = recording.load(HOSTS / case)
    options = audit.Options.from_words(past.options)
    known = plain(audit.look(recording.ReplayHost(past), past.targets, options).facts)
    other = backwards(registry.sources())
    monkeypatch.setattr(registry, "sources", lambda: other)
    derivations = registry.derivations()[::-1]
    monkeypatch.setattr(registry, "derivations", lambda: derivations)
    assert plain(audit.look(recording.ReplayHost(past), past.targets, options).facts) == known


def shuffled(value: Any) -> Any:
    """The same TOML with the keys of every table in another order; arrays have one."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in SHUFFLED.sample(list(value), len(value))}
    return [shuffled(each) for each in value] if isinstance(value, list) else value


@for_each("path", sorted(data.RULES.glob("*.toml")), ids=lambda path: path.stem)
def test_no_rule_hangs_on_the_order_of_its_keys(path: Path) -> None:
    table = codec.loads_toml(path.read_text())
    one, other = (rule_file.from_table(path.stem, "", each, registry.registry()) for each in (table, shuffled(table)))
    assert digest([one]) == digest([other])
    for each in other.examples:
        found = law.run_example(other, each, registry.registry())
        assert (found.outcome, found.severity) == (each.verdict, each.severity or found.severity)


def test_no_build_hangs_on_the_order_of_keys() -> None:
    assert releases.parse_builds(shuffled(data.table(releases.BUILDS))) == releases.load_builds()
