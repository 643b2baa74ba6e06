"""The files beside postgresql.conf, where that one includes some of them: Patroni's has ``include 'postgresql.base.conf'``.

Asked only where a file was included that the first question did not name; what is kept of them is what is kept of any.
(Patroni, docs/patroni_configuration.rst; PostgreSQL manual, Managing Configuration File Contents)
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from auditor.collect import database_settings
from auditor.databases import ENGINES
from auditor.facts import Fact, Facts, Subject, Unknown
from auditor.host.request import Files, Read, Skip

PER = "database"
SUBJECT = "database"
_OWN = {each.fact for each in ENGINES["postgres"].settings if each.fact}
FACTS = {
    name: spec
    for name, spec in database_settings.FACTS.items()
    if name in _OWN or name in ("page_bytes", "torn_page_guard", "configured", "directories")
}


def request(database: Subject, facts: Facts) -> Read | Skip:
    """The same files and all of their folder."""
    first = database_settings.request(database, facts)
    known = facts.get(database, "directories")
    included = isinstance(known, Unknown) and any("was not read" in reason.text for reason in known.reasons)
    if not database.name.startswith("postgres ") or not included or isinstance(first, Skip):
        return Skip("no file that its configuration includes is missing", applies=False)
    config = next(each for each in first.patterns if "/root/" in each and each.endswith(".conf") and "*" not in each)
    return first._replace(patterns=(*first.patterns, f"{posixpath.dirname(config)}/*.conf"))


def parse(reply: Files, database: Subject) -> Iterator[Fact]:
    """As database_settings has it. Raises ValueError where a file that counts was not read."""
    yield from database_settings.parse(reply, database)
