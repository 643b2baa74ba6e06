"""The programs that a verification starts: found in the fixed PATH of zaudit, with its fixed environment and no shell."""

from __future__ import annotations

from auditor.host import process, trust
from auditor.host.live import ENVIRONMENT
from auditor.host.running import Time
from auditor.host.tools import MISSING as MISSING
from auditor.host.tools import PATH
from auditor.host.tools import find as find_in
from auditor.verify.actor import Actor, PlaceError

ANSWER_S = 60  # for all but fio


def find(name: str) -> tuple[str, str]:
    """(the absolute path of a program, empty) or (empty, why there is none)."""
    return find_in((name,), PATH)


def found(name: str) -> str:
    """The absolute path of a program; empty where it is not installed, or where another user could have changed it."""
    return find(name)[0]


def require(name: str) -> str:
    """The absolute path of a program. Raises PlaceError: no program is left to be found by whoever starts it."""
    path, why = find(name)
    if why:
        raise PlaceError(f"{name}: {why}")
    return path


def call(argv: tuple[str, ...]) -> tuple[int, str]:
    """Run a command from /: (exit code, what it printed)."""
    return _call(argv, "/")


def act(actor: Actor, folder: int, argv: tuple[str, ...]) -> tuple[int, str]:
    """Run a command with the rights of an actor in a folder that is held by its descriptor: (exit code, what it printed)."""
    tool, why = find(argv[0])
    if why:
        return 127, f"{argv[0]}: {why}"
    # by the path of its descriptor a child enters a folder that is held, whatever its name is by now
    return _call((*actor.setpriv, tool, *argv[1:]), trust.by(folder))


def _call(argv: tuple[str, ...], folder: str) -> tuple[int, str]:
    path, why = find(argv[0])
    if why:
        return 127, f"{argv[0]}: {why}"
    # bounded in output as well: what runs with the rights of an owner is his to take over and to make say anything
    done = process.run((path, *argv[1:]), Time.of(ANSWER_S), ENVIRONMENT, folder=folder)
    if done.exit is None:
        return 124, f"{argv[0]}: {done.fault}"
    return done.exit, (done.stdout + done.stderr).decode("utf-8", "replace")
