"""The files, command lines and environments of database servers: what is kept of each (allow-lists, from the table of
engines), and how a file is found among those that were read, includes and links followed.

A file that counts and was not read is a ValueError: a setting that may be overridden elsewhere is not known.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from math import inf

from auditor.databases import ENGINES, SERVERS, postgres
from auditor.databases.engine import DOUBT, GIVEN, WITHHELD, Engine, Form, Line, Settings, Shape, keep, path, valued
from auditor.facts import Known, Subject
from auditor.host.request import Files

CHARACTERS, WORDS = 1 << 16, 1 << 12  # of a command line; so many variables of an environment, too


def allow_list() -> frozenset[str]:
    """The words of all allow-lists: ``ENGINE SETTING`` and ``$VARIABLE``. What is none of them is not kept, so a recording of a
    zaudit with fewer of them says nothing of the others."""
    settings = (f"{engine.name} {each.name}" for engine in ENGINES.values() for each in engine.settings)
    return frozenset((*settings, *(f"${name}" for name in VARIABLES)))


def doubts(engine: Engine, unkept: Collection[str]) -> Callable[[str], bool]:
    """Whether a fact may rest on one of these words, of which nothing was kept: a setting may decide about its own fact, or
    about all that are made of several."""
    lost = [each for each in engine.settings if f"{engine.name} {each.name}" in unkept]
    several = any(not each.fact for each in lost) or any(f"${name}" in unkept for name in engine.variables)
    own, kept_facts = {each.fact for each in lost}, {each.fact for each in engine.settings if each not in lost}
    return lambda fact: fact in own or (several and fact not in kept_facts)


def settings(name: str, text: str) -> str | None:
    """What is kept of a file, line by line; None where no engine has files of this name. name: without its folder."""
    found = form(name)
    return None if found is None else "\n".join(each.text for each in found[0](text, found[1]))


def form(name: str) -> tuple[Form, dict[str, Shape]] | None:
    """How a file of this name is read, and the settings of all engines that have files of this name and form."""
    patterns = [(pattern, form, engine) for engine in ENGINES.values() for pattern, form in engine.files]
    matching = [each for each in patterns if fnmatchcase(name, each[0])]
    if not matching:
        return None
    longest = max(matching, key=lambda each: len(each[0]))[1]
    known: dict[str, Shape] = {}
    for _, found, engine in matching:
        known |= engine.known if found is longest else {}
    return longest, known


def command_line(text: str) -> str:
    """Of /proc/PID/cmdline: as many words, those that say where files are and how they are written as they stand. What does not
    begin with the name of a server is withheld. Of the title of a process of PostgreSQL what it does, where it names nobody."""
    if not text:
        return text
    if said := postgres.task(text):
        return f"{postgres.TITLE}{said}"
    words = text.split("\0", WORDS + 1)
    engine, end = server(words[0]), "\0" if text.endswith("\0") else ""
    if engine is None or len(text) > CHARACTERS or len(words) > WORDS:
        return WITHHELD + end
    lines = engine.arguments(words[1 : -1 if end else None])
    program, _, title = words[0].partition(" ")
    length = "\0" * (len(title) + 1) if title else ""  # a title is as long as what it stands for
    return "\0".join((program, *(each.text for each in lines))) + length + end


def server(word: str) -> Engine | None:
    """Of which engine the server is that a command line begins with; it may put a title behind its name."""
    program = word.partition(" ")[0]
    return SERVERS.get(program.rpartition("/")[2]) if path(program) else None


def arguments(engine: Engine, text: str) -> list[Line] | None:
    """The words of the command line of such a server, read again from what was kept; None: it is another's, or withheld."""
    words = text.rstrip("\0").split("\0")
    found = server(words[0])
    return engine.arguments(words[1:]) if found and type(found).arguments is type(engine).arguments else None


VARIABLES = {name: shape for engine in ENGINES.values() for name, shape in engine.variables.items()}


def variables(text: str, known: Mapping[str, Shape] = VARIABLES) -> str:
    """Of /proc/PID/environ. known: which; those of all engines, as it does not say of which it is."""
    return "".join(f"{name}={value}\0" for name, value in environment(text, known))


def environment(text: str, known: Mapping[str, Shape] = VARIABLES) -> list[tuple[str, str]]:
    """The variables that are known, with their values or :data:`WITHHELD`: of each, where there are more than anybody has."""
    if text.count("\0") > WORDS:
        return [(name, WITHHELD) for name in known]
    pairs = (each.partition("=") for each in text.split("\0"))
    return [(name, keep(value, known[name])) for name, equals, value in pairs if equals and name in known]


ELSEWHERE = "connection"  # in place of a process or folder: a server that was not seen on this host
COMPARED = {name for engine in ENGINES.values() for name in engine.compared}
DEPTH = 10
TOGETHER = 8 << 20  # characters of all that one includes: files that each include the next a thousand times have no end
EACH = 100  # what one counts for besides
STEPS = 1_000  # of a path and of where the links on it lead


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


def failed(path: str, error: str, root: str) -> bool:
    """Of what is below the root directory of the process: could it not be looked at?"""
    return path.startswith(f"{root}/") and not error.startswith("no such")


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
        self.reply, self._root = reply, root
        self._left = TOGETHER
        self._used: set[str] = set()  # links, files and folders of files that counted
        self._said: dict[tuple[str, str], list[Line]] = {}  # by the path that was asked for: one is included often

    def changed(self) -> tuple[str, float] | None:
        """Which of all that counted was changed last, and how long after the process started; infinitely long where that of
        one was not seen. None where it was seen of nothing: an old recording, or a server that does not run."""
        if self._used and not self.reply.changed:
            return None
        times = [(self.reply.changed.get(each, inf), each.removeprefix(self._root)) for each in sorted(self._used)]
        after, path = max(times, default=(-inf, ""))
        return path, after

    def asked(self) -> list[str]:
        """The files that were read, and those that could not be, as the process knows them."""
        paths = (*self.reply.text, *self.reply.errors)
        return [each.removeprefix(self._root) for each in paths if each.startswith(f"{self._root}/")]

    def error(self, path: str) -> str:
        return "" if self._root + path in self.reply.text else self.reply.errors.get(self._root + path, "")

    def whole(self, path: str) -> str:
        """The text of one that was read, without following links."""
        self._used.add(self._root + path)
        return self.reply.text[self._root + path]

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
            target = self.reply.links.get(self._root + done)
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
        if real in self.reply.text:
            self._used.add(real)
            return self.reply.text[real]
        why = self.reply.errors.get(real) or self.reply.errors.get(self._root + path) or "was not read"
        if why.startswith("no such file") and not needed:
            return None
        raise ValueError(f"{path}: {why}")

    def folder(self, path: str, end: str) -> list[str]:
        """The files of a folder that was read as a whole (``path/*end``), in their order."""
        start = f"{self._root}{path.rstrip('/')}/"
        self._used.add(start.rstrip("/"))
        found = {
            each for each in (*self.reply.text, *self.reply.links) if each.startswith(start) and each.endswith(end)
        }
        broken = sorted(each for each in self.reply.errors if each.startswith(start) and each.endswith(end))
        for each in broken:
            if not (each == f"{start}*{end}" and self.reply.errors[each].startswith("no such file")):
                raise ValueError(f"{each.removeprefix(self._root)}: {self.reply.errors[each]}")
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
        own = next((each for pattern, each in engine.files if fnmatchcase(name, pattern)), None)
        if own is None or not (read := form(name)) or read[0] is not own:
            raise ValueError(f"{path}: {engine.title} settings are not read from a file of this name")
        found = own(text, engine.known)
        if DOUBT in found:
            raise ValueError(f"{path}: a line of it could not be told, and may be a setting")
        self._said[engine.title, path] = found
        return found

    def settings(self, path: str, engine: Engine) -> Settings:
        """Of a file in which each setting stands once, or the last one counts, and nothing is included."""
        lines = self.lines(path, engine)
        return {line.name: valued(line, path) for line in lines if line.kind == "setting"}


def _backwards(path: str) -> list[str]:
    return [part for part in reversed(path.split("/")) if part]


def from_command_line(engine: Engine, line: str, process: str) -> Settings:
    """What the command line of a server sets, by the names of :class:`Engine`. line: what was kept of it."""
    words = arguments(engine, line)
    where = f"/proc/{process}/cmdline"
    if words is None:
        raise ValueError(f"{where}: is not that of a server of {engine.title}, and withheld")
    if DOUBT in words:
        raise ValueError(f"{where}: a word of it could not be told, and may be a setting")
    return {each.name: (valued(each, where)[0], GIVEN[0]) for each in words if each.kind == "setting"}
