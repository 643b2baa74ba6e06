"""MySQL and MariaDB.

The server takes a name with dashes for the same as with underscores, an unambiguous beginning of a name for the name, and
skip, disable, enable, maximum, loose and plugin before it. (mysys/my_getopt.c, mysys/my_default.c; MySQL manual, Program
Option Modifiers, Using Option Files, Persisted System Variables)

Which files are read, in this order: /etc/my.cnf, /etc/mysql/my.cnf, my.cnf in the SYSCONFDIR of the build, in $MYSQL_HOME
(MariaDB: $MARIADB_HOME before it), the file of --defaults-extra-file, and ~/.my.cnf, where ~ is $HOME; after them the command
line, and in MySQL mysqld-auto.cnf. --defaults-file replaces all of them, --no-defaults leaves all of them out. (MySQL manual,
Using Option Files; MariaDB manual, Configuring MariaDB with Option Files; init_default_directories() in mysys/my_default.cc of
MySQL 8.0 and mysys/my_default.c of MariaDB 11)

A file that all may write is ignored by the server and believed here.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from auditor.collect._json import integer, is_integer
from auditor.databases.engine import (
    BLANK,
    DOUBT,
    OTHER,
    REST,
    WITHHELD,
    Engine,
    Found,
    Line,
    Setting,
    Settings,
    Shape,
    by_line,
    is_on,
    kept,
    path,
    setting,
    setting_facts,
    valued,
    word,
)
from auditor.databases.forms import getopt
from auditor.facts import Evidence, Known, number
from auditor.host.request import Files
from auditor.text import argument

if TYPE_CHECKING:
    from auditor.databases.configuration import Tree

# short options of mysqld, with a colon after those that have a value; of -T and -W it may be a number in the same word
LETTERS = "ab:C:Dgh:L:nO:o:P:r:sTt:u:vVW0123456789"
GROUPS = ("mysqld", "server", "mariadb", "mariadbd", "client-server", "galera")
SKIPPED = "(skipped)"  # the value of what it was told to do without (skip-log-bin)
ALONE = "ON"  # the value of what stands without one
PAGES = (4096, 8192, 16384, 32768, 65536)
# what may stand before a name, and the value that it means
_BEFORE = {"loose_": "", "plugin_": "", "enable_": ALONE, "skip_": SKIPPED, "disable_": SKIPPED, "maximum_": WITHHELD}
_OPPOSITE = {ALONE: SKIPPED, SKIPPED: ALONE}
_INCLUDES = ("!include", "!includedir")
_FIRST: dict[str, Shape] = {"defaults-file": path, "defaults-extra-file": path, "defaults-group-suffix": word}
# a value of these stands behind = alone
_OPTIONAL = ("innodb_doublewrite", "innodb_dedicated_server", "log_bin", "persisted_globals_load")


def option(text: str, known: Mapping[str, Shape]) -> Line:
    """``name``, ``name=value`` or ``skip-name``, in a file or behind two dashes. A name that may be short for a known one is
    kept as it stands."""
    name, equals, value = text.partition("=")
    name, means = name.strip().replace("-", "_").lower(), "" if equals else ALONE
    for _ in _BEFORE:  # the server takes each of them once
        if before := next((each for each in _BEFORE if name.startswith(each)), ""):
            name, means = name.removeprefix(before), _BEFORE[before] or means
            if equals and _unquoted(value.strip()) == "0":  # skip-x=0 is x, enable-x=0 is skip-x
                means = _OPPOSITE.get(means, means)
    if not any(each.startswith(name) for each in known):
        return OTHER
    if not name:
        return DOUBT
    if means == SKIPPED:
        return Line(f"skip_{name}", "setting", name, means)
    if means == ALONE:
        return Line(name, "setting", name, means)
    value = means or kept(_unquoted(value.strip()), known.get(name, word))
    return Line(f"{name}={value}", "setting", name, value)


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def cnf(text: str, known: Mapping[str, Shape]) -> list[Line]:
    """my.cnf and the files that it includes."""

    def read(line: str) -> Line:
        if line[0] in "#;":
            return OTHER
        if line == WITHHELD:
            return DOUBT
        if line[0] == "[":
            name = line[1:].partition("]")[0].strip()
            ours = name.startswith(GROUPS) and word(name)
            return Line(f"[{name if ours else ''}]", "group", name if ours else "")
        if line[0] == "!":
            include, _, place = line.replace("\t", " ").partition(" ")
            place = kept(place.strip(), path)
            return Line(f"{include} {place}", "setting", include, place) if include in _INCLUDES else DOUBT
        return option(_uncommented(line), known)

    return by_line(text, read)


def _uncommented(line: str) -> str:
    """Without a comment at its end: # outside of quotes, in which a backslash keeps what follows from ending them."""
    if "#" not in line:
        return line
    quote, escaped = "", False
    for i, each in enumerate(line):
        if each in "'\"" and not escaped and quote in ("", each):
            quote = "" if quote else each
        elif each == "#" and not quote:
            return line[:i]
        escaped = bool(quote) and each == "\\" and not escaped
    return line


def persisted(text: str, known: Mapping[str, Shape]) -> list[Line]:
    """mysqld-auto.cnf, JSON that SET PERSIST writes: the settings in its tables, and in tables of these."""
    found = [DOUBT]
    try:
        settings = dict(_persisted(json.loads(text), known))
    except (ValueError, RecursionError, AttributeError):
        return found
    rows = [Line(f"{json.dumps(name)}: {json.dumps({'Value': value})}{',' * (i < len(settings))}", "setting", name, value)
            for i, (name, value) in enumerate(settings.items(), 1)]  # fmt: skip
    return [Line('{"mysql_kept": {'), *rows, Line("}}"), BLANK]


def _persisted(table: Mapping[str, Any], known: Mapping[str, Shape]) -> Iterator[tuple[str, str]]:
    for name, entry in table.items():
        setting = name.lower()
        if setting in known:
            value = entry.get("Value") if isinstance(entry, dict) else None
            yield setting, kept(value, known[setting]) if isinstance(value, str) else WITHHELD
        elif isinstance(entry, dict):
            yield from _persisted(entry, known)


def arguments(given: Sequence[str]) -> list[Line]:
    """``--name=value``, ``--name value``, ``--skip-name``, ``-h DIR``, and --defaults-file and its like, which need the =."""
    known = ENGINE.known

    def long(text: str, after: str | None) -> Line | None:
        name, equals, value = text.partition("=")
        if text == "no-defaults":
            return Line(f"--{text}", "setting", text, ALONE)
        if name in _FIRST:
            value = kept(value, _FIRST[name])
            return Line(f"--{name}={value}", "setting", name, value) if equals else DOUBT
        if name.replace("_", "-").startswith(("defaults", "no-defaults")):
            return DOUBT
        line = option(text, known)
        if line.kind != "setting":
            return REST if line == OTHER else line
        if line.value != ALONE or equals or line.name in _OPTIONAL:
            return line._replace(text=f"--{line.text}")
        if after is None:
            return None
        value = kept(after, known.get(line.name, word))
        return Line(value, "setting", line.name, value)

    def short(letter: str, value: str) -> Line | None:
        return Line(home := kept(value, path), "setting", "datadir", home) if letter == "h" else None

    return getopt(given, LETTERS, short, long)


def data_files(value: str) -> bool:
    """``ibdata1:12M;/more/ibdata2:10M:autoextend``: files of the system tablespace with their sizes."""
    return all(path(name) and all(map(word, rest)) for name, *rest in (each.split(":") for each in value.split(";")))


def page(value: str) -> int:
    """The size of a page in bytes, of those that there are. Raises ValueError. (MySQL manual, innodb_page_size)"""
    size = int(value[:-1]) << 10 if value[-1:] in ("k", "K") else int(value)
    if size not in PAGES:
        raise ValueError("no such page")
    return size


ENGINE = Engine(
    name="mysql",
    title="MySQL InnoDB",
    page_bytes=16384,
    page_source="MySQL manual: innodb_page_size, 16 KiB by default",
    processes=("mysqld",),
    settings=(
        Setting("innodb_flush_log_at_trx_commit", word, "flush_log_at_commit", number("innodb_flush_log_at_trx_commit"), "1",
                lambda value: int(value) if value in ("0", "1", "2", "3") else int("no such value")),
        Setting("innodb_flush_log_at_timeout", word, "flush_log_every_s",
                number("innodb_flush_log_at_timeout, s: of innodb_flush_log_at_trx_commit 0 and 2"), "1",
                lambda value: max(int(value), 1)),
        Setting("innodb_doublewrite", word),
        Setting("innodb_flush_method", word),
        Setting("innodb_dedicated_server", word),
        Setting("innodb_page_size", word, "page_bytes", number("page of its data files"), "16384", page),
        Setting("sync_binlog", word),
        Setting("log_bin", path),
        Setting("persisted_globals_load", word),
        Setting("datadir", path),
        Setting("innodb_log_group_home_dir", path),
        Setting("innodb_undo_directory", path),
        Setting("innodb_data_home_dir", path),
        Setting("innodb_data_file_path", data_files),
        Setting("innodb_doublewrite_dir", path),
        Setting("aria_log_dir_path", path),
    ),
    files=(("mysqld-auto.cnf", persisted), ("*.cnf", cnf)),
    arguments=arguments,
    variables={"HOME": path, "MYSQL_HOME": path, "MARIADB_HOME": path,
               "MYSQL_GROUP_SUFFIX": word, "MARIADB_GROUP_SUFFIX": word},
    data_options=("datadir",),
    at_home=True,  # sql/mysqld.cc my_setwd; option files are read at the start (MySQL manual, Using Option Files)
    passing=("#innodb_temp",),  # any other folder is a schema, whatever it is called
    compared=("torn_page_guard", "flush_log_at_commit", "flush_method", "doublewrite", "sync_binlog"),
    profile="mysql-innodb",
)  # fmt: skip
MARIADB = ENGINE._replace(
    name="mariadb",
    title="MariaDB InnoDB",
    page_source="MariaDB manual: innodb_page_size, 16 KiB by default",
    processes=("mariadbd",),
)


ALWAYS = ("/etc/my.cnf", "/etc/mysql/my.cnf")
FOLDERS = ("/etc/my.cnf.d", "/etc/mysql/conf.d", "/etc/mysql/mysql.conf.d", "/etc/mysql/mariadb.conf.d")
LINKED = ("/etc/alternatives/my.cnf", "/etc/mysql/mariadb.cnf", "/etc/mysql/mysql.cnf")
# the SYSCONFDIR of packages and of the archives of MySQL and MariaDB; which of them one build reads it does not show
BUILDS = ("/usr/etc/my.cnf", "/usr/local/etc/my.cnf", "/usr/local/mysql/etc/my.cnf")
PREFIXES = ("/usr", "/usr/local", "/usr/local/mysql")
# a number stands for a word. What innodb_dedicated_server takes where nothing is said depends on the release of MySQL.
FLUSH_METHODS = ("FSYNC", "O_DSYNC", "LITTLESYNC", "NOSYNC", "O_DIRECT", "O_DIRECT_NO_FSYNC")
READ_GROUPS = {
    "mysql": ("mysqld", "server"),
    "mariadb": ("mysqld", "server", "mariadb", "mariadbd", "client-server", "galera"),
}
ARIA = "aria_log_control"  # in the data directory of every MariaDB, and of no MySQL
PERSISTED, MISSING = "mysqld-auto.cnf", "/nonexistent"  # where SET PERSIST writes; in the data directory
KNOWN = ENGINE.known


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
    tree: Tree,
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
    if engine == "mysql" and loads != SKIPPED and is_on(loads, "persisted_globals_load"):
        settings |= _from_persisted(reply, tree)
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
    tree: Tree,
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
    groups = [*READ_GROUPS[engine], *(f"{each}{suffix}" for each in READ_GROUPS[engine] if suffix)]
    if "defaults-file" in given:
        return settings_of(tree, given["defaults-file"][0], groups)
    prefix = posixpath.dirname(posixpath.dirname(program))
    if place.isdigit() and prefix not in PREFIXES:
        raise ValueError(
            f"which option files {program} was built to read is not known"
            if program
            else f"/proc/{place}/exe: not read, and it decides which option files count"
        )
    settings: Settings = {}
    for file in ALWAYS:
        settings |= settings_of(tree, file, groups, needed=False)
    home = place if place.startswith("/") else ""
    for file in _unsure(home, program):
        if told := list(settings_of(tree, file, groups, needed=False)):
            raise ValueError(f"{file} sets {told[0]}, and whether this build reads it is not known")
    extra = given.get("defaults-extra-file", ("",))[0]
    for file in _own(engine, given, variables or {}):
        settings |= settings_of(tree, file, groups, needed=file == extra)
    return settings


_SUFFIXES = {"mysql": ("MYSQL_GROUP_SUFFIX",), "mariadb": ("MARIADB_GROUP_SUFFIX", "MYSQL_GROUP_SUFFIX")}


def facts_of(settings: Settings, engine: str) -> Found:
    """What settings come to, whoever said them."""
    yield from setting_facts((MARIADB if engine == MARIADB.name else ENGINE), settings)
    value, seen = setting(settings, "innodb_doublewrite", "ON")
    kind = _doublewrite(value, engine)
    yield "doublewrite", Known(kind, (seen,))
    yield "torn_page_guard", Known(kind in ("ON", "DETECT_AND_RECOVER", "FAST"), (seen,))
    value, seen = setting(settings, "innodb_flush_method", "")
    dedicated = setting(settings, "innodb_dedicated_server", "OFF")[0]
    if value or dedicated == SKIPPED or not is_on(dedicated, "innodb_dedicated_server"):
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
    return "ON" if value != SKIPPED and is_on(value, "innodb_doublewrite") else "OFF"


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


def _from_persisted(reply: Files, tree: Tree) -> Settings:
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
    return {each.name: valued(each, PERSISTED) for each in lines if each.kind == "setting"}


def settings_of(tree: Tree, path: str, groups: Iterable[str], *, needed: bool = True, depth: int = 0) -> Settings:
    """my.cnf: the options of these groups, the last one counts. (MySQL manual, Using Option Files)"""
    found: Settings = {}
    groups = tuple(groups)
    here, versioned = False, ""
    for line in tree.lines(path, ENGINE, needed=needed, depth=depth):
        match line.kind, line.name:
            case "group", name:
                here = name in groups
                base, dash, _ = name.rpartition("-")
                versioned = name if not here and dash and base in groups else ""
            case "setting", ("!include" | "!includedir") as include:
                other = valued(line, path)[0]
                for each in tree.folder(other, ".cnf") if include == "!includedir" else [other]:
                    found |= settings_of(tree, each, groups, depth=depth + 1)
            case "setting", _ if versioned:
                raise ValueError(f"{path}: [{versioned}] sets {line.text}, and which version runs was not looked at")
            case "setting", name if here:
                found[name] = valued(line, path)
    return found
