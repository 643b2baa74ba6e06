"""Where a run writes: made, held open, and removed after, never by a path that its owner could turn elsewhere."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from auditor.host import trust, user_files
from auditor.host.children.reader import Closing
from auditor.text import harmless
from auditor.verify import ledger
from auditor.verify.ledger import CALLER, ID, PROPERTY, ROOT, Actor, Command, Place, PlaceError

# A held place: its folders are open, found from / downwards without following a link. From then on a descriptor stands for
# each, wherever the owner moves it. A process with the owner's rights makes and removes (:mod:`auditor.verify.ledger`).

FILES = "zaudit."  # the names of all files that fio makes begin so
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
NOGROUP = 65534  # of a user whom the system does not know
AT_ONCE, ROUNDS = 500, 1000  # files that one command removes, and how often: more, and somebody keeps making them
MOST = 100_000  # entries of a place that are looked at


class ReplacedPlace(PlaceError):
    """Something else lies where the place was."""


class OpenPlace(NamedTuple):
    """parent: descriptor of the folder that the place lies in; folder: of the place; device: of its zvol, else -1."""

    place: Place
    parent: int
    folder: int
    device: int

    @property
    def actor(self) -> Actor:
        if os.geteuid():
            return CALLER
        return ROOT if self.place.uid < 1 else Actor(str(self.place.uid), str(self.place.gid))

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
        code, said = ledger.act(self.actor, self.folder, ("rm", "-f", "--", *names))
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
    """Whether a file has one name, and owner and file system of the folder. Only files are asked: what a folder is mounted
    from may never answer."""
    seen = entry.stat(follow_symlinks=False)
    return (seen.st_nlink, seen.st_uid, seen.st_dev) == (1, folder.st_uid, folder.st_dev)


def opened(path: str) -> int:
    """A descriptor of a folder, good for looking up names in it. Raises OSError, also where a link is on the way."""
    folder = os.open("/", os.O_PATH | os.O_DIRECTORY)
    for name in filter(None, path.split("/")):
        with Closing(folder) as above:
            folder = os.open(name, FOLDER | os.O_PATH, dir_fd=above)
    return folder


def rest(folder: int) -> str:
    """The name of something in it, or nothing."""
    with os.scandir(folder) as entries:
        return next((entry.name for entry in entries), "")


def owner_of(folder: int, path: str) -> Actor:
    """Who is to act below a folder: who owns it. Raises PlaceError where others could put something in root's way."""
    if os.geteuid():
        return CALLER
    seen = os.fstat(folder)
    if seen.st_uid == 0:
        if not trust.keeps(folder, trust.by(folder)):
            why = trust.fault(folder, path)
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


def enter(place: Place, parent: int) -> int:
    """A descriptor of the folder of a place, in a held one. Raises FileNotFoundError or ReplacedPlace."""
    try:
        folder = os.open(os.path.basename(place.path), FOLDER, dir_fd=parent)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ReplacedPlace(
            f"{place.path} is not the directory that zaudit made ({error.strerror}): it is left alone"
        ) from None
    seen = os.fstat(folder)
    wrong = ""
    if seen.st_uid != (os.geteuid() if place.uid < 0 else place.uid):
        wrong = "belongs to another user"
    elif place.inode not in (0, seen.st_ino):
        wrong = "is not the directory that zaudit made"
    if wrong:
        os.close(folder)
        raise ReplacedPlace(f"{place.path} {wrong}: it is left alone")
    return folder


# What a run writes into: a new directory on the dataset or a scratch zvol; recorded before it exists, removed after.
#
# Root makes and removes nothing in a folder of another user: a process of the mount point's owner does, in held folders.
# The link to a scratch zvol lies in the ledger's folder, which only its owner can enter. However a run ends, the next one
# and ``zaudit clean`` find in the ledger what it left, and remove that alone.

PREFIX = ".zaudit-"
LOG_FILE = f"{FILES}log.0.0"  # what the job of the log writes to, where that is a link to a scratch zvol


# -- making -------------------------------------------------------------------------------------------------------


def owner(mount_point: str) -> Actor:
    """Who acts below a mount point. Raises PlaceError."""
    with _open(mount_point) as folder:
        return owner_of(folder, mount_point)


@contextlib.contextmanager
def _open(mount_point: str) -> Iterator[int]:
    try:
        folder = opened(mount_point)
    except OSError as error:
        raise PlaceError(f"{harmless(mount_point)}: no directory can be created there: {error.strerror}") from None
    with Closing(folder):
        yield folder


def directory(mount_point: str, dataset: str, run: str = "") -> Place:
    """A new directory below a mount point, which its owner alone may enter. run: of ``powercut``. Raises PlaceError."""
    id = secrets.token_hex(8)
    name = f"{PREFIX}{id}"
    with _open(mount_point) as parent:
        actor = owner_of(parent, mount_point)
        place = ledger.new("directory", os.path.join(mount_point, name), dataset, id, actor)
        place = place._replace(run=run)
        ledger.record(place)
        code, said = ledger.act(actor, parent, ("mkdir", "-m", "700", "--", name))
        if code:
            ledger.forget(place)
            why = harmless(said.strip().rpartition(": ")[2])
            raise PlaceError(f"{harmless(mount_point)}: no directory can be created there: {why}")
        place = place._replace(inode=_inode(place, parent))
        ledger.record(place)
    return place


def _inode(place: Place, parent: int) -> int:
    """Of the new directory, which must be empty and its owner's: else another took its place."""
    try:
        folder = enter(place, parent)
    except OSError:
        raise PlaceError(f"{place.path} was removed as soon as it was created") from None
    with Closing(folder):
        seen = os.fstat(folder)
        if seen.st_mode & 0o777 != 0o700 or rest(folder):
            raise PlaceError(f"{place.path} was replaced as soon as it was created: it is left alone")
        return seen.st_ino


def zvol(target: str, size: int, properties: Sequence[tuple[str, str]], zfs: Command) -> Place:
    """A scratch zvol next to a zvol, with its properties, and a folder for a link to it. Raises PlaceError."""
    id = secrets.token_hex(8)
    parent, _, _ = target.rpartition("/")
    name = f"{parent}/zaudit-{id}"
    place = ledger.new("zvol", str(ledger.folder() / f"link-{id}"), name, id, CALLER)
    place = _create(place, ("-s", "-V", str(size)), properties, zfs)
    try:
        _appears(node(place))
        os.mkdir(place.path, 0o700)
    except OSError as error:
        remove(place, zfs)
        raise PlaceError(f"{node(place)}: {error.strerror}") from None
    return place


def _create(place: Place, how: tuple[str, ...], properties: Sequence[tuple[str, str]], zfs: Command) -> Place:
    ledger.ready(place.dataset.partition("/")[0], zfs)
    ledger.record(place)
    began = time.time()
    options = [word for key, value in (*properties, (PROPERTY, place.id)) for word in ("-o", f"{key}={value}")]
    code, said = zfs(("zfs", "create", *how, *options, place.dataset))
    if code:
        ledger.forget(place)
        raise PlaceError(f"zfs create {place.dataset}: {said.strip()}")
    place = place._replace(guid=ledger.guid(place, began, zfs))
    ledger.record(place)
    return place


def node(place: Place) -> str:
    """The device node of a scratch zvol, as udev names it."""
    return f"/dev/zvol/{place.dataset.replace(' ', '+')}"


def _appears(device: str) -> None:
    """udev makes the node; 10 s are enough for that, or it does not run."""
    for _ in range(100):
        if os.path.exists(device):
            return
        time.sleep(0.1)
    raise FileNotFoundError(2, "udev made no node for it in 10 s", device)


# -- holding ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def hold(place: Place) -> Iterator[OpenPlace]:
    """Hold what was made, for as long as it is written to. Raises PlaceError."""
    with contextlib.ExitStack() as stack:
        try:
            here = stack.enter_context(_entered(place))
        except OSError:
            raise PlaceError(f"{place.path} is not where it was created") from None
        if place.kind == "zvol":
            here = here._replace(device=stack.enter_context(_device(here)))
        yield here


@contextlib.contextmanager
def _entered(place: Place) -> Iterator[OpenPlace]:
    """Its folders, and nothing else of it. Raises OSError or Replaced."""
    with Closing(opened(os.path.dirname(place.path))) as parent, Closing(enter(place, parent)) as folder:
        yield OpenPlace(place, parent, folder, -1)


@contextlib.contextmanager
def _device(here: OpenPlace) -> Iterator[int]:
    """The zvol, opened once; fio finds it behind a link to the descriptor, not to a name below /dev."""
    place = here.place
    try:
        device = user_files.open_as(node(place), user_files.BLOCK_DEVICE)
    except OSError as error:
        raise PlaceError(f"{node(place)}: {error.strerror}") from None
    with Closing(device):
        os.symlink(trust.by(device), LOG_FILE, dir_fd=here.folder)
        yield device


# -- removing -----------------------------------------------------------------------------------------------------


def remove(place: Place, zfs: Command) -> None:
    """Remove files of ours and the zvol; what is gone is no error. Raises PlaceError, and then keeps the record."""
    names = {"directory": f"{PREFIX}{place.id}", "zvol": f"link-{place.id}"}
    if not ID.fullmatch(place.id) or os.path.basename(place.path) != names.get(place.kind):
        raise PlaceError(f"{place.path} is not a place that zaudit uses: the record is damaged")
    _directory(place, zfs)
    if place.kind == "zvol":
        ledger.destroy(place, zfs)
    ledger.forget(place)


def _directory(place: Place, zfs: Command) -> None:
    try:
        with _entered(place) as here:
            here.empty()
            if left := rest(here.folder):
                raise PlaceError(f"{place.path} holds what zaudit did not create ({left!r}): it is left alone")
            code, said = ledger.act(here.actor, here.parent, ("rmdir", "--", here.name))
            if code:
                raise PlaceError(f"{place.path}: {harmless(said.strip())}")
    except FileNotFoundError:
        _gone(place, zfs)
    except OSError as error:
        raise PlaceError(f"{place.path}: {error.strerror}") from None


def _gone(place: Place, zfs: Command) -> None:
    """A directory that is not there may lie on a file system that is not mounted now: then it is not gone."""
    where = os.path.dirname(place.path)
    if place.kind != "directory" or os.path.ismount(where):
        return
    code, said = zfs(("zfs", "get", "-Hp", "-o", "value", "mountpoint", place.dataset))
    if not (code and "does not exist" in said):
        raise PlaceError(f"{place.dataset} is not mounted on {where}: what was left there cannot be seen")


def clean(zfs: Command, *, runs: bool = False) -> Iterator[tuple[Place, str]]:
    """Remove what dead runs left; (place, what is wrong, or empty). runs: what those of ``powercut`` left, too."""
    ledger.forget_parts()
    for place in ledger.places():
        if not ledger.in_use(place) and (runs or not place.run):
            try:
                remove(place, zfs)
                yield place, ""
            except PlaceError as error:
                yield place, str(error)
