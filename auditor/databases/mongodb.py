"""MongoDB: what is known of it. (MongoDB 6.0 manual, Configuration File Options; src/mongo/util/options_parser)"""

from __future__ import annotations

from collections.abc import Sequence

from auditor.databases.engine import Engine, Line, Setting, Shape, boolean, path, place, word
from auditor.databases.forms import dashed, yaml
from auditor.facts import flag, number

_VALUES: dict[str, tuple[str, Shape]] = {
    "config": ("config", path),
    "f": ("config", path),
    "dbpath": ("dbpath", path),
    "replSet": ("replSet", word),
    "journalCommitInterval": ("journalCommitInterval", word),
}


def arguments(given: Sequence[str]) -> list[Line]:
    """Long options may have one dash, too."""
    return dashed(given, _VALUES, {"nojournal": word, "journal": word})


ENGINE = Engine(
    name="mongodb",
    title="MongoDB WiredTiger",
    page_bytes=32768,
    page_source="WiredTiger manual: leaf_page_max, 32 KiB by default",
    processes=("mongod",),
    settings=(
        Setting("storage.journal.enabled", word, "journal", flag("MongoDB keeps a journal"), "true", boolean),
        Setting("storage.journal.commitIntervalMs", word, "commit_interval_ms",
                number("milliseconds between flushes of the journal of MongoDB"), "100",
                lambda value: int(value) if value.isdecimal() and len(value) < 5 else int("no such value")),
        Setting("storage.dbPath", place),
        Setting("replication.replSetName", word),
    ),
    files=(("mongo*.conf", yaml), ("*.yml", yaml), ("*.yaml", yaml)),
    arguments=arguments,
    data_options=("dbpath",),
    passing=("diagnostic.data", "_tmp"),
    compared=("journal",),
    profile="mongodb",
)  # fmt: skip
