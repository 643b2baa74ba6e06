"""The settings of a database server: from its files and command line, and from the server itself where the user names a
connection (``--db NAME=DSN``, :mod:`auditor.host.sql`).

What the server reports counts before its files. Whether it runs on this host, and which of the processes here it is,
follows from the other end of the connection; for a server that was not seen here, nothing on this host is read. A setting
that is changed while the server runs (SET GLOBAL, ALTER ROLE ... SET) is seen through such a connection alone.

Files that the configuration includes are asked for in a second round (``INCLUDES``). What these include themselves is not
followed, and leaves the settings unknown.

:func:`withdraw` compares the files with the start of the server: one that was changed later need not be what runs. What a
server reads only at its start is not in force before the next one; where a reload takes it over, nothing that lasts tells
whether there was one. So such a setting is unknown for today, unless the server itself or its command line says it. The owner
of a file can give it any mtime, so its ctime counts. A file that was removed since is not seen, except from a folder of
included files. (man 2 utimensat; man 7 inode; man 5 proc_pid_stat, starttime)
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from functools import partial
from math import inf

from auditor.databases import ENGINES, SERVERS, configuration, servers
from auditor.databases.engine import ARGUMENT, WITHHELD, Engine, Launch, Settings, set_at_start
from auditor.facts import HOST, Fact, Facts, Known, Reason, Spec, Subject, Unknown, known, unknown
from auditor.host import sql
from auditor.host.request import ANY, Command, Files, Output, Read, Run, Skip
from auditor.sources.source import document, source, text_of
from auditor.text import argument

SETTINGS_FACTS = {
    **{each.fact: each.spec for engine in ENGINES.values() for each in engine.settings if each.fact},
    "torn_page_guard": Spec.flag("full_page_writes, or the doublewrite buffer keeps whole pages"),
    "page_checksums": Spec.flag("PostgreSQL data_checksums: a damaged page is noticed when it is read"),
    "flush_method": Spec.word("innodb_flush_method in capitals, or default"),
    "doublewrite": Spec.word("innodb_doublewrite", "OFF", "ON", "DETECT_ONLY", "DETECT_AND_RECOVER", "FAST"),
    "sync_binlog": Spec.number("MySQL, MariaDB sync_binlog; 1 where no binary log is written"),
    "configured": Spec.words("NAME = VALUE of the settings that its files and command line say"),
    "standalone": Spec.flag("MongoDB: it is no member of a replica set"),
    "decided": Spec.words("its facts that its command line or environment says, whatever the files say"),
    "loaded": Spec.word(
        "whether what its files say is what runs: in force, not in force (before the next start), or unknown",
        *("in force", "not in force", "cannot tell"),
    ),
    "directories": Spec.words("log:PATH and data:PATH of its files, besides links in its data directory"),
}


def request_settings(database: Subject, facts: Facts) -> Read | Skip:
    """The files that its command line names, else those of its documentation; and what these include, once that is known."""
    name, _, place = database.name.partition(" ")
    if place == configuration.ELSEWHERE:
        return Skip("its files are not those of this host", applies=False)
    if why := _unanswered(facts, name):
        return why
    engine = ENGINES[name]
    lines = engine.arguments(facts.get(database, "arguments").words())
    launch = Launch(
        place,
        {each.name: (each.value, "command line") for each in lines if each.kind == "setting"},
        dict(each.split("=", 1) for each in facts.get(database, "variables").words() if "=" in each),
        data_directory=facts.get(database, "data_directory").word(),
        program=facts.get(database, "program").word(),
        config=facts.get(database, "start_config").word(),
    )
    try:
        names = engine.wanted(launch)
    except ValueError as error:
        return Skip(f"{database.name}: {error}", "run as root")
    names += [each for each in facts.get(database, "includes").words() if each not in names]
    root = configuration.root_of(database)
    process = root.removesuffix("root")
    own = ("cwd",) if process == "/proc/self/" else ("cmdline", "environ", "cwd", "exe")
    # of the last part a pattern is meant
    safe = [
        each
        for each in names
        if configuration.plain(posixpath.dirname(each)) and configuration.printable(each) and not each.endswith("/..")
    ]
    return Read((*(process + each for each in own), *(root + each for each in safe)), place)


# a server that is asked says what is in force
@source("database_settings", "database", ask=request_settings, facts=SETTINGS_FACTS, after=("database_sql",))
def database_settings(reply: Files, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where something that could override a setting was not read."""
    name, _, place = database.name.partition(" ")
    engine, here = ENGINES[name], f"/proc/{place}/"
    given: Settings = {}
    if place.isdigit():
        line = reply.text.get(here + "cmdline", "")
        if not line.endswith("\0"):
            raise ValueError(f"{here}cmdline: {reply.errors.get(here + 'cmdline', 'is cut off')}")
        given = configuration.from_command_line(engine, line, place)
    environ = reply.text.get(here + "environ")
    variables = None if environ is None else dict(configuration.environment(environ))
    if withheld := [each for each in engine.variables if (variables or {}).get(each) == WITHHELD]:
        raise ValueError(f"{here}environ: {withheld[0]} is withheld, as it does not look like a path")
    launch = Launch(
        place,
        given,
        variables,
        program=reply.links.get(here + "exe", "").removesuffix(" (deleted)"),
        folder=place if place.startswith("/") else reply.links.get(here + "cwd", ""),
        others=ARGUMENT in reply.text.get(here + "cmdline", ""),
    )
    tree = configuration.Tree(reply, configuration.root_of(database))
    in_doubt = configuration.doubts(engine, reply.unkept)
    found = [(fact, value) for fact, value in engine.read(launch, tree) if not in_doubt(fact)]
    yield from (Fact(database, fact, value) for fact, value in found)
    if engine.compared:
        yield Fact(database, "configured", configuration.in_words(found))
    if place.isdigit():
        later = [path for path, after in reply.changed.items() if after > AT_ONCE_S]
        persisted = any(_is_persisted(engine, path) for path in later)
        own = tuple(fact for fact, value in found if set_at_start(value) and not persisted)
        yield Fact(database, "decided", known(own, ", ".join(own) or "none", f"tr '\\0' ' ' <{here}cmdline"))
        if changed := tree.changed():
            yield Fact(database, "loaded", _loaded(engine, place, *changed))


def _is_persisted(engine: Engine, path: str) -> bool:
    """Whether it is the file that the server writes itself, and which counts before the command line."""
    return bool(engine.persists) and path.endswith(f"/{engine.persists}")


AT_ONCE_S = (
    0.05  # the kernel tells the start of a process in hundredths of a second; no server reads its files so early
)


def _loaded(engine: Engine, process: str, path: str, after: float) -> Known:
    """path: what was changed last of the files that count, so many seconds after the process started."""
    seen = partial(
        known, command=f"stat -c '%z %n' {argument(path)}; ps -o lstart= -p {process}" if path else f"ps {process}"
    )
    if after <= AT_ONCE_S:
        text = f"{path} was changed before process {process} started" if path else "no file of it counts"
        return seen("in force", text)
    when = "it is not known when" if after == inf else f"{after:,.0f} s after process {process} started"
    at_start = not engine.taken_over and not _is_persisted(engine, path)
    return seen("not in force" if at_start and after < inf else "cannot tell", f"{path} was changed {when}")


def _unanswered(facts: Facts, engine: str) -> Skip | None:
    """Where the user named a connection, and it failed, the files of that server are not what he asked for."""
    dsn, named, connected = (
        facts.get(HOST, each) for each in ("database_connection", "connected_engine", "connected_database")
    )
    asked = isinstance(dsn, Known) and bool(dsn.value) and isinstance(named, Known) and named.value == engine
    if asked and isinstance(connected, Unknown):
        reason = connected.reasons[0]
        return Skip(f"{reason.text}; without a connection its files are read", reason.remedy)
    return None


INCLUDES_FACTS = {"includes": Spec.words("paths and patterns of the files that its configuration includes")}
MOST = 100  # of a configuration that anybody may have written
ENDS = {"include": "", "include_if_exists": "", "include_dir": "/*.conf", "!include": "", "!includedir": "/*.cnf"}


@source("database_includes", "database", ask=request_settings, facts=INCLUDES_FACTS)
def database_includes(reply: Files, database: Subject) -> Iterator[Fact]:
    """Paths as the server sees them; a relative one is below the folder of the file that names it. Raises ValueError where a
    file was not read."""
    root, known_ = configuration.root_of(database), ENGINES[database.name.partition(" ")[0]].known
    if why := next(
        (f"{path}: {error}" for path, error in reply.errors.items() if configuration.failed(path, error, root)), ""
    ):
        raise ValueError(why.removeprefix(root))
    found: dict[str, str] = {}
    for full, text in sorted(reply.text.items()):
        path = full.removeprefix(root)
        form = configuration.form(posixpath.basename(path)) if full.startswith(f"{root}/") else None
        for line in form[0](text, known_) if form else ():
            if line.name in ENDS and line.kind == "setting" and line.value != WITHHELD:
                other = posixpath.normpath(posixpath.join(posixpath.dirname(path), line.value)) + ENDS[line.name]
                if root + other not in (*reply.text, *reply.errors):
                    found.setdefault(other, f"{path} includes {line.value}")
    paths = tuple(each for each in found if configuration.plain(posixpath.dirname(each)))[:MOST]
    yield Fact(database, "includes", known(paths, "; ".join(found[each] for each in paths) or "no more files"))


NOT_SAID = frozenset(
    [
        "standalone",
        "commit_interval_ms",
        "journal",
        "no_fsync",
        "appendonly",
        "appendfsync",
        "configured",
        "decided",
        "loaded",
    ]
)
SQL_FACTS = {
    **{name: spec for name, spec in SETTINGS_FACTS.items() if name not in NOT_SAID},
    "engine": servers.PROCESSES_FACTS["database.engine"],
    "process": servers.PROCESSES_FACTS["database.process"],
    "data_directory": servers.PROCESS_FACTS["data_directory"],
    "in_force": Spec.words("NAME = VALUE of the settings that the server itself says are in force"),
    "asynchronous_roles": Spec.words("PostgreSQL: roles and databases that set synchronous_commit off for themselves"),
    "archived_s": Spec.number("PostgreSQL: when it archived WAL last, seconds since the epoch; 0: never"),
    "standbys": Spec.number("standbys, pg_receivewal, and what reads the binary log, from an address of other hosts"),
    "redo_log": Spec.flag("MySQL: InnoDB writes its redo log, which ALTER INSTANCE can turn off"),
    "host.connected_database": Spec.link("database", "the one that --db connects to"),
    "host.connection_unseen": Spec.word("why it was not seen here, or empty"),
}


def request_sql(host: Subject, facts: Facts) -> Run | Skip:
    named, dsn = (facts.get(HOST, name) for name in ("connected_engine", "database_connection"))
    if not (isinstance(named, Known) and isinstance(dsn, Known) and dsn.value):
        return Skip("no connection was named", "--db NAME=DSN", applies=False)
    extra, package = sql.EXTRAS[sql.DRIVERS[str(named.value)]]
    return Run((sql.NAME, str(named.value), str(dsn.value)), package=package, extra=extra)


# the kernel says who runs here
@source(
    "database_sql",
    "host",
    ask=request_sql,
    runs=(*(Command((sql.NAME, engine), others=ANY) for engine in sql.DRIVERS),),
    facts=SQL_FACTS,
    subject="database",
    after=("database_processes",),
    form="json",
)
def database_sql(reply: Output, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where another server answers than the one that was named."""
    engine, found = reply.command.removeprefix("--db ").partition("=")[0], document(reply.text)
    process = found.get("process")
    if process is not None and not (isinstance(process, int) and 0 < process < 1 << 32):
        raise ValueError(f"{str(process)[:40]} is no process")
    of = SERVERS.get(str(found.get("name")), ENGINES[engine]).name  # MariaDB may be called mysqld
    subject = Subject("database", f"{of} {process or configuration.ELSEWHERE}")
    yield Fact(HOST, "connected_database", known(subject, f"{reply.command} leads to {subject.name}"))
    yield Fact(HOST, "connection_unseen", known("" if process else text_of(found, "unseen"), reply.command))
    yield Fact(subject, "engine", known(of, reply.command))
    if process:
        yield Fact(subject, "process", known(str(process), f"process {process} has the other end", f"ps {process}"))
    facts = list(ENGINES[engine].in_force(found))
    yield from (Fact(subject, name, value) for name, value in facts)
    yield Fact(subject, "in_force", configuration.in_words(facts))


STAYS = ("page_bytes", "directories", "configured", "loaded", "decided")
"""Which no reload changes, or which say what the files say."""
NOT_SEEN = unknown(
    "when its files were changed was not recorded: whether they are in force is not known", "record again"
)
Held = frozenset[tuple[Subject, str]]


def known_before(facts: Facts, databases: Iterable[Subject]) -> Held:
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
