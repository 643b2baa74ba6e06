"""The files that the configuration of a database server includes, from the same files that ``database_settings`` asks for, so
that it can ask for these, too. What they include themselves is not followed, and leaves the settings unknown.

(PostgreSQL manual, Setting Parameters, Managing Configuration File Contents; MySQL manual, Using Option Files)
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from auditor.collect import _database_files as files
from auditor.collect import database_settings
from auditor.databases import ENGINES, kept
from auditor.databases.engine import WITHHELD
from auditor.facts import Fact, Facts, Subject, known, words
from auditor.host.request import Files, Read, Skip

PER = "database"
SUBJECT = "database"
FACTS = {"includes": words("paths and patterns of the files that its configuration includes")}
MOST = 100  # of a configuration that anybody may have written
ENDS = {"include": "", "include_if_exists": "", "include_dir": "/*.conf", "!include": "", "!includedir": "/*.cnf"}


def request(database: Subject, facts: Facts) -> Read | Skip:
    return database_settings.request(database, facts)


def parse(reply: Files, database: Subject) -> Iterator[Fact]:
    """Paths as the server sees them; a relative one is below the folder of the file that names it. Raises ValueError where a
    file was not read."""
    root, known_ = files.root_of(database), ENGINES[database.name.partition(" ")[0]].known
    if why := next((f"{path}: {error}" for path, error in reply.errors.items() if _failed(path, error, root)), ""):
        raise ValueError(why.removeprefix(root))
    found: dict[str, str] = {}
    for full, text in sorted(reply.text.items()):
        path = full.removeprefix(root)
        form = kept.form(posixpath.basename(path)) if full.startswith(f"{root}/") else None
        for line in form[0](text, known_) if form else ():
            if line.name in ENDS and line.kind == "setting" and line.value != WITHHELD:
                other = posixpath.normpath(posixpath.join(posixpath.dirname(path), line.value)) + ENDS[line.name]
                if root + other not in (*reply.text, *reply.errors):
                    found.setdefault(other, f"{path} includes {line.value}")
    paths = tuple(each for each in found if files.plain(posixpath.dirname(each)))[:MOST]
    yield Fact(database, "includes", known(paths, "; ".join(found[each] for each in paths) or "no more files"))


def _failed(path: str, error: str, root: str) -> bool:
    """Of what is below the root directory of the process: could it not be looked at?"""
    return path.startswith(f"{root}/") and not error.startswith("no such")
