"""Redis. (redis.conf of 7.0; src/config.c, src/sds.c sdssplitargs)

It writes a title over its arguments (set-proc-title; before 6.2 always), so /proc/PID/cmdline does not show the options that
were given behind its file, and these override it (src/server.c, main(), redisSetProcTitle(); src/setproctitle.c). ``systemctl
show`` says them. A line is kept whose options are all known not to say how anything is written; any other is not, so that what
it gives is unknown. It fills the rest of its arguments with NUL bytes, so what is left of them still is as long as they were:
the command of its unit has to have that length, too (:func:`compare`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from auditor.databases.engine import (
    ARGUMENT,
    DOUBT,
    OTHER,
    WITHHELD,
    Engine,
    Line,
    Setting,
    Shape,
    boolean,
    by_line,
    kept,
    path,
    place,
    plain,
    word,
)
from auditor.databases.forms import dashed
from auditor.facts import Fact, Facts, Known, Subject, Unknown, flag, known, unknown, words
from auditor.facts import word as one_of
from auditor.host.request import Output, Run, Skip
from auditor.sources.source import source

CONF = "/etc/redis/redis.conf"
POLICIES = ("always", "everysec", "no")


def conf(text: str, known: Mapping[str, Shape]) -> list[Line]:
    """redis.conf: ``name value``, names in any case; a value may stand in quotes."""

    def read(line: str) -> Line:
        if line.startswith("#"):
            return OTHER
        name, _, value = line.replace("\t", " ").partition(" ")
        name, value = name.lower(), value.strip()
        if not all(each.isalnum() or each in "-_." for each in name):  # in quotes, or withheld
            return DOUBT
        if name not in known:
            return OTHER
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = value[1:-1]
        elif " " in value:
            value = WITHHELD
        value = kept(value, known[name])
        shown = value if plain(value) or value == WITHHELD else f'"{value}"'
        return Line(f"{name} {shown}", "setting", name, value)

    return by_line(text, read)


def arguments(given: Sequence[str]) -> list[Line]:
    """``[FILE] --name value``; most builds put a title in their place."""
    first = given[:1] if given and not given[0].startswith("-") and given[0] not in ("", WITHHELD, ARGUMENT) else []
    lines = [Line(value, "setting", "config", value) for value in (kept(each, path) for each in first)]
    values = {each.name: (each.name, each.shape) for each in ENGINE.settings}
    return [*lines, *dashed(given[len(first) :], values, {})]


def _policy(value: str) -> str:
    if value not in POLICIES:
        raise ValueError(f"{value[:20]!r} is none of {', '.join(POLICIES)}")
    return value


ENGINE = Engine(
    name="redis",
    title="Redis",
    page_bytes=0,
    page_source="Redis manual, Persistence: its files are written from end to end",
    processes=("redis-server",),
    settings=(
        Setting("appendonly", word, "appendonly", flag("Redis appendonly"), "no", boolean),
        Setting("appendfsync", word, "appendfsync", one_of("Redis", *POLICIES), "everysec", _policy),
        Setting("dir", place),
        Setting("include", path),
    ),
    files=(("redis*.conf", conf),),
    arguments=arguments,
    data_options=("dir",),
    at_home=True,  # redis.conf of 7.0, dir
    taken_over="CONFIG SET with CONFIG REWRITE",
    compared=("appendonly", "appendfsync"),
)


UNIT_FACTS = {
    "start_config": one_of("the configuration file with which systemd starts it"),
    "start_arguments": words(
        "all that systemd starts it with, besides its name: nothing of it says how anything is written"
    ),
}
_OPTIONS = "supervised|daemonize|port|pidfile|unixsocket|logfile"
_START = (
    r"ExecStart=\{ path=\S+ ; argv\[\]=\S*/redis-server(?P<given> (?P<file>/[\w./@-]+)"
    rf"(?: --(?:{_OPTIONS}) [\w./@-]+)*) ; ignore_errors=[^{{}}]*\}}"
)
KEEP = rf"^(?:|MainPID=\d+|{_START})$"


def request(database: Subject, facts: Facts) -> Run | Skip:
    """All units of Redis, running or loaded: which is that of a process they say themselves."""
    engine, _, process = database.name.partition(" ")
    if engine != "redis" or not process.isdigit():
        return Skip("it is no Redis that runs here", applies=False)
    return Run(("systemctl", "show", "--property=MainPID,ExecStart", "redis*.service"), package="systemd", keep=KEEP)


def hidden(database: Subject, facts: Facts) -> bool:
    """Whether a title stands in place of the arguments: none is left."""
    found = facts.get(database, "arguments")
    return database.name.startswith("redis ") and isinstance(found, Known) and not found.value


@source("redis_unit", "database", ask=request, facts=UNIT_FACTS)
def redis_unit(reply: Output, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where no unit says that it started this process with a file and nothing that matters."""
    process = database.name.partition(" ")[2]
    for unit in reply.text.split("\n\n"):
        if f"MainPID={process}" in (lines := unit.split("\n")):
            starts = [found for line in lines if (found := re.fullmatch(_START, line))]
            if len(starts) == 1:
                given, path = starts[0]["given"], starts[0]["file"]
                yield Fact(database, "start_config", known(path, f"redis-server{given}", reply.command))
                arguments = tuple(given.split())
                yield Fact(database, "start_arguments", known(arguments, f"redis-server{given}", reply.command))
                return
    raise ValueError(f"no unit says that it starts process {process} with a file and nothing that overrides it")


SAYS = tuple(each.fact for each in ENGINE.settings if each.fact)
REMEDY = "redis-cli CONFIG GET 'append*' shows what is in force"


def compare(facts: Facts) -> None:
    """All of them. Where their arguments are not known, what the file says of durability is not believed."""
    for database in list(facts.subjects("database")):
        if hidden(database, facts) and (why := _doubt(database, facts)):
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


SOURCES = (redis_unit,)
