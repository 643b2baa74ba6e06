"""PostgreSQL: its settings from files and command line, and what these mean together.

(PostgreSQL manual of 15 to 17: Setting Parameters, Write Ahead Log; src/backend/utils/misc/guc.c SelectConfigFiles)
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from auditor.collect import _database_files as files
from auditor.collect._database_files import Found, Settings, setting
from auditor.databases import ENGINES
from auditor.facts import Evidence, Known
from auditor.host.request import Files
from auditor.sources.replies import integer
from auditor.text import argument

ENGINE = ENGINES["postgres"]


def config_file(given: Settings, variables: Mapping[str, str], home: str) -> str:
    """The file that a server reads: config_file, or postgresql.conf of the folder that -D or PGDATA names, which need not
    be that of its data. Raises ValueError for a path that is relative to a folder that nobody saw."""
    folder = given["-D"][0] if "-D" in given else variables.get("PGDATA") or home
    path = given["config_file"][0] if "config_file" in given else f"{folder.rstrip('/')}/postgresql.conf"
    if not path.startswith("/"):
        raise ValueError(f"{path}: the folder that it was started in is not known")
    return path


def wanted(given: Settings, variables: Mapping[str, str], home: str) -> list[str]:
    """Files and folders to read."""
    try:
        config = config_file(given, variables, home)
    except ValueError:  # parse() says it
        config = f"{home}/postgresql.conf"
    return [config, f"{posixpath.dirname(config)}/conf.d/*.conf", f"{home}/postgresql.auto.conf"]


def read(tree: files.Tree, reply: Files, given: Settings, variables: Mapping[str, str]) -> Found:
    """What the files come to. Raises ValueError where one that counts was not read."""
    autos = [path for path in (*reply.text, *reply.errors) if path.endswith("/postgresql.auto.conf")]
    root = next((path[: path.index("/root") + 5] for path in autos), "")
    home = posixpath.dirname(autos[0].removeprefix(root)) if autos else ""
    settings = files.postgres(tree, config_file(given, variables, home))
    settings |= files.postgres(tree, f"{home}/postgresql.auto.conf", needed=False)
    yield from facts_of(settings | given, home)


def facts_of(settings: Settings, home: str) -> Found:
    """What settings come to, whoever said them. home: of its data, or empty where that is not known."""
    yield from files.facts_of(ENGINE, settings)
    value, seen = setting(settings, "full_page_writes", "on")
    yield "torn_page_guard", Known(files.boolean(value, "full_page_writes"), (seen,))
    if "block_size" in settings:
        value, seen = setting(settings, "block_size", "")
        yield "page_bytes", Known(integer(value), (seen,))
    else:
        yield (
            "page_bytes",
            Known(ENGINE.page_bytes, (Evidence("PostgreSQL pages of 8192 bytes unless built otherwise"),)),
        )
    if home:
        places = (f"data:{home}", f"log:{home}/pg_wal")
        yield "directories", Known(places, (Evidence(f"data in {home}", f"ls -l {argument(home)}"),))
