"""The ledger: a folder with one file a place, written and synced before anything is made there.

What stands in it decides what ``zaudit clean`` removes, so nobody but the caller and root may be able to change it
(:mod:`auditor.host.trust`). Where that does not hold, nothing is recorded and nothing is believed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from auditor.host import input_file, trust
from auditor.host.folder import NoPlace, held
from auditor.host.memory import UNTOLD, started
from auditor.verify import codec
from auditor.verify.actor import PlaceError

ID = re.compile(r"[0-9a-f]{16}")
PART = re.compile(r"part-[0-9a-f]{16}-([0-9]{1,9})-([0-9]{1,18})")  # a record that this process writes
LONGEST = 64 << 10  # bytes of a record
OF_ROOT = Path("/var/lib/zaudit")


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
    """Where places are recorded: /var/lib/zaudit for root, whatever the environment says, else below $XDG_STATE_HOME
    (~/.local/state)."""
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
        except (ValueError, RecursionError, OSError, NoPlace):
            yield Place("", "", str(path), "", 0, 0, "", 0.0)


def _listed(pattern: str) -> list[Path]:
    return sorted(folder().glob(pattern)) if name().exists() else []


def _read(path: Path) -> Place:
    with held(str(path.parent)) as where:
        file = input_file.open_member(path.name, where)
    if file is None:
        raise ValueError("not a plain file")
    with file:
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
