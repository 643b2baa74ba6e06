"""The programs that a verification starts: found in the fixed PATH of zaudit, with its fixed environment and no shell."""

from __future__ import annotations

from auditor.host import process
from auditor.host.live import ENVIRONMENT
from auditor.host.running import Time
from auditor.host.tools import PATH, find
from auditor.verify.actor import Actor

ANSWER_S = 60  # for all but fio


def found(name: str) -> str:
    """The absolute path of a program; empty where it is not installed, or where others than root could have changed it."""
    return find((name,), PATH)[0]


def call(argv: tuple[str, ...]) -> tuple[int, str]:
    """Run a command from /: (exit code, what it printed)."""
    return _call(argv, "/")


def act(actor: Actor, folder: int, argv: tuple[str, ...]) -> tuple[int, str]:
    """Run a command with the rights of an actor in a folder that is held by its descriptor: (exit code, what it printed)."""
    tool = found(argv[0])
    return _call((*actor.setpriv, tool or argv[0], *argv[1:]), inside(folder))


def inside(folder: int) -> str:
    """The path by which a child enters a folder that is held, whatever its name is by now (proc(5), /proc/PID/fd)."""
    return f"/proc/self/fd/{folder}"


def _call(argv: tuple[str, ...], folder: str) -> tuple[int, str]:
    path = found(argv[0])
    if not path:
        return 127, f"{argv[0]} is not installed"
    # bounded in output as well: what runs with the rights of an owner is his to take over and to make say anything
    done = process.run((path, *argv[1:]), Time.of(ANSWER_S), ENVIRONMENT, folder=folder)
    if done.exit is None:
        return 124, f"{argv[0]}: {done.fault}"
    return done.exit, (done.stdout + done.stderr).decode("utf-8", "replace")
