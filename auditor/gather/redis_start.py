"""Whether a Redis whose title hides its arguments was given any that override its file.

Redis copies its title over its arguments and fills the rest with NUL bytes (src/setproctitle.c), so what is left of them still
is as long as they were: the command of its unit has to have that length, too.
"""

from __future__ import annotations

from auditor.collect import redis_unit
from auditor.databases.redis import ENGINE
from auditor.facts import Fact, Facts, Known, Subject, Unknown, unknown

SAYS = tuple(each.fact for each in ENGINE.settings if each.fact)
REMEDY = "redis-cli CONFIG GET 'append*' shows what is in force"


def compare(facts: Facts) -> None:
    """All of them. Where their arguments are not known, what the file says of durability is not believed."""
    for database in list(facts.subjects("database")):
        if redis_unit.hidden(database, facts) and (why := _doubt(database, facts)):
            for name in SAYS:
                if isinstance(facts.get(database, name), Known):
                    facts.replace(Fact(database, name, why))


def _doubt(database: Subject, facts: Facts) -> Unknown | None:
    text = f"{database.name}: its title hides what it was given on its command line, which overrides its file"
    left, start = facts.get(database, "arguments_bytes"), facts.get(database, "start_arguments")
    if isinstance(start, Unknown):
        return unknown(f"{text}; {start.reasons[0].text}", REMEDY)
    assert isinstance(start.value, tuple)
    size = sum(len(str(each)) + 1 for each in start.value)
    if not (isinstance(left, Known) and left.value == size):
        return unknown(f"{text}; it was not as long as that of its unit ({start.evidence[0].text})", REMEDY)
    return None
