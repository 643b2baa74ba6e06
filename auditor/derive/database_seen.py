"""Whether the databases that the user or the policy names were found: where none was, nobody has looked at its settings."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.databases import ENGINES
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Reason, Subject, Unknown, flag

SUBJECT = "host"
FACTS = {
    "database_expected": flag("--db or the policy names a database"),
    "database_seen": flag("of each database that is named, a server or a data directory was found"),
}
SAME = {"mariadb": "mysql"}  # a server of one is often asked for by the name of the other


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown, never false: what was not found may run elsewhere, later, or out of sight."""
    expected = dict(_expected(facts))
    named = tuple(Evidence(f"{ENGINES[name].title} is named", command) for name, command in expected.items())
    yield Fact(HOST, "database_expected", Known(bool(expected), named or (Evidence("no database named", "--db"),)))
    found = facts.get(HOST, "databases")
    if isinstance(found, Unknown):
        yield Fact(HOST, "database_seen", found)
        return
    here = {}
    for database in facts.linked(HOST, "databases"):
        match facts.get(database, "engine"), facts.get(database, "unexamined"):
            case Known(str() as engine), Unknown():  # not one that stands for many
                here[SAME.get(engine, engine)] = database
    missing = [name for name in expected if SAME.get(name, name) not in here]
    if missing:
        yield Fact(HOST, "database_seen", Unknown(tuple(map(_unseen, missing))))
    else:
        seen = tuple(Evidence(f"{here[SAME.get(name, name)].name} was looked at", "ps -e") for name in expected)
        yield Fact(HOST, "database_seen", Known(True, seen or (Evidence("no database named", "--db"),)))


def _expected(facts: Facts) -> Iterator[tuple[str, str]]:
    """(the word for a database, what names it)."""
    asked = [(HOST, "database"), (HOST, "connected_engine")]
    for subject, fact in (*asked, *((each, "database") for each in facts.subjects("dataset"))):
        match facts.get(subject, fact):
            case Known(str() as name, seen) if name:
                yield name, seen[0].command if seen else "--db"


def _unseen(name: str) -> Reason:
    return Reason(
        f"no {ENGINES[name].title} was found that keeps files on what is audited: its settings were not looked at",
        f"start it, or name its data directory: --db {name}=DIR",
    )
