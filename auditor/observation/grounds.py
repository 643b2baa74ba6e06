"""The facts behind a reason of the model, whose evidence or remedy is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from auditor import data
from auditor.durability.answers import Reason
from auditor.facts import HOST, Fact, Facts, Kind, Subject
from auditor.observation.whole_host import Observation

FILE = "grounds.toml"
CALLED: tuple[Kind, ...] = ("pool", "dataset", "database")
INSIDE: tuple[Kind, ...] = ("vdev", "leaf")


@cache
def facts_of() -> Mapping[str, tuple[str, ...]]:
    """KIND.NAME of the facts of each element."""
    table = data.table(FILE)
    groups = {f"@{name}": names for name, names in table["groups"].items()}
    return {
        element: tuple(name for each in names for name in groups.get(each, [each]))
        for element, names in table["elements"].items()
    }


def because(facts: Facts, observation: Observation, reason: Reason) -> tuple[Fact, ...]:
    """The facts of its subject that were looked at; none where the reason is the event itself."""
    wanted = facts_of().get(reason.element, ())
    found = list[Fact]()
    for subject in dict.fromkeys((HOST, *subjects(facts, observation, reason.subject))):
        own = facts.of(subject)
        names = (each.partition(".")[2] for each in wanted if each.startswith(f"{subject.kind}."))
        found += (Fact(subject, name, own[name]) for name in names if name in own)
    return tuple(found)


def subjects(facts: Facts, observation: Observation, name: str) -> Iterator[Subject]:
    """Whatever the model calls so."""
    yield from observation.about.get(name, ())
    words = name.split(" ")  # a name of a pool may have blanks
    parts = ((" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words)))
    inside = (Subject(kind, part, pool) for pool, part in parts for kind in INSIDE)
    for subject in (*(Subject(kind, name) for kind in CALLED), *inside):
        if facts.of(subject):
            yield subject
    for database in facts.linked(HOST, "databases"):
        places = facts.linked(database, "datasets")
        if name == database.name:
            yield from places
        elif name == f"the files of {database.name}" or any(each.name == name for each in places):
            yield database
