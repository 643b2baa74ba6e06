"""Whether the files of a database server were changed after it started: then what they say need not be what runs.

It may have been started with "off" in a file that says "on" today, or the other way round. What a server reads at its start
alone is not in force before the next one; where a reload takes it over, nothing that lasts tells whether there was one. So
such a setting is unknown for today, unless the server itself or its command line says it. Who owns a file can give it any
mtime, so its ctime counts. (man 2 utimensat; man 7 inode; man 5 proc_pid_stat, starttime)

A file that was removed since is not seen, except from a folder of included files.
"""

from __future__ import annotations

from collections.abc import Iterable

from auditor.databases import ENGINES
from auditor.facts import Fact, Facts, Known, Reason, Subject, Unknown, unknown
from auditor.host import sql

STAYS = ("page_bytes", "directories", "configured", "loaded", "decided")
"""Which no reload changes, or which say what the files say."""
NOT_SEEN = unknown(
    "when its files were changed was not recorded: whether they are in force is not known", "record again"
)
Held = frozenset[tuple[Subject, str]]


def said(facts: Facts, databases: Iterable[Subject]) -> Held:
    """What is known before any file is read: from the server itself."""
    return frozenset(
        (each, name) for each in databases for name, value in facts.of(each).items() if isinstance(value, Known)
    )


def withdraw(facts: Facts, databases: Iterable[Subject], held: Held, names: Iterable[str]) -> None:
    """Make unknown what files alone say that are younger than the server. names: of the facts that come from its files."""
    settings = [name for name in names if name not in STAYS]
    for database in databases:
        loaded = facts.get(database, "loaded")
        if not isinstance(loaded, Known):
            if isinstance(facts.get(database, "configured"), Known):
                facts.put(Fact(database, "loaded", NOT_SEEN))
        elif loaded.value != "in force":
            why = _why(facts, database, loaded)
            decided = facts.get(database, "decided")
            own = decided.value if isinstance(decided, Known) and isinstance(decided.value, tuple) else ()
            for name in settings:
                if name not in own and (database, name) not in held and isinstance(facts.get(database, name), Known):
                    facts.replace(Fact(database, name, why))


def _why(facts: Facts, database: Subject, loaded: Known) -> Unknown:
    engine = ENGINES[database.name.partition(" ")[0]]
    if loaded.value == "not in force":
        then = "files are read when it starts, so what they say today is not what runs"
    else:
        then = f"whether {engine.taken_over} has brought files and server together since is not seen"
    remedy = f"--db {engine.name}=DSN asks the server" if engine.name in sql.DRIVERS else ""
    return Unknown((Reason(f"{loaded.evidence[0].text}; {then}", remedy),))
