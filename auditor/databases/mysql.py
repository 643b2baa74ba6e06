"""MySQL and MariaDB: what is known of them.

The server takes a name with dashes for the same as with underscores, an unambiguous beginning of a name for the name, and
skip, disable, enable, maximum, loose and plugin before it. (mysys/my_getopt.c, mysys/my_default.c; MySQL manual, Program
Option Modifiers, Using Option Files, Persisted System Variables)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from auditor.databases.arguments import getopt
from auditor.databases.engine import (
    BLANK,
    DOUBT,
    OTHER,
    REST,
    WITHHELD,
    Engine,
    Line,
    Setting,
    Shape,
    by_line,
    kept,
    path,
    word,
)
from auditor.facts import number

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
