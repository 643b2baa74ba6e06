"""The ledger: a folder with one file a place, written and synced before anything is made there.

What stands in it decides what ``zaudit clean`` removes, so nobody but the caller and root may be able to change it: each
folder on the way is theirs, and none can be written by others (but for a sticky one, as /tmp: there they cannot take away
what is not theirs). Where that does not hold, nothing is recorded and nothing is believed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from auditor.host.memory import UNTOLD, started
from auditor.verify import codec
from auditor.verify.actor import PlaceError

ID = re.compile(r"[0-9a-f]{16}")
PART = re.compile(r"part-[0-9a-f]{16}-([0-9]{1,9})-([0-9]{1,18})")  # a record that this process writes
LONGEST = 64 << 10  # bytes of a record
OTHERS, GROUP_OR_OTHERS = 0o002, 0o022


class Place(NamedTuple):
    """kind: directory, zvol or dataset. path: of the directory, of the folder with a link to the zvol, or where the scratch
    dataset is mounted. dataset: a scratch one's own name, else the file system. pid, started: of the process that uses it
    (clock ticks since boot); boot: id of the boot. uid, gid: who acts there, -1 in records of old, whose places belong to
    who ran zaudit. inode: of the directory, 0 as long as it is not made (its device number is given anew at each mount).
    guid: of the scratch dataset or zvol, in decimal; empty as long as it is not made, and in records of old.
    """

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


def new(kind: str, path: str, dataset: str, id: str, uid: int, gid: int) -> Place:
    """A place that this process is about to make."""
    return Place(id, kind, path, dataset, os.getpid(), started(os.getpid()), _boot(), time.time(), uid, gid)


def name() -> Path:
    """Where places are recorded: /var/lib/zaudit for root, else below $XDG_STATE_HOME (~/.local/state)."""
    if given := os.environ.get("ZAUDIT_STATE"):
        return Path(given)
    if os.geteuid() == 0:
        return Path("/var/lib/zaudit")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "zaudit"


def folder() -> Path:
    """That folder, made where it is missing, without a link in its path. Raises PlaceError where others could change it."""
    above = Path(os.path.realpath(name().parent))
    where = above / name().name
    try:
        _makable(above)
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        for each in (*reversed(where.parents), where):
            _trusted(each, last=each == where)
    except OSError as error:
        raise PlaceError(f"{where}: what is created cannot be recorded there: {error.strerror}") from None
    return where


def _makable(above: Path) -> None:
    """Judge what is there before anything is made in it."""
    for each in (*reversed(above.parents), above):
        if not each.exists():
            return
        _trusted(each, last=False)


def _trusted(path: Path, *, last: bool) -> None:
    """last: the ledger itself, which belongs to the caller alone. Root believes nothing that a group may write."""
    seen = os.lstat(path)
    if not stat.S_ISDIR(seen.st_mode):
        raise PlaceError(f"{path}: what is created cannot be recorded there: it is not a folder")
    mine = (os.geteuid(),) if last else (os.geteuid(), 0)
    if seen.st_uid not in mine:
        raise PlaceError(f"{path} belongs to another user (uid {seen.st_uid}), who could change what is recorded there")
    loose = seen.st_mode & (GROUP_OR_OTHERS if last or os.geteuid() == 0 else OTHERS)
    if loose and (last or not seen.st_mode & stat.S_ISVTX):
        mode = f"{stat.S_IMODE(seen.st_mode):o}"
        raise PlaceError(f"{path} can be written by others (mode {mode}), who could change what is recorded there")


def record(place: Place) -> None:
    """Write it down, or anew; it is on the disk then. Raises PlaceError."""
    where = folder()
    path, part = where / f"place-{place.id}.json", where / f"part-{place.id}-{place.pid}-{place.started}"
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
            json.dump(codec.plain(place), file)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)  # another zaudit never sees half of it
        descriptor = os.open(where, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(descriptor)
        os.close(descriptor)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise PlaceError(f"{where}: what is created cannot be recorded there: {error.strerror}") from None


def forget(place: Place) -> None:
    """Its place is gone."""
    (folder() / f"place-{place.id}.json").unlink(missing_ok=True)


def places() -> Iterator[Place]:
    """All that are recorded. A record that cannot be read is a place of no kind, which cannot be removed."""
    for path in _listed("place-*.json"):
        try:
            yield _read(path)
        except FileNotFoundError:
            continue  # another zaudit has just removed it
        except (ValueError, RecursionError, OSError):
            yield Place("", "", str(path), "", 0, 0, "", 0.0)


def _listed(pattern: str) -> list[Path]:
    return sorted(folder().glob(pattern)) if name().exists() else []


def _read(path: Path) -> Place:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no file")
        said = json.loads(file.read(LONGEST))
    return codec.load(Place, {**Place._field_defaults, **said} if isinstance(said, dict) else said)


def forget_parts() -> None:
    """Records that a run was killed over while it wrote them: what they were to tell of was never made."""
    for path in _listed("part-*"):
        found = PART.fullmatch(path.name)
        if found and started(int(found[1])) not in (int(found[2]), UNTOLD):
            path.unlink(missing_ok=True)


def in_use(place: Place) -> bool:
    """Whether the process that made it lives, or may live: same boot, same number, same start."""
    return place.boot == _boot() and place.started != 0 and started(place.pid) in (place.started, UNTOLD)


def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
