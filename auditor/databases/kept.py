"""What is kept of the files, command lines and environments of database servers: allow-lists, from the table of engines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase

from auditor.databases import ENGINES, SERVERS
from auditor.databases.engine import WITHHELD, Engine, Form, Line, Shape, kept, path

CHARACTERS, WORDS = 1 << 16, 1 << 12  # of a command line; so many variables of an environment, too


def allowed() -> frozenset[str]:
    """The words of all allow-lists: ``ENGINE SETTING``, ``$VARIABLE`` and the names of servers, ``PROGRAM()``. What is none of
    them is not kept, so a recording of a zaudit with fewer of them says nothing of the others."""
    settings = (f"{engine.name} {each.name}" for engine in ENGINES.values() for each in engine.settings)
    return frozenset((*settings, *(f"${name}" for name in VARIABLES), *(f"{name}()" for name in SERVERS)))


def doubtful(engine: Engine, unkept: Collection[str]) -> Callable[[str], bool]:
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


# what a process of PostgreSQL does that serves no client (GetBackendTypeDesc() of src/backend/utils/init/miscinit.c), behind
# the name of the cluster (init_ps_display() of utils/misc/ps_status.c); a client's has more words
TITLE = "postgres: "
TASKS = {
    *("archiver", "background writer", "checkpointer", "logger", "startup", "walwriter", "walsummarizer"),
    *("autovacuum launcher", "logical replication launcher"),
}


def task(text: str) -> str:
    """What a process of PostgreSQL says in its title that it does, empty where it says another thing or is none."""
    said = text.rstrip("\0 ").rpartition(": ")[2] if text.startswith(TITLE) and len(text) <= CHARACTERS else ""
    return said if said in TASKS else ""


def command_line(text: str) -> str:
    """Of /proc/PID/cmdline: as many words, those that say where files are and how they are written as they stand. What does
    not begin with the name of a server is withheld. Of the title of a process of PostgreSQL what it does, where it names
    nobody."""
    if not text:
        return text
    if said := task(text):
        return f"{TITLE}{said}"
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
    """The words of the command line of such a server, read anew from what was kept; None: it is another's, or withheld."""
    words = text.rstrip("\0").split("\0")
    found = server(words[0])
    return engine.arguments(words[1:]) if found and found.arguments is engine.arguments else None


VARIABLES = {name: shape for engine in ENGINES.values() for name, shape in engine.variables.items()}


def variables(text: str, known: Mapping[str, Shape] = VARIABLES) -> str:
    """Of /proc/PID/environ. known: which; those of all engines, as it does not say of which it is."""
    return "".join(f"{name}={value}\0" for name, value in environment(text, known))


def environment(text: str, known: Mapping[str, Shape] = VARIABLES) -> list[tuple[str, str]]:
    """The variables that are known, with their values or :data:`WITHHELD`: of each, where there are more than anybody has."""
    if text.count("\0") > WORDS:
        return [(name, WITHHELD) for name in known]
    pairs = (each.partition("=") for each in text.split("\0"))
    return [(name, kept(value, known[name])) for name, equals, value in pairs if equals and name in known]
