"""What zaudit made, by whom, and how it is found again: the ledger, scratch zvols by GUID, programs that act."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from auditor import Stop, codec
from auditor.host import process, trust, user_files
from auditor.host.children.reader import Closing
from auditor.host.live import ENVIRONMENT
from auditor.host.owner import UNTOLD, started
from auditor.host.process import MISSING as MISSING
from auditor.host.process import PATH, Time
from auditor.host.process import find_program as find_in
from auditor.host.trust import NoPlace, held
from auditor.text import harmless, quoted

# Who acts in a place: a process with the rights of its owner makes, writes and removes everything there.
#
# It has no capability and cannot gain one. So a name, link or file in its way reaches nothing that the owner could not
# reach himself. (setpriv(1); capabilities(7), "Transformation of capabilities during execve()": with an empty bounding set
# not even a program of root gets any.)

BOUND = ("setpriv", "--pdeathsig", "KILL")  # so that nothing outlives zaudit
POWERLESS = ("--clear-groups", "--inh-caps=-all", "--bounding-set=-all")


class PlaceError(Stop):
    """A place could not be made, used or removed; the text says why."""


class Actor(NamedTuple):
    """Numbers of a user and a group; both empty where zaudit does not run as root."""

    uid: str
    gid: str

    @property
    def setpriv(self) -> tuple[str, ...]:
        """The words before a command that make it his."""
        ids = ("--reuid", self.uid, "--regid", self.gid, *POWERLESS) if self.uid else ()
        return (*BOUND, "--no-new-privs", *ids)


CALLER, ROOT = Actor("", ""), Actor("0", "0")
UNSEEN = Actor("UID", "GID")  # of a place that could not be looked at


# The programs that a verification starts: found in the fixed PATH of zaudit, with its fixed environment and no shell.

ANSWER_S = 60  # for all but fio


def find(name: str) -> tuple[str, str]:
    return find_in((name,), PATH)


def require(name: str) -> str:
    """The absolute path of a program, so that no child searches for it. Raises PlaceError."""
    path, why = find(name)
    if why:
        raise PlaceError(f"{name}: {why}")
    return path


def call(argv: tuple[str, ...], folder: str = "/") -> tuple[int, str]:
    """Run a command in a folder: (exit code, what it printed)."""
    path, why = find(argv[0])
    if why:
        return 127, f"{argv[0]}: {why}"
    # bounded in output as well: what runs with the rights of an owner is his to take over and to make say anything
    done = process.run((path, *argv[1:]), Time.of(ANSWER_S), ENVIRONMENT, folder=folder)
    if done.exit is None:
        return 124, f"{argv[0]}: {done.fault}"
    return done.exit, (done.stdout + done.stderr).decode("utf-8", "replace")


def act(actor: Actor, folder: int, argv: tuple[str, ...]) -> tuple[int, str]:
    """Run a command with the rights of an actor in a folder that is held by its descriptor: (exit code, output)."""
    tool, why = find(argv[0])
    if why:
        return 127, f"{argv[0]}: {why}"
    # by the path of its descriptor a child enters a folder that is held, whatever its name is by now
    return call((*actor.setpriv, tool, *argv[1:]), trust.by(folder))


# The ledger: a folder with one file a place, synced before anything is made there. It decides what ``zaudit clean``
# removes, so only the caller and root may be able to change it (:mod:`auditor.host.trust`); else nothing there is believed.

ID = re.compile(r"[0-9a-f]{16}")
PART = re.compile(r"part-[0-9a-f]{16}-([0-9]{1,9})-([0-9]{1,18})")  # a record that this process writes
LONGEST = 64 << 10  # bytes of a record
OF_ROOT = Path("/var/lib/zaudit")


class Place(NamedTuple):
    """kind: directory or zvol. path: of the directory, or of the folder with a link to the zvol. dataset: the scratch zvol,
    else the file system. pid, started: of the process that uses it (clock ticks since boot); boot: id of the boot. uid,
    gid: who acts there; -1 in old records, whose places belong to the user of zaudit. inode: of the directory, 0 until it
    exists (its device number changes with each mount). guid: of the scratch zvol, in decimal; empty until it exists, and in
    old records. run: of ``powercut``, whose files are checked after the next boot; empty of a verification."""

    id: str
    kind: str
    path: str
    dataset: str
    pid: int
    started: int
    boot: str
    made: float
    uid: int = -1
    gid: int = -1
    inode: int = 0
    guid: str = ""
    run: str = ""


def new(kind: str, path: str, dataset: str, id: str, actor: Actor) -> Place:
    uid, gid = (int(actor.uid), int(actor.gid)) if actor.uid else (os.geteuid(), os.getegid())
    return Place(id, kind, path, dataset, os.getpid(), started(os.getpid()), boot_id(), time.time(), uid, gid)


def name() -> Path:
    """Where places are recorded: /var/lib/zaudit for root, else below $XDG_STATE_HOME (~/.local/state)."""
    if os.geteuid() == 0:
        return OF_ROOT
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "zaudit"


def folder() -> Path:
    """That folder, made where it is missing. Raises PlaceError where others could change it."""
    where = os.path.abspath(name())
    try:
        with held(where, make=True):
            return Path(trust.locate_folder(where))
    except (OSError, NoPlace) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise PlaceError(f"{where}: what is created cannot be recorded there: {why}") from None


def record(place: Place) -> None:
    """Write it down, or again; it is on the disk then. Raises PlaceError."""
    where = folder()
    path, part = where / f"place-{place.id}.json", where / f"part-{place.id}-{place.pid}-{place.started}"
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
            json.dump(codec.plain(place), file)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)  # another zaudit never sees half of it
        with Closing(os.open(where, os.O_RDONLY | os.O_DIRECTORY)) as descriptor:
            os.fsync(descriptor)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise PlaceError(f"{where}: what is created cannot be recorded there: {error.strerror}") from None


def forget(place: Place) -> None:
    (folder() / f"place-{place.id}.json").unlink(missing_ok=True)


def places() -> Iterator[Place]:
    """All that are recorded. A record that cannot be read is a place of no kind, which cannot be removed."""
    for path in _listed("place-*.json"):
        try:
            yield _read(path)
        except FileNotFoundError:
            continue  # another zaudit has just removed it
        except (ValueError, RecursionError, OSError, NoPlace):
            yield Place("", "", str(path), "", 0, 0, "", 0.0)


def _listed(pattern: str) -> list[Path]:
    return sorted(folder().glob(pattern)) if name().exists() else []


def _read(path: Path) -> Place:
    with held(str(path.parent)) as where:
        file = user_files.open_member(path.name, where)
    if file is None:
        raise ValueError("not a plain file")
    with file:
        return codec.load(Place, json.loads(file.read(LONGEST)), how=codec.LENIENT)


def forget_parts() -> None:
    """Records that a run was killed over while it wrote them: what they were to tell of was never made."""
    for path in _listed("part-*"):
        found = PART.fullmatch(path.name)
        if found and started(int(found[1])) not in (int(found[2]), UNTOLD):
            path.unlink(missing_ok=True)


def in_use(place: Place) -> bool:
    """Whether the process that made it lives, or may live: same boot, same number, same start."""
    return place.boot == boot_id() and place.started != 0 and started(place.pid) in (place.started, UNTOLD)


def boot_id() -> str:
    """Of this host; it changes with each boot. Empty where it cannot be read."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


# zaudit destroys a scratch zvol by its GUID alone. Who may rename can take its name (man 8 zfs-allow: rename, mount and
# create, not destroy), and who may set user properties its mark. So the GUID is recorded at creation, of what is new and
# bears the mark; and a ZFS channel program compares it in the transaction group that destroys: no rename comes in between.
# Only root may run one. (man 8 zfs-program; OpenZFS module/zfs/zcp_synctask.c zcp_synctask_destroy(): as zfs destroy
# without options, it refuses what is mounted, open, or has snapshots or children)

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
    """A record without a GUID does not tell whether its name is still that of the scratch zvol."""
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
    """A path of the program for a child of this process that no other user can replace."""
    with Closing(os.memfd_create("zaudit-destroy")) as descriptor:
        os.write(descriptor, PROGRAM.encode())
        yield f"/proc/{os.getpid()}/fd/{descriptor}"
