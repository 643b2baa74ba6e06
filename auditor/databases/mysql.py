"""MySQL and MariaDB.

The server takes a name with dashes for the same as with underscores, an unambiguous beginning of a name for the name, and
skip, disable, enable, maximum, loose and plugin before it. (mysys/my_getopt.c, mysys/my_default.c; MySQL manual, Program
Option Modifiers, Using Option Files, Persisted System Variables)

Which files are read, in this order: /etc/my.cnf, /etc/mysql/my.cnf, my.cnf in the SYSCONFDIR of the build, in $MYSQL_HOME
(MariaDB: $MARIADB_HOME before it), the file of --defaults-extra-file, and ~/.my.cnf, where ~ is $HOME; after them the command
line, and in MySQL mysqld-auto.cnf. --defaults-file replaces all of them, --no-defaults leaves all of them out. (MySQL manual,
Using Option Files; MariaDB manual, Configuring MariaDB with Option Files; init_default_directories() in mysys/my_default.cc of
MySQL 8.0 and mysys/my_default.c of MariaDB 11)

A file that all may write is ignored by the server and believed here.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from auditor.databases import engine as base
from auditor.databases.engine import Asks, Engine, Found, InForce, Launch, Line, Promise, Setting, Settings, Shape
from auditor.facts import Evidence, Known, Spec, Value, known
from auditor.sources.source import integer, is_integer, texts
from auditor.text import argument

if TYPE_CHECKING:
    from auditor.databases.configuration import Tree

# short options of mysqld, with a colon after those that have a value; of -T and -W it may be a number in the same word
LETTERS = "ab:C:Dgh:L:nO:o:P:r:sTt:u:vVW0123456789"
GROUPS = ("mysqld", "server", "mariadb", "mariadbd", "client-server", "galera")
SKIPPED = "(skipped)"  # the value of what it was told to do without (skip-log-bin)
ALONE = "ON"  # the value of what stands without one
ALWAYS = ("/etc/my.cnf", "/etc/mysql/my.cnf")
FOLDERS = ("/etc/my.cnf.d", "/etc/mysql/conf.d", "/etc/mysql/mysql.conf.d", "/etc/mysql/mariadb.conf.d")
LINKED = ("/etc/alternatives/my.cnf", "/etc/mysql/mariadb.cnf", "/etc/mysql/mysql.cnf")
# the SYSCONFDIR of packages and of the archives of MySQL and MariaDB; which of them one build reads it does not show
BUILDS = ("/usr/etc/my.cnf", "/usr/local/etc/my.cnf", "/usr/local/mysql/etc/my.cnf")
PREFIXES = ("/usr", "/usr/local", "/usr/local/mysql")
# a number stands for a word. What innodb_dedicated_server takes where nothing is said depends on the release of MySQL.
FLUSH_METHODS = ("FSYNC", "O_DSYNC", "LITTLESYNC", "NOSYNC", "O_DIRECT", "O_DIRECT_NO_FSYNC")
ARIA = "aria_log_control"  # in the data directory of every MariaDB, and of no MySQL
PERSISTED, MISSING = "mysqld-auto.cnf", "/nonexistent"  # where SET PERSIST writes; in the data directory
REDO_SWITCH = (8, 0, 21)  # the first MySQL with ALTER INSTANCE DISABLE INNODB REDO_LOG
PAGES = (4096, 8192, 16384, 32768, 65536)
# what may stand before a name, and the value that it means
_BEFORE = {
    "loose_": "",
    "plugin_": "",
    "enable_": ALONE,
    "skip_": SKIPPED,
    "disable_": SKIPPED,
    "maximum_": base.WITHHELD,
}
_OPPOSITE = {ALONE: SKIPPED, SKIPPED: ALONE}
_INCLUDES = ("!include", "!includedir")
_FIRST: dict[str, Shape] = {
    "defaults-file": base.path,
    "defaults-extra-file": base.path,
    "defaults-group-suffix": base.word,
}
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
        return base.OTHER
    if not name:
        return base.DOUBT
    if means == SKIPPED:
        return Line(f"skip_{name}", "setting", name, means)
    if means == ALONE:
        return Line(name, "setting", name, means)
    value = means or base.keep(_unquoted(value.strip()), known.get(name, base.word))
    return Line(f"{name}={value}", "setting", name, value)


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def cnf(text: str, known: Mapping[str, Shape]) -> list[Line]:

    def read(line: str) -> Line:
        if line[0] in "#;":
            return base.OTHER
        if line == base.WITHHELD:
            return base.DOUBT
        if line[0] == "[":
            name = line[1:].partition("]")[0].strip()
            ours = name.startswith(GROUPS) and base.word(name)
            return Line(f"[{name if ours else ''}]", "group", name if ours else "")
        if line[0] == "!":
            include, _, place = line.replace("\t", " ").partition(" ")
            place = base.keep(place.strip(), base.path)
            return Line(f"{include} {place}", "setting", include, place) if include in _INCLUDES else base.DOUBT
        return option(_uncommented(line), known)

    return base.by_line(text, read)


def _uncommented(line: str) -> str:
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
    found = [base.DOUBT]
    try:
        settings = dict(_persisted(json.loads(text), known))
    except (ValueError, RecursionError, AttributeError):
        return found
    rows = [Line(f"{json.dumps(name)}: {json.dumps({'Value': value})}{',' * (i < len(settings))}", "setting", name, value)
            for i, (name, value) in enumerate(settings.items(), 1)]  # fmt: skip
    return [Line('{"mysql_kept": {'), *rows, Line("}}"), base.BLANK]


def _persisted(table: Mapping[str, Any], known: Mapping[str, Shape]) -> Iterator[tuple[str, str]]:
    for name, entry in table.items():
        setting = name.lower()
        if setting in known:
            value = entry.get("Value") if isinstance(entry, dict) else None
            yield setting, base.keep(value, known[setting]) if isinstance(value, str) else base.WITHHELD
        elif isinstance(entry, dict):
            yield from _persisted(entry, known)


def data_files(value: str) -> bool:
    """``ibdata1:12M;/more/ibdata2:10M:autoextend``: files of the system tablespace with their sizes."""
    return all(
        base.path(name) and all(map(base.word, rest)) for name, *rest in (each.split(":") for each in value.split(";"))
    )


def page(value: str) -> int:
    """The size of a page in bytes, of those that there are. Raises ValueError. (MySQL manual, innodb_page_size)"""
    size = int(value[:-1]) << 10 if value[-1:] in ("k", "K") else int(value)
    if size not in PAGES:
        raise ValueError("no such page")
    return size


class InnoDB(Engine):
    """What MySQL and MariaDB have in common. maria: it reads and takes settings as MariaDB does."""

    maria: bool
    groups: tuple[str, ...]
    suffixes: tuple[str, ...]
    page_bytes = 16384  # MySQL and MariaDB manuals: innodb_page_size
    before = (r"/usr/libexec/(?:mariadb|mysql)-check-socket ;",)
    settings: tuple[Setting, ...] = (
        Setting("innodb_flush_log_at_trx_commit", base.word, "flush_log_at_commit",
                Spec.number("innodb_flush_log_at_trx_commit"), "1",
                lambda value: int(value) if value in ("0", "1", "2", "3") else int("no such value")),
        Setting("innodb_flush_log_at_timeout", base.word, "flush_log_every_s",
                Spec.number("innodb_flush_log_at_timeout, s: of innodb_flush_log_at_trx_commit 0 and 2"), "1",
                lambda value: max(int(value), 1)),
        Setting("innodb_doublewrite", base.word),
        Setting("innodb_flush_method", base.word),
        Setting("innodb_dedicated_server", base.word),
        Setting("innodb_page_size", base.word, "page_bytes", Spec.number("page of its data files"), "16384", page),
        Setting("sync_binlog", base.word),
        Setting("log_bin", base.path),
        Setting("persisted_globals_load", base.word),
        Setting("datadir", base.path),
        Setting("innodb_log_group_home_dir", base.path),
        Setting("innodb_undo_directory", base.path),
        Setting("innodb_data_home_dir", base.path),
        Setting("innodb_data_file_path", data_files),
        Setting("innodb_doublewrite_dir", base.path),
        Setting("aria_log_dir_path", base.path),
    )  # fmt: skip
    files = (("mysqld-auto.cnf", persisted), ("*.cnf", cnf))
    taken_over = ""  # option files are read at the start (MySQL manual, Using Option Files)
    persists = PERSISTED
    units = ""
    variables: Mapping[str, Shape] = {
        **dict.fromkeys(("HOME", "MYSQL_HOME", "MARIADB_HOME"), base.path),
        **dict.fromkeys(("MYSQL_GROUP_SUFFIX", "MARIADB_GROUP_SUFFIX"), base.word),
    }
    data_options = ("datadir",)
    at_home = True  # sql/mysqld.cc my_setwd
    passing = ("#innodb_temp",)  # any other folder is a schema, whatever it is called
    in_place = ("ibdata*", "undo*", "*.ibd", "*/*.ibd")
    guard = "innodb_doublewrite = ON"
    compared = ("torn_page_guard", "flush_log_at_commit", "flush_method", "doublewrite", "sync_binlog")
    omitting: Mapping[str, tuple[Value, ...]] = {
        "flush_log_at_commit": (2,),
        "flush_method": ("O_DIRECT_NO_FSYNC", "NOSYNC", "LITTLESYNC"),
        "doublewrite": ("FAST",),
    }
    new_on_empty = ""
    profile = "mysql-innodb"

    def arguments(self, given: Sequence[str]) -> list[Line]:
        """``--name=value``, ``--name value``, ``--skip-name``, ``-h DIR``; --defaults-file and its like need an =."""
        known = self.known

        def long(text: str, after: str | None) -> Line | None:
            name, equals, value = text.partition("=")
            if text == "no-defaults":
                return Line(f"--{text}", "setting", text, ALONE)
            if name in _FIRST:
                value = base.keep(value, _FIRST[name])
                return Line(f"--{name}={value}", "setting", name, value) if equals else base.DOUBT
            if name.replace("_", "-").startswith(("defaults", "no-defaults")):
                return base.DOUBT
            line = option(text, known)
            if line.kind != "setting":
                return base.REST if line == base.OTHER else line
            if line.value != ALONE or equals or line.name in _OPTIONAL:
                return line._replace(text=f"--{line.text}")
            if after is None:
                return None
            value = base.keep(after, known.get(line.name, base.word))
            return Line(value, "setting", line.name, value)

        def short(letter: str, value: str) -> Line | None:
            return Line(home := base.keep(value, base.path), "setting", "datadir", home) if letter == "h" else None

        return base.getopt(given, LETTERS, short, long)

    def wanted(self, launch: Launch) -> list[str]:
        own = [*ALWAYS, *LINKED, *_unsure(launch.data_directory, launch.program), *self._server_files(launch)]
        names = [launch.given["defaults-file"][0]] if "defaults-file" in launch.given else own
        names += [f"{folder}/*.cnf" for folder in FOLDERS]
        return (
            names
            if self.maria
            else [*names, *(f"{launch.data_directory or MISSING}/{name}" for name in (PERSISTED, ARIA))]
        )

    def _server_files(self, launch: Launch) -> Iterator[str]:
        variables = launch.variables or {}
        home = (variables.get("MARIADB_HOME") if self.maria else None) or variables.get("MYSQL_HOME")
        if home:
            yield f"{home.rstrip('/')}/my.cnf"
        if "defaults-extra-file" in launch.given:
            yield launch.given["defaults-extra-file"][0]
        if user := variables.get("HOME"):
            yield f"{user.rstrip('/')}/.my.cnf"

    def read(self, launch: Launch, tree: Tree) -> Found:
        """Older MariaDB servers, and those that are started by their old name, are called mysqld; their defaults are others."""
        if not self.maria and _is_maria(launch, tree):
            yield from MARIADB.read(launch, tree)
            return
        settings = self._of_files(launch, tree)
        settings |= {
            name: each for name, each in launch.given.items() if any(one.startswith(name) for one in self.known)
        }
        if launch.place.startswith("/"):
            settings["datadir"] = launch.place, "--db"
        loads = base.setting(settings, "persisted_globals_load", "ON")[0]
        if not self.maria and loads != SKIPPED and base.is_on(loads, "persisted_globals_load"):
            settings |= self._of_persisted(tree)
        for name in settings.keys() - self.known:
            short = next(each for each in self.known if each.startswith(name))
            raise ValueError(f"{settings[name][1]}: {name} may be short for {short}")
        yield from self.facts_of(settings)

    def _of_files(self, launch: Launch, tree: Tree) -> Settings:
        given, running = launch.given, launch.place.isdigit()
        if "no-defaults" in given:
            return {}
        if running and launch.variables is None:
            why = "not read, and $MYSQL_HOME, $HOME or a group suffix may add settings"
            raise ValueError(f"/proc/{launch.place}/environ: {why}")
        suffix = given.get("defaults-group-suffix", ("",))[0] or next(
            (each for name in self.suffixes if (each := (launch.variables or {}).get(name))), ""
        )
        groups = [*self.groups, *(f"{each}{suffix}" for each in self.groups if suffix)]
        if "defaults-file" in given:
            return self.settings_of(tree, given["defaults-file"][0], groups)
        if running and posixpath.dirname(posixpath.dirname(launch.program)) not in PREFIXES:
            raise ValueError(
                f"which option files {launch.program} was built to read is not known"
                if launch.program
                else f"/proc/{launch.place}/exe: not read, and it decides which option files count"
            )
        settings: Settings = {}
        for file in ALWAYS:
            settings |= self.settings_of(tree, file, groups, needed=False)
        for file in _unsure("" if running else launch.place, launch.program):
            if told := list(self.settings_of(tree, file, groups, needed=False)):
                raise ValueError(f"{file} sets {told[0]}, and whether this build reads it is not known")
        extra = given.get("defaults-extra-file", ("",))[0]
        for file in self._server_files(launch):
            settings |= self.settings_of(tree, file, groups, needed=file == extra)
        return settings

    def settings_of(
        self, tree: Tree, file: str, groups: Iterable[str], *, needed: bool = True, depth: int = 0
    ) -> Settings:
        """my.cnf: the options of these groups, the last one counts. (MySQL manual, Using Option Files)"""
        found: Settings = {}
        groups = tuple(groups)
        here, versioned = False, ""
        for line in tree.lines(file, self, needed=needed, depth=depth):
            match line.kind, line.name:
                case "group", name:
                    here = name in groups
                    family, dash, _ = name.rpartition("-")
                    versioned = name if not here and dash and family in groups else ""
                case "setting", ("!include" | "!includedir") as include:
                    other = base.valued(line, file)[0]
                    for each in tree.folder(other, ".cnf") if include == "!includedir" else [other]:
                        found |= self.settings_of(tree, each, groups, depth=depth + 1)
                case "setting", _ if versioned:
                    why = "and which version runs was not looked at"
                    raise ValueError(f"{file}: [{versioned}] sets {line.text}, {why}")
                case "setting", name if here:
                    found[name] = base.valued(line, file)
        return found

    def _of_persisted(self, tree: Tree) -> Settings:
        """What SET PERSIST wrote: it counts before files and command line, unless persisted_globals_load is off. (MySQL manual,
        Persisted System Variables)"""
        file = next((each for each in tree.asked() if each.endswith(f"/{PERSISTED}")), "")
        if not file:
            raise ValueError(f"{PERSISTED}: not looked for")
        if error := tree.error(file):
            if not error.startswith("no such file") or file.startswith(f"{MISSING}/"):
                raise ValueError(f"{PERSISTED}: {error}")
            return {}
        lines = persisted(tree.whole(file), self.known)
        if base.DOUBT in lines:
            raise ValueError(f"{PERSISTED}: could not be told")
        return {each.name: base.valued(each, PERSISTED) for each in lines if each.kind == "setting"}

    def facts_of(self, settings: Settings) -> Found:
        """What settings come to, whoever said them."""
        yield from base.setting_facts(self, settings)
        value, seen = base.setting(settings, "innodb_doublewrite", "ON")
        kind = _doublewrite(value, maria=self.maria)
        yield "doublewrite", Known(kind, (seen,))
        yield "torn_page_guard", Known(kind in ("ON", "DETECT_AND_RECOVER", "FAST"), (seen,))
        value, seen = base.setting(settings, "innodb_flush_method", "")
        dedicated = base.setting(settings, "innodb_dedicated_server", "OFF")[0]
        if value or dedicated == SKIPPED or not base.is_on(dedicated, "innodb_dedicated_server"):
            method = (
                FLUSH_METHODS[int(value)]
                if is_integer(value) and 0 <= int(value) < len(FLUSH_METHODS)
                else value.upper()
            )
            yield "flush_method", Known(method or "default", (seen,))
        log, seen = base.setting(settings, "log_bin", SKIPPED if self.maria else "ON")
        if log == SKIPPED:
            yield "sync_binlog", Known(1, (Evidence(f"no binary log is written ({seen.text})", seen.command),))
        else:
            value, after = base.setting(settings, "sync_binlog", "0" if self.maria else "1")
            yield "sync_binlog", Known(integer(value), (after, seen))
        yield from _places(settings, log)

    def in_force(self, reply: dict[str, Any]) -> Found:
        """(MySQL and MariaDB manuals, SHOW VARIABLES)"""
        said = {str(name): str(value) for name, value in texts(reply, "settings", 2)}
        if missing := {"version", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "log_bin"} - said.keys():
            raise ValueError(f"SHOW GLOBAL VARIABLES does not show {sorted(missing)[0]}")
        if ("mariadb" in said["version"].lower()) != self.maria:
            raise ValueError(f"the server is {said['version']}, not {self.name}")
        binlog = said.pop("log_bin_basename", "")
        said["log_bin"] = SKIPPED if said["log_bin"].upper() in ("OFF", "0") else binlog or "ON"
        settings = {name: (value, "server") for name, value in said.items()}
        names = {each.fact: each.name for each in self.settings if each.fact}
        command = f"{self.name} -e 'SHOW GLOBAL VARIABLES'"
        for fact, value in self.facts_of(settings):
            if names.get(fact, fact) not in self.known.keys() - settings:
                yield fact, base.from_server(value, command)
        for (count,) in texts(reply, "replicas", 1) if "replicas" in reply else ():
            text = f"{count} replicas read its binary log from another address"
            yield "standbys", known(integer(count), text, f"{self.name} -e 'SHOW PROCESSLIST'")
        if (written := self._redo_log(reply, said["version"])) is not None:
            yield "redo_log", written
        if home := said.get("datadir", "").rstrip("/"):
            yield "data_directory", known(home, f"datadir = {home} (server)", command)

    def _redo_log(self, reply: dict[str, Any], version: str) -> Known | None:
        """Whether it is written; None where a server that could turn it off was not asked, or does not say. (MySQL manual,
        Disabling Redo Logging)"""
        numbers = [each for each in version.partition("-")[0].split(".") if each.isdecimal() and len(each) < 5]
        if self.maria or (len(numbers) > 2 and tuple(map(int, numbers[:3])) < REDO_SWITCH):
            return known(True, f"{version} has no switch for it", f"{self.name} -e 'SELECT VERSION()'")
        said = {name.lower(): value for name, value in (texts(reply, "status", 2) if "status" in reply else ())}
        value = said.get("innodb_redo_log_enabled", "").upper()
        if value not in ("ON", "OFF"):
            return None
        command = f"{self.name} -e 'SHOW GLOBAL STATUS'"
        return known(value == "ON", f"Innodb_redo_log_enabled = {value} (server)", command)

    def promise(self, settings: InForce, synchronous: bool | None) -> Promise:
        """With sync_binlog other than 1 recovery rolls back what the binary log lacks; 3 of innodb_flush_log_at_trx_commit is
        as good as 1 (MariaDB)."""
        at_commit, binlog = settings.number("flush_log_at_commit"), settings.number("sync_binlog")
        method, doublewrite = settings.word("flush_method"), settings.word("doublewrite")
        log: Asks | None = "before"
        if method == "NOSYNC":
            log = "never"
        elif at_commit in (0, 2) or (binlog is not None and binlog != 1):
            log = "later"
        elif at_commit is None or binlog is None or method is None:
            log = None
        unsynced = method in self.omitting["flush_method"] or doublewrite == "FAST"
        pages: Asks | None = "never" if unsynced else None if method is None else "before"
        left = False if at_commit == 0 else None if at_commit is None else True
        return Promise(left, log, pages, recovers=settings.flag("redo_log") is not False)


class MySQL(InnoDB):
    name = "mysql"
    place = 2
    title = "MySQL InnoDB"
    processes = ("mysqld",)
    maria = False
    settings = (
        *InnoDB.settings,
        Setting("innodb_log_write_ahead_size", base.word, "log_write_ahead_bytes",
                Spec.number("MySQL: block in which InnoDB appends to its redo log"), "8192",
                lambda value: int(value[:-1]) << 10 if value[-1:] in ("K", "k") else int(value)),
    )  # fmt: skip
    groups = ("mysqld", "server")
    suffixes = ("MYSQL_GROUP_SUFFIX",)


class MariaDB(InnoDB):
    name = "mariadb"
    place = 3
    title = "MariaDB InnoDB"
    processes = ("mariadbd",)
    maria = True
    groups = GROUPS
    suffixes = ("MARIADB_GROUP_SUFFIX", "MYSQL_GROUP_SUFFIX")


def _is_maria(launch: Launch, tree: Tree) -> bool:
    """Raises ValueError where that is not known."""
    if posixpath.basename(launch.program) == "mariadbd":
        return True
    files = [each for each in tree.asked() if each.endswith(f"/{ARIA}")]
    why = next(filter(None, map(tree.error, files)), "")
    if why and not (why.startswith("no such file") and f"{MISSING}/{ARIA}" not in files):
        raise ValueError(f"whether it is MySQL or MariaDB is not known ({ARIA} in its data directory: {why})")
    return not why


def _unsure(home: str, program: str) -> list[str]:
    """Files that may count or not. home: of the data of a server that does not run, which is often that of its user."""
    prefix = posixpath.dirname(posixpath.dirname(program))
    more = [f"{prefix}/etc/my.cnf"] if program and prefix != "/" else []
    return list(dict.fromkeys([*BUILDS, *more, *([f"{home}/.my.cnf"] if home and not program else [])]))


def _doublewrite(value: str, *, maria: bool) -> str:
    """OFF, ON, DETECT_ONLY or DETECT_AND_RECOVER (MySQL), FAST (MariaDB)."""
    word = "FAST" if maria and value == "2" else value.upper()
    if word in ("DETECT_ONLY", "DETECT_AND_RECOVER", "FAST"):
        return word
    return "ON" if value != SKIPPED and base.is_on(value, "innodb_doublewrite") else "OFF"


def _places(settings: Settings, log: str) -> Found:
    """A relative path is below the data directory; files of the system tablespace are below innodb_data_home_dir, which that
    is, too, where nothing is said. (MySQL manual, InnoDB Startup Options; MariaDB manual, Aria System Variables)"""

    def said(name: str) -> str:
        return settings.get(name, ("", ""))[0]

    home = settings.get("datadir", ("/var/lib/mysql", ""))[0].rstrip("/")
    shared = said("innodb_data_home_dir") or home
    files_of = [each.partition(":")[0] for each in said("innodb_data_file_path").split(";")]
    data = ["", shared, *(posixpath.join(shared, posixpath.dirname(each)) for each in files_of)]
    data += [each for each in (said("innodb_doublewrite_dir"),) if each]
    logs = [said("innodb_log_group_home_dir"), said("innodb_undo_directory")]
    logs += [each for each in (posixpath.dirname(log), said("aria_log_dir_path")) if each]
    places = [
        f"{kind}:{posixpath.normpath(posixpath.join(home, each))}"
        for kind, group in (("data", data), ("log", logs))
        for each in group
    ]
    unique = tuple(dict.fromkeys(places))
    yield "directories", Known(unique, (Evidence(", ".join(unique), f"ls -l {argument(home)}"),))


ENGINE = MySQL()
MARIADB = MariaDB()
