"""``/proc/PID``: where a database server was told to find its data, and whether something ignores its flushes.

Some servers change to their data directory when they start.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect._database_files import ELSEWHERE
from auditor.databases import ENGINES, kept
from auditor.databases.engine import DOUBT, WITHHELD
from auditor.facts import Evidence, Fact, Facts, Known, Subject, flag, known, number, word, words
from auditor.host.request import Files, Read, Skip

PER = "database"
AFTER = ("database_sql",)  # a server that is asked says what it uses itself
SUBJECT = "database"
FACTS = {
    "arguments": words("its command line, without the name: the options that zaudit knows"),
    "arguments_bytes": number("how long they were together, each with its end, where a title stands in their place"),
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
        given = kept.arguments(engine, line)
        arguments = (WITHHELD,) if given is None else tuple(each.text for each in given)
        shown = known(arguments, " ".join(arguments) or "no arguments", f"tr '\\0' ' ' <{here}cmdline")
        yield Fact(database, "arguments", shown)
        if given == [] and name == "redis":
            # a title is written over its name and them, and NUL bytes over the rest
            size = len(line) - len(line.partition("\0")[0].partition(" ")[0]) - 1
            yield Fact(
                database, "arguments_bytes", known(size, f"{size} bytes behind its name", f"wc -c {here}cmdline")
            )
        if given is None or DOUBT in given:
            found.append((WITHHELD, "cmdline"))
        options = {each.name: each.value for each in given or ()}
        found += [(options[name], "cmdline") for name in engine.data_options if name in options]
    if here + "environ" in reply.text:
        pairs = kept.environment(reply.text[here + "environ"])
        variables = tuple(f"{name}={value}" for name, value in pairs)
        shown = known(variables, " ".join(variables), f"tr '\\0' '\\n' <{here}environ")
        yield Fact(database, "variables", shown)
        found += [(value, "environ") for name, value in pairs if name == engine.data_variable]
    told = [(path, source) for path, source in found if path.startswith("/") or path == WITHHELD]
    if told and told[0][0] != WITHHELD:
        path, source = told[0]
        yield Fact(database, "data_directory", known(path.rstrip("/") or "/", path, f"ls -l {here}{source}"))
    if maps := reply.text.get(here + "maps", ""):
        loaded = [each for each in maps.splitlines() if "libeatmydata" in each]
        text = f"{loaded[0]} is loaded" if loaded else "libeatmydata is not loaded"
        yield Fact(database, "eatmydata", Known(bool(loaded), (Evidence(text, f"grep libeatmydata {here}maps"),)))
