"""MySQL and MariaDB: their settings from option files and command line, and what these mean together.

Which files are read, in this order: /etc/my.cnf, /etc/mysql/my.cnf, my.cnf in the SYSCONFDIR of the build, in $MYSQL_HOME
(MariaDB: $MARIADB_HOME before it), the file of --defaults-extra-file, and ~/.my.cnf, where ~ is $HOME; after them the command
line, and in MySQL mysqld-auto.cnf. --defaults-file replaces all of them, --no-defaults leaves all of them out. (MySQL manual,
Using Option Files; MariaDB manual, Configuring MariaDB with Option Files; init_default_directories() in mysys/my_default.cc of
MySQL 8.0 and mysys/my_default.c of MariaDB 11)

A file that all may write is ignored by the server and believed here.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from auditor.collect import _database_files as files
from auditor.collect._database_files import Found, Settings, setting
from auditor.databases import ENGINES
from auditor.databases.engine import DOUBT
from auditor.databases.mysql import SKIPPED, persisted
from auditor.facts import Evidence, Known
from auditor.host.request import Files
from auditor.sources.replies import integer, is_integer
from auditor.text import argument

ALWAYS = ("/etc/my.cnf", "/etc/mysql/my.cnf")
FOLDERS = ("/etc/my.cnf.d", "/etc/mysql/conf.d", "/etc/mysql/mysql.conf.d", "/etc/mysql/mariadb.conf.d")
LINKED = ("/etc/alternatives/my.cnf", "/etc/mysql/mariadb.cnf", "/etc/mysql/mysql.cnf")
# the SYSCONFDIR of packages and of the archives of MySQL and MariaDB; which of them one build reads it does not show
BUILDS = ("/usr/etc/my.cnf", "/usr/local/etc/my.cnf", "/usr/local/mysql/etc/my.cnf")
PREFIXES = ("/usr", "/usr/local", "/usr/local/mysql")
# a number stands for a word. What innodb_dedicated_server takes where nothing is said depends on the release of MySQL.
FLUSH_METHODS = ("FSYNC", "O_DSYNC", "LITTLESYNC", "NOSYNC", "O_DIRECT", "O_DIRECT_NO_FSYNC")
GROUPS = {
    "mysql": ("mysqld", "server"),
    "mariadb": ("mysqld", "server", "mariadb", "mariadbd", "client-server", "galera"),
}
ARIA = "aria_log_control"  # in the data directory of every MariaDB, and of no MySQL
PERSISTED, MISSING = "mysqld-auto.cnf", "/nonexistent"  # where SET PERSIST writes; in the data directory
KNOWN = ENGINES["mysql"].known


def wanted(engine: str, given: Settings, variables: Mapping[str, str], home: str, program: str) -> list[str]:
    """Files and folders to read. home: its data; program: the path of its executable, or empty."""
    own = [*ALWAYS, *LINKED, *_unsure(home, program), *_own(engine, given, variables)]
    names = [given["defaults-file"][0]] if "defaults-file" in given else own
    names += [f"{folder}/*.cnf" for folder in FOLDERS]
    return [*names, *(f"{home or MISSING}/{name}" for name in (PERSISTED, ARIA))] if engine == "mysql" else names


def _own(engine: str, given: Settings, variables: Mapping[str, str]) -> Iterator[str]:
    """The files of this one server, in their order."""
    home = (variables.get("MARIADB_HOME") if engine == "mariadb" else None) or variables.get("MYSQL_HOME")
    if home:
        yield f"{home.rstrip('/')}/my.cnf"
    if "defaults-extra-file" in given:
        yield given["defaults-extra-file"][0]
    if user := variables.get("HOME"):
        yield f"{user.rstrip('/')}/.my.cnf"


def _unsure(home: str, program: str) -> list[str]:
    """Files that may count or not. home: of the data of a server that does not run, which is often that of its user."""
    prefix = posixpath.dirname(posixpath.dirname(program))
    more = [f"{prefix}/etc/my.cnf"] if program and prefix != "/" else []
    return list(dict.fromkeys([*BUILDS, *more, *([f"{home}/.my.cnf"] if home and not program else [])]))


def read(
    tree: files.Tree,
    reply: Files,
    engine: str,
    place: str,
    given: Settings,
    variables: Mapping[str, str] | None,
    program: str,
) -> Found:
    """What the files come to. place: its process, or where its data lies. variables: of its environment, None where they
    could not be read. Raises ValueError where something that counts was not read."""
    engine = _flavour(reply, engine, program)
    settings = _of_files(tree, engine, place, given, variables, program)
    settings |= {name: value for name, value in given.items() if any(each.startswith(name) for each in KNOWN)}
    if place.startswith("/"):
        settings["datadir"] = place, "--db"
    loads = setting(settings, "persisted_globals_load", "ON")[0]
    if engine == "mysql" and loads != SKIPPED and files.boolean(loads, "persisted_globals_load"):
        settings |= _persisted(reply, tree)
    for name in settings.keys() - KNOWN:
        short = next(each for each in KNOWN if each.startswith(name))
        raise ValueError(f"{settings[name][1]}: {name} may be short for {short}")
    yield from facts_of(settings, engine)


def _flavour(reply: Files, engine: str, program: str) -> str:
    """Older MariaDB servers, and those that are started by their old name, are called mysqld; their defaults are others."""
    if engine == "mariadb" or posixpath.basename(program) == "mariadbd":
        return "mariadb"
    why = [error for path, error in reply.errors.items() if path.endswith(f"/{ARIA}")]
    if why and not (
        why[0].startswith("no such file") and not any(f"{MISSING}/{ARIA}" in path for path in reply.errors)
    ):
        raise ValueError(f"whether it is MySQL or MariaDB is not known ({ARIA} in its data directory: {why[0]})")
    return "mysql" if why else "mariadb"


def _of_files(
    tree: files.Tree,
    engine: str,
    place: str,
    given: Settings,
    variables: Mapping[str, str] | None,
    program: str,
) -> Settings:
    if "no-defaults" in given:
        return {}
    if place.isdigit() and variables is None:
        raise ValueError(f"/proc/{place}/environ: not read, and $MYSQL_HOME, $HOME or a group suffix may add settings")
    suffix = given.get("defaults-group-suffix", ("",))[0] or next(
        (each for name in _SUFFIXES[engine] if (each := (variables or {}).get(name))), ""
    )
    groups = [*GROUPS[engine], *(f"{each}{suffix}" for each in GROUPS[engine] if suffix)]
    if "defaults-file" in given:
        return files.mysql(tree, given["defaults-file"][0], groups)
    prefix = posixpath.dirname(posixpath.dirname(program))
    if place.isdigit() and prefix not in PREFIXES:
        raise ValueError(
            f"which option files {program} was built to read is not known"
            if program
            else f"/proc/{place}/exe: not read, and it decides which option files count"
        )
    settings: Settings = {}
    for path in ALWAYS:
        settings |= files.mysql(tree, path, groups, needed=False)
    home = place if place.startswith("/") else ""
    for path in _unsure(home, program):
        if told := list(files.mysql(tree, path, groups, needed=False)):
            raise ValueError(f"{path} sets {told[0]}, and whether this build reads it is not known")
    extra = given.get("defaults-extra-file", ("",))[0]
    for path in _own(engine, given, variables or {}):
        settings |= files.mysql(tree, path, groups, needed=path == extra)
    return settings


_SUFFIXES = {"mysql": ("MYSQL_GROUP_SUFFIX",), "mariadb": ("MARIADB_GROUP_SUFFIX", "MYSQL_GROUP_SUFFIX")}


def facts_of(settings: Settings, engine: str) -> Found:
    """What settings come to, whoever said them."""
    yield from files.facts_of(ENGINES[engine], settings)
    value, seen = setting(settings, "innodb_doublewrite", "ON")
    kind = _doublewrite(value, engine)
    yield "doublewrite", Known(kind, (seen,))
    yield "torn_page_guard", Known(kind in ("ON", "DETECT_AND_RECOVER", "FAST"), (seen,))
    value, seen = setting(settings, "innodb_flush_method", "")
    dedicated = setting(settings, "innodb_dedicated_server", "OFF")[0]
    if value or dedicated == SKIPPED or not files.boolean(dedicated, "innodb_dedicated_server"):
        method = (
            FLUSH_METHODS[int(value)] if is_integer(value) and 0 <= int(value) < len(FLUSH_METHODS) else value.upper()
        )
        yield "flush_method", Known(method or "default", (seen,))
    log, seen = setting(settings, "log_bin", "ON" if engine == "mysql" else SKIPPED)
    if log == SKIPPED:
        yield "sync_binlog", Known(1, (Evidence(f"no binary log is written ({seen.text})", seen.command),))
    else:
        value, after = setting(settings, "sync_binlog", "1" if engine == "mysql" else "0")
        yield "sync_binlog", Known(integer(value), (after, seen))
    yield from _places(settings, log)


def _doublewrite(value: str, engine: str) -> str:
    """OFF, ON, DETECT_ONLY or DETECT_AND_RECOVER (MySQL), FAST (MariaDB)."""
    word = "FAST" if engine == "mariadb" and value == "2" else value.upper()
    if word in ("DETECT_ONLY", "DETECT_AND_RECOVER", "FAST"):
        return word
    return "ON" if value != SKIPPED and files.boolean(value, "innodb_doublewrite") else "OFF"


def _places(settings: Settings, log: str) -> Found:
    """A relative path is below the data directory; files of the system tablespace are below innodb_data_home_dir, which that
    is, too, where nothing is said. (MySQL manual, InnoDB Startup Options; MariaDB manual, Aria System Variables)"""

    def said(name: str) -> str:
        return settings.get(name, ("", ""))[0]

    home = settings.get("datadir", ("/var/lib/mysql", ""))[0].rstrip("/")
    shared = said("innodb_data_home_dir") or home
    files_of = [each.partition(":")[0] for each in said("innodb_data_file_path").split(";")]
    data = ["", shared, *(posixpath.join(shared, posixpath.dirname(each)) for each in files_of)]
    data += [each for each in (said("innodb_doublewrite_dir"),) if each]
    logs = [said("innodb_log_group_home_dir"), said("innodb_undo_directory")]
    logs += [each for each in (posixpath.dirname(log), said("aria_log_dir_path")) if each]
    places = [
        f"{kind}:{posixpath.normpath(posixpath.join(home, each))}"
        for kind, group in (("data", data), ("log", logs))
        for each in group
    ]
    unique = tuple(dict.fromkeys(places))
    yield "directories", Known(unique, (Evidence(", ".join(unique), f"ls -l {argument(home)}"),))


def _persisted(reply: Files, tree: files.Tree) -> Settings:
    """What SET PERSIST wrote: it counts before files and command line, unless persisted_globals_load is off. (MySQL manual,
    Persisted System Variables)"""
    path = next((each for each in (*reply.text, *reply.errors) if each.endswith(f"/{PERSISTED}")), "")
    if not path:
        raise ValueError(f"{PERSISTED}: not looked for")
    if path not in reply.text:
        if not reply.errors[path].startswith("no such file") or f"{MISSING}/" in path:
            raise ValueError(f"{PERSISTED}: {reply.errors[path]}")
        return {}
    tree.use(path)
    lines = persisted(reply.text[path], KNOWN)
    if DOUBT in lines:
        raise ValueError(f"{PERSISTED}: could not be told")
    return {each.name: files.said(each, PERSISTED) for each in lines if each.kind == "setting"}
