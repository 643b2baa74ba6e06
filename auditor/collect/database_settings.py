"""What the files and the command line of a database server say of its durability.

A setting that is changed while it runs (SET GLOBAL, ALTER ROLE ... SET) is not seen here. Defaults are those of the
manuals. (PostgreSQL 15 manual, Write Ahead Log; MySQL 8.0 and MariaDB manuals, InnoDB system variables; MongoDB 6.0 manual,
storage options; etcd server/embed/config.go; redis.conf of 7.0)
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from auditor.collect import _database_files as files
from auditor.collect import _mysql, _postgres
from auditor.collect._database_files import Found, setting
from auditor.collect.database_process import option
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Unknown, flag, number, word, words
from auditor.host.request import Files, Read, Skip

PER = "database"
SUBJECT = "database"
FACTS = {
    "fsync": flag("PostgreSQL fsync"),
    "synchronous_commit": word("PostgreSQL", "on", "off", "local", "remote_write", "remote_apply"),
    "torn_page_guard": flag("full_page_writes, or the doublewrite buffer keeps whole pages"),
    "wal_init_zero": flag("PostgreSQL"),
    "wal_recycle": flag("PostgreSQL"),
    "wal_sync_method": word("PostgreSQL; empty: the default of this system, fdatasync on Linux"),
    "flush_log_at_commit": number("innodb_flush_log_at_trx_commit"),
    "flush_method": word("innodb_flush_method in capitals, or default"),
    "doublewrite": word("innodb_doublewrite", "OFF", "ON", "DETECT_ONLY", "DETECT_AND_RECOVER", "FAST"),
    "sync_binlog": number("MySQL, MariaDB sync_binlog; 1 where no binary log is written"),
    "page_bytes": number("page of its data files"),
    "temp_tablespaces": words("PostgreSQL: those that are named for temporary tables and files, by the configuration"),
    "journal": flag("MongoDB keeps a journal"),
    "no_fsync": flag("etcd --unsafe-no-fsync"),
    "appendonly": flag("Redis appendonly"),
    "appendfsync": word("Redis", "always", "everysec", "no"),
    "configured": words("NAME = VALUE of the settings that its files and command line say"),
    "directories": words("log:PATH and data:PATH of its files, besides links in its data directory"),
}
REDIS = "/etc/redis/redis.conf"


def request(database: Subject, facts: Facts) -> Read | Skip:
    """The files that its command line names, else those of its documentation."""
    engine, _, place = database.name.partition(" ")
    if place == files.ELSEWHERE:
        return Skip("its files are not those of this host", applies=False)
    if why := _unanswered(facts, engine):
        return why
    home, arguments = _word(facts, database, "data_directory"), _tuple(facts, database, "arguments")
    variables = dict(each.split("=", 1) for each in _tuple(facts, database, "variables") if "=" in each)
    names: list[str] = []
    match engine:
        case "postgres":
            if not home:
                return Skip(f"where the data of {database.name} lies is not known", "run as root")
            names = _postgres.wanted(arguments, variables, home)
        case "mysql" | "mariadb":
            names = _mysql.wanted(engine, arguments, variables, home, _word(facts, database, "program"))
        case "mongodb":
            names = [option(arguments, "--config") or option(arguments, "-f") or ""]
        case "etcd":
            names = [option(arguments, "--config-file") or ""]
        case "redis":
            names = [REDIS]
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
    arguments: tuple[str, ...] = ()
    if process.isdigit():
        line = reply.text.get(here + "cmdline", "")
        if not line.endswith("\0"):
            raise ValueError(f"{here}cmdline: {reply.errors.get(here + 'cmdline', 'is cut off')}")
        arguments = tuple(line.rstrip("\0").split("\0")[1:])
    environ = reply.text.get(here + "environ")
    variables = dict(each.split("=", 1) for each in (environ or "").split("\0") if "=" in each)
    match engine:
        case "postgres":
            facts = _postgres.read(tree, reply, arguments, variables)
        case "mysql" | "mariadb":
            program = reply.links.get(here + "exe", "").removesuffix(" (deleted)")
            known = None if environ is None else variables
            facts = _mysql.read(tree, reply, engine, process, arguments, known, program)
        case "mongodb":
            facts = _mongodb(tree, arguments)
        case "etcd":
            if environ is None:
                raise ValueError(f"{here}environ: {reply.errors.get(here + 'environ', 'was not read')}")
            facts = _etcd(tree, arguments, variables)
        case _:
            facts = _redis(tree, reply.links.get(here + "cwd", ""))
    found = list(facts)
    yield from (Fact(database, name, value) for name, value in found)
    if engine in ("postgres", "mysql", "mariadb"):
        yield Fact(database, "configured", files.in_words(found))


def _mongodb(tree: files.Tree, arguments: tuple[str, ...]) -> Found:
    path = option(arguments, "--config") or option(arguments, "-f")
    settings = {name: (value, path) for name, value in files.yaml(tree.text(path) or "", path)} if path else {}
    if "--nojournal" in arguments:
        yield "journal", Known(False, (Evidence("--nojournal (command line)"),))
    else:
        value, seen = setting(settings, "storage.journal.enabled", "true")
        yield "journal", Known(files.boolean(value, "storage.journal.enabled"), (seen,))
    home = option(arguments, "--dbpath") or settings.get("storage.dbPath", ("/data/db", ""))[0]
    yield "page_bytes", Known(32768, (Evidence("WiredTiger leaf pages of 32 KiB by default"),))
    yield "directories", Known((f"data:{home}", f"log:{home}/journal"), (Evidence(f"data in {home}", f"ls -l {home}"),))


def _etcd(tree: files.Tree, arguments: tuple[str, ...], variables: Mapping[str, str]) -> Found:
    """A configuration file replaces both flags and variables. (etcd manual, Configuration file)"""
    path = option(arguments, "--config-file") or variables.get("ETCD_CONFIG_FILE")
    if path:
        settings = dict(files.yaml(tree.text(path) or "", path))
        source = path
    else:
        settings = {
            name[5:].replace("_", "-").lower(): value for name, value in variables.items() if name.startswith("ETCD_")
        }
        for name in ("data-dir", "wal-dir", "unsafe-no-fsync"):
            if (value := option(arguments, f"--{name}")) is not None:
                settings[name] = value
        if "--unsafe-no-fsync" in arguments:
            settings["unsafe-no-fsync"] = "true"
        source = "command line and environment"
    value = settings.get("unsafe-no-fsync", "false")
    yield (
        "no_fsync",
        Known(files.boolean(value, "unsafe-no-fsync"), (Evidence(f"unsafe-no-fsync = {value} ({source})"),)),
    )
    yield "page_bytes", Known(4096, (Evidence("bbolt pages are those of the system: 4096 bytes on x86-64"),))
    if (home := settings.get("data-dir", "")).startswith("/"):
        log = settings.get("wal-dir") or f"{home}/member/wal"
        yield (
            "directories",
            Known((f"data:{home}", f"log:{log}"), (Evidence(f"data in {home}, log in {log}", f"ls -l {home}"),)),
        )


def _redis(tree: files.Tree, cwd: str) -> Found:
    """Its title does not tell the file that it read; that of the package is believed where dir is its working directory."""
    settings = files.redis(tree, REDIS)
    if settings.get("dir", ("", ""))[0].rstrip("/") != cwd:
        raise ValueError(
            f"{REDIS}: its dir is not {cwd or 'known to be its working directory'}, so it is not the file that was read"
        )
    value, seen = setting(settings, "appendonly", "no")
    yield "appendonly", Known(files.boolean(value, "appendonly"), (seen,))
    value, seen = setting(settings, "appendfsync", "everysec")
    if value not in ("always", "everysec", "no"):
        raise ValueError(f"appendfsync = {value[:20]!r}")
    yield "appendfsync", Known(value, (seen,))
    if (home := settings.get("dir", ("", ""))[0]).startswith("/"):
        yield "directories", Known((f"data:{home}", f"log:{home}"), (Evidence(f"dir {home}", f"grep ^dir {REDIS}"),))


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


def _word(facts: Facts, subject: Subject, name: str) -> str:
    found = facts.get(subject, name)
    return str(found.value) if isinstance(found, Known) else ""


def _tuple(facts: Facts, subject: Subject, name: str) -> tuple[str, ...]:
    found = facts.get(subject, name)
    return tuple(map(str, found.value)) if isinstance(found, Known) and isinstance(found.value, tuple) else ()
