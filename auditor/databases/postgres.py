"""PostgreSQL: what is known of it. (PostgreSQL manual of 15 to 17: Setting Parameters, Write Ahead Log, File Locations)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.databases.arguments import getopt
from auditor.databases.engine import (
    DOUBT,
    OTHER,
    REST,
    WITHHELD,
    Engine,
    Line,
    Setting,
    Shape,
    boolean,
    by_line,
    kept,
    names,
    path,
    plain,
    word,
)
from auditor.facts import flag, words
from auditor.facts import word as one_of

# of postgres, with a colon after those that have a value (src/backend/postmaster/postmaster.c)
LETTERS = "B:bC:c:D:d:EeFf:h:ijk:lN:nOPp:r:S:sTt:v:W:"
COMMITS = ("on", "off", "local", "remote_write", "remote_apply")


def conf(text: str, known: Mapping[str, Shape]) -> list[Line]:
    """postgresql.conf: ``name = value``, ``name value`` or ``name 'value'``, each on one line; names in any case.
    (src/backend/utils/misc/guc-file.l)"""

    def read(line: str) -> Line:
        if line.startswith("#"):
            return OTHER
        if line == WITHHELD:
            return DOUBT
        end = next((i for i, each in enumerate(line) if not (each.isalnum() or each in "_.$")), len(line))
        name, rest = line[:end].lower(), line[end:]
        found = _value(rest.lstrip(" \t").removeprefix("=").lstrip(" \t"))
        if not name or name[0].isdigit() or not rest or rest[0] not in " \t='" or found is None:
            return DOUBT  # the server does not read it either; it may run with what stood here before
        if name not in known:
            return OTHER
        value = kept(found, known[name])
        shown = value if plain(value) or value == WITHHELD else f"'{value}'"
        return Line(f"{name} = {shown}", "setting", name, value)

    return by_line(text, read)


def _value(text: str) -> str | None:
    """The value at the beginning, if nothing but a comment is behind it; one with escapes is not told from what it means."""
    if not text.startswith("'"):
        value, _, _ = text.partition("#")
        value = value.rstrip(" \t")
        return value if (value and not any(each in value for each in " \t'")) or value == WITHHELD else None
    end = text.find("'", 1)
    while end > 0 and (text[end - 1] == "\\" or text[end + 1 : end + 2] == "'"):
        end = text.find("'", end + (1 if text[end - 1] == "\\" else 2))
    behind = text[end + 1 :].lstrip(" \t")
    if end < 0 or (behind and behind[0] != "#"):
        return None
    inside = text[1:end]
    return WITHHELD if "\\" in inside else inside.replace("''", "'")


def arguments(given: Sequence[str]) -> list[Line]:
    """``-D DIR``, ``-c NAME=VALUE``, ``--NAME=VALUE``, and -F for fsync=off."""

    def short(letter: str, value: str) -> Line | None:
        match letter:
            case "D":
                return Line(folder := kept(value, path), "setting", "-D", folder)
            case "F":
                return Line("-F", "setting", "fsync", "off")
            case "c":
                return _given(value)
            case _:
                return None

    return getopt(given, LETTERS, short, lambda text, after: _given(text, "--"))


def _given(text: str, before: str = "") -> Line:
    name, equals, value = text.partition("=")
    name = name.replace("-", "_").lower()
    if not equals or name not in ENGINE.known:
        return REST
    value = kept(value, ENGINE.known[name])
    return Line(f"{before}{name}={value}", "setting", name, value)


ENGINE = Engine(
    name="postgres",
    title="PostgreSQL",
    page_bytes=8192,
    page_source="PostgreSQL manual, Preset Options: block_size, 8192 bytes unless built otherwise",
    processes=("postgres",),
    settings=(
        Setting("fsync", word, "fsync", flag("PostgreSQL fsync"), "on", boolean),
        Setting("full_page_writes", word),
        Setting("synchronous_commit", word, "synchronous_commit", one_of("PostgreSQL", *COMMITS), "on",
                lambda value: value.lower() if value.lower() in COMMITS[2:] else "on" if boolean(value) else "off"),
        Setting("wal_init_zero", word, "wal_init_zero", flag("PostgreSQL"), "on", boolean),
        Setting("wal_recycle", word, "wal_recycle", flag("PostgreSQL"), "on", boolean),
        Setting("wal_sync_method", word, "wal_sync_method",
                one_of("PostgreSQL; empty: the default of this system, fdatasync on Linux"), "", str.lower),
        Setting("temp_tablespaces", names, "temp_tablespaces",
                words("PostgreSQL: those that are named for temporary tables and files, by the configuration"), "",
                lambda value: tuple(name for each in value.split(",") if (name := each.strip().strip('"')))),
        Setting("data_directory", path),
        Setting("config_file", path),
        Setting("include", path),
        Setting("include_if_exists", path),
        Setting("include_dir", path),
    ),
    files=(("*.conf", conf),),
    arguments=arguments,
    variables={"PGDATA": path},
    data_options=("-D", "data_directory"),
    data_variable="PGDATA",
    at_home=True,  # src/backend/utils/init/miscinit.c ChangeToDataDir
    taken_over="a reload",  # PostgreSQL manual, Setting Parameters; nothing that lasts tells when it was
    passing=("log", "pg_log", "pg_stat_tmp", "pgsql_tmp"),
    compared=("fsync", "synchronous_commit", "torn_page_guard"),
    profile="postgres",
)  # fmt: skip
