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
    """How a server was started. place: its process, or the folder of its data where it does not run. given: what its command
    line sets; others: it has more words. variables: of its environment, None where they could not be read. program: the path
    of its executable; folder: its working directory; config: the file that its service names. Each is empty where it is not
    known."""

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
    """What a server has done when it acknowledges a commit; None: not known. leaves: it has called write(2). log, pages: when
    it asks for these to be made durable. elsewhere: a copy is on other hosts. recovers: it has a log to recover from.
    """

    leaves: bool | None = True
    log: Asks | None = "before"
    pages: Asks | None = "before"
    elsewhere: bool | None = False
    recovers: bool = True


class InForce(Protocol):
    """Settings by the names of their facts; None where one is not known."""

    def flag(self, name: str) -> bool | None: ...

    def word(self, name: str) -> str | None: ...

    def number(self, name: str) -> int | None: ...


class Engine(ABC):
    """All that zaudit knows of one database engine. One that lacks what has no default here cannot be made.

    name: the word that --db takes. title: as people write it. page_bytes: default page of its data files, 0 where they have
    none. processes: names of its server. starters: other programs of its packages that
    start it. before: regular expressions of programs that its service runs first, and that look at no mount.

    settings: that are asked for. files: name (a pattern, as fnmatch has it) and form of its files. taken_over: how what a file
    says can come into force while the server runs; empty where it reads its files when it starts and never again. persists: a
    file in which it writes what is changed while it runs, and which counts before its command line. units: a pattern of its
    services, which are asked for its command line where it may write a title over it; empty where it does not.

    variables: of its environment, each the path of a folder or file, or a word. data_options, data_variable: which of these
    say where its data lies. at_home: its working directory is its data directory. passing: folders below its data that hold
    nothing which it needs after a crash (messages, statistics, sorts). tablespaces: a folder of links to more data. in_place:
    patterns of the data files in which it overwrites pages where they lie; guard: the setting that keeps such pages whole.

    compared: facts that decide about durability, which a server that is asked says, too. omitting: of these, the values with
    which it leaves out flushes. new_on_empty: why it begins a new database on an empty folder; empty where it refuses to
    start. profile: of a verification, empty where there is none.
    """

    name: str
    title: str
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

    def in_force(self, reply: dict[str, Any]) -> Found:
        """What the server itself said over a connection. Raises ValueError where that is not its answer."""
        raise ValueError(f"{self.title} is not asked over a connection")


def asks(value: bool | None, otherwise: Asks) -> Asks | None:
    """When it asks, by whether it syncs."""
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
    """An absolute path."""
    return value.startswith("/") and path(value)


def word(value: str) -> bool:
    """A word or a number."""
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


def kept(value: str, shape: Shape) -> str:
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


def decided(value: Known) -> bool:
    """Whether what the process was started with says it, and no file."""
    return all(each.text.rstrip(")").endswith(tuple(f"({each}" for each in GIVEN)) for each in value.evidence)


def setting_facts(engine: Engine, settings: Settings) -> Found:
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


def is_on(value: str, name: str) -> bool:
    """Whether a setting is on. Raises ValueError."""
    return parsed(boolean, name, value)


def from_server(value: Known, command: str) -> Known:
    """The same, shown by a command that asks the server."""
    return Known(value.value, tuple(each._replace(command=command) for each in value.evidence))
