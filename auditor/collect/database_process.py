"""``/proc/PID``: where a database server was told to find its data, and whether something ignores its flushes.

Some servers change to their data directory when they start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from auditor.collect._database_files import ELSEWHERE
from auditor.databases import ENGINES
from auditor.facts import Evidence, Fact, Facts, Known, Subject, flag, known, word, words
from auditor.host.request import Files, Read, Skip

PER = "database"
SUBJECT = "database"
FACTS = {
    "arguments": words("its command line, without the name"),
    "variables": words("of its environment, those that say where its files are"),
    "program": word("the path of its executable, as it sees it"),
    "data_directory": word("where its data lies, as it sees it"),
    "eatmydata": flag("a library that turns fsync into nothing is loaded into it"),
}


def request(database: Subject, facts: Facts) -> Read | Skip:
    """What the kernel says of the process."""
    process = database.name.partition(" ")[2]
    if process == ELSEWHERE:
        return Skip("it is not one of the processes that are seen here")
    if not process.isdigit():
        return Skip("it does not run", applies=False)
    return Read(tuple(f"/proc/{process}/{name}" for name in ("cmdline", "cwd", "environ", "exe", "maps")))


def parse(reply: Files, database: Subject) -> Iterator[Fact]:
    """maps, cwd and environ are only for root and the user that it runs as."""
    name, _, process = database.name.partition(" ")
    engine = ENGINES[name]
    here = f"/proc/{process}/"
    found: list[tuple[str, str]] = []
    cwd = reply.links.get(here + "cwd", "")
    if engine.at_home and cwd and not cwd.endswith(" (deleted)"):
        found.append((cwd, "cwd"))
    if program := reply.links.get(here + "exe"):
        yield Fact(database, "program", known(program.removesuffix(" (deleted)"), program, f"ls -l {here}exe"))
    line = reply.text.get(here + "cmdline")
    if line is not None:
        if not line.endswith("\0"):  # of a postmaster that has set its title, too
            raise ValueError(f"{here}cmdline is cut off")
        arguments = tuple(line.rstrip("\0").split("\0")[1:])
        shown = known(arguments, " ".join(arguments) or "no arguments", f"tr '\\0' ' ' <{here}cmdline")
        yield Fact(database, "arguments", shown)
        found += [(value, "cmdline") for name in engine.data_options if (value := option(arguments, name)) is not None]
    if here + "environ" in reply.text:
        variables = tuple(each for each in reply.text[here + "environ"].split("\0") if each)
        shown = known(variables, " ".join(variables), f"tr '\\0' '\\n' <{here}environ")
        yield Fact(database, "variables", shown)
        name = (engine.data_variable or "\0") + "="
        found += [(each.removeprefix(name), "environ") for each in variables if each.startswith(name)]
    absolute = [(path, source) for path, source in found if path.startswith("/")]
    if absolute:
        path, source = absolute[0]
        yield Fact(database, "data_directory", known(path.rstrip("/") or "/", path, f"ls -l {here}{source}"))
    if maps := reply.text.get(here + "maps", ""):
        loaded = [each for each in maps.splitlines() if "libeatmydata" in each]
        text = f"{loaded[0]} is loaded" if loaded else "libeatmydata is not loaded"
        yield Fact(database, "eatmydata", Known(bool(loaded), (Evidence(text, f"grep libeatmydata {here}maps"),)))


def option(arguments: Sequence[str], name: str) -> str | None:
    """The value of an option, given as ``--name=value``, ``--name value`` or ``-Dvalue``; the last one counts. MySQL takes a
    dash and an underscore in a name for the same."""
    found, wanted = None, _bare(name)
    for i, each in enumerate(arguments):
        given, equals, value = each.partition("=")
        if equals and given.startswith("--") and _bare(given) == wanted:
            found = value
        elif _bare(each) == wanted and i + 1 < len(arguments):
            found = arguments[i + 1]
        elif re.fullmatch(r"-\w", name) and each.startswith(name) and len(each) > 2:
            found = each[2:]
    return found


def _bare(name: str) -> str:
    return name.replace("_", "-")
