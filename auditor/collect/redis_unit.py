"""``systemctl show``: what systemd starts a Redis with.

Redis writes a title over its arguments (set-proc-title; before 6.2 always), so /proc/PID/cmdline does not show the options that
were given behind its file, and these override it (src/server.c, main(), redisSetProcTitle(); src/setproctitle.c). A unit says
them. Kept is a line whose options are all known not to say how anything is written; any other is not, so that what it
gives is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import Fact, Facts, Known, Subject, known, word, words
from auditor.host.request import Output, Run, Skip

PER = "database"
SUBJECT = "database"
FACTS = {
    "start_config": word("the configuration file with which systemd starts it"),
    "start_arguments": words(
        "all that systemd starts it with, besides its name: nothing of it says how anything is written"
    ),
}
_OPTIONS = "supervised|daemonize|port|pidfile|unixsocket|logfile"
_START = (
    r"ExecStart=\{ path=\S+ ; argv\[\]=\S*/redis-server(?P<given> (?P<file>/[\w./@-]+)"
    rf"(?: --(?:{_OPTIONS}) [\w./@-]+)*) ; ignore_errors=[^{{}}]*\}}"
)
KEEP = rf"^(?:|MainPID=\d+|{_START})$"


def request(database: Subject, facts: Facts) -> Run | Skip:
    """All units of Redis, running or loaded: which is that of a process they say themselves."""
    engine, _, process = database.name.partition(" ")
    if engine != "redis" or not process.isdigit():
        return Skip("it is no Redis that runs here", applies=False)
    return Run(("systemctl", "show", "--property=MainPID,ExecStart", "redis*.service"), package="systemd", keep=KEEP)


def hidden(database: Subject, facts: Facts) -> bool:
    """Whether a title stands in place of the arguments: none is left."""
    found = facts.get(database, "arguments")
    return database.name.startswith("redis ") and isinstance(found, Known) and not found.value


def parse(reply: Output, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where no unit says that it started this process with a file and nothing that matters."""
    process = database.name.partition(" ")[2]
    for unit in reply.text.split("\n\n"):
        if f"MainPID={process}" in (lines := unit.split("\n")):
            starts = [found for line in lines if (found := re.fullmatch(_START, line))]
            if len(starts) == 1:
                given, path = starts[0]["given"], starts[0]["file"]
                yield Fact(database, "start_config", known(path, f"redis-server{given}", reply.command))
                arguments = tuple(given.split())
                yield Fact(database, "start_arguments", known(arguments, f"redis-server{given}", reply.command))
                return
    raise ValueError(f"no unit says that it starts process {process} with a file and nothing that overrides it")
