"""The configuration files of database servers, as text: what each says of a setting, includes followed.

All raise ValueError where a file that counts was not read: a setting that may be overridden elsewhere is not known.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from math import inf
from typing import TypeVar

from auditor.databases import ENGINES, kept
from auditor.databases.engine import DOUBT, WITHHELD, Engine, Line
from auditor.databases.engine import boolean as on
from auditor.facts import Evidence, Known, Subject
from auditor.host.request import Files
from auditor.text import argument

Settings = dict[str, tuple[str, str]]  # name -> (value, the path of the file that says so)
Found = Iterator[tuple[str, Known]]  # names of facts with their values
GIVEN = ("command line", "environment")  # in place of a file, of what the process was started with
ELSEWHERE = "connection"  # in place of a process or folder: a server that was not seen on this host
COMPARED = {name for engine in ENGINES.values() for name in engine.compared}
DEPTH = 10
TOGETHER = 8 << 20  # characters of all that one includes: files that each include the next a thousand times have no end
EACH = 100  # what one counts for besides
STEPS = 1_000  # of a path and of where the links on it lead
T = TypeVar("T")


def root_of(database: Subject) -> str:
    """Below which the files of a process are found, whatever container it is in."""
    process = database.name.partition(" ")[2]
    return f"/proc/{process if process.isdigit() else 'self'}/root"


def folders(directories: Iterable[str]) -> list[tuple[str, str]]:
    """(data or log, path) of each of a database's directories, data:PATH or log:PATH."""
    return [(kind, path) for kind, _, path in (each.partition(":") for each in directories)]


def in_words(facts: Iterable[tuple[str, Known]]) -> Known:
    """What decides about durability among these facts, as ``NAME = VALUE``, to compare with what another source says."""
    found = sorted((name, value) for name, value in facts if name in COMPARED)
    spelt = {True: "on", False: "off", "": "default"}
    text = tuple(
        f"{name} = {spelt.get(v, v) if isinstance(v := value.value, bool | str) else v}" for name, value in found
    )
    return Known(text, tuple(dict.fromkeys(each for _, value in found for each in value.evidence)))


def plain(path: str) -> bool:
    """Whether a path that a command line or a file names can be asked for as it is: absolute, no pattern, no way up, and
    nothing in it that means something else in a list of links or of mounts."""
    return path.startswith("/") and "*" not in path and ".." not in path.split("/") and printable(path)


def printable(path: str) -> bool:
    """Whether there is no control character in it (a NUL byte, a new line) and no arrow, which parts a link from its target."""
    return " -> " not in path and not any(each < " " or each == "\x7f" for each in path)


class Tree:
    """The files of one process, by the paths that it knows them by. root: below which they were read."""

    def __init__(self, reply: Files, root: str) -> None:
        self._reply, self._root = reply, root
        self._left = TOGETHER
        self._used: set[str] = set()  # links, files and folders of files that counted
        self._said: dict[tuple[str, str], list[Line]] = {}  # by the path that was asked for: one is included often

    def changed(self) -> tuple[str, float] | None:
        """Which of all that counted was changed last, and how long after the process started; infinitely long where that of
        one was not seen. None where it was seen of nothing: an old recording, or a server that does not run."""
        if self._used and not self._reply.changed:
            return None
        times = [(self._reply.changed.get(each, inf), each.removeprefix(self._root)) for each in sorted(self._used)]
        after, path = max(times, default=(-inf, ""))
        return path, after

    def use(self, path: str) -> None:
        """Count a file that was read by its whole path."""
        self._used.add(path)

    def real(self, path: str) -> str:
        """The path without the symbolic links that were seen on the way."""
        done, rest, hops, steps = "", _backwards(path), 0, 0
        while rest:
            part = rest.pop()
            if (steps := steps + 1) > STEPS:
                raise ValueError(f"{path[:80]}: more folders on the way than zaudit follows")
            if part == ".":
                continue
            done = done.rpartition("/")[0] if part == ".." else f"{done}/{part}"
            target = self._reply.links.get(self._root + done)
            if target is None:
                continue
            self._used.add(self._root + done)
            if (hops := hops + 1) > 40:
                raise ValueError(f"{path}: too many symbolic links")
            rest += _backwards(target)
            done = "" if target.startswith("/") else done.rpartition("/")[0]
        return done or "/"

    def text(self, path: str, *, needed: bool = True) -> str | None:
        """What a file says; None where it is not there and need not be."""
        real = self._root + self.real(path)
        if real in self._reply.text:
            self._used.add(real)
            return self._reply.text[real]
        why = self._reply.errors.get(real) or self._reply.errors.get(self._root + path) or "was not read"
        if why.startswith("no such file") and not needed:
            return None
        raise ValueError(f"{path}: {why}")

    def folder(self, path: str, end: str) -> list[str]:
        """The files of a folder that was read as a whole (``path/*end``), in their order."""
        start = f"{self._root}{path.rstrip('/')}/"
        self._used.add(start.rstrip("/"))
        found = {
            each for each in (*self._reply.text, *self._reply.links) if each.startswith(start) and each.endswith(end)
        }
        broken = sorted(each for each in self._reply.errors if each.startswith(start) and each.endswith(end))
        for each in broken:
            if not (each == f"{start}*{end}" and self._reply.errors[each].startswith("no such file")):
                raise ValueError(f"{each.removeprefix(self._root)}: {self._reply.errors[each]}")
        if not found and not broken:
            raise ValueError(f"{path}: this folder of included files was not read")
        return sorted(each.removeprefix(self._root) for each in found)

    def lines(self, path: str, engine: Engine, *, needed: bool = True, depth: int = 0) -> list[Line]:
        """What a file of this engine says, line by line; nothing where it is not there and need not be. depth: how many
        files include one another."""
        text = self.text(path, needed=needed)
        if text is None:
            return []
        if depth > DEPTH:
            raise ValueError(f"{path}: included too deep")
        self._left -= len(text) + EACH
        if self._left < 0:
            raise ValueError(f"{path}: more is included than zaudit reads")
        if (before := self._said.get((engine.title, path))) is not None:
            return before
        name = posixpath.basename(self.real(path))
        form = next((form for pattern, form in engine.files if fnmatchcase(name, pattern)), None)
        if form is None or not (read := kept.form(name)) or read[0] is not form:
            raise ValueError(f"{path}: {engine.title} settings are not read from a file of this name")
        found = form(text, engine.known)
        if DOUBT in found:
            raise ValueError(f"{path}: a line of it could not be told, and may be a setting")
        self._said[engine.title, path] = found
        return found


def _backwards(path: str) -> list[str]:
    """Its parts, the last one first."""
    return [part for part in reversed(path.split("/")) if part]


def said(line: Line, path: str) -> tuple[str, str]:
    """(value, the path of the file that says so). Raises ValueError where the value is withheld."""
    if line.value == WITHHELD:
        raise ValueError(f"{path}: the value of {line.name} is withheld, as it does not look like one")
    return line.value, path


def given(database: str, line: str, process: str) -> Settings:
    """What the command line of a server sets, by the names of :class:`Engine`. line: what was kept of it."""
    words = kept.arguments(ENGINES[database], line)
    where = f"/proc/{process}/cmdline"
    if words is None:
        raise ValueError(f"{where}: is not that of a server of {ENGINES[database].title}, and withheld")
    if DOUBT in words:
        raise ValueError(f"{where}: a word of it could not be told, and may be a setting")
    return {each.name: (said(each, where)[0], GIVEN[0]) for each in words if each.kind == "setting"}


def postgres(tree: Tree, path: str, *, needed: bool = True, depth: int = 0) -> Settings:
    """postgresql.conf: the last one counts. (PostgreSQL manual, Setting Parameters)"""
    found: Settings = {}
    for line in tree.lines(path, ENGINES["postgres"], needed=needed, depth=depth):
        if line.kind != "setting":
            continue
        value, _ = found[line.name] = said(line, path)
        other = posixpath.join(posixpath.dirname(path), value)
        match line.name:
            case "include" | "include_if_exists":
                found |= postgres(tree, other, needed=line.name == "include", depth=depth + 1)
            case "include_dir":
                for each in tree.folder(posixpath.normpath(other), ".conf"):
                    if posixpath.basename(each).startswith("."):  # which it passes over; MySQL and MariaDB do not
                        continue
                    found |= postgres(tree, each, depth=depth + 1)
    return found


def mysql(tree: Tree, path: str, groups: Iterable[str], *, needed: bool = True, depth: int = 0) -> Settings:
    """my.cnf: the options of these groups, the last one counts. (MySQL manual, Using Option Files)"""
    found: Settings = {}
    groups = tuple(groups)
    here, versioned = False, ""
    for line in tree.lines(path, ENGINES["mysql"], needed=needed, depth=depth):
        match line.kind, line.name:
            case "group", name:
                here = name in groups
                base, dash, _ = name.rpartition("-")
                versioned = name if not here and dash and base in groups else ""
            case "setting", ("!include" | "!includedir") as include:
                other = said(line, path)[0]
                for each in tree.folder(other, ".cnf") if include == "!includedir" else [other]:
                    found |= mysql(tree, each, groups, depth=depth + 1)
            case "setting", _ if versioned:
                raise ValueError(f"{path}: [{versioned}] sets {line.text}, and which version runs was not looked at")
            case "setting", name if here:
                found[name] = said(line, path)
    return found


def plain_settings(tree: Tree, path: str, engine: Engine) -> Settings:
    """Files in which each setting stands once, or the last one counts, and nothing is included."""
    found: Settings = {}
    for line in tree.lines(path, engine):
        if line.kind == "setting":
            found[line.name] = said(line, path)
    return found


def setting(settings: Settings, name: str, default: str) -> tuple[str, Evidence]:
    """(value, how it is known)."""
    if name in settings:
        value, path = settings[name]
        return value, Evidence(
            f"{name} = {value} ({path})", f"grep {name} {argument(path)}" if path.startswith("/") else ""
        )
    return default, Evidence(f"{name} = {default or 'default'} (not set: the default)")


def decided(value: Known) -> bool:
    """Whether what the process was started with says it, and no file."""
    return all(each.text.rstrip(")").endswith(tuple(f"({each}" for each in GIVEN)) for each in value.evidence)


def facts_of(engine: Engine, settings: Settings) -> Found:
    """The facts that are settings of their own."""
    for each in engine.settings:
        if each.fact:
            value, seen = setting(settings, each.name, each.default)
            yield each.fact, Known(parsed(each.parse, each.name, value), (seen,))


def parsed(parse: Callable[[str], T], name: str, value: str) -> T:
    """Raises ValueError with the name of the setting."""
    try:
        return parse(value)
    except ValueError as error:
        raise ValueError(f"{name} = {value[:40]!r}: {error}") from None


def boolean(value: str, name: str) -> bool:
    """Whether a setting is on. Raises ValueError."""
    return parsed(on, name, value)
