"""What the files and the command line of a database server say of its durability.

A setting that is changed while it runs (SET GLOBAL, ALTER ROLE ... SET) is not seen here. Defaults are those of the
manuals. (PostgreSQL 15 manual, Write Ahead Log; MySQL 8.0 and MariaDB manuals, InnoDB system variables; MongoDB 6.0 manual,
storage options; etcd server/embed/config.go; redis.conf of 7.0)
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from functools import partial
from math import inf

from auditor.collect import _database_files as files
from auditor.collect import _mysql, _postgres
from auditor.collect._database_files import Found, Settings, setting
from auditor.databases import ENGINES, kept
from auditor.databases.engine import ARGUMENT, WITHHELD
from auditor.databases.redis import CONF
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Known,
    Subject,
    Unknown,
    flag,
    known,
    number,
    word,
    word_of,
    words,
    words_of,
)
from auditor.host.request import Files, Read, Skip
from auditor.text import argument

PER = "database"
AFTER = ("database_sql",)  # a server that is asked says what is in force
SUBJECT = "database"
FACTS = {
    **{each.fact: each.spec for engine in ENGINES.values() for each in engine.settings if each.fact},
    "torn_page_guard": flag("full_page_writes, or the doublewrite buffer keeps whole pages"),
    "flush_method": word("innodb_flush_method in capitals, or default"),
    "doublewrite": word("innodb_doublewrite", "OFF", "ON", "DETECT_ONLY", "DETECT_AND_RECOVER", "FAST"),
    "sync_binlog": number("MySQL, MariaDB sync_binlog; 1 where no binary log is written"),
    "configured": words("NAME = VALUE of the settings that its files and command line say"),
    "standalone": flag("MongoDB: it is no member of a replica set"),
    "decided": words("its facts that its command line or environment says, whatever the files say"),
    "loaded": word(
        "whether what its files say is what runs: in force, not in force (before the next start), or one cannot tell",
        *("in force", "not in force", "cannot tell"),
    ),
    "directories": words("log:PATH and data:PATH of its files, besides links in its data directory"),
}


def request(database: Subject, facts: Facts) -> Read | Skip:
    """The files that its command line names, else those of its documentation; and what these include, once that is known."""
    engine, _, place = database.name.partition(" ")
    if place == files.ELSEWHERE:
        return Skip("its files are not those of this host", applies=False)
    if why := _unanswered(facts, engine):
        return why
    home = word_of(facts.get(database, "data_directory"))
    lines = ENGINES[engine].arguments(words_of(facts.get(database, "arguments")))
    given = {each.name: (each.value, "command line") for each in lines if each.kind == "setting"}
    variables = dict(each.split("=", 1) for each in words_of(facts.get(database, "variables")) if "=" in each)
    names: list[str] = []
    match engine:
        case "postgres":
            if not home:
                return Skip(f"where the data of {database.name} lies is not known", "run as root")
            names = _postgres.wanted(given, variables, home)
        case "mysql" | "mariadb":
            names = _mysql.wanted(engine, given, variables, home, word_of(facts.get(database, "program")))
        case "mongodb":
            names = [given.get("config", ("",))[0]]
        case "etcd":
            names = [given.get("config-file", ("",))[0] or variables.get("ETCD_CONFIG_FILE", "")]
        case "redis":
            names = [given.get("config", (word_of(facts.get(database, "start_config")) or CONF,))[0]]
    names += [each for each in words_of(facts.get(database, "includes")) if each not in names]
    root = files.root_of(database)
    process = root.removesuffix("root")
    own = ("cwd",) if process == "/proc/self/" else ("cmdline", "environ", "cwd", "exe")
    # of the last part a pattern is meant
    safe = [
        name
        for name in names
        if files.plain(posixpath.dirname(name)) and files.printable(name) and not name.endswith("/..")
    ]
    return Read((*(process + name for name in own), *(root + name for name in safe)), place)


def parse(reply: Files, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where something that could override a setting was not read."""
    engine, _, process = database.name.partition(" ")
    here = f"/proc/{process}/"
    tree = files.Tree(reply, files.root_of(database))
    given: Settings = {}
    if process.isdigit():
        line = reply.text.get(here + "cmdline", "")
        if not line.endswith("\0"):
            raise ValueError(f"{here}cmdline: {reply.errors.get(here + 'cmdline', 'is cut off')}")
        given = files.given(engine, line, process)
    environ = reply.text.get(here + "environ")
    variables = dict(kept.environment(environ or ""))
    if withheld := [name for name in ENGINES[engine].variables if variables.get(name) == WITHHELD]:
        raise ValueError(f"{here}environ: {withheld[0]} is withheld, as it does not look like a path")
    match engine:
        case "postgres":
            facts = _postgres.read(tree, reply, given, variables)
        case "mysql" | "mariadb":
            program = reply.links.get(here + "exe", "").removesuffix(" (deleted)")
            seen = None if environ is None else variables
            facts = _mysql.read(tree, reply, engine, process, given, seen, program)
        case "mongodb":
            old = not reply.changed and ("config" in given or ARGUMENT in reply.text.get(here + "cmdline", ""))
            facts = _mongodb(tree, given, old=old)
        case "etcd":
            if environ is None:
                raise ValueError(f"{here}environ: {reply.errors.get(here + 'environ', 'was not read')}")
            facts = _etcd(tree, given, variables)
        case _:
            root = files.root_of(database)
            asked = (each.removeprefix(root) for each in (*reply.text, *reply.errors) if each.startswith(f"{root}/"))
            path = given.get("config", (next(asked, CONF), ""))[0]
            home = process if process.startswith("/") else reply.links.get(here + "cwd", "")
            facts = _redis(tree, given, path, home)
    in_doubt = kept.doubtful(ENGINES[engine], reply.unkept)
    found = [(name, value) for name, value in facts if not in_doubt(name)]
    yield from (Fact(database, name, value) for name, value in found)
    if ENGINES[engine].compared:
        yield Fact(database, "configured", files.in_words(found))
    if process.isdigit():
        later = [path for path, after in reply.changed.items() if after > AT_ONCE_S]
        persisted = any(path.endswith(f"/{_mysql.PERSISTED}") for path in later)  # which outranked the command line
        own = tuple(name for name, value in found if files.decided(value) and not persisted)
        yield Fact(database, "decided", known(own, ", ".join(own) or "none", f"tr '\\0' ' ' <{here}cmdline"))
        if changed := tree.changed():
            yield Fact(database, "loaded", _loaded(engine, process, *changed))


AT_ONCE_S = (
    0.05  # the kernel tells the start of a process in hundredths of a second; no server reads its files so early
)


def _loaded(engine: str, process: str, path: str, after: float) -> Known:
    """path: what was changed last of the files that count, so many seconds after the process started."""
    seen = partial(
        known, command=f"stat -c '%z %n' {argument(path)}; ps -o lstart= -p {process}" if path else f"ps {process}"
    )
    if after <= AT_ONCE_S:
        text = f"{path} was changed before process {process} started" if path else "no file of it counts"
        return seen("in force", text)
    when = "it is not known when" if after == inf else f"{after:,.0f} s after process {process} started"
    at_start = not ENGINES[engine].taken_over and not path.endswith(f"/{_mysql.PERSISTED}")
    return seen("not in force" if at_start and after < inf else "cannot tell", f"{path} was changed {when}")


def _mongodb(tree: files.Tree, given: Settings, *, old: bool) -> Found:
    """old: it may be a recording of which the name of a replica set was not kept."""
    engine = ENGINES["mongodb"]
    settings = files.plain_settings(tree, given["config"][0], engine) if "config" in given else {}
    for name, means in (("journal", "true"), ("nojournal", "false")):
        if name in given and files.boolean(given[name][0], name):
            settings["storage.journal.enabled"] = means, f"--{name} (command line)"
    if "journalCommitInterval" in given:
        settings["storage.journal.commitIntervalMs"] = given["journalCommitInterval"]
    if "replSet" in given:
        settings["replication.replSetName"] = given["replSet"]
    if "dbpath" in given:
        settings["storage.dbPath"] = given["dbpath"]
    yield from files.facts_of(engine, settings)
    name, seen = setting(settings, "replication.replSetName", "")
    if name or not old:
        yield "standalone", Known(not name, (seen,))
    home = settings.get("storage.dbPath", ("/data/db", ""))[0]
    yield "page_bytes", Known(engine.page_bytes, (Evidence("WiredTiger leaf pages of 32 KiB by default"),))
    yield (
        "directories",
        Known((f"data:{home}", f"log:{home}/journal"), (Evidence(f"data in {home}", f"ls -l {argument(home)}"),)),
    )


def _etcd(tree: files.Tree, given: Settings, variables: Mapping[str, str]) -> Found:
    """A configuration file replaces both flags and variables. (etcd manual, Configuration file)"""
    engine = ENGINES["etcd"]
    if path := given.get("config-file", ("",))[0] or variables.get("ETCD_CONFIG_FILE"):
        settings = files.plain_settings(tree, path, engine)
    else:
        of = {name: f"ETCD_{name.replace('-', '_').upper()}" for name in engine.known}
        settings = {name: (variables[each], "environment") for name, each in of.items() if each in variables} | given
    yield from files.facts_of(engine, settings)
    yield (
        "page_bytes",
        Known(engine.page_bytes, (Evidence("bbolt pages are those of the system: 4096 bytes on x86-64"),)),
    )
    if (home := settings.get("data-dir", ("", ""))[0]).startswith("/"):
        log = settings.get("wal-dir", ("", ""))[0] or f"{home}/member/wal"
        yield (
            "directories",
            Known(
                (f"data:{home}", f"log:{log}"), (Evidence(f"data in {home}, log in {log}", f"ls -l {argument(home)}"),)
            ),
        )


def _redis(tree: files.Tree, given: Settings, path: str, cwd: str) -> Found:
    """Its title does not tell the file that it read; that of its unit, or of the package, is believed where dir is its working
    directory. What its title hides beside it is looked after by :mod:`auditor.gather.redis_start`."""
    engine = ENGINES["redis"]
    settings = files.plain_settings(tree, path, engine) | given
    if "include" in settings:
        raise ValueError(f"{path}: includes {settings['include'][0]}, which was not read")
    home = settings.get("dir", ("", ""))[0]
    if home.rstrip("/") != cwd:
        raise ValueError(
            f"{path}: its dir is not {cwd or 'known to be its working directory'}, so it is not the file that was read"
        )
    yield from files.facts_of(engine, settings)
    if home.startswith("/"):
        yield (
            "directories",
            Known((f"data:{home}", f"log:{home}"), (Evidence(f"dir {home}", f"grep ^dir {argument(path)}"),)),
        )


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
