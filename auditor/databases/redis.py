"""Redis, and Valkey, which was forked from it. (redis.conf of 7.0; src/config.c, src/sds.c sdssplitargs)

Both write a title over their arguments (set-proc-title; before 6.2 always), so /proc/PID/cmdline does not show the options that
were given behind its file, and these override it (src/server.c, main(), redisSetProcTitle(); src/setproctitle.c). ``systemctl
show`` says them. A line is kept whose options are all known not to say how anything is written; any other is not, so that what
it gives is unknown. It fills the rest of its arguments with NUL bytes, so what is left of them still is as long as they were:
the command of its unit has to have that length, too (:func:`compare`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from auditor.databases import engine as base
from auditor.databases.engine import Engine, Found, InForce, Launch, Line, Promise, Setting, Shape
from auditor.facts import Evidence, Fact, Facts, Known, Spec, Subject, Unknown, Value, known, unknown
from auditor.host.request import Output, Run, Skip
from auditor.sources.source import source
from auditor.sources.units import show
from auditor.text import argument

if TYPE_CHECKING:
    from auditor.databases.configuration import Tree

POLICIES = ("always", "everysec", "no")


def conf(text: str, known: Mapping[str, Shape]) -> list[Line]:
    """redis.conf: ``name value``, names in any case; a value may stand in quotes."""

    def read(line: str) -> Line:
        if line.startswith("#"):
            return base.OTHER
        name, _, value = line.replace("\t", " ").partition(" ")
        name, value = name.lower(), value.strip()
        if not all(each.isalnum() or each in "-_." for each in name):  # in quotes, or withheld
            return base.DOUBT
        if name not in known:
            return base.OTHER
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = value[1:-1]
        elif " " in value:
            value = base.WITHHELD
        value = base.keep(value, known[name])
        shown = value if base.plain(value) or value == base.WITHHELD else f'"{value}"'
        return Line(f"{name} {shown}", "setting", name, value)

    return base.by_line(text, read)


def _policy(value: str) -> str:
    if value not in POLICIES:
        raise ValueError(f"{value[:20]!r} is none of {', '.join(POLICIES)}")
    return value


class Redis(Engine):
    """default_file: that its packages start it with. client: the program that asks it."""

    client = "redis-cli"

    name = "redis"
    place = 7
    title = "Redis"
    page_bytes = 0  # its files are written from end to end (Redis manual, Persistence)
    processes = ("redis-server",)
    default_file = "/etc/redis/redis.conf"
    settings = (
        Setting("appendonly", base.word, "appendonly", Spec.flag("Redis appendonly"), "no", base.boolean),
        Setting("appendfsync", base.word, "appendfsync", Spec.word("Redis", *POLICIES), "everysec", _policy),
        Setting("dir", base.place),
        Setting("include", base.path),
    )
    files = (("redis*.conf", conf), ("valkey*.conf", conf))  # either may be started with a file of the other's
    taken_over = "CONFIG SET with CONFIG REWRITE"
    units = "redis*.service"
    data_options = ("dir",)
    at_home = True  # redis.conf of 7.0, dir
    in_place = ()
    compared = ("appendonly", "appendfsync")
    omitting: Mapping[str, tuple[Value, ...]] = {"appendfsync": ("no", "everysec")}
    new_on_empty = "Redis without a file begins with no keys"

    def arguments(self, given: Sequence[str]) -> list[Line]:
        """``[FILE] --name value``; most builds put a title in their place."""
        first = (
            given[:1]
            if given and not given[0].startswith("-") and given[0] not in ("", base.WITHHELD, base.ARGUMENT)
            else []
        )
        lines = [Line(value, "setting", "config", value) for value in (base.keep(each, base.path) for each in first)]
        values = {each.name: (each.name, each.shape) for each in self.settings}
        return [*lines, *base.dashed(given[len(first) :], values, {})]

    def wanted(self, launch: Launch) -> list[str]:
        return [launch.given.get("config", (launch.config or self.default_file,))[0]]

    def read(self, launch: Launch, tree: Tree) -> Found:
        """Its title does not tell the file that it read; that of its unit, or of the package, is believed where dir is its
        working directory. For what its title hides see :func:`compare`."""
        file = launch.given.get("config", (next(iter(tree.asked()), self.default_file), ""))[0]
        settings = tree.settings(file, self) | launch.given
        if "include" in settings:
            raise ValueError(f"{file}: includes {settings['include'][0]}, which was not read")
        home = settings.get("dir", ("", ""))[0]
        if home.rstrip("/") != launch.folder:
            why = f"its dir is not {launch.folder or 'known to be its working directory'}"
            raise ValueError(f"{file}: {why}, so it is not the file that was read")
        yield from base.setting_facts(self, settings)
        if home.startswith("/"):
            seen = Evidence(f"dir {home}", f"grep ^dir {argument(file)}")
            yield "directories", Known((f"data:{home}", f"log:{home}"), (seen,))

    def promise(self, settings: InForce, synchronous: bool | None) -> Promise:
        """everysec holds a write back for two seconds while a sync runs (aof.c flushAppendOnlyFile())."""
        append, sync = settings.flag("appendonly"), settings.word("appendfsync")
        if append is False:
            return Promise(False, "never")
        if append is None or sync is None:
            return Promise(None, None)
        return {"always": Promise(), "no": Promise(True, "never")}.get(sync, Promise(False, "later"))


class Valkey(Redis):
    """The fork of Redis 7.2.4. What it does between a write and its answer is the same, and so are its settings and their
    defaults. (valkey-io/valkey src/config.c, src/aof.c flushAppendOnlyFile(), src/setproctitle.c; valkey.conf of 8.0)"""

    client = "valkey-cli"
    name = "valkey"
    place = 8
    title = "Valkey"
    processes = ("valkey-server",)
    default_file = "/etc/valkey/valkey.conf"
    units = "valkey*.service"  # valkey-server.service of Debian, valkey.service of Fedora
    new_on_empty = "Valkey without a file begins with no keys"


ENGINE = Redis()
VALKEY = Valkey()
FAMILY = (ENGINE, VALKEY)

UNIT_FACTS = {
    "start_config": Spec.word("the configuration file with which systemd starts it"),
    "start_arguments": Spec.words(
        "all that systemd starts it with, besides its name: nothing of it says how anything is written"
    ),
}
SHOWN = "--property=MainPID,ExecStart"
_OPTIONS = "supervised|daemonize|port|pidfile|unixsocket|logfile"


def _start(engine: Redis) -> str:
    """A line of systemctl in which its unit starts it with a file, and with nothing that says how anything is written."""
    return (
        rf"ExecStart=\{{ path=\S+ ; argv\[\]=\S*/{engine.processes[0]}(?P<given> (?P<file>/[\w./@-]+)"
        rf"(?: --(?:{_OPTIONS}) [\w./@-]+)*) ; ignore_errors=[^{{}}]*\}}"
    )


def unit_lines(engine: Redis) -> str:
    return rf"^(?:|MainPID=\d+|{_start(engine)})$"


def _titled(database: Subject) -> Redis | None:
    """Its engine, where that may write a title over its arguments."""
    return next((each for each in FAMILY if database.name.startswith(f"{each.name} ")), None)


def request(database: Subject, facts: Facts) -> Run | Skip:
    """All units of its engine, running or loaded: which is that of a process they say themselves."""
    engine = _titled(database)
    if engine is None or not database.name.partition(" ")[2].isdigit():
        return Skip("it is no Redis that runs here", applies=False)
    argv = ("systemctl", "show", SHOWN, engine.units)
    return Run(argv, package="systemd", keep=unit_lines(engine))


def hides_arguments(database: Subject, facts: Facts) -> bool:
    """Whether a title stands in place of the arguments: none is left."""
    found = facts.get(database, "arguments")
    return _titled(database) is not None and isinstance(found, Known) and not found.value


@source("redis_unit", "database", ask=request, runs=(show(SHOWN, *(each.units for each in FAMILY)),), facts=UNIT_FACTS)
def redis_unit(reply: Output, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where no unit says that it started this process with a file and nothing that matters."""
    process, engine = database.name.partition(" ")[2], _titled(database)
    if engine is None:
        raise ValueError(f"{database.name} is no Redis")
    for unit in reply.text.split("\n\n"):
        if f"MainPID={process}" in (lines := unit.split("\n")):
            starts = [found for line in lines if (found := re.fullmatch(_start(engine), line))]
            if len(starts) == 1:
                given, file = starts[0]["given"], starts[0]["file"]
                text = f"{engine.processes[0]}{given}"
                yield Fact(database, "start_config", known(file, text, reply.command))
                yield Fact(database, "start_arguments", known(tuple(given.split()), text, reply.command))
                return
    raise ValueError(f"no unit says that it starts process {process} with a file and nothing that overrides it")


SAYS = tuple(each.fact for each in ENGINE.settings if each.fact)


def compare(facts: Facts) -> None:
    """All of them. Where their arguments are not known, what the file says of durability is not believed."""
    for database in list(facts.subjects("database")):
        engine = _titled(database)
        if engine and hides_arguments(database, facts) and (why := _doubt(database, engine, facts)):
            for name in SAYS:
                if isinstance(facts.get(database, name), Known):
                    facts.replace(Fact(database, name, why))


def _doubt(database: Subject, engine: Redis, facts: Facts) -> Unknown | None:
    text = f"{database.name}: its title hides what it was given on its command line, which overrides its file"
    remedy = f"{engine.client} CONFIG GET 'append*' shows what is in force"
    left, start = facts.get(database, "arguments_bytes"), facts.get(database, "start_arguments")
    if isinstance(start, Unknown):
        return unknown(f"{text}; {start.reasons[0].text}", remedy)
    assert isinstance(start.value, tuple)
    size = sum(len(str(each)) + 1 for each in start.value)
    if not (isinstance(left, Known) and left.value == size):
        return unknown(f"{text}; it was not as long as that of its unit ({start.evidence[0].text})", remedy)
    return None
