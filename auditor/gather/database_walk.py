"""The databases of a host: those that run, and the one that the user named. Each question needs the answers before it."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import database_paths
from auditor.collect._database_files import ELSEWHERE
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, word
from auditor.gather import database_crowd, database_loaded, overlay
from auditor.gather.gatherer import Gatherer

PROVIDES = {
    **database_crowd.PROVIDES,
    "host.database": word("the database that the user named for all datasets, or empty"),
    "host.connected_engine": word("the database that the user named a connection to, or empty"),
    "host.database_directory": word("where the user said that the data of that database lies, or empty"),
    "host.database_connection": word("how the user said to connect to it, or empty"),
    "database.live": flag("its settings are those in force: it says them itself"),
}
PLACES: dict[str, tuple[str, ...]] = {
    "database_process": (),
    "redis_unit": (),
    "database_includes": (),
    "database_settings": ("directories",),
    "database_paths": ("mountinfo", "symlinks"),
    "database_links": ("more_symlinks",),
    "database_blocks": (),
}
"""What is asked one after the other, and what of it says where files are."""
STARTS = ("database_unit", "unit_start", "unit_conditions")  # once it is known where their file systems are mounted


def look_at(gatherer: Gatherer, facts: Facts, inventory: Facts) -> None:
    """The servers that run and the one that is named: each question needs the answers of the one before."""
    gatherer.settle(facts, ["database_processes", "database_sql"])
    crowds = database_crowd.choose(facts, lambda request: gatherer.host.read(request))
    named, directory = text_of(facts, "database"), text_of(facts, "database_directory")
    if text_of(facts, "database_connection") and (why := gatherer.failure("database_sql", HOST)):
        facts.put(Fact(HOST, "connected_database", why))
        if not facts.linked(HOST, "connected_database"):
            _not_reached(facts, text_of(facts, "connected_engine"))
    if directory:
        subject = Subject("database", f"{named} {directory}")
        seen = (Evidence(f"--db {named}={directory}", "zaudit check --db"),)
        for name, value in (("engine", named), ("process", "self"), ("data_directory", directory)):
            facts.put(Fact(subject, name, Known(value, seen)))
        _add_database(facts, subject, seen)
    for subject in facts.linked(HOST, "connected_database"):
        _add_database(facts, subject, (Evidence("--db"),))
        facts.put(Fact(subject, "live", Known(True, (Evidence("the server itself was asked", "--db"),))))
    databases = [each for each in facts.subjects("database") if each not in crowds]
    for each, why in crowds.items():
        facts.put_all(Fact(each, name, why) for name in _facts(gatherer))
    held = database_loaded.said(facts, databases)
    for name in PLACES:
        gatherer.ask(name, databases, facts)
        gatherer.settle(facts, [name])
        for each in databases:
            if why := gatherer.failure(name, each):  # else it would be "not looked at" to those that ask next
                facts.put_all(Fact(each, fact, why) for fact in PLACES[name] if fact not in facts.of(each))
    database_loaded.withdraw(facts, databases, held, gatherer.sources["database_settings"].facts)
    for each in databases:
        facts.put(Fact(each, "live", _not_asked(facts, each)))
    layers = overlay.of_databases(database_paths.tables(facts), facts, gatherer.host)
    facts.put_all(list(database_paths.lies_on(facts, inventory, layers)))
    for name in STARTS:
        gatherer.ask(name, databases, facts)
        gatherer.settle(facts, [name])
        for each in databases:
            if name == STARTS[0] and (why := gatherer.failure(name, each)):
                facts.put(Fact(each, "unit", why))


def _facts(gatherer: Gatherer) -> Iterator[str]:
    """The names of all facts of a database that anything here could give."""
    yield "live"
    for source in gatherer.sources.values():
        for name in source.facts:
            kind, _, bare = name.rpartition(".")
            if (kind or source.subject) == "database":
                yield bare


def _not_asked(facts: Facts, database: Subject) -> Judged:
    """Of one that does not answer it is open whether it is the one that was meant."""
    connected = facts.get(HOST, "connected_database")
    engine = text_of(facts, "connected_engine")
    if engine and isinstance(connected, Unknown) and database.name.startswith(f"{engine} "):
        return connected
    return Known(False, (Evidence("its files were read, and it was not asked itself"),))


def _not_reached(facts: Facts, engine: str) -> None:
    """A server that did not answer is undecided, and not left out. Where one of its kind runs here, it may be this one."""
    here = [each for each in facts.subjects("database") if each.name.startswith(f"{engine} ")]
    if not here:
        subject = Subject("database", f"{engine} {ELSEWHERE}")
        facts.put(Fact(subject, "engine", Known(engine, (Evidence(f"--db {engine}"),))))
        _add_database(facts, subject, (Evidence("--db"),))


def _add_database(facts: Facts, subject: Subject, seen: tuple[Evidence, ...]) -> None:
    """To those that were found; where nobody could see them, it stays unknown which there are."""
    found = facts.get(HOST, "database_processes")
    if isinstance(found, Known) and subject not in facts.linked(HOST, "database_processes"):
        both = (*facts.linked(HOST, "database_processes"), subject)
        facts.replace(Fact(HOST, "database_processes", Known(both, (*found.evidence, *seen))))


def text_of(facts: Facts, name: str) -> str:
    found = facts.get(HOST, name)
    return str(found.value) if isinstance(found, Known) else ""
