"""MongoDB: what is known of it. (MongoDB 6.0 manual, Configuration File Options; src/mongo/util/options_parser)"""

from __future__ import annotations

from collections.abc import Sequence

from auditor.databases import yaml
from auditor.databases.arguments import dashed
from auditor.databases.engine import Engine, Line, Setting, Shape, boolean, path, place, word
from auditor.facts import flag

_VALUES: dict[str, tuple[str, Shape]] = {"config": ("config", path), "f": ("config", path), "dbpath": ("dbpath", path)}


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
        Setting("storage.dbPath", place),
    ),
    files=(("mongo*.conf", yaml.read), ("*.yml", yaml.read), ("*.yaml", yaml.read)),
    arguments=arguments,
    data_options=("dbpath",),
    passing=("diagnostic.data", "_tmp"),
    profile="mongodb",
)
