"""What the files and the command line of a database server say of its durability.

A setting that is changed while it runs (SET GLOBAL, ALTER ROLE ... SET) is not seen here. Defaults are those of the
manuals. (PostgreSQL 15 manual, Write Ahead Log; MySQL 8.0 and MariaDB manuals, InnoDB system variables; MongoDB 6.0 manual,
storage options; etcd server/embed/config.go; redis.conf of 7.0)
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping

from auditor.collect import _database_files as files
from auditor.collect.database_process import option
from auditor.collect.request import Files, Read, Skip
from auditor.facts import Evidence, Fact, Facts, Known, Subject, flag, number, word, words

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
    "flush_method": word("innodb_flush_method in capitals; empty: the default"),
    "sync_binlog": number("MySQL, MariaDB sync_binlog; 1 where no binary log is written"),
    "page_bytes": number("page of its data files"),
    "journal": flag("MongoDB keeps a journal"),
    "no_fsync": flag("etcd --unsafe-no-fsync"),
    "appendonly": flag("Redis appendonly"),
    "appendfsync": word("Redis", "always", "everysec", "no"),
    "directories": words("log:PATH and data:PATH of its files, besides links in its data directory"),
}
CNF = ("/etc/my.cnf", "/etc/mysql/my.cnf")
CNF_FOLDERS = ("/etc/my.cnf.d", "/etc/mysql/conf.d", "/etc/mysql/mysql.conf.d", "/etc/mysql/mariadb.conf.d")
CNF_LINKED = ("/etc/alternatives/my.cnf", "/etc/mysql/mariadb.cnf", "/etc/mysql/mysql.cnf")
GROUPS = {"mysql": ("mysqld", "server"), "mariadb": ("mysqld", "server", "mariadb", "mariadbd")}
PERSISTED, MISSING = "mysqld-auto.cnf", "/nonexistent"  # where SET PERSIST writes; in the data directory
REDIS = "/etc/redis/redis.conf"


def request(database: Subject, facts: Facts) -> Read | Skip:
    """The files that its command line names, else those of its documentation."""
    engine = database.name.partition(" ")[0]
    home, arguments = _word(facts, database, "data_directory"), _tuple(facts, database, "arguments")
    names: list[str] = []
    match engine:
        case "postgres":
            if not home:
                return Skip(f"where the data of {database.name} lies is not known", "run as root")
            config = _config(arguments, home)
            names = [config, f"{posixpath.dirname(config)}/conf.d/*.conf", f"{home}/postgresql.auto.conf"]
        case "mysql" | "mariadb":
            given = option(arguments, "--defaults-file")
            extra = option(arguments, "--defaults-extra-file")
            names = [given] if given else [*CNF, *CNF_LINKED, *filter(None, [extra])]
            names += [f"{folder}/*.cnf" for folder in CNF_FOLDERS]
            if engine == "mysql":
                names.append(f"{home or MISSING}/{PERSISTED}")
        case "mongodb":
            names = [option(arguments, "--config") or option(arguments, "-f") or ""]
        case "etcd":
            names = [option(arguments, "--config-file") or ""]
        case "redis":
            names = [REDIS]
    root = files.root_of(database)
    process = root.removesuffix("root")
    own = ("cwd",) if process == "/proc/self/" else ("cmdline", "environ", "cwd")
    safe = [name for name in names if files.plain(posixpath.dirname(name)) and not name.endswith("/..")]
    return Read((*(process + name for name in own), *(root + name for name in safe)))


def parse(reply: Files, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where something that could override a setting was not read."""
    engine, _, process = database.name.partition(" ")
    here = f"/proc/{process}/"
    tree = files.Tree(reply, files.root_of(database))
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    if process.isdigit():
        line = reply.text.get(here + "cmdline", "")
        if not line.endswith("\0"):
            raise ValueError(f"{here}cmdline: {reply.errors.get(here + 'cmdline', 'is cut off')}")
        arguments = tuple(line.rstrip("\0").split("\0")[1:])
        variables = dict(each.split("=", 1) for each in reply.text.get(here + "environ", "").split("\0") if "=" in each)
    match engine:
        case "postgres":
            facts = _postgres(tree, reply, arguments)
        case "mysql" | "mariadb":
            facts = _mysql(tree, reply, arguments, database)
        case "mongodb":
            facts = _mongodb(tree, arguments)
        case "etcd":
            if not reply.text.get(here + "environ") and here + "environ" in reply.errors:
                raise ValueError(f"{here}environ: {reply.errors[here + 'environ']}")
            facts = _etcd(tree, arguments, variables)
        case _:
            facts = _redis(tree, reply.links.get(here + "cwd", ""))
    for name, value in facts:
        yield Fact(database, name, value)


Found = Iterator[tuple[str, Known]]


def _set(settings: files.Settings, name: str, default: str) -> tuple[str, Evidence]:
    """(value, how it is known)."""
    if name in settings:
        value, path = settings[name]
        command = "" if path == "command line" else f"grep {name} {path}"
        return value, Evidence(f"{name} = {value} ({path})", command)
    return default, Evidence(f"{name} = {default or 'default'} (not set: the default)")


def _postgres(tree: files.Tree, reply: Files, arguments: tuple[str, ...]) -> Found:
    autos = [path for path in (*reply.text, *reply.errors) if path.endswith("/postgresql.auto.conf")]
    root = next((path[: path.index("/root") + 5] for path in autos), "")
    home = posixpath.dirname(autos[0].removeprefix(root)) if autos else ""
    config = _config(arguments, home)
    settings = files.postgres(tree, config)
    settings |= files.postgres(tree, f"{home}/postgresql.auto.conf", needed=False)
    settings |= {name: (value, "command line") for name, value in _given(arguments)}
    flags = {name: name for name in ("fsync", "wal_init_zero", "wal_recycle")} | {"torn_page_guard": "full_page_writes"}
    for fact, name in flags.items():
        value, seen = _set(settings, name, "on")
        yield fact, Known(files.boolean(value, name), (seen,))
    value, seen = _set(settings, "synchronous_commit", "on")
    if value.lower() not in ("local", "remote_write", "remote_apply"):
        value = "on" if files.boolean(value, "synchronous_commit") else "off"
    yield "synchronous_commit", Known(value.lower(), (seen,))
    value, seen = _set(settings, "wal_sync_method", "")
    yield "wal_sync_method", Known(value.lower(), (seen,))
    yield "page_bytes", Known(8192, (Evidence("PostgreSQL pages of 8192 bytes unless built otherwise"),))
    yield "directories", Known((f"data:{home}", f"log:{home}/pg_wal"), (Evidence(f"data in {home}", f"ls -l {home}"),))


def _config(arguments: tuple[str, ...], home: str) -> str:
    given = dict(_given(arguments)).get("config_file")
    return given if given and given.startswith("/") else f"{home}/postgresql.conf"


def _given(arguments: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Settings of PostgreSQL's command line: ``-c name=value``, ``--name=value``, and -F for fsync=off."""
    for i, each in enumerate(arguments):
        text = each[2:] if each[:2] in ("-c", "--") else ""
        if each == "-c" and i + 1 < len(arguments):
            text = arguments[i + 1]
        name, equals, value = text.partition("=")
        if equals:
            yield name.replace("-", "_").lower(), value
        elif each == "-F":
            yield "fsync", "off"


def _mysql(tree: files.Tree, reply: Files, arguments: tuple[str, ...], database: Subject) -> Found:
    engine, _, place = database.name.partition(" ")
    given = option(arguments, "--defaults-file")
    settings: files.Settings = {}
    if "--no-defaults" not in arguments:
        extra = option(arguments, "--defaults-extra-file")
        for path in [given] if given else [*CNF, *filter(None, [extra])]:
            settings |= files.mysql(tree, path, GROUPS[engine], needed=path not in CNF)
    for each in arguments:
        if each.startswith("--"):
            name, equals, value = each[2:].partition("=")
            settings[name.replace("-", "_").lower()] = value if equals else "ON", "command line"
    if place.startswith("/"):
        settings["datadir"] = place, "--db"
    if engine == "mysql":
        settings |= _persisted(reply)
    value, seen = _set(settings, "innodb_flush_log_at_trx_commit", "1")
    if value not in ("0", "1", "2", "3"):
        raise ValueError(f"innodb_flush_log_at_trx_commit = {value[:20]!r}")
    yield "flush_log_at_commit", Known(int(value), (seen,))
    if "skip_innodb_doublewrite" in settings:
        yield "torn_page_guard", Known(False, (Evidence("skip_innodb_doublewrite"),))
    else:
        value, seen = _set(settings, "innodb_doublewrite", "ON")
        guard = value.upper() in ("DETECT_AND_RECOVER", "FAST") or (
            value.upper() != "DETECT_ONLY" and files.boolean(value, "innodb_doublewrite")
        )
        yield "torn_page_guard", Known(guard, (seen,))
    value, seen = _set(settings, "innodb_flush_method", "")
    yield "flush_method", Known(value.upper(), (seen,))
    value, seen = _set(settings, "innodb_page_size", "16384")
    size = int(value[:-1]) << 10 if value[-1:] in "kK" else int(value)
    yield "page_bytes", Known(size, (seen,))
    default_binlog = engine == "mysql" and "skip_log_bin" not in settings and "disable_log_bin" not in settings
    if "log_bin" in settings or default_binlog:
        value, seen = _set(settings, "sync_binlog", "1" if engine == "mysql" else "0")
        yield "sync_binlog", Known(int(value), (seen,))
    else:
        yield "sync_binlog", Known(1, (Evidence("no binary log is written (log_bin is not set)"),))
    home = settings.get("datadir", ("/var/lib/mysql", ""))[0].rstrip("/")
    logs = [
        settings.get("innodb_log_group_home_dir", (home, ""))[0],
        settings.get("innodb_undo_directory", (home, ""))[0],
    ]
    logs += [posixpath.dirname(value) for value, _ in [settings.get("log_bin", ("", ""))] if value.startswith("/")]
    data = settings.get("innodb_data_home_dir", (home, ""))[0] or home
    places = [
        f"data:{home}",
        *(f"data:{each}" for each in [data]),
        *(f"log:{posixpath.join(home, each)}" for each in logs),
    ]
    unique = tuple(dict.fromkeys(each.rstrip("/") for each in places))
    yield "directories", Known(unique, (Evidence(", ".join(unique), f"ls -l {home}"),))


def _persisted(reply: Files) -> files.Settings:
    """What SET PERSIST wrote: it counts before files and command line. (MySQL manual, Persisted System Variables)"""
    path = next(each for each in (*reply.text, *reply.errors) if each.endswith(f"/{PERSISTED}"))
    if path not in reply.text:
        if not reply.errors[path].startswith("no such file") or f"{MISSING}/" in path:
            raise ValueError(f"{PERSISTED}: {reply.errors[path]}")
        return {}
    found: files.Settings = {}
    for name, table in json.loads(reply.text[path]).items():
        for variable, entry in table.items() if isinstance(table, dict) else ():
            if isinstance(entry, dict) and "Value" in entry and name.startswith("mysql_"):
                found[variable.lower()] = str(entry["Value"]), PERSISTED
    return found


def _mongodb(tree: files.Tree, arguments: tuple[str, ...]) -> Found:
    path = option(arguments, "--config") or option(arguments, "-f")
    settings = {name: (value, path) for name, value in files.yaml(tree.text(path) or "", path)} if path else {}
    if "--nojournal" in arguments:
        yield "journal", Known(False, (Evidence("--nojournal (command line)"),))
    else:
        value, seen = _set(settings, "storage.journal.enabled", "true")
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
    value, seen = _set(settings, "appendonly", "no")
    yield "appendonly", Known(files.boolean(value, "appendonly"), (seen,))
    value, seen = _set(settings, "appendfsync", "everysec")
    if value not in ("always", "everysec", "no"):
        raise ValueError(f"appendfsync = {value[:20]!r}")
    yield "appendfsync", Known(value, (seen,))
    if (home := settings.get("dir", ("", ""))[0]).startswith("/"):
        yield "directories", Known((f"data:{home}", f"log:{home}"), (Evidence(f"dir {home}", f"grep ^dir {REDIS}"),))


def _word(facts: Facts, subject: Subject, name: str) -> str:
    found = facts.get(subject, name)
    return str(found.value) if isinstance(found, Known) else ""


def _tuple(facts: Facts, subject: Subject, name: str) -> tuple[str, ...]:
    found = facts.get(subject, name)
    return tuple(map(str, found.value)) if isinstance(found, Known) and isinstance(found.value, tuple) else ()
