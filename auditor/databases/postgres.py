"""PostgreSQL. (PostgreSQL manual of 15 to 17: Setting Parameters, Write Ahead Log, File Locations; src/backend/utils/misc/guc.c
SelectConfigFiles)
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from auditor.databases import engine as base
from auditor.databases.engine import Confirms, Engine, Found, InForce, Launch, Line, Promise, Setting, Settings, Shape
from auditor.facts import Evidence, Known, Spec, Value, known
from auditor.sources.source import integer, rows, texts
from auditor.text import argument, utc

if TYPE_CHECKING:
    from auditor.databases.configuration import Tree

# of postgres, with a colon after those that have a value (src/backend/postmaster/postmaster.c)
LETTERS = "B:bC:c:D:d:EeFf:h:ijk:lN:nOPp:r:S:sTt:v:W:"
# a session has these from its own role, database or client: what others have is another matter (pg_settings.source)
OF_THE_SESSION = ("database", "user", "database user", "client", "override", "interactive", "session", "test")
METHODS = ("pglz", "lz4", "zstd")
COMMITS = ("on", "off", "local", "remote_write", "remote_apply")


def conf(text: str, known: Mapping[str, Shape]) -> list[Line]:
    """postgresql.conf: ``name = value``, ``name value`` or ``name 'value'``, each on one line; names in any case.
    (src/backend/utils/misc/guc-file.l)"""

    def read(line: str) -> Line:
        if line.startswith("#"):
            return base.OTHER
        if line == base.WITHHELD:
            return base.DOUBT
        end = next((i for i, each in enumerate(line) if not (each.isalnum() or each in "_.$")), len(line))
        name, rest = line[:end].lower(), line[end:]
        found = _value(rest.lstrip(" \t").removeprefix("=").lstrip(" \t"))
        if not name or name[0].isdigit() or not rest or rest[0] not in " \t='" or found is None:
            return base.DOUBT  # the server does not read it either; it may run with what stood here before
        if name not in known:
            return base.OTHER
        value = base.keep(found, known[name])
        shown = value if base.plain(value) or value == base.WITHHELD else f"'{value}'"
        return Line(f"{name} = {shown}", "setting", name, value)

    return base.by_line(text, read)


def _value(text: str) -> str | None:
    """The value at the beginning, if nothing but a comment is behind it; one with escapes is not told from what it means."""
    if not text.startswith("'"):
        value, _, _ = text.partition("#")
        value = value.rstrip(" \t")
        return value if (value and not any(each in value for each in " \t'")) or value == base.WITHHELD else None
    end = text.find("'", 1)
    while end > 0 and (text[end - 1] == "\\" or text[end + 1 : end + 2] == "'"):
        end = text.find("'", end + (1 if text[end - 1] == "\\" else 2))
    behind = text[end + 1 :].lstrip(" \t")
    if end < 0 or (behind and behind[0] != "#"):
        return None
    inside = text[1:end]
    return base.WITHHELD if "\\" in inside else inside.replace("''", "'")


# FIRST 2 (a, b, *), ANY 1 (a, b), 2 (a, b), or names alone, which means FIRST 1
# (PostgreSQL manual of 10 to 17, synchronous_standby_names; src/backend/replication/syncrep_gram.y)
STANDBYS = re.compile(r"(?:(?:FIRST|ANY)\s+)?(\d{1,4})\s*\((.*)\)", re.IGNORECASE | re.DOTALL)


def _standbys(value: str) -> bool:
    return (
        len(value) <= base.LONGEST
        and value.isprintable()
        and all(each.isalnum() or each in '_$-,.*() "' for each in value)
    )


def _confirming(value: str) -> tuple[int, int]:
    """How many of them must confirm a commit, and how many are named; 0 where any may."""
    counted = STANDBYS.fullmatch(value.strip())
    names = {each.strip() for each in (counted[2] if counted else value).split(",")} - {""}
    return int(counted[1]) if counted else int(bool(names)), 0 if "*" in names else len(names)


# what a process of PostgreSQL does that serves no client (GetBackendTypeDesc() of src/backend/utils/init/miscinit.c), behind
# the name of the cluster (init_ps_display() of utils/misc/ps_status.c); a client's has more words
TITLE = "postgres: "
LONGEST_TITLE = 1 << 16  # characters
TASKS = {
    *("archiver", "background writer", "checkpointer", "logger", "startup", "walwriter", "walsummarizer"),
    *("autovacuum launcher", "logical replication launcher"),
}


def task(text: str) -> str:
    """What a process of PostgreSQL says in its title that it does, empty where it says another thing or is none."""
    said = text.rstrip("\0 ").rpartition(": ")[2] if text.startswith(TITLE) and len(text) <= LONGEST_TITLE else ""
    return said if said in TASKS else ""


class PostgreSQL(Engine):
    name = "postgres"
    place = 1
    title = "PostgreSQL"
    page_bytes = 8192  # PostgreSQL manual, Preset Options: block_size, unless it was built otherwise
    processes = ("postgres",)
    starters = ("postmaster", "pg_ctl", "pg_ctlcluster")
    before = (r"/[\w./+-]*/postgresql(?:-\d+)?-check-db-dir ;",)
    settings = (
        Setting("fsync", base.word, "fsync", Spec.flag("PostgreSQL fsync"), "on", base.boolean),
        Setting("full_page_writes", base.word),
        Setting("synchronous_commit", base.word, "synchronous_commit", Spec.word("PostgreSQL", *COMMITS), "on",
                lambda value: value.lower() if value.lower() in COMMITS[2:] else "on" if base.boolean(value) else "off"),
        Setting("synchronous_standby_names", _standbys, "synchronous_standby_names",
                Spec.word("PostgreSQL: standbys that must confirm a commit")),
        Setting("archive_mode", base.word, "archive_mode", Spec.word("PostgreSQL", "off", "on", "always"), "off",
                lambda value: "always" if value.lower() == "always" else "on" if base.boolean(value) else "off"),
        Setting("wal_compression", base.word, "wal_compression", Spec.flag("PostgreSQL: by any method"), "off",
                lambda value: value.lower() in METHODS or base.boolean(value)),
        Setting("wal_init_zero", base.word, "wal_init_zero", Spec.flag("PostgreSQL"), "on", base.boolean),
        Setting("wal_recycle", base.word, "wal_recycle", Spec.flag("PostgreSQL"), "on", base.boolean),
        Setting("wal_sync_method", base.word, "wal_sync_method",
                Spec.word("PostgreSQL; empty: the default of this system, fdatasync on Linux"), "", str.lower),
        Setting("temp_tablespaces", base.names, "temp_tablespaces",
                Spec.words("PostgreSQL: those that are named for temporary tables and files, by the configuration"), "",
                lambda value: tuple(name for each in value.split(",") if (name := each.strip().strip('"')))),
        Setting("data_directory", base.path),
        Setting("config_file", base.path),
        Setting("include", base.path),
        Setting("include_if_exists", base.path),
        Setting("include_dir", base.path),
    )  # fmt: skip
    files = (("*.conf", conf),)
    taken_over = "a reload"  # PostgreSQL manual, Setting Parameters; nothing that lasts tells when it was
    units = ""
    variables: Mapping[str, Shape] = {"PGDATA": base.path}
    data_options = ("-D", "data_directory")
    data_variable = "PGDATA"
    at_home = True  # src/backend/utils/init/miscinit.c ChangeToDataDir
    passing = ("log", "pg_log", "pg_stat_tmp", "pgsql_tmp")
    tablespaces = "/pg_tblspc/"
    in_place = ("base/*/*", "global/*", "pg_tblspc/*/*/*/*")
    guard = "full_page_writes = on"
    compared = ("fsync", "synchronous_commit", "torn_page_guard")
    omitting: Mapping[str, tuple[Value, ...]] = {"fsync": (False,)}
    new_on_empty = ""
    profile = "postgres"

    def arguments(self, given: Sequence[str]) -> list[Line]:
        """``-D DIR``, ``-c NAME=VALUE``, ``--NAME=VALUE``, and -F for fsync=off."""

        def short(letter: str, value: str) -> Line | None:
            match letter:
                case "D":
                    return Line(folder := base.keep(value, base.path), "setting", "-D", folder)
                case "F":
                    return Line("-F", "setting", "fsync", "off")
                case "c":
                    return self._argument(value)
                case _:
                    return None

        return base.getopt(given, LETTERS, short, lambda text, after: self._argument(text, "--"))

    def _argument(self, text: str, before: str = "") -> Line:
        name, equals, value = text.partition("=")
        name = name.replace("-", "_").lower()
        if not equals or name not in self.known:
            return base.REST
        value = base.keep(value, self.known[name])
        return Line(f"{before}{name}={value}", "setting", name, value)

    def wanted(self, launch: Launch) -> list[str]:
        if not launch.data_directory:
            raise ValueError("where its data lies is not known")
        try:
            config = _config_file(launch, launch.data_directory)
        except ValueError:  # read() says it
            config = f"{launch.data_directory}/postgresql.conf"
        return [config, f"{posixpath.dirname(config)}/conf.d/*.conf", f"{launch.data_directory}/postgresql.auto.conf"]

    def read(self, launch: Launch, tree: Tree) -> Found:
        autos = [each for each in tree.asked() if each.endswith("/postgresql.auto.conf")]
        home = posixpath.dirname(autos[0]) if autos else ""
        settings = self.settings_of(tree, _config_file(launch, home))
        settings |= self.settings_of(tree, f"{home}/postgresql.auto.conf", needed=False)
        yield from self.facts_of(settings | launch.given, home)

    def settings_of(self, tree: Tree, file: str, *, needed: bool = True, depth: int = 0) -> Settings:
        """postgresql.conf: the last one counts. (PostgreSQL manual, Setting Parameters)"""
        found: Settings = {}
        for line in tree.lines(file, self, needed=needed, depth=depth):
            if line.kind != "setting":
                continue
            value, _ = found[line.name] = base.valued(line, file)
            other = posixpath.join(posixpath.dirname(file), value)
            match line.name:
                case "include" | "include_if_exists":
                    found |= self.settings_of(tree, other, needed=line.name == "include", depth=depth + 1)
                case "include_dir":
                    for each in tree.folder(posixpath.normpath(other), ".conf"):
                        if posixpath.basename(each).startswith("."):  # which it passes over; MySQL and MariaDB do not
                            continue
                        found |= self.settings_of(tree, each, depth=depth + 1)
        return found

    def facts_of(self, settings: Settings, home: str) -> Found:
        """What settings come to, whoever said them. home: of its data, or empty where that is not known."""
        yield from base.setting_facts(self, settings)
        value, seen = base.setting(settings, "full_page_writes", "on")
        yield "torn_page_guard", Known(base.is_on(value, "full_page_writes"), (seen,))
        if "block_size" in settings:
            value, seen = base.setting(settings, "block_size", "")
            yield "page_bytes", Known(integer(value), (seen,))
        else:
            text = "PostgreSQL pages of 8192 bytes unless built otherwise"
            yield "page_bytes", Known(self.page_bytes, (Evidence(text),))
        if "data_checksums" in settings:  # an option of initdb, which no file sets
            value, seen = base.setting(settings, "data_checksums", "")
            yield "page_checksums", Known(value == "on", (seen,))
        if home:
            places = (f"data:{home}", f"log:{home}/pg_wal")
            yield "directories", Known(places, (Evidence(f"data in {home}", f"ls -l {argument(home)}"),))

    def in_force(self, reply: dict[str, Any]) -> Found:
        """(PostgreSQL manual, pg_settings, pg_db_role_setting)"""
        settings: Settings = {}
        hidden = []
        for name, value, origin, file, line, pending in rows(reply, "settings", 6):
            if origin in OF_THE_SESSION and name not in ("data_directory", "block_size", "server_version"):
                hidden.append(name)
                continue
            where = f"{file}:{line}" if file else origin
            later = ", another value waits for a restart" if pending else ""
            settings[str(name)] = str(value), f"server, {where}{later}"
        if missing := {"fsync", "full_page_writes"} - settings.keys():
            raise ValueError(f"pg_settings does not show {sorted(missing)[0]}")
        home = settings.get("data_directory", ("", ""))[0]
        names = {each.fact: each.name for each in self.settings if each.fact}
        names |= {"torn_page_guard": "full_page_writes", "page_bytes": "block_size", "page_checksums": "data_checksums"}
        for fact, known_value in self.facts_of(settings, home):
            name = names.get(fact, fact)
            # of a setting that an older script did not ask for, no default is taken
            if name not in hidden and name not in self.known.keys() - settings:
                yield fact, base.from_server(known_value, f"psql -c 'SHOW {name}'")
        if home:
            yield "data_directory", known(home, f"data_directory = {home} (server)", "psql -c 'SHOW data_directory'")
        off = [
            " in ".join(filter(None, (f"role {role}" if role else "", f"database {database}" if database else "")))
            for database, role, entry in texts(reply, "roles", 3)
            if entry.partition("=")[2].lower() in ("off", "false", "no", "0")
        ]
        text = (
            f"synchronous_commit = off for {', '.join(off)}"
            if off
            else "no role or database sets synchronous_commit off"
        )
        yield "asynchronous_roles", known(tuple(off), text, "psql -c 'TABLE pg_db_role_setting'")
        for counts in rows(reply, "copies", 3) if "copies" in reply else ():
            archived, unseen, standbys = (integer(str(each)) for each in counts)
            text = f"WAL was archived last at {utc(archived)}" if archived else "no WAL was archived"
            yield "archived_s", known(archived, text, "psql -c 'TABLE pg_stat_archiver'")
            if not unseen:
                text = f"{standbys} standbys stream from another address"
                yield "standbys", known(standbys, text, "psql -c 'TABLE pg_stat_replication'")

    def promise(self, settings: InForce, synchronous: bool | None) -> Promise:
        """Where nobody asked the server, the roles and databases of its files count."""
        commit = settings.word("synchronous_commit")
        left = None if commit is None else commit != "off" and synchronous is not False
        fsync = base.asks(settings.flag("fsync"), otherwise="never")
        confirms = self.confirms(settings, 1, asynchronous=synchronous is False)
        standby = None if confirms is None else confirms.flushed + confirms.received > 1
        return Promise(left, "later" if fsync == "before" and left is False else fsync, fsync, standby=standby)

    def confirms(self, settings: InForce, members: int, *, asynchronous: bool) -> Confirms | None:
        """By synchronous_commit and synchronous_standby_names of the primary. (PostgreSQL manual, 26.2.8)"""
        commit, standbys = (settings.word(each) for each in ("synchronous_commit", "synchronous_standby_names"))
        many, named = _confirming(standbys or "")
        if commit in ("off", "local") or asynchronous or (standbys is not None and not many):
            return Confirms(1, first=True)
        if commit is None or standbys is None:
            return None
        named += bool(named)
        if commit == "remote_write":
            return Confirms(1, many, first=True, named=named)
        return Confirms(1 + many, first=True, named=named)


def _config_file(launch: Launch, home: str) -> str:
    """The file that a server reads: config_file, or postgresql.conf of the folder that -D or PGDATA names, which need not
    be that of its data. Raises ValueError for a path that is relative to a folder that nobody saw."""
    given = launch.given
    folder = given["-D"][0] if "-D" in given else (launch.variables or {}).get("PGDATA") or home
    file = given["config_file"][0] if "config_file" in given else f"{folder.rstrip('/')}/postgresql.conf"
    if not file.startswith("/"):
        raise ValueError(f"{file}: the folder that it was started in is not known")
    return file


ENGINE = PostgreSQL()
