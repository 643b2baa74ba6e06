"""What a run writes into: a new directory on the dataset, or a scratch zvol; recorded before it exists, removed after.

The ledger is a folder with one file a place, written and synced before anything is made. Whatever ends a run, the next
one and ``zaudit clean`` find there what it left, and remove that and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from auditor.errors import Stop
from auditor.verify import codec

ID = re.compile(r"[0-9a-f]{16}")
PART = re.compile(r"part-[0-9a-f]{16}-([0-9]{1,9})-([0-9]{1,18})")  # a record that this process writes
PREFIX, FILES = ".zaudit-", "zaudit."
PROPERTY = "zaudit:scratch"  # of a scratch zvol: its value is the id in the ledger

Command = Callable[[tuple[str, ...]], tuple[int, str]]  # argv -> exit code, what it printed


class PlaceError(Stop):
    """The place could not be made or removed; the text says why."""


class Place(NamedTuple):
    """kind: directory, zvol or dataset. path: of the directory, of the folder with a link to the zvol, or where the scratch
    dataset is mounted. dataset: a scratch one's own name, else the file system. pid, started: of the process that uses it
    (clock ticks since boot); boot: id of the boot.
    """

    id: str
    kind: str
    path: str
    dataset: str
    pid: int
    started: int
    boot: str
    made: float


def ledger() -> Path:
    """Where places are recorded: /var/lib/zaudit for root, else below $XDG_STATE_HOME (~/.local/state)."""
    if folder := os.environ.get("ZAUDIT_STATE"):
        return Path(folder)
    if os.geteuid() == 0:
        return Path("/var/lib/zaudit")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "zaudit"


def _new(kind: str, path: str, dataset: str, id: str) -> Place:
    return Place(id, kind, path, dataset, os.getpid(), _started(os.getpid()), _boot(), time.time())


def directory(mount_point: str, dataset: str) -> Place:
    """A new directory below a mount point, which only this user may enter. Raises PlaceError."""
    id = secrets.token_hex(8)
    place = _new("directory", os.path.join(mount_point, f"{PREFIX}{id}"), dataset, id)
    _record(place)
    try:
        os.mkdir(place.path, 0o700)
    except OSError as error:
        _forget(place)
        raise PlaceError(f"{mount_point}: no directory can be made there: {error.strerror}") from None
    return place


def zvol(target: str, size: int, properties: Sequence[tuple[str, str]], zfs: Command) -> Place:
    """A scratch zvol beside a zvol, with its properties, and a folder with a link to it. Raises PlaceError."""
    id = secrets.token_hex(8)
    parent, _, _ = target.rpartition("/")
    name = f"{parent}/zaudit-{id}"
    place = _new("zvol", str(ledger() / f"link-{id}"), name, id)
    _record(place)
    options = [word for key, value in (*properties, (PROPERTY, id)) for word in ("-o", f"{key}={value}")]
    code, said = zfs(("zfs", "create", "-s", "-V", str(size), *options, name))
    if code:
        _forget(place)
        raise PlaceError(f"zfs create {name}: {said.strip()}")
    device = f"/dev/zvol/{name.replace(' ', '+')}"
    try:
        _appears(device)
        os.mkdir(place.path, 0o700)
        os.symlink(device, log_file(place))
    except OSError as error:
        remove(place, zfs)
        raise PlaceError(f"{device}: {error.strerror}") from None
    return place


def dataset(target: str, properties: Sequence[tuple[str, str]], zfs: Command) -> Place:
    """A scratch file system below a file system, which inherits what it does not set itself. Raises PlaceError."""
    id = secrets.token_hex(8)
    name = f"{target}/zaudit-{id}"
    place = _new("dataset", "", name, id)
    _record(place)
    options = [word for key, value in (*properties, (PROPERTY, id)) for word in ("-o", f"{key}={value}")]
    code, said = zfs(("zfs", "create", *options, name))
    if code:
        _forget(place)
        raise PlaceError(f"zfs create {name}: {said.strip()}")
    code, where = zfs(("zfs", "get", "-Hp", "-o", "value", "mountpoint", name))
    where = where.removesuffix("\n")
    if code or not os.path.ismount(where):
        remove(place, zfs)
        raise PlaceError(f"{name} was made, and is not mounted ({where.strip()})")
    return place._replace(path=where)


def log_file(place: Place) -> str:
    """What the job of the log writes to: a file, or the link to a scratch zvol."""
    return os.path.join(place.path, f"{FILES}log.0.0")


def _appears(device: str) -> None:
    """udev makes the node; 10 s are enough for that, or it does not run."""
    for _ in range(100):
        if os.path.exists(device):
            return
        time.sleep(0.1)
    raise FileNotFoundError(2, "udev made no node for it in 10 s", device)


def remove(place: Place, zfs: Command) -> None:
    """Remove what was made there; only files of ours, only a zvol that bears our mark. Raises PlaceError, and keeps the
    record then. What is gone already is no error."""
    if place.kind == "dataset" and ID.fullmatch(place.id):
        _destroy(place, zfs)
        _forget(place)
        return
    if not ID.fullmatch(place.id) or os.path.basename(place.path) not in (f"{PREFIX}{place.id}", f"link-{place.id}"):
        raise PlaceError(f"{place.path} is no place of zaudit's: the record is damaged")
    if not _empty(place.path) and place.kind == "directory":
        _gone(place, zfs)
    if place.kind == "zvol":
        _destroy(place, zfs)
    _forget(place)


def _gone(place: Place, zfs: Command) -> None:
    """A directory that is not there may lie on a file system that is not mounted now: then it is not gone."""
    where = os.path.dirname(place.path)
    if os.path.ismount(where):
        return
    code, said = zfs(("zfs", "get", "-Hp", "-o", "value", "mountpoint", place.dataset))
    if not (code and "does not exist" in said):
        raise PlaceError(f"{place.dataset} is not mounted on {where}: what was left there cannot be seen")


def _empty(path: str) -> bool:
    """Remove a folder with files of ours alone in it; whether it was there."""
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise PlaceError(f"{path}: {error.strerror}") from None
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            raise PlaceError(f"{path} belongs to another user: it is left alone")
        for name in os.listdir(folder):
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if name.startswith(FILES) and (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
                os.unlink(name, dir_fd=folder)
        if left := os.listdir(folder):
            raise PlaceError(f"{path} holds what zaudit did not make ({left[0]!r}): it is left alone")
        os.rmdir(path)
    except OSError as error:
        raise PlaceError(f"{path}: {error.strerror}") from None
    finally:
        os.close(folder)
    return True


def _destroy(place: Place, zfs: Command) -> None:
    code, mark = zfs(("zfs", "get", "-Hp", "-o", "value", PROPERTY, place.dataset))
    if code:
        if "does not exist" in mark:
            return
        raise PlaceError(f"{place.dataset}: {mark.strip()}")
    if mark.strip() != place.id:
        raise PlaceError(f"{place.dataset} does not bear the mark of this run: it is left alone")
    for _ in range(20):  # udev may have it open still
        code, said = zfs(("zfs", "destroy", place.dataset))
        if code == 0:
            return
        time.sleep(0.5)
    raise PlaceError(f"zfs destroy {place.dataset}: {said.strip()}")


def places() -> Iterator[Place]:
    """All that are recorded. A record that cannot be read is a place of no kind, which :func:`remove` reports."""
    for path in sorted(ledger().glob("place-*.json")):
        try:
            yield codec.load(Place, json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            continue  # another zaudit has just removed it
        except (ValueError, RecursionError, OSError):
            yield Place("", "", str(path), "", 0, 0, "", 0.0)


def in_use(place: Place) -> bool:
    """Whether the process that made it lives: same boot, same number, same start."""
    return place.boot == _boot() and place.started == _started(place.pid) != 0


def clean(zfs: Command) -> Iterator[tuple[Place, str]]:
    """Remove what dead runs left; (place, what is wrong, or empty)."""
    _forget_parts()
    for place in places():
        if not in_use(place):
            try:
                remove(place, zfs)
                yield place, ""
            except PlaceError as error:
                yield place, str(error)


def _record(place: Place) -> None:
    folder = ledger()
    path, part = folder / f"place-{place.id}.json", folder / f"part-{place.id}-{place.pid}-{place.started}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(codec.plain(place), file)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)  # another zaudit never sees half of it
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise PlaceError(f"{folder}: what is made cannot be recorded there: {error.strerror}") from None


def _forget(place: Place) -> None:
    with contextlib.suppress(FileNotFoundError):
        (ledger() / f"place-{place.id}.json").unlink()


def _forget_parts() -> None:
    """Records that a run was killed over while it wrote them: what they were to tell of was never made."""
    for path in ledger().glob("part-*"):
        found = PART.fullmatch(path.name)
        if found and int(found[2]) != _started(int(found[1])):
            path.unlink(missing_ok=True)


def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _started(pid: int) -> int:
    """Field 22 of /proc/PID/stat, 0 when there is no such process (proc(5); the name may hold spaces and brackets)."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0
