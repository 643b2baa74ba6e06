"""MongoDB: what is known of it. (MongoDB 6.0 manual, Configuration File Options; src/mongo/util/options_parser)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from auditor.databases import engine as base
from auditor.databases.engine import Confirms, Engine, Found, InForce, Launch, Line, Promise, Setting, Shape
from auditor.facts import Evidence, Known, Spec, Value
from auditor.text import argument

if TYPE_CHECKING:
    from auditor.databases.configuration import Tree

_VALUES: dict[str, tuple[str, Shape]] = {
    "config": ("config", base.path),
    "f": ("config", base.path),
    "dbpath": ("dbpath", base.path),
    "replSet": ("replSet", base.word),
    "journalCommitInterval": ("journalCommitInterval", base.word),
}
_SAME = {
    "storage.journal.commitIntervalMs": "journalCommitInterval",
    "replication.replSetName": "replSet",
    "storage.dbPath": "dbpath",
}


class MongoDB(Engine):
    name = "mongodb"
    place = 5
    title = "MongoDB WiredTiger"
    page_bytes = 32768  # WiredTiger manual: leaf_page_max
    processes = ("mongod",)
    settings = (
        Setting("storage.journal.enabled", base.word, "journal", Spec.flag("MongoDB keeps a journal"), "true", base.boolean),
        Setting("storage.journal.commitIntervalMs", base.word, "commit_interval_ms",
                Spec.number("milliseconds between flushes of the journal of MongoDB"), "100",
                lambda value: int(value) if value.isdecimal() and len(value) < 5 else int("no such value")),
        Setting("storage.dbPath", base.place),
        Setting("replication.replSetName", base.word),
    )  # fmt: skip
    files = (("mongo*.conf", base.yaml), ("*.yml", base.yaml), ("*.yaml", base.yaml))
    taken_over = ""
    units = ""
    data_options = ("dbpath",)
    passing = ("diagnostic.data", "_tmp")
    in_place = ()
    compared = ("journal",)
    omitting: Mapping[str, tuple[Value, ...]] = {}
    new_on_empty = "mongod with an empty dbPath begins a new database"
    profile = "mongodb"

    def arguments(self, given: Sequence[str]) -> list[Line]:
        """Long options may have one dash, too."""
        return base.dashed(given, _VALUES, {"nojournal": base.word, "journal": base.word})

    def wanted(self, launch: Launch) -> list[str]:
        return [launch.given["config"][0]] if "config" in launch.given else []

    def read(self, launch: Launch, tree: Tree) -> Found:
        given = launch.given
        settings = tree.settings(given["config"][0], self) if "config" in given else {}
        for name, means in (("journal", "true"), ("nojournal", "false")):
            if name in given and base.is_on(given[name][0], name):
                settings["storage.journal.enabled"] = means, f"--{name} (command line)"
        for name, option in _SAME.items():
            if option in given:
                settings[name] = given[option]
        yield from base.setting_facts(self, settings)
        name, seen = base.setting(settings, "replication.replSetName", "")
        # a recording that is so old that it dates no file may have kept no name of a replica set
        if name or tree.reply.changed or not ("config" in given or launch.others):
            yield "standalone", Known(not name, (seen,))
        home = settings.get("storage.dbPath", ("/data/db", ""))[0]
        yield "page_bytes", Known(self.page_bytes, (Evidence("WiredTiger leaf pages of 32 KiB by default"),))
        places = (f"data:{home}", f"log:{home}/journal")
        yield "directories", Known(places, (Evidence(f"data in {home}", f"ls -l {argument(home)}"),))

    def promise(self, settings: InForce, synchronous: bool | None) -> Promise:
        """A member of a replica set relies on the others: with arbiters the default is w:1, which waits for no journal."""
        journal, alone = settings.flag("journal"), settings.flag("standalone")
        elsewhere = None if alone is None else not alone
        if journal is False:
            return Promise(False, "never", "before", elsewhere=elsewhere)
        if alone is False:
            return Promise(False, "later", "before", elsewhere=True)
        known = journal is not None and alone is not None
        return Promise(False if known else None, "later" if known else None, "before", elsewhere=elsewhere)

    def confirms(self, settings: InForce, members: int, *, asynchronous: bool) -> Confirms:
        """w: majority, the default since 5.0 of a set without arbiters; it waits for the journals of these
        (writeConcernMajorityJournalDefault). (MongoDB 6.0 manual, Write Concern)"""
        return Confirms(members // 2 + 1, waits=True, relies="clients writing with w: majority")


ENGINE = MongoDB()
