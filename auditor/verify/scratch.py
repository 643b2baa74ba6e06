"""A scratch zvol or file system is the one that zaudit made by its GUID, and destroyed by it alone.

A name is anybody's who may rename (man 8 zfs-allow: rename, mount and create, not destroy), and a user property anybody's who
may set it. So the GUID is recorded when it is made, of what was created since then and bears the mark itself; and what is
destroyed is compared in the transaction group in which it is destroyed, by a ZFS channel program: no rename comes in between.
Only root may run one. (man 8 zfs-program; OpenZFS module/zfs/zcp_synctask.c zcp_synctask_destroy(): as zfs destroy without
options, it refuses what is mounted, open, or has snapshots or children)
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Callable, Iterator

from auditor.text import harmless, quoted
from auditor.verify.actor import PlaceError
from auditor.verify.ledger import Place

PROPERTY = "zaudit:scratch"  # its value is the id in the ledger
CLOCK_S = 1  # by which the kernel's coarse clock may be behind
TRIES, WAIT_S = 20, 0.5  # udev may have a zvol open still

Command = Callable[[tuple[str, ...]], tuple[int, str]]  # argv -> exit code, what it printed

# argv: name, GUID, user property, its value. A number of Lua has 64 bits and a sign
PROGRAM = """
local argv = (...)["argv"]
local name, guid, key, mark = argv[1], argv[2], argv[3], argv[4]
if not zfs.exists(name) then
  return "gone"
end
local found = zfs.get_prop(name, "guid")
if tostring(found) ~= guid then
  return "another"
end
local value, source = zfs.get_prop(name, key)
if value ~= mark or source ~= name then
  return "unmarked"
end
return "error " .. zfs.sync.destroy(name)
"""
DESTROYED = "error 0"
LARGEST = str(2**64 - 1)


def ready(pool: str, zfs: Command) -> None:
    """Raises PlaceError where nothing could be destroyed by its GUID later."""
    _program(f"{pool}/zaudit-{os.getpid()}", Place("", "", "", "", 0, 0, "", 0.0, guid=LARGEST), zfs, "-n")


def guid(place: Place, began: float, zfs: Command) -> str:
    """Of what was just made. began: when zfs create was called. Raises PlaceError where something else has its name."""
    wanted = ("guid", "creation", PROPERTY)
    code, said = zfs(("zfs", "get", "-Hp", "-o", "property,value,source", ",".join(wanted), place.dataset))
    rows = [line.split("\t") for line in said.splitlines()]
    if code or [row[0] for row in rows] != [*wanted] or not all(len(row) == 3 for row in rows):
        raise PlaceError(f"{place.dataset}: its GUID was not read: {harmless(said.strip())}")
    (_, number, _), (_, created, _), (_, mark, source) = rows
    if (mark, source) != (place.id, "local") or not created.isdigit() or int(created) < int(began) - CLOCK_S:
        raise PlaceError(f"{place.dataset} was replaced as soon as it was created: it is left alone")
    return number


def there(place: Place, zfs: Command) -> bool:
    """Whether its name is its own now."""
    code, said = zfs(("zfs", "get", "-Hp", "-o", "value", "guid", place.dataset))
    return code == 0 and said.strip() == place.guid


def destroy(place: Place, zfs: Command) -> None:
    """Destroy what was made, wherever it was renamed to; nothing where it is gone. Raises PlaceError."""
    if not place.guid.isdigit():
        _unknown(place, zfs)
        return
    name = place.dataset
    for _ in range(TRIES):
        answer = _program(name, place, zfs)
        if answer == DESTROYED:
            return
        if answer in ("gone", "another"):
            found = _renamed(place, zfs)
            if not found:
                return
            name = found
        elif answer == "unmarked":
            raise PlaceError(f"{name} does not have the mark of this run: it is left alone")
        elif answer != f"error {errno.EBUSY}":
            break
        time.sleep(WAIT_S)
    number = answer.removeprefix("error ")
    why = os.strerror(int(number)) if number.isdigit() else answer
    raise PlaceError(f"{name} could not be destroyed: {why}")


def _unknown(place: Place, zfs: Command) -> None:
    """Of a record without a GUID nobody knows what has its name by now."""
    name = place.dataset
    code, said = zfs(("zfs", "get", "-Hp", "-o", "value", "guid", name))
    if code and "does not exist" in said:
        return
    raise PlaceError(
        f"{name} is on record without its GUID, and another dataset may have its name by now: it is left alone. If "
        f"`zfs get creation,used,{PROPERTY} {quoted(name)}` shows a scratch one of zaudit: zfs destroy {quoted(name)}"
    )


def _renamed(place: Place, zfs: Command) -> str:
    """The name that it has now; empty where it is not in its pool any more. Raises PlaceError where that cannot be seen."""
    pool = place.dataset.partition("/")[0]
    code, said = zfs(("zfs", "get", "-Hp", "-r", "-t", "filesystem,volume", "-o", "name,value", "guid", pool))
    if code:
        raise PlaceError(f"{place.dataset}: {harmless(said.strip())}")
    rows = (line.split("\t") for line in said.splitlines())
    return next((row[0] for row in rows if row[1:] == [place.guid]), "")


def _program(name: str, place: Place, zfs: Command, *options: str) -> str:
    """What the channel program returns. Raises PlaceError where it was not run."""
    number = int(place.guid)
    signed = number - (1 << 64) if number >> 63 else number
    pool = name.partition("/")[0]
    with _script() as path:
        words = (pool, path, name, str(signed), PROPERTY, place.id)  # a number with a sign is no option
        code, said = zfs(("zfs", "program", *options, "-j", "--", *words))
    with contextlib.suppress(ValueError, KeyError, TypeError, IndexError):
        return str(json.loads(said.splitlines()[0])["return"])
    why = harmless(said.strip().partition("\n")[0]) or f"exit code {code}"
    raise PlaceError(
        f"zfs program {pool}, by which alone zaudit destroys what it made, failed (root may run it): {why}"
    )


@contextlib.contextmanager
def _script() -> Iterator[str]:
    """A path of the program for a child of this process, which nobody else can have put there."""
    descriptor = os.memfd_create("zaudit-destroy")
    try:
        os.write(descriptor, PROGRAM.encode())
        yield f"/proc/{os.getpid()}/fd/{descriptor}"
    finally:
        os.close(descriptor)
