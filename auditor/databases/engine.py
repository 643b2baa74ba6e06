"""The words in which an engine is described, and how a line of its files or a word of its command line is kept.

What a reader does not know is never kept. It is either :data:`OTHER`, which no setting that is asked for depends on, or
:data:`DOUBT`, which might be one of them; and the value of a known setting that does not look like one is
:data:`WITHHELD`. Readers read what they kept as they read the original, so that a recording says the same as the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from auditor.facts import Evidence, Known, Spec, Value
from auditor.text import argument

if TYPE_CHECKING:
    from auditor.databases.configuration import Tree

WITHHELD = "(withheld)"  # in place of a value, or of all that may be a setting
ARGUMENT = "(other)"  # in place of a word of a command line that sets nothing that is asked for
LONGEST = 4096  # characters of a value
LINE = 1 << 16  # characters of a line of a file
LINES = 1 << 17  # of one file

Shape = Callable[[str], bool]


class Line(NamedTuple):
    """One line of a file, or one word of a command line. text: what is kept of it. name, value: what it sets; a group of
    options has a name alone."""

    text: str
    kind: Literal["other", "doubt", "setting", "group"] = "other"
    name: str = ""
    value: str = ""


BLANK, OTHER, DOUBT = Line(""), Line("#"), Line(WITHHELD, "doubt")
REST = Line(ARGUMENT)
Form = Callable[[str, Mapping[str, Shape]], list[Line]]
"""Reads a whole file: its text, and the settings that are known. As many lines as the text has, where it can be read."""


class Setting(NamedTuple):
    """One setting, named as its file names it.

    shape: what its value must look like to be kept. fact: what it is called here, where it stands for a fact of its own;
    spec, default, parse: of that fact. parse raises ValueError.
    """

    name: str
    shape: Shape
    fact: str = ""
    spec: Spec = Spec(str, "")
    default: str = ""
    parse: Callable[[str], Value] = str


Settings = dict[str, tuple[str, str]]  # name -> (value, the path of the file that says so)
Found = Iterator[tuple[str, Known]]  # names of facts with their values
GIVEN = ("command line", "environment")  # in place of a file, of what the process was started with
T = TypeVar("T")


class Launch(NamedTuple):
    """How a server was started. place: its process, or its data directory where it does not run. given: what its command
    line sets; others: the line has more words. variables: None where they could not be read. program: path of its
    executable; folder: its working directory; config: the file that its service names; each empty where it is not known."""

    place: str
    given: Settings
    variables: Mapping[str, str] | None
    data_directory: str = ""
    program: str = ""
    folder: str = ""
    config: str = ""
    others: bool = False


Asks = Literal[
    "before", "later", "never"
]  # when it asks that what it wrote is made durable: before it acknowledges, or not


class Promise(NamedTuple):
    """What a server has done when it acknowledges a commit; None: not known. leaves: it has called write(2). log, pages:
    when it asks for durability. elsewhere: another host has a copy. standby: so has one that can take over. recovers: it
    has a log."""

    leaves: bool | None = True
    log: Asks | None = "before"
    pages: Asks | None = "before"
    elsewhere: bool | None = False
    standby: bool | None = False
    recovers: bool = True


class Confirms(NamedTuple):
    """Who confirms a commit of a cluster before the client hears of it. flushed: members with it on stable storage;
    received: further members with it in memory. first: the primary is one of those that flushed. waits: for a flush,
    whatever the settings of one member say. relies: on what no setting shows. named: members that the settings name."""

    flushed: int
    received: int = 0
    first: bool = False
    waits: bool = False
    relies: str = ""
    named: int = 0


class InForce(Protocol):
    """Settings by the names of their facts; None where one is not known."""

    def flag(self, name: str) -> bool | None: ...

    def word(self, name: str) -> str | None: ...

    def number(self, name: str) -> int | None: ...


class Engine(ABC):
    """All that zaudit knows of one database engine. A class without one of the fields that have no default cannot be made.

    name: the word that --db takes. title: as people write it. place: in lists for people; the others come last, by name.
    page_bytes: default page of its data files; 0: none. processes: names of its server. starters: other programs that start
    it. before: regular expressions of programs that its service runs first and that look at no mount.

    settings: those that are asked for. files: (pattern of fnmatch, form). taken_over: how a running server takes over its
    files; empty: only at its start. persists: the file that the server writes, which counts before its command line. units:
    pattern of its services, asked for its command line where a title hides it.

    variables: of its environment: paths or words. data_options, data_variable: which of them name its data directory.
    at_home: its working directory is its data directory. passing: folders below its data that a crash may empty.
    tablespaces: a folder of links to more data. in_place: patterns of data files whose pages it overwrites; guard: the
    setting that keeps these pages whole.

    compared: facts that decide about durability. omitting: of these, values that leave out flushes. new_on_empty: why it
    begins a new database in an empty folder; empty: it refuses. profile: of a verification."""

    name: str
    title: str
    place: int = 9
    page_bytes: int
    processes: tuple[str, ...]
    starters: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    settings: tuple[Setting, ...]
    files: tuple[tuple[str, Form], ...]
    taken_over: str
    persists: str = ""
    units: str
    variables: Mapping[str, Shape] = {}
    data_options: tuple[str, ...] = ()
    data_variable: str = ""
    at_home: bool = False
    passing: tuple[str, ...] = ()
    tablespaces: str = ""
    in_place: tuple[str, ...]
    guard: str = ""
    compared: tuple[str, ...]
    omitting: Mapping[str, tuple[Value, ...]]
    new_on_empty: str
    profile: str = ""

    def __init__(self) -> None:
        declared = getattr(Engine, "__annotations__", ())  # the recorder has none
        needed = [each for each in declared if not hasattr(self, each)]
        if needed or (self.in_place and not self.guard):
            raise TypeError(f"{type(self).__name__} does not say its {', '.join(needed) or 'guard'}")

    @property
    def known(self) -> dict[str, Shape]:
        """Its settings, and what their values look like."""
        return {each.name: each.shape for each in self.settings}

    @abstractmethod
    def arguments(self, given: Sequence[str]) -> list[Line]:
        """The words of its command line, without the name."""

    @abstractmethod
    def wanted(self, launch: Launch) -> list[str]:
        """The files and folders that it reads. Raises ValueError where what they depend on is not known."""

    @abstractmethod
    def read(self, launch: Launch, tree: Tree) -> Found:
        """What its files come to. Raises ValueError where one that counts was not read."""

    @abstractmethod
    def promise(self, settings: InForce, synchronous: bool | None) -> Promise:
        """What its settings come to. synchronous: does no role or database set another commit for itself?"""

    def confirms(self, settings: InForce, members: int, *, asynchronous: bool) -> Confirms | None:
        """How a cluster of it confirms commits, by the settings of its primary; None where they do not tell. asynchronous: some
        role or database waits for nobody."""
        return None

    def in_force(self, reply: dict[str, Any]) -> Found:
        """What the server itself said over a connection. Raises ValueError where that is not its answer."""
        raise ValueError(f"{self.title} is not asked over a connection")


def asks(value: bool | None, otherwise: Asks) -> Asks | None:
    return None if value is None else "before" if value else otherwise


def path(value: str) -> bool:
    """An absolute path, or a plain relative one; without what a path rarely has and a password or an address may have."""
    if (
        len(value) > LONGEST
        or not value.isprintable()
        or any(each in value for each in ("=", "://", "'", '"', "\\", "#"))
    ):
        return False
    return value.startswith("/") or all(each.isalnum() or each in "_-.+@/" for each in value)


def place(value: str) -> bool:
    return value.startswith("/") and path(value)


def word(value: str) -> bool:
    return len(value) <= 64 and value.isascii() and all(each.isalnum() or each in "_-." for each in value)


def names(value: str) -> bool:
    """A list of identifiers, which may stand in double quotes."""
    return len(value) <= LONGEST and value.isprintable() and all(each.isalnum() or each in '_$-, "' for each in value)


def boolean(value: str) -> bool:
    """As PostgreSQL, MySQL and the others spell it. Raises ValueError."""
    if (each := value.lower()) in ("on", "true", "yes", "1"):
        return True
    if each in ("off", "false", "no", "0"):
        return False
    raise ValueError(f"{value[:40]!r} is neither on nor off")


def keep(value: str, shape: Shape) -> str:
    """The value of a known setting, or that it is withheld."""
    return value if value == WITHHELD or shape(value) else WITHHELD


def plain(value: str) -> bool:
    """Whether a value means the same with and without quotes."""
    return bool(value) and all(each.isalnum() or each in "_-./" for each in value)


def by_line(text: str, read: Callable[[str], Line]) -> list[Line]:
    """Each line on its own; blanks around it are not part of it. Of a file with too many of them nothing is kept."""
    if text.count("\n") > LINES:
        return [DOUBT]
    return [DOUBT if len(line) > LINE else read(stripped) if (stripped := line.strip(" \t\r\v\f")) else BLANK
            for line in text.split("\n")]  # fmt: skip


def valued(line: Line, path: str) -> tuple[str, str]:
    """(value, the path of the file that says so). Raises ValueError where the value is withheld."""
    if line.value == WITHHELD:
        raise ValueError(f"{path}: the value of {line.name} is withheld, as it does not look like one")
    return line.value, path


def setting(settings: Settings, name: str, default: str) -> tuple[str, Evidence]:
    """(value, how it is known)."""
    if name in settings:
        value, path = settings[name]
        return value, Evidence(
            f"{name} = {value} ({path})", f"grep {name} {argument(path)}" if path.startswith("/") else ""
        )
    return default, Evidence(f"{name} = {default or 'default'} (not set: the default)")


def set_at_start(value: Known) -> bool:
    """Whether what the process was started with says it, and no file."""
    return all(each.text.rstrip(")").endswith(tuple(f"({each}" for each in GIVEN)) for each in value.evidence)


def setting_facts(engine: Engine, settings: Settings) -> Found:
    for each in engine.settings:
        if each.fact:
            value, seen = setting(settings, each.name, each.default)
            yield each.fact, Known(parse_setting(each.parse, each.name, value), (seen,))


def parse_setting(parse: Callable[[str], T], name: str, value: str) -> T:
    try:
        return parse(value)
    except ValueError as error:
        raise ValueError(f"{name} = {value[:40]!r}: {error}") from None


def is_on(value: str, name: str) -> bool:
    return parse_setting(boolean, name, value)


def from_server(value: Known, command: str) -> Known:
    return Known(value.value, tuple(each._replace(command=command) for each in value.evidence))


# Forms that several engines share. Command lines: the options that are known, with their values; of all else only that there is
# a word.
#
# YAML as MongoDB and etcd are configured with: plain mappings, line by line. Of the keys that are known the values are kept,
# each with its whole name on its line; of all others neither key nor value. What YAML has beyond that (anchors, tags, quotes
# and braces over several lines, documents) leaves the rest of the file in doubt, where it could hold a setting; below a key
# that is not known it is skipped with its value. (YAML 1.2, 6 to 8)

Short = Callable[[str, str], Line | None]
"""Reads a short option and its value; None: it sets nothing that is asked for."""
Long = Callable[[str, str | None], Line | None]
"""Reads an option that begins with two dashes and the word behind it, None at first; None: it needs that word."""


def getopt(words: Sequence[str], letters: str, short: Short, long: Long) -> list[Line]:
    """As getopt(3) reads them. letters: all short options, with a colon after those that have a value."""
    found: list[Line] = []
    rest = list(words)
    while rest:
        each = rest.pop(0)
        if each == WITHHELD:
            found.append(DOUBT)
        elif each == "--":
            return found + [REST] * (len(rest) + 1)
        elif each.startswith("--"):
            line = long(each[2:], None)
            if line is None and rest and (value := long(each[2:], rest.pop(0))):
                found += [Line(f"--{value.name}"), value]
            else:
                found.append(line or DOUBT)
        elif each.startswith("-") and len(each) > 1:
            found += _cluster(each[1:], rest, letters, short)
        else:
            found.append(REST)
    return found


def _cluster(letters_given: str, rest: list[str], letters: str, short: Short) -> list[Line]:
    """Short options in one word; the last of them may have a value, in this word or the next."""
    flags: list[Line] = []
    for i, letter in enumerate(letters_given):
        place = letters.find(letter)
        if letter == ":" or place < 0:
            return [DOUBT]
        if letters[place + 1 : place + 2] != ":":
            if line := short(letter, ""):
                flags.append(line)
            continue
        inside = letters_given[i + 1 :]
        if not inside and not rest:
            return [DOUBT]
        line = short(letter, inside or rest.pop(0))
        if flags and line:  # two settings in one word
            return [DOUBT] if inside else [DOUBT, REST]
        if inside:
            return [line._replace(text=f"-{letter}{line.text}") if line else (flags or [REST])[0]]
        return [Line(f"-{letter}"), line] if line else [(flags or [REST])[0], REST]
    return flags[:1] if len(flags) == 1 else [DOUBT] if flags else [REST]


def dashed(words: Sequence[str], values: Mapping[str, tuple[str, Shape]], flags: Mapping[str, Shape]) -> list[Line]:
    """Options with one or two dashes whose value is behind ``=`` or the next word. values: option -> (name, shape);
    flags: those that may stand alone, which means true."""
    found: list[Line] = []
    rest = list(words)
    while rest:
        each = rest.pop(0)
        option, equals, value = each.partition("=")
        name = option.lstrip("-") if option.startswith("-") and len(option) - len(option.lstrip("-")) <= 2 else ""
        if each in (WITHHELD, "-") or (name not in values and not each.startswith("--") and name[:1] in values):
            found.append(DOUBT)  # settings from standard input; a short option with its value
        elif name in flags:
            value = keep(value, flags[name]) if equals else ""
            found.append(Line(f"{option}={value}" if equals else option, "setting", name, value or "true"))
        elif name in values and equals:
            name, shape = values[name]
            value = keep(value, shape)
            found.append(Line(f"{option}={value}", "setting", name, value))
        elif name in values and rest:
            name, shape = values[name]
            value = keep(rest.pop(0), shape)
            found += [Line(option), Line(value, "setting", name, value)]
        else:
            found.append(DOUBT if name in values else Line("") if not each else REST)
    return found


BEFORE = 8  # at most so many dashes, anchors and tags before a value


def yaml(text: str, known: Mapping[str, Shape]) -> list[Line]:
    """One :class:`Line` a line of the text, settings by their dotted names."""
    if text.count("\n") > LINES:
        return [DOUBT]
    rows = text.split("\n")
    reader = _Reader(known)
    for i, row in enumerate(rows):
        line = row.rstrip(" \t\r")
        if len(row) > LINE or not reader.line(line.lstrip(" "), len(line) - len(line.lstrip(" "))):
            return [*reader.found, DOUBT, *(OTHER if each.strip() else BLANK for each in rows[i + 1 :])]
    return reader.found


class _Reader:
    """found: what was made of the lines so far."""

    def __init__(self, known: Mapping[str, Shape]) -> None:
        self.found: list[Line] = []
        self._known = known
        self._open: list[tuple[int, str]] = []  # (indent, name) of the keys around, of known settings alone
        self._passed: int | None = None  # what is indented more belongs to the value of a key that is skipped
        self._listed = False  # ... and the items of a list that are indented as much
        self._block: int | None = None  # what is indented more is text between | or > and the next key
        self._leaf: tuple[int, int] | None = None  # where the last line was a setting: its indent and number
        self._begun = False

    def line(self, body: str, indent: int) -> bool:
        """Take one more line; False where the rest of the file cannot be told."""
        if not body:
            return self._keep(BLANK)
        if self._passed is not None:
            item = body == "-" or body.startswith("- ")
            if indent > self._passed or (self._listed and item and indent == self._passed):
                return self._pass(body, indent)
        if body.startswith("#") or (body == "---" and not self._begun):
            self._begun = self._begun or body == "---"
            return self._keep(OTHER)
        self._begun = True
        if self._leaf and indent > self._leaf[0]:
            return self._keep_back(*self._leaf)
        self._passed = self._leaf = None
        pair = _pair(body)
        return pair is not None and self._entry(indent, *pair)

    def _entry(self, indent: int, key: str, value: str) -> bool:
        while self._open and self._open[-1][0] >= indent:
            self._open.pop()
        name = f"{self._open[-1][1]}.{key}" if self._open else key
        if name in self._known:
            return self._setting(indent, name, value)
        below = f"{name}.".lower()
        if any(each.lower().startswith(below) for each in self._known):
            self._open.append((indent, name))
            return not value and any(each.startswith(f"{name}.") for each in self._known) and self._keep(OTHER)
        if name.lower() in map(str.lower, self._known) or key.startswith("__"):
            return False
        self._block = None
        self._passed, self._listed = indent, not value
        return self._pass(body=value, indent=indent)

    def _pass(self, body: str, indent: int) -> bool:
        """Over a line of a value that nobody asks for; what is open at its end would hide what comes after it."""
        if self._block is None or indent <= self._block:
            value = _bare(body)
            self._block = indent if value[:1] in ("|", ">") else None
            if not _whole(value):
                return False
        return self._keep(OTHER)

    def _setting(self, indent: int, name: str, value: str) -> bool:
        text = _scalar(value)
        text = WITHHELD if text is None else keep(text, self._known[name])
        self._leaf = indent, len(self.found)
        shown = text if plain(text) or text == WITHHELD else f'"{text}"'
        line = Line(f"{name}: {shown}", "setting", name, text)
        if text != WITHHELD:
            return self._keep(line)
        self._leaf, self._passed, self._listed, self._block = None, indent, not value, None
        if told := self._pass(value, indent):
            self.found[-1] = line
        return told

    def _keep(self, line: Line) -> bool:
        self.found.append(line)
        return True

    def _keep_back(self, indent: int, number: int) -> bool:
        """The value of the last setting goes on below it."""
        name = self.found[number].name
        self.found[number] = Line(f"{name}: {WITHHELD}", "setting", name, WITHHELD)
        self._passed, self._listed, self._leaf, self._block = indent, False, None, None
        return self._keep(OTHER)


def _pair(body: str) -> tuple[str, str] | None:
    quote = body[0] if body[0] in "'\"" else ""
    key, colon, value = body[1:].partition(quote) if quote else (body, ":", "")
    if quote:
        colon, value = value.lstrip(" ")[:1], value.lstrip(" ")[1:]
    else:
        place = body.find(": ")
        place = len(body) - 1 if place < 0 and body.endswith(":") else place
        key, value = body[: max(place, 0)].rstrip(" "), body[place + 1 :]
    if colon != ":" or not key or (value and value[0] != " "):
        return None
    return (key, value.strip(" ")) if key.isascii() and all(each.isalnum() or each in "_.-" for each in key) else None


def _bare(body: str) -> str:
    """The value of a line that is skipped, whatever stands before it: a key, a dash, an anchor, a tag."""
    pair = _pair(body) if body else None
    value = pair[1] if pair else body
    for _ in range(BEFORE):
        if value[:1] not in ("-", "?", "&", "!", "*") or " " not in value:
            break
        value = value.partition(" ")[2].lstrip(" ")
    if value[:1] in ("'", '"', "[", "{", "|", ">") or pair:
        return value
    return value.partition(": ")[2].lstrip(" ") or value


def _uncommented(value: str) -> str:
    return (
        "" if value.startswith("#") else value.partition(" #")[0].replace("\t#", " #").partition(" #")[0].rstrip(" \t")
    )


def _whole(value: str) -> bool:
    """Whether the value of a line ends with it, or with what is indented more: quotes and braces that are open need not."""
    if not value or value[0] not in "'\"[{":
        return True
    quote, depth = "", 0
    for i, each in enumerate(value):
        if quote:
            quote = "" if each == quote else quote
            if each == "\\":
                return False
        elif each in "'\"":
            quote = each
        elif each in "[{":
            depth += 1
        elif each in "]}":
            depth -= 1
        if not quote and depth == 0 and value[i + 1 : i + 2] != each:  # else two quotes, which stand for one
            rest = value[i + 1 :].lstrip(" \t")
            return not rest or rest.startswith("#")
    return False


def _scalar(value: str) -> str | None:
    """The value as it is meant; None where that is more than a plain or a quoted word."""
    if value[:1] in ("'", '"'):
        inside = value[1:].partition(value[0])[0]
        rest = value[len(inside) + 2 :].strip(" \t")
        return inside if not rest or rest.startswith("#") else None
    value = _uncommented(value)
    return value if value and value[0] not in "|>&*!{[%@`?-" else None
