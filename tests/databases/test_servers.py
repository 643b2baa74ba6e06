"""Databases: found by their processes, their settings and where their files lie; and reading their files harms nobody."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from auditor import registry
from auditor.databases import mysql, paths, servers, settings
from auditor.databases.configuration import Tree
from auditor.databases.paths import FolderDevice
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.gather import walk
from auditor.gather.gatherer import Gatherer, fill
from auditor.host import request
from auditor.host.live import LiveHost, allowed_part
from auditor.host.request import Capture, Files, Read, Run, Skip
from auditor.judge.verdict import judge
from auditor.model.database import changes_at_restart, database_seen, databases, named_database, placement, temporary
from auditor.recording import recording, redaction
from auditor.sources import mounts
from auditor.sources.block_devices import DeviceName
from tests import pairs, shared
from tests.tables import typed

RULES = {rule.id: rule for rule in shared.rules()}
ROOT = "/proc/612/root"
DATA = f"{ROOT}/var/lib/postgresql/15/main"
CONFIG = f"{ROOT}/etc/postgresql/15/main"
STAT = "{0} ({1}) S {2} 1 1 0 -1 4194560 100 0\n"
FILES = {
    "/proc/1/stat": STAT.format(1, "systemd", 0),
    "/proc/612/stat": STAT.format(612, "postgres", 1),
    "/proc/613/stat": STAT.format(613, "postgres", 612),
    "/proc/612/cmdline": "postgres\0-D\0/var/lib/postgresql/15/main\0-c\0config_file=/etc/postgresql/15/main/postgresql.conf\0",
    "/proc/612/environ": "",
    "/proc/612/maps": "/usr/lib/x86_64-linux-gnu/libc.so.6\n",
    "/proc/612/mountinfo": "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "40 22 0:50 / /var/lib/postgresql rw - zfs tank/pg rw\n41 22 0:51 / /wal rw - zfs tank/wal rw\n",
    f"{CONFIG}/postgresql.conf": "include_dir = 'conf.d'\n",
    f"{DATA}/postgresql.auto.conf": "",
}
LINKS = {"/proc/612/cwd": "/var/lib/postgresql/15/main", f"{DATA}/pg_wal": "/wal/15"}
FOLDERS = {os.path.dirname(path) for path in (*FILES, *LINKS)}


NOTHING_CHANGED: Mapping[str, float] = MappingProxyType({})
NOT_INSTALLED = Capture(None, fault="not installed")


@dataclass
class Machine:
    """A host with these files and links; all folders above them are there."""

    files: dict[str, str]
    links: dict[str, str]
    denied: tuple[str, ...] = ()
    now: float = 1.7e9
    euid: int = 0
    at_once: int = 1
    answer: Capture = NOT_INSTALLED
    changed: Mapping[str, float] = field(default_factory=dict)

    def run(self, request: Run) -> Capture:
        return self.answer if request.argv[0] == "sql" else NOT_INSTALLED

    def realpath(self, path: str) -> str:
        return path

    def steady(self, path: str) -> str:
        return path

    def read(self, request: Read) -> Files:
        text: dict[str, str] = {}
        links: dict[str, str] = {}
        errors: dict[str, str] = {}
        for pattern in request.patterns:
            if pattern.startswith(self.denied or ("\0",)):
                errors[pattern] = "permission denied"
                continue
            mine = {path: each for path, each in self.files.items() if fnmatchcase(path, pattern)}
            led = {path: each for path, each in self.links.items() if fnmatchcase(path, pattern)}
            text |= {path: kept for path, each in mine.items() if (kept := allowed_part(path, each)) is not None}
            links |= led
            there = (*self.files, *self.links, *self.points())
            folder = any((path + "/").startswith(pattern + "/") for path in there)
            if not (mine or led or folder):
                errors[pattern] = "no such file"
        below = {
            path: after
            for path, after in self.changed.items()
            if any(fnmatchcase(path, each) or each.startswith(path) for each in request.patterns)
        }
        return Files(text, links, errors, self.devices(request.patterns, links, errors), below)

    def points(self) -> list[str]:
        return [ROOT + each.mount_point for each in mounts.mounts(self.files.get("/proc/612/mountinfo", ""))]

    def devices(self, patterns: tuple[str, ...], links: Mapping[str, str], errors: Mapping[str, str]) -> dict[str, str]:
        """Of the folders that are there: those of the mounts that they are on."""
        found: dict[str, str] = {}
        for path in (*patterns, *links):
            before, root, below = path.partition("/root/")
            if not root or "*" in path or path in errors or path in self.files:
                continue
            tree = Tree(Files({}, self.links), f"{before}/root")
            table = mounts.mounts(self.files.get(f"{before}/mountinfo", ""))
            with suppress(ValueError):
                mount = mounts.mount_of(table, tree.real(f"/{below}"))
                found |= {path: mount.major_minor} if mount else {}
        return found


def seen(
    files: Any = None,
    links: Any = None,
    denied: tuple[str, ...] = (),
    inventory: Facts | None = None,
    connection: tuple[str, str, Capture] | None = None,
    changed: Mapping[str, float] = NOTHING_CHANGED,
    **datasets: str,
) -> Facts:
    facts = Facts(1.7e9)
    for name, value in zip(("connected_engine", "database_connection"), (connection or ("", ""))[:2], strict=True):
        facts.put(Fact(HOST, name, known(value, f"--db {value}")))
    pool = Subject("pool", "tank")
    facts.put(Fact(HOST, "pools", known((pool,), "tank")))
    found = tuple(Subject("dataset", f"tank/{name}") for name in datasets)
    facts.put(Fact(pool, "datasets", known(found, "datasets")))
    for name, sync in datasets.items():
        for fact, value in (("sync", sync), ("role", "undeclared"), ("readonly", "off")):
            facts.put(Fact(Subject("dataset", f"tank/{name}"), fact, known(value, f"{fact}={value}")))
    machine = Machine({**FILES, **(files or {})}, {**LINKS, **(links or {})}, denied)
    machine.changed = changed
    machine.answer = connection[2] if connection else machine.answer
    gatherer = Gatherer(machine, registry.sources())
    for collector in ("database_processes", "database_sql"):
        gatherer.ask(collector, [HOST], facts)
    walk.look_at_databases(gatherer, facts, inventory or Facts())
    fill(gatherer, facts)
    gatherer.close()
    facts.put_all(list(databases.derive(HOST, facts)))
    for each in list(facts.subjects("database")):
        for derivation in (placement, changes_at_restart):
            facts.put_all(list(derivation.derive(each, facts)))
    facts.put_all(list(temporary.derive(HOST, facts)))
    return facts


def outcome(facts: Facts, rule: str) -> list[str]:
    return [verdict.outcome for verdict in judge([RULES[rule]], facts)]


def value(facts: Facts, subject: Subject, name: str) -> Any:
    found = facts.get(subject, name)
    assert isinstance(found, Known), found
    return found.value


PG = Subject("database", "postgres 612")


OLD = {f"{CONFIG}/postgresql.conf": -60.0, f"{CONFIG}/conf.d": -60.0, f"{DATA}/postgresql.auto.conf": -60.0}
YOUNG = OLD | {f"{CONFIG}/postgresql.conf": 3600.0}
OFF, ON = ({f"{CONFIG}/postgresql.conf": f"fsync = {value}\ninclude_dir = 'conf.d'\n"} for value in ("off", "on"))
IN_FORCE = "-c\0fsync={0}\0".format


@pytest.mark.parametrize(
    ("files", "changed", "given", "today", "later"),
    [
        (OFF, OLD, "", "fail", "pass"),
        (ON, OLD, "", "pass", "pass"),
        (OFF, YOUNG, "", "unknown", "fail"),
        (ON, YOUNG, "", "unknown", "pass"),
        (ON, YOUNG, IN_FORCE("off"), "fail", "fail"),
        (OFF, YOUNG, IN_FORCE("on"), "pass", "pass"),
        (OFF, {}, "", "fail", "unknown"),
        (ON, {}, "", "pass", "pass"),
    ],
)
def test_a_file_that_is_younger_than_the_server_says_nothing_of_today(
    files: dict[str, str], changed: dict[str, float], given: str, today: str, later: str
) -> None:
    """Neither off nor on; the command line outranks it; of a recording without these times the files are believed."""
    line = {"/proc/612/cmdline": FILES["/proc/612/cmdline"] + given}
    facts = seen(files | line, changed=changed, pg="standard", wal="standard")
    assert outcome(facts, "pg-fsync-off") == [today]
    assert outcome(facts, "db-file-not-loaded") == [later]
    assert value(facts, PG, "page_bytes") == 8192
    assert facts.linked(PG, "data_datasets") == (Subject("dataset", "tank/pg"),)
    why = facts.get(PG, "torn_page_guard")
    assert isinstance(why, Unknown) == (changed is YOUNG)
    if isinstance(why, Unknown):
        assert "was changed 3,600 s after process 612 started" in why.reasons[0].text
        assert why.reasons[0].remedy == "--db postgres=DSN asks the server"


def test_log_and_data_are_followed_through_links_to_their_datasets() -> None:
    facts = seen(pg="standard", wal="standard")
    assert facts.linked(HOST, "databases") == (PG,)
    assert facts.linked(PG, "log_datasets") == (Subject("dataset", "tank/wal"),)
    assert facts.linked(PG, "data_datasets") == (Subject("dataset", "tank/pg"),)
    for rule in ("pg-fsync-off", "pg-synchronous-commit", "sync-mixed-log-data", "db-path-not-on-zfs", "libeatmydata"):
        assert outcome(facts, rule) == ["pass"], rule


def test_the_page_of_a_database_that_was_found_is_set_beside_recordsize() -> None:
    facts = seen(pg="standard", wal="standard")
    facts.put(Fact(HOST, "database", known("", "")))
    for name, pages in (("tank/pg", 8192), ("tank/wal", None)):
        found = {fact.name: fact.value for fact in named_database.derive(Subject("dataset", name), facts)}
        page = found["db_page_bytes"]
        assert (page.value if isinstance(page, Known) else None) == pages


def test_sqlite_is_found_by_its_locks_where_no_server_is() -> None:
    facts = seen(pg="standard", web="standard")
    facts.put(Fact(HOST, "database", known("", "")))
    facts.replace(Fact(HOST, "sqlite_files", Known(("tank/pg=1", "tank/web=2"), (Evidence("a"), Evidence("b")))))
    found = {
        name: {fact.name: fact.value for fact in named_database.derive(Subject("dataset", f"tank/{name}"), facts)}
        for name in ("pg", "web", "other")
    }
    engines = {name: each["db_engine"].value for name, each in found.items() if isinstance(each["db_engine"], Known)}
    assert engines == {"pg": "postgres", "web": "sqlite", "other": "none"}
    assert found["web"]["db_page_bytes"] == Known(
        4096, (Evidence("b"), Evidence("SQLite pages of 4096 bytes by default"))
    )


def test_mixed_sync_is_found_and_both_disabled_in_one_pool_is_left_to_another_rule() -> None:
    assert outcome(seen(pg="disabled", wal="standard"), "sync-mixed-log-data") == ["fail"]
    assert outcome(seen(pg="standard", wal="disabled"), "sync-mixed-log-data") == ["fail"]
    assert outcome(seen(pg="disabled", wal="disabled"), "sync-mixed-log-data") == ["pass"]
    assert outcome(seen(pg="standard"), "sync-mixed-log-data") == ["unknown"]  # the other was not looked at


@pytest.mark.parametrize(
    ("setting", "role", "readonly", "verdict"),
    [
        ("", "undeclared", "off", "fail"),
        ("temp_tablespaces = ''\n", "undeclared", "off", "fail"),
        ("temp_tablespaces = 'scratch'\n", "undeclared", "off", "unknown"),
        ("temp_tablespaces = 'scratch'\n", "rebuildable", "off", "pass"),
        ("", "rebuildable", "off", "pass"),
        ("", "undeclared", "on", "pass"),
    ],
)
def test_a_tablespace_that_ignores_sync(setting: str, role: str, readonly: str, verdict: str) -> None:
    """What a crash may take decides: a temporary one, one that is declared, one that nobody writes to."""
    facts = seen(
        files={
            f"{DATA}/postgresql.auto.conf": setting,
            "/proc/612/mountinfo": FILES["/proc/612/mountinfo"] + "42 22 0:52 / /srv/tmp rw - zfs tank/tmp rw\n",
        },
        links={f"{DATA}/pg_tblspc/16400": "/srv/tmp"},
        pg="standard",
        wal="standard",
        tmp="disabled",
    )
    for name, value in (("role", role), ("readonly", readonly)):
        facts.replace(Fact(Subject("dataset", "tank/tmp"), name, known(value, f"{name}={value}")))
    assert outcome(facts, "sync-mixed-log-data") == [verdict]


def test_a_tablespace_elsewhere_is_found() -> None:
    facts = seen(links={f"{DATA}/pg_tblspc/16400": "/srv/ts"}, pg="standard", wal="standard")
    assert outcome(facts, "db-path-not-on-zfs") == ["fail"]
    value = facts.get(PG, "off_zfs")
    assert isinstance(value, Known)
    assert value.value == ("/var/lib/postgresql/15/main/pg_tblspc/16400 (/srv/ts) on ext4",)


HOME = "/var/lib/postgresql/15/main"


def mounted(*more: str) -> dict[str, str]:
    """The table of mounts of the server with more of them: each its mount point, type and source."""
    lines = ""
    for i, each in enumerate(more):
        point, kind, source = each.split(" ")
        lines += f"{50 + i} {41 if point.startswith('/wal') else 40} 0:{60 + i} / {point} rw - {kind} {source} rw\n"
    return {"/proc/612/mountinfo": FILES["/proc/612/mountinfo"] + lines}


def test_a_link_above_where_a_link_leads_is_followed() -> None:
    wal = {f"{DATA}/pg_wal": "/link/15", f"{ROOT}/link": "/wal", f"{ROOT}/wal/15/x": "y"}
    facts = seen(links={**wal, f"{ROOT}/link/15/x": "y"}, pg="standard", wal="standard")
    assert [each.name for each in facts.linked(PG, "log_datasets")] == ["tank/wal"]
    deeper = {f"{DATA}/pg_wal": "/a/15", f"{ROOT}/a": "/b", f"{ROOT}/b": "/wal", f"{ROOT}/a/15/x": "y"}
    assert isinstance(seen(links=deeper, pg="standard").get(PG, "log_datasets"), Unknown)


@pytest.mark.parametrize("target", ["/link/*", "/link/../15", "/link/x/../../15"])
def test_a_link_that_leads_to_no_plain_path_is_unknown(target: str) -> None:
    assert isinstance(seen(links={f"{DATA}/pg_wal": target}, pg="standard").get(PG, "log_datasets"), Unknown)


@pytest.mark.parametrize("barred", ["/d", "/d/pg_tblspc/1", ""])
def test_folders_in_which_a_server_may_not_write_are_not_taken_for_its_own(barred: str) -> None:
    """Any user may start a process of that name, and name the folders of another."""
    facts = Facts()
    said = {
        "directories": ("data:/d",),
        "mountinfo": ("25 1 254:1 / / rw - ext4 /dev/vda1 rw", "26 25 0:30 / /tank rw - zfs tank rw"),
        "symlinks": ("/d/pg_tblspc/1 -> /tank/db",),
        "devices": ("/d -> 254:1", "/d/pg_tblspc/1 -> 0:30"),
        "more_symlinks": (),
        **({"barred": ("/", barred)} if barred else {}),
    }
    for name, words in said.items():
        facts.put(Fact(PG, name, known(typed("database", name, words), "")))
    facts.put_all(list(paths.lies_on(facts, Facts(), {})))
    found = facts.get(PG, "datasets")
    assert ("the process may not write there" in str(found)) is bool(barred)
    assert facts.linked(PG, "datasets") == (() if barred else (Subject("dataset", "tank"),))


def test_links_that_nobody_asked_for_and_that_have_no_end_are_unknown() -> None:
    facts, chain = Facts(), tuple(f"/l{number} -> /l{number + 1}" for number in range(60))
    said = {
        "directories": ("data:/d",),
        "mountinfo": ("25 1 254:1 / / rw - ext4 /dev/vda1 rw",),
        "symlinks": ("/d/pg_tblspc/1 -> /q/t",),
        "devices": ("/d -> 254:1",),
        "more_symlinks": ("/d/pg_tblspc/2 -> /l0", *chain),
    }
    for name, words in said.items():
        facts.put(Fact(PG, name, known(typed("database", name, words), "")))
    facts.put_all(list(paths.lies_on(facts, Facts(), {})))
    assert "too many symbolic links" in str(facts.get(PG, "datasets"))


def test_what_is_mounted_below_its_directories_is_its_own() -> None:
    lines = (f"{HOME}/base zfs tank/base", f"{HOME}/pg_stat_tmp zfs tank/tmp", "/wal/15/archive_status zfs tank/wal2")
    facts = seen(
        mounted(*lines, f"{HOME}/x tmpfs none", f"{HOME}/.zfs/snapshot/a zfs tank/pg@a"), pg="standard", base="disabled"
    )
    assert [each.name for each in facts.linked(PG, "data_datasets")] == ["tank/pg", "tank/base"]
    assert [each.name for each in facts.linked(PG, "log_datasets")] == ["tank/wal", "tank/wal2"]
    assert value(facts, PG, "off_zfs") == ()
    assert value(seen(mounted(f"{HOME}/base ext4 /dev/sdb1"), pg="standard"), PG, "off_zfs") == (
        f"{HOME}/base on ext4",
    )


def test_what_is_mounted_below_its_directories_is_looked_at() -> None:
    """Any user may mount the folders of another there; and what another mount hides holds nothing of its own."""
    lines = (f"{HOME}/base zfs tank/base", f"{HOME}/old/x zfs tank/hidden", f"{HOME}/old zfs tank/over")
    table = mounted(*lines)["/proc/612/mountinfo"].split("\n")[:-1]
    facts = Facts()
    for name, words in (("directories", (f"data:{HOME}",)), ("mountinfo", tuple(table)), ("symlinks", ())):
        facts.put(Fact(PG, name, known(typed("database", name, words), "")))
    asked = paths.database_links.request(PG, facts)
    assert asked == Read((f"{ROOT}{HOME}/base", f"{ROOT}{HOME}/old"), "612")
    facts.put(Fact(PG, "devices", known((FolderDevice(HOME, "0:50"),), "")))

    def placed(**said: tuple[str, ...]) -> str:
        more = Facts()
        more.put_all(list(facts))
        more.put_all(Fact(PG, name, known(typed("database", name, words), "")) for name, words in said.items())
        more.put_all(list(paths.lies_on(more, Facts(), {})))
        found = more.get(PG, "datasets")
        return str([each.name for each in more.linked(PG, "datasets")]) if isinstance(found, Known) else str(found)

    both = (f"{HOME}/base -> 0:60", f"{HOME}/old -> 0:62")
    assert placed(more_symlinks=(), more_devices=both) == "['tank/pg', 'tank/base', 'tank/over']"
    barred = placed(more_symlinks=(), more_devices=both, more_barred=(f"{HOME}/base",))
    assert f"{HOME}/base: the process may not write there" in barred
    for said in ({}, {"more_symlinks": ()}, {"more_symlinks": (), "more_devices": both[:1]}):
        assert f"{HOME}/old: was not seen to be a folder in which the process may write" in placed(**said)
    a_link = placed(more_symlinks=(f"{HOME}/base -> /tmp",), more_devices=both)
    assert f"{HOME}/base: was not seen to be a folder" in a_link


def test_a_recording_that_says_no_device_at_all_is_read_as_it_was() -> None:
    """It was made before anybody asked; today the device of the root directory is told with any answer."""
    facts = Facts()
    table = tuple(FILES["/proc/612/mountinfo"].split("\n")[:-1])
    for name, words in (("directories", (f"data:{HOME}",)), ("mountinfo", table), ("symlinks", ())):
        facts.put(Fact(PG, name, known(typed("database", name, words), "")))
    facts.put_all(list(paths.lies_on(facts, Facts(), {})))
    assert facts.linked(PG, "datasets") == (Subject("dataset", "tank/pg"),)
    facts.put(Fact(PG, "devices", known((FolderDevice("/", "8:1"),), "")))
    facts.replace(Fact(PG, "datasets", unknown("again")))
    facts.put_all(list(paths.lies_on(facts, Facts(), {})))
    assert isinstance(facts.get(PG, "datasets"), Unknown)


def test_a_tablespace_that_is_not_there_holds_nothing() -> None:
    """Nor is it counted where its link leads to: any user may make one that leads anywhere."""
    facts, gone = Facts(), f"{HOME}/pg_tblspc/1"
    said = {
        "directories": (f"data:{HOME}",),
        "mountinfo": tuple(FILES["/proc/612/mountinfo"].split("\n")[:-1]),
        "symlinks": (f"{gone} -> /wal/none",),
        "devices": (f"{HOME} -> 0:50",),
        "more_symlinks": (),
        "tablespaces_gone": (gone,),
    }
    for name, words in said.items():
        facts.put(Fact(PG, name, known(typed("database", name, words), "")))
    facts.put_all(list(paths.lies_on(facts, Facts(), {})))
    assert facts.linked(PG, "datasets") == (Subject("dataset", "tank/pg"),)


@pytest.mark.parametrize(("fstype", "forgotten"), [("ext4", False), ("tmpfs", True)])
def test_what_is_in_memory_a_crash_takes(fstype: str, forgotten: bool) -> None:
    """What somebody linked to /dev/shm is not kept on anybody's word."""
    table = {"/proc/612/mountinfo": FILES["/proc/612/mountinfo"].replace("ext4", fstype)}
    facts = seen(table, links={f"{DATA}/pg_tblspc/16400": "/srv/ts"}, pg="standard", wal="standard")
    assert bool(value(facts, PG, "forgotten")) is forgotten
    (verdict,) = judge([RULES["db-path-not-on-zfs"]], facts)
    assert verdict.outcome == "fail"


def test_of_more_than_a_hundred_mounts_not_one_is_judged() -> None:
    facts = seen(mounted(*(f"{HOME}/{i} zfs tank/{i}" for i in range(101))), pg="standard")
    found = facts.get(PG, "datasets")
    assert isinstance(found, Unknown)
    assert "more than 100 mounts" in found.reasons[0].text


def test_every_directory_that_mysql_writes_to_is_one_of_its_own() -> None:
    settings = {
        "datadir": ("/db", ""),
        "innodb_data_home_dir": ("/ib", ""),
        "innodb_data_file_path": ("ibdata1:12M;more/ibdata2:10M;/far/ibdata3:10M:autoextend", ""),
        "innodb_doublewrite_dir": ("/dw", ""),
        "innodb_log_group_home_dir": ("./redo", ""),
        "log_bin": ("binlogs/b", ""),
        "aria_log_dir_path": ("/aria", ""),
    }
    found = dict(mysql.ENGINE.facts_of(settings))["directories"].value
    data = ("data:/db", "data:/ib", "data:/ib/more", "data:/far", "data:/dw")
    assert found == (*data, "log:/db/redo", "log:/db", "log:/db/binlogs", "log:/aria")


def test_what_is_not_on_an_audited_dataset_is_not_judged() -> None:
    facts = seen(other="standard")
    assert facts.linked(HOST, "databases") == ()
    assert outcome(facts, "pg-fsync-off") == []


@pytest.mark.parametrize("denied", [(f"{ROOT}/",), (f"{CONFIG}/",), ("/proc/612/cmdline",)])
def test_what_may_not_be_read_is_unknown(denied: tuple[str, ...]) -> None:
    facts = seen(denied=denied, pg="standard", wal="standard")
    assert facts.linked(HOST, "databases") == (PG,)
    assert outcome(facts, "pg-fsync-off") == ["unknown"]
    assert outcome(facts, "sync-mixed-log-data") == ["unknown"]


def test_an_include_that_was_not_read_leaves_every_setting_unknown() -> None:
    facts = seen(
        files={f"{CONFIG}/postgresql.conf": "fsync = off\ninclude '/srv/more.conf'\n"}, pg="standard", wal="standard"
    )
    value = facts.get(PG, "fsync")
    assert isinstance(value, Unknown)
    assert "/srv/more.conf: no such file" in value.reasons[0].text


def test_what_the_configuration_includes_is_read() -> None:
    files = {f"{CONFIG}/postgresql.conf": "fsync = on\ninclude 'more.conf'\n", f"{CONFIG}/more.conf": "fsync = off\n"}
    assert value(seen(files, pg="standard"), PG, "fsync") is False
    deeper = files | {f"{CONFIG}/more.conf": "include '/srv/deeper.conf'\n", f"{ROOT}/srv/deeper.conf": "fsync = off\n"}
    assert isinstance(seen(deeper, pg="standard").get(PG, "fsync"), Unknown)


@pytest.mark.parametrize("odd", ["\0", "\n", "\t", "\x7f", " -> "])
def test_a_path_that_would_mean_something_else_is_not_asked_for(odd: str) -> None:
    """Any user may call a process mongod and give it any file."""
    server = {
        "/proc/700/stat": STAT.format(700, "mongod", 1),
        "/proc/700/cmdline": "mongod\0--config\0/etc/mongod.conf\0",
        "/proc/700/root/etc/mongod.conf": f'storage:\n  dbPath: "/srv/a{odd}b"\n',
    }
    mongod = Subject("database", "mongodb 700")
    facts = seen(server)
    assert isinstance(facts.get(mongod, "datasets"), Unknown)
    assert isinstance(facts.get(PG, "datasets"), Known)
    named = Facts()
    named.put(Fact(mongod, "directories", known((f"data:/srv/a{odd}b",), "")))
    assert isinstance(paths.database_paths.request(mongod, named), Skip)
    named.put(Fact(mongod, "arguments", known(("--config", f"/etc/a{odd}b"), "")))
    asked = settings.database_settings.request(mongod, named)
    assert isinstance(asked, Read)
    assert not any("/etc" in pattern for pattern in asked.patterns)


def crowd(processes: int, user: int, first: int = 1000, name: str = "postgres", start: int = 9000) -> dict[str, str]:
    """So many processes of one user that call themselves a server."""
    files = {}
    for number in range(first, first + processes):
        files[f"/proc/{number}/stat"] = f"{number} ({name}) S 1 {'0 ' * 17}{start + number} 0\n"
        files[f"/proc/{number}/status"] = f"Name:\t{name}\nUid:\t{user}\t0\t0\t0\n"
    return files


LONG = {"/proc/612/stat": STAT.format(612, "postgres", 1).replace("0\n", f"{'0 ' * 11}5000 0\n"),
        "/proc/612/status": "Uid:\t110\t110\t110\t110\n"}  # fmt: skip


@pytest.mark.slow
def test_of_a_crowd_a_few_are_looked_at_and_the_others_are_one() -> None:
    """And it crowds out no server of another user, however early it came."""
    facts = seen(
        {**LONG, **crowd(1_000, 5000, start=0), **crowd(200, 5000, 3000, "etcd")}, pg="standard", wal="standard"
    )
    found = facts.linked(HOST, "database_processes")
    assert PG in found
    assert [each.name for each in found[1:]] == [
        *(f"postgres {number}" for number in range(1000, 1000 + request.SERVERS_OF_A_USER)),
        "postgres of user 5000",
        "etcd of user 5000",
    ]
    assert value(facts, PG, "fsync") is True
    group = found[-2]
    said = facts.get(group, "fsync")
    assert isinstance(said, Unknown)
    assert (
        said.reasons[0].text == "990 processes of user 5000 that call themselves postgres were not looked at one by one"
    )
    assert facts.get(group, "live") == facts.get(group, "datasets") == said
    assert group in facts.linked(HOST, "databases")
    verdicts = {verdict.subject: verdict.outcome for verdict in judge([RULES["pg-fsync-off"]], facts)}
    assert verdicts[PG] == "pass"
    assert verdicts[group] == "unknown"
    facts.put(Fact(HOST, "database", known("etcd", "--db etcd")))
    was_seen = next(each for each in database_seen.derive(HOST, facts) if each.name == "database_seen")
    assert isinstance(was_seen.value, Unknown)


@pytest.mark.slow
def test_of_many_crowds_no_more_are_looked_at_than_in_all() -> None:
    many = {path: text for user in range(30) for path, text in crowd(12, user, 1000 + 100 * user).items()}
    found = seen({**LONG, **many}, pg="standard", wal="standard").linked(HOST, "database_processes")
    assert PG in found  # which started first
    assert len([each for each in found if each.name.split()[1].isdigit()]) == request.SERVERS
    assert len(found) == request.SERVERS + servers.GROUPS + 1
    assert found[-1].name == "postgres of other users"


def test_in_a_crowd_what_runs_another_program_is_not_looked_at() -> None:
    """Nor is it left out; and where nobody can see the program, the name counts."""
    files = {**LONG, **crowd(request.SERVERS_OF_A_USER, 110, start=0)}
    links = {f"/proc/{number}/exe": "/usr/bin/python3" for number in range(1001, 1010)}
    found = seen(
        files, {**links, "/proc/612/exe": "/usr/lib/postgresql/15/bin/postgres"}, pg="standard", wal="standard"
    )
    names = [each.name for each in found.linked(HOST, "database_processes")]
    assert names == ["postgres 612", "postgres 1000", "postgres of user 110"]


def test_the_server_that_is_asked_itself_is_always_looked_at() -> None:
    late = {**LONG, **crowd(50, 110, start=0)}
    facts = seen(late, connection=("postgres", "dbname=x", answered()), pg="standard", wal="standard")
    assert facts.linked(HOST, "connected_database") == (PG,)
    assert "postgres 612" in [each.name for each in facts.linked(HOST, "database_processes")]


def test_the_sizes_of_blocks_are_asked_for_where_the_data_lies() -> None:
    there = {f"{DATA}/base/*/*": "4096 3\n8192 2\n"}  # as the answer to this pattern
    assert value(seen(there, pg="standard", wal="standard"), PG, "data_blocks") == ("4096 3", "8192 2")
    hidden = seen(there, denied=(f"{DATA}/global",), pg="standard", wal="standard").get(PG, "data_blocks")
    assert isinstance(hidden, Unknown)
    assert "/global/*: permission denied" in str(hidden.reasons)


def test_hidden_processes_are_no_sign_that_no_database_runs() -> None:
    facts = seen(denied=("/proc/*/stat",), pg="standard")
    assert outcome(facts, "pg-fsync-off") == ["unknown"]


def test_a_database_that_does_not_run_is_judged_by_its_files() -> None:
    place = "/proc/self/root/srv/pg"
    files = {f"{place}/postgresql.conf": "full_page_writes = off\n", f"{place}/postgresql.auto.conf": "",
             f"{place}/pg_wal/x": "", "/proc/self/mountinfo": "40 1 0:50 / / rw - zfs tank/pg rw\n"}  # fmt: skip
    facts = Facts(1.7e9)
    facts.put(Fact(HOST, "pools", known((), "none")))
    for name, value in (("database", "postgres"), ("database_directory", "/srv/pg")):
        facts.put(Fact(HOST, name, known(value, value)))
    machine = Machine({"/proc/1/stat": FILES["/proc/1/stat"], **files}, {"/proc/self/cwd": "/"})
    gatherer = Gatherer(machine, registry.sources())
    gatherer.ask("database_processes", [HOST], facts)
    walk.look_at_databases(gatherer, facts, Facts())
    gatherer.close()
    subject = Subject("database", "postgres /srv/pg")
    assert facts.linked(HOST, "database_processes") == (subject,)
    guard = facts.get(subject, "torn_page_guard")
    assert isinstance(guard, Known), guard
    assert guard.value is False
    assert facts.linked(subject, "datasets") == (Subject("dataset", "tank/pg"),)


# -- asked itself -----------------------------------------------------------------------------------------------------

SAID = {
    "fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "wal_init_zero": "on", "wal_recycle": "on",
    "wal_sync_method": "fdatasync", "data_directory": "/var/lib/postgresql/15/main", "block_size": "8192",
}  # fmt: skip


def answered(*, end: Any = None, sources: Any = None, roles: Any = (), **settings: str) -> Capture:
    rows = [
        [name, value, (sources or {}).get(name, "default"), None, None, False]
        for name, value in {**SAID, **settings}.items()
    ]
    found = {"settings": rows, "roles": list(roles), **(end or {"process": 612, "name": "postgres"})}
    return Capture(0, json.dumps(found).encode())


def asked(capture: Capture, engine: str = "postgres", **more: Any) -> Facts:
    return seen(connection=(engine, "service=audit", capture), pg="standard", wal="standard", **more)


def test_what_the_server_says_goes_before_its_files() -> None:
    facts = asked(answered(fsync="off", full_page_writes="off"))
    assert outcome(facts, "pg-fsync-off") == ["fail"]
    assert outcome(facts, "db-path-not-on-zfs") == ["pass"]
    changes = facts.get(PG, "changes_at_restart")
    assert isinstance(changes, Known)
    assert changes.value == ("fsync is off now but on in its files", "full_page_writes is off now but on in its files")
    assert {each.text.split(" =")[0] for each in changes.evidence} == {"fsync", "full_page_writes"}


def test_what_the_server_says_is_in_force_whatever_the_age_of_its_files() -> None:
    facts = asked(answered(), changed=YOUNG, files=OFF)
    assert outcome(facts, "pg-fsync-off") == ["pass"]
    assert outcome(facts, "db-file-not-loaded") == ["not applicable"]
    assert outcome(facts, "db-changes-at-restart") == ["fail"]


def test_the_server_says_which_tablespaces_are_for_temporary_files() -> None:
    found = asked(answered(temp_tablespaces='scratch, "Fast"')).get(PG, "temp_tablespaces")
    assert isinstance(found, Known)
    assert (found.value, found.evidence[0].command) == (("scratch", "Fast"), "psql -c 'SHOW temp_tablespaces'")


def test_server_and_files_that_agree() -> None:
    facts = asked(answered())
    assert outcome(facts, "db-changes-at-restart") == ["pass"]
    assert outcome(facts, "pg-synchronous-commit-roles") == ["pass"]
    assert outcome(seen(pg="standard", wal="standard"), "db-changes-at-restart") == ["not applicable"]


def test_what_a_role_has_of_its_own_says_nothing_of_the_others() -> None:
    roles = [
        ["", "app", "synchronous_commit=off"],
        ["web", "", "synchronous_commit=off"],
        ["", "b", "synchronous_commit=on"],
    ]
    facts = asked(answered(synchronous_commit="off", sources={"synchronous_commit": "user"}, roles=roles))
    found = facts.get(PG, "asynchronous_roles")
    assert isinstance(found, Known)
    assert found.value == ("role app", "database web")
    sync = facts.get(PG, "synchronous_commit")
    assert isinstance(sync, Known), sync
    assert (sync.value, sync.evidence[0].text) == (
        "on",
        "synchronous_commit = on (not set: the default)",
    )  # of its files


def test_a_server_that_was_not_seen_here_has_no_folders_here() -> None:
    facts = asked(answered(end={"unseen": "the connection leaves this host, or this network namespace"}, fsync="off"))
    other = Subject("database", "postgres connection")
    assert facts.linked(HOST, "databases") == (PG, other)
    assert outcome(facts, "pg-fsync-off") == ["pass", "fail"]
    assert outcome(facts, "sync-mixed-log-data") == ["pass", "unknown"]
    assert outcome(facts, "libeatmydata") == ["pass", "unknown"]
    why = facts.get(other, "datasets")
    assert isinstance(why, Unknown)
    assert "leaves this host" in why.reasons[0].text


@pytest.mark.parametrize(
    "capture",
    [
        Capture(1, b"", b"OperationalError: connection refused"),
        Capture(None, fault="no answer within 30 s"),
        Capture(0, b"{}"),
        Capture(0, b'{"process": 612, "name": "postgres", "settings": [], "roles": []}'),
    ],
)
def test_a_server_that_does_not_answer_is_undecided_although_its_files_are_there(capture: Capture) -> None:
    facts = asked(capture)
    assert outcome(facts, "pg-fsync-off") == ["unknown"]
    assert outcome(facts, "sync-mixed-log-data") == ["unknown"]
    elsewhere = asked(capture, engine="mariadb")
    assert outcome(elsewhere, "pg-fsync-off") == ["pass", "not applicable"]
    assert outcome(elsewhere, "innodb-flush-log") == ["not applicable", "unknown"]


def test_mariadb_that_is_called_mysqld_is_one_database() -> None:
    settings = {
        "version": "10.3.39-MariaDB",
        "innodb_flush_log_at_trx_commit": "1",
        "innodb_doublewrite": "ON",
        "log_bin": "ON",
        "sync_binlog": "0",
        "datadir": "/srv/db/",
    }
    found = {"process": 700, "name": "mysqld", "settings": list(settings.items())}
    files = {"/proc/700/stat": STAT.format(700, "mysqld", 1)}
    facts = asked(Capture(0, json.dumps(found).encode()), engine="mariadb", files=files)
    assert [each.name for each in facts.linked(HOST, "database_processes")] == ["postgres 612", "mysql 700"]
    assert outcome(facts, "innodb-sync-binlog") == ["not applicable", "fail"]


# -- another file system on a zvol ------------------------------------------------------------------------------------

VOLUME = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 22 230:0 / /var/lib/postgresql rw - ext4 {0} rw\n"


def devices(**made_of: tuple[str, ...]) -> Facts:
    """zd0 is tank/my volume; sda1 is on sda."""
    facts = Facts()
    kinds = {"zd0": "zvol", "sda": "sata", "dm-0": "dm", "loop0": "loop"}
    for name, kind in kinds.items():
        disk = Subject("disk", name)
        facts.put(Fact(disk, "transport", known(kind, kind)))
        facts.put(Fact(disk, "slaves", known(made_of.get(name.replace("-", ""), ()), "slaves")))
        links = ("/dev/zd0", "/dev/zvol/tank/my+volume") if name == "zd0" else (f"/dev/{name}",)
        facts.put(Fact(disk, "devlinks", known(links, "links")))
        more = (("/dev/zvol/tank/my+volume", "zd0"), ("/dev/zd0p1", "zd0p1"))
        named = more if name == "zd0" else ((f"/dev/{name}", name),)
        facts.put(Fact(disk, "device_names", known(tuple(DeviceName(*each) for each in named), "names")))
        facts.put(Fact(disk, "partitions", known(("sda1",) if name == "sda" else (), "parts")))
    return facts


@pytest.mark.parametrize("source", ["/dev/zd0", "/dev/zd0p1", "/dev/zvol/tank/my+volume", "/dev/dm-0"])
def test_a_file_system_on_a_zvol_is_on_that_zvol(source: str) -> None:
    volume: dict[str, Any] = {"my volume": "standard"}
    facts = seen(files={"/proc/612/mountinfo": VOLUME.format(source)}, links={f"{DATA}/pg_wal": "/var/lib/postgresql/wal"},
                 inventory=devices(dm0=("zd0",)), **volume)  # fmt: skip
    assert facts.linked(PG, "datasets") == (Subject("dataset", "tank/my volume"),)
    assert outcome(facts, "db-path-not-on-zfs") == ["pass"]


@pytest.mark.parametrize(
    ("source", "made_of"), [("/dev/gone", ()), ("/dev/loop0", ()), ("/dev/dm-0", ("zd0", "sda")), ("/dev/dm-0", ())]
)
def test_what_cannot_be_followed_to_one_zvol_is_unknown(source: str, made_of: tuple[str, ...]) -> None:
    files = {"/proc/612/mountinfo": VOLUME.format(source)}
    facts = seen(files=files, inventory=devices(dm0=made_of), pg="standard")
    assert isinstance(facts.get(PG, "datasets"), Unknown)
    assert outcome(facts, "db-path-not-on-zfs") == ["unknown"]


def test_a_file_system_on_a_disk_beside_zvols_is_off_zfs() -> None:
    facts = seen(
        files={"/proc/612/mountinfo": VOLUME.format("/dev/sda")}, inventory=devices(), pg="standard", wal="standard"
    )
    found = facts.get(PG, "off_zfs")
    assert isinstance(found, Known)
    assert found.value == (
        "/var/lib/postgresql/15/main on ext4",
        "/var/lib/postgresql/15/main/pg_wal (/wal/15) on ext4",
    )


# -- the seam ---------------------------------------------------------------------------------------------------------


def below(path: Path) -> str:
    return f"/proc/self/root{path}"


def test_of_an_environment_only_what_says_where_files_are_is_kept() -> None:
    said = allowed_part("/proc/612/environ", "PGPASSWORD=hunter2\0PGDATA=/srv\0LD_PRELOAD=x.so\0MYSQL_HOME=a=b\0")
    assert said == "PGDATA=/srv\0MYSQL_HOME=(withheld)\0"
    maps = "7f00-7f01 r-xp 00000000 08:01 12   /lib/libeatmydata.so\n7f02-7f03 rw-p 00000000 00:00 0 \n"
    assert allowed_part("/proc/612/maps", maps) == "/lib/libeatmydata.so\n"
    kept = allowed_part("/proc/612/maps", maps + "7f00-7f01 r-xp 00000000 08:01 12   /srv/secret (deleted)\n")
    assert kept is not None
    assert kept == allowed_part("/proc/612/maps", kept) == "/lib/libeatmydata.so\n(other)\n"
    assert allowed_part("/proc/1/stat", STAT.format(1, "systemd", 0)) is not None
    assert allowed_part("/proc/9/stat", STAT.format(9, "ssh (x) y", 1)) is None
    assert allowed_part("/proc/612/stat", STAT.format(612, "postgres", 1)) == STAT.format(612, "postgres", 1)
    line = "mysqld\0--wsrep-sst-auth=root:hunter2\0--datadir=/srv\0"
    assert allowed_part("/proc/612/cmdline", line) == "mysqld\0(other)\0--datadir=/srv\0"


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("redis.conf", "requirepass hunter2\ndir /srv\nappendonly yes\n", "#\ndir /srv\nappendonly yes\n"),
        ("my.cnf", "[client]\npassword = hunter2\n[mysqld]\nskip-innodb-doublewrite\nskip-name-resolve\nlog-bin=/srv/b\n",
         "[]\n#\n[mysqld]\nskip_innodb_doublewrite\n#\nlog_bin=/srv/b\n"),
        ("postgresql.conf", "primary_conninfo = 'password=hunter2'\nfsync off\ninclude_dir 'conf.d'\n",
         "#\nfsync = off\ninclude_dir = conf.d\n"),
        ("mongod.conf", "security:\n  keyFile: /srv/hunter2\nstorage:\n  dbPath: /srv\n  journal:\n    enabled: true\n",
         "#\n#\n#\nstorage.dbPath: /srv\n#\nstorage.journal.enabled: true\n"),
    ],
)  # fmt: skip
def test_of_configuration_no_password_is_kept(name: str, text: str, kept: str) -> None:
    assert allowed_part(f"/proc/612/root/etc/{name}", text) == allowed_part(f"/proc/612/root/etc/{name}", kept) == kept
    assert allowed_part(f"/etc/{name}", text) == text


def test_no_secret_is_in_a_recording_of_this_machine(tmp_path: Path) -> None:
    for each in (
        tmp_path,
        *(each for each in tmp_path.parents if "pytest-of-" in str(each)),
    ):  # read as nobody: /tmp is others'
        each.chmod(0o755)
    (tmp_path / "mongod.conf").write_text('security:\n  "queryPassword": S3CRET\n  cert: |\n    S3CRET\n')
    (tmp_path / "my.cnf").write_text("[client]\npassword=S3CRET\n[mysqld]\nsync_binlog=0 # S3CRET\n")
    host = recording.RecordingHost(LiveHost(5))
    found = host.read(Read(tuple(below(tmp_path) + name for name in ("/mongod.conf", "/my.cnf"))))
    assert isinstance(found, Files)
    assert found.text[below(tmp_path) + "/my.cnf"] == "[]\n#\n[mysqld]\nsync_binlog=0\n"
    for taken in (host.recording((), {}, "0"), redaction.redact(host.recording((), {}, "0"))):
        whole = b"".join(data for _, data in recording.members(taken))
        assert b"sync_binlog=0" in whole
        assert b"S3CRET" not in whole


def test_every_collector_of_databases_has_a_case_that_is_refused() -> None:
    for name in ("database_processes", "database_process", "database_settings", "database_paths", "database_sql"):
        assert any("error" in pair.expected for pair in pairs.of(name)), name
