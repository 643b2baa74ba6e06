"""A place that is held: its folders are open, and nothing there is reached by a path that its owner could turn elsewhere.

A folder is found from / downwards without following a link; from then on its descriptor stands for it, wherever the owner
moves it. What is made or removed in it is done with the rights of the owner (:mod:`auditor.verify.actor`).
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from auditor.host import trust
from auditor.text import harmless
from auditor.verify import tools
from auditor.verify.actor import CALLER, ROOT, Actor, PlaceError
from auditor.verify.ledger import Place

FILES = "zaudit."  # the names of all files that fio makes begin so
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
NOGROUP = 65534  # of a user whom the system does not know
AT_ONCE, ROUNDS = 500, 1000  # files that one command removes, and how often: more, and somebody keeps making them
MOST = 100_000  # entries of a place that are looked at


class Replaced(PlaceError):
    """Something else lies where the place was."""


class Held(NamedTuple):
    """parent: descriptor of the folder that the place lies in; folder: of the place; device: of its zvol, else -1."""

    place: Place
    parent: int
    folder: int
    device: int

    @property
    def actor(self) -> Actor:
        return actor_of(self.place)

    @property
    def name(self) -> str:
        return os.path.basename(self.place.path)

    def changed(self) -> str:
        """What is not as zaudit and fio made it, in a few words; empty where all is."""
        try:
            there = os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
            if not os.path.samestat(there, os.fstat(self.folder)):
                return "something else lies where it was made"
            return "" if self.place.kind == "zvol" else next(self._strange(), "")
        except FileNotFoundError:
            return "it is not where it was created"
        except OSError as error:
            return f"it cannot be looked at ({error.strerror})"

    def _strange(self) -> Iterator[str]:
        own = os.fstat(self.folder)
        with os.scandir(self.folder) as entries:
            for number, entry in enumerate(entries):
                if number == MOST:
                    yield f"it holds more than {MOST} files"
                elif not (entry.name.startswith(FILES) and entry.is_file(follow_symlinks=False) and _plain(entry, own)):
                    yield f"it holds what fio did not make there ({harmless(entry.name)})"

    def remove(self, *names: str) -> None:
        """Files in it, with the rights of its owner. What is not there is no error. Raises PlaceError."""
        code, said = tools.act(self.actor, self.folder, ("rm", "-f", "--", *names))
        if code:
            raise PlaceError(f"{self.place.path}: {harmless(said.strip())}")

    def empty(self) -> None:
        """Remove the files of ours in it, and links of that name; all else stays. Raises PlaceError."""
        for _ in range(ROUNDS):
            names = list(islice(self._ours(), AT_ONCE))
            if not names:
                return
            self.remove(*names)
        raise PlaceError(f"{self.place.path}: another process keeps creating files there")

    def _ours(self) -> Iterator[str]:
        with os.scandir(self.folder) as entries:
            for entry in islice(entries, MOST):
                if entry.name.startswith(FILES) and (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                    yield entry.name


def _plain(entry: os.DirEntry[str], folder: os.stat_result) -> bool:
    """Whether a file has no other name, and owner and file system of the folder; only files are asked for that, since what
    a folder is mounted from may never answer."""
    seen = entry.stat(follow_symlinks=False)
    return (seen.st_nlink, seen.st_uid, seen.st_dev) == (1, folder.st_uid, folder.st_dev)


def opened(path: str) -> int:
    """A descriptor of a folder, good for looking up names in it. Raises OSError, also where a link is on the way."""
    folder = os.open("/", os.O_PATH | os.O_DIRECTORY)
    for name in filter(None, path.split("/")):
        above = folder
        try:
            folder = os.open(name, FOLDER | os.O_PATH, dir_fd=above)
        finally:
            os.close(above)
    return folder


def rest(folder: int) -> str:
    """The name of something that lies in it, or nothing."""
    with os.scandir(folder) as entries:
        return next((entry.name for entry in entries), "")


@contextlib.contextmanager
def closing(*descriptors: int) -> Iterator[None]:
    """They are closed at the end."""
    try:
        yield
    finally:
        for each in descriptors:
            os.close(each)


def owner(folder: int, path: str) -> Actor:
    """Who is to act below a folder: who owns it. Raises PlaceError where others could put something in root's way."""
    if os.geteuid():
        return CALLER
    seen = os.fstat(folder)
    if seen.st_uid == 0:
        if not trust.keeps(seen, trust.by(folder)):
            why = trust.fault(seen, path)
            raise PlaceError(
                f"{harmless(why)} and belongs to root: give it to the user of the database (chown), or take that right "
                "away (chmod go-w; setfacl -b)"
            )
        return ROOT
    return Actor(str(seen.st_uid), str(_group(seen.st_uid)))


def _group(uid: int) -> int:
    """His own group, as the system knows it. Not that of the folder: it may be one that he is no member of."""
    with contextlib.suppress(KeyError):
        if pwd.getpwnam(str(uid)).pw_uid != uid:  # setpriv takes a number for a name first
            raise PlaceError(f"a user is named {uid}: nothing can be run as the user with that number")
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return NOGROUP


def actor_of(place: Place) -> Actor:
    """Who acts in a place that was recorded."""
    if os.geteuid():
        return CALLER
    return ROOT if place.uid < 1 else Actor(str(place.uid), str(place.gid))


def enter(place: Place, parent: int) -> int:
    """A descriptor of the folder of a place, in one that is held. Raises FileNotFoundError where nothing has its name,
    Replaced where something else has it."""
    try:
        folder = os.open(os.path.basename(place.path), FOLDER, dir_fd=parent)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Replaced(
            f"{place.path} is not the directory that zaudit made ({error.strerror}): it is left alone"
        ) from None
    seen = os.fstat(folder)
    new = place.kind == "dataset" or place.uid < 0  # the root of a new file system belongs to who made it
    wrong = ""
    if seen.st_uid != (os.geteuid() if new else place.uid):
        wrong = "belongs to another user"
    elif place.inode not in (0, seen.st_ino):
        wrong = "is not the directory that zaudit made"
    if wrong:
        os.close(folder)
        raise Replaced(f"{place.path} {wrong}: it is left alone")
    return folder
