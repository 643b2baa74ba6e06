"""PostgreSQL: its settings from files and command line, and what they come to.

(PostgreSQL manual of 15 to 17: Setting Parameters, Write Ahead Log; src/backend/utils/misc/guc.c SelectConfigFiles)
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence

from auditor.collect import _database_files as files
from auditor.collect._database_files import Found, setting
from auditor.collect.database_process import option
from auditor.facts import Evidence, Known
from auditor.host.request import Files


def config_file(arguments: Sequence[str], variables: Mapping[str, str], home: str) -> str:
    """The file that a server reads: config_file, or postgresql.conf of the folder that -D or PGDATA names, which need not
    be that of its data. Raises ValueError for a path that is relative to a folder that nobody saw."""
    given = dict(_given(arguments)).get("config_file")
    folder = option(arguments, "-D") or variables.get("PGDATA") or home
    path = given or f"{folder.rstrip('/')}/postgresql.conf"
    if not path.startswith("/"):
        raise ValueError(f"{path}: the folder that it was started in is not known")
    return path


def wanted(arguments: Sequence[str], variables: Mapping[str, str], home: str) -> list[str]:
    """Files and folders to read."""
    try:
        config = config_file(arguments, variables, home)
    except ValueError:  # parse() says it
        config = f"{home}/postgresql.conf"
    return [config, f"{posixpath.dirname(config)}/conf.d/*.conf", f"{home}/postgresql.auto.conf"]


def read(tree: files.Tree, reply: Files, arguments: Sequence[str], variables: Mapping[str, str]) -> Found:
    """What the files come to. Raises ValueError where one that counts was not read."""
    autos = [path for path in (*reply.text, *reply.errors) if path.endswith("/postgresql.auto.conf")]
    root = next((path[: path.index("/root") + 5] for path in autos), "")
    home = posixpath.dirname(autos[0].removeprefix(root)) if autos else ""
    settings = files.postgres(tree, config_file(arguments, variables, home))
    settings |= files.postgres(tree, f"{home}/postgresql.auto.conf", needed=False)
    settings |= {name: (value, "command line") for name, value in _given(arguments)}
    yield from facts_of(settings, home)
    yield "temp_tablespaces", temp_tablespaces(settings)


def facts_of(settings: files.Settings, home: str) -> Found:
    """What settings come to, whoever said them. home: of its data, or empty where that is not known."""
    flags = {name: name for name in ("fsync", "wal_init_zero", "wal_recycle")} | {"torn_page_guard": "full_page_writes"}
    for fact, name in flags.items():
        value, seen = setting(settings, name, "on")
        yield fact, Known(files.boolean(value, name), (seen,))
    value, seen = setting(settings, "synchronous_commit", "on")
    if value.lower() not in ("local", "remote_write", "remote_apply"):
        value = "on" if files.boolean(value, "synchronous_commit") else "off"
    yield "synchronous_commit", Known(value.lower(), (seen,))
    value, seen = setting(settings, "wal_sync_method", "")
    yield "wal_sync_method", Known(value.lower(), (seen,))
    if "block_size" in settings:
        value, seen = setting(settings, "block_size", "")
        yield "page_bytes", Known(int(value), (seen,))
    else:
        yield "page_bytes", Known(8192, (Evidence("PostgreSQL pages of 8192 bytes unless built otherwise"),))
    if home:
        places = (f"data:{home}", f"log:{home}/pg_wal")
        yield "directories", Known(places, (Evidence(f"data in {home}", f"ls -l {home}"),))


def temp_tablespaces(settings: files.Settings) -> Known:
    """Their names; PostgreSQL's default is none."""
    value, seen = setting(settings, "temp_tablespaces", "")
    return Known(tuple(name for each in value.split(",") if (name := each.strip().strip('"'))), (seen,))


def _given(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Settings of the command line: ``-c name=value``, ``--name=value``, and -F for fsync=off."""
    for i, each in enumerate(arguments):
        text = each[2:] if each[:2] in ("-c", "--") else ""
        if each == "-c" and i + 1 < len(arguments):
            text = arguments[i + 1]
        name, equals, value = text.partition("=")
        if equals:
            yield name.replace("-", "_").lower(), value
        elif each == "-F":
            yield "fsync", "off"
