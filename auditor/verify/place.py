"""What a run writes into: a new directory on the dataset, a scratch zvol or a scratch dataset; recorded before it exists,
removed after.

Root makes and removes nothing in a folder of somebody else: a directory is made and removed by a process of the owner of the
mount point, in folders that are held (:mod:`auditor.verify.held`). A scratch dataset is mounted, and the link to a scratch zvol
lies, in the ledger's folder, which nobody else can enter. However a run ends, the next one and ``zaudit clean`` find in the
ledger what it left, and remove that and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence

from auditor.host import input_file, trust
from auditor.text import harmless
from auditor.verify import held, ledger, tools
from auditor.verify.actor import Actor, PlaceError
from auditor.verify.held import FILES, Held
from auditor.verify.ledger import ID, Place

PREFIX = ".zaudit-"
PROPERTY = "zaudit:scratch"  # of a scratch zvol or dataset: its value is the id in the ledger
UNSHARED = (("sharenfs", "off"), ("sharesmb", "off"))  # a scratch dataset is for nobody else, whatever it would inherit
LOG_FILE = f"{FILES}log.0.0"  # what the job of the log writes to, where that is a link to a scratch zvol

Command = Callable[[tuple[str, ...]], tuple[int, str]]  # argv -> exit code, what it printed


def _numbers(actor: Actor) -> tuple[int, int]:
    return (int(actor.uid), int(actor.gid)) if actor.uid else (os.geteuid(), os.getegid())


# -- making -------------------------------------------------------------------------------------------------------


def owner(mount_point: str) -> Actor:
    """Who acts below a mount point. Raises PlaceError."""
    with _open(mount_point) as folder:
        return held.owner(folder, mount_point)


@contextlib.contextmanager
def _open(mount_point: str) -> Iterator[int]:
    try:
        folder = held.opened(mount_point)
    except OSError as error:
        raise PlaceError(f"{harmless(mount_point)}: no directory can be created there: {error.strerror}") from None
    with held.closing(folder):
        yield folder


def directory(mount_point: str, dataset: str) -> Place:
    """A new directory below a mount point, which its owner alone may enter. Raises PlaceError."""
    id = secrets.token_hex(8)
    name = f"{PREFIX}{id}"
    with _open(mount_point) as parent:
        actor = held.owner(parent, mount_point)
        place = ledger.new("directory", os.path.join(mount_point, name), dataset, id, *_numbers(actor))
        ledger.record(place)
        code, said = tools.act(actor, parent, ("mkdir", "-m", "700", "--", name))
        if code:
            ledger.forget(place)
            why = harmless(said.strip().rpartition(": ")[2])
            raise PlaceError(f"{harmless(mount_point)}: no directory can be created there: {why}")
        place = place._replace(inode=_inode(place, parent))
        ledger.record(place)
    return place


def _inode(place: Place, parent: int) -> int:
    """Of the directory that was made: new, empty and its owner's, or somebody put another in its place."""
    try:
        folder = held.enter(place, parent)
    except OSError:
        raise PlaceError(f"{place.path} was removed as soon as it was created") from None
    with held.closing(folder):
        seen = os.fstat(folder)
        if seen.st_mode & 0o777 != 0o700 or held.rest(folder):
            raise PlaceError(f"{place.path} was replaced as soon as it was created: it is left alone")
        return seen.st_ino


def zvol(target: str, size: int, properties: Sequence[tuple[str, str]], zfs: Command) -> Place:
    """A scratch zvol beside a zvol, with its properties, and a folder for a link to it. Raises PlaceError."""
    id = secrets.token_hex(8)
    parent, _, _ = target.rpartition("/")
    name = f"{parent}/zaudit-{id}"
    place = ledger.new("zvol", str(ledger.folder() / f"link-{id}"), name, id, os.geteuid(), os.getegid())
    _create(place, ("-s", "-V", str(size)), properties, zfs)
    try:
        _appears(node(place))
        os.mkdir(place.path, 0o700)
    except OSError as error:
        remove(place, zfs)
        raise PlaceError(f"{node(place)}: {error.strerror}") from None
    return place


def dataset(target: str, actor: Actor, properties: Sequence[tuple[str, str]], zfs: Command) -> Place:
    """A scratch file system below a file system, which inherits what it does not set itself, mounted where nobody but the
    actor and the caller get to. Raises PlaceError."""
    id = secrets.token_hex(8)
    name = f"{target}/zaudit-{id}"
    place = ledger.new("dataset", str(ledger.folder() / f"mount-{id}"), name, id, *_numbers(actor))
    _create(place, (), (*properties, *UNSHARED, ("mountpoint", place.path)), zfs)
    if not os.path.ismount(place.path):
        remove(place, zfs)
        raise PlaceError(f"{name} was created but is not mounted ({place.path})")
    return place


def _create(place: Place, how: tuple[str, ...], properties: Sequence[tuple[str, str]], zfs: Command) -> None:
    ledger.record(place)
    options = [word for key, value in (*properties, (PROPERTY, place.id)) for word in ("-o", f"{key}={value}")]
    code, said = zfs(("zfs", "create", *how, *options, place.dataset))
    if code:
        ledger.forget(place)
        raise PlaceError(f"zfs create {place.dataset}: {said.strip()}")


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
def hold(place: Place) -> Iterator[Held]:
    """Hold what was made, for as long as it is written to. Raises PlaceError."""
    with contextlib.ExitStack() as stack:
        try:
            here = stack.enter_context(_entered(place))
        except OSError:
            raise PlaceError(f"{place.path} is not where it was created") from None
        if place.kind == "dataset":
            os.fchown(here.folder, place.uid, place.gid)  # the root of a new file system, in a folder of the caller
            os.fchmod(here.folder, 0o700)
        if place.kind == "zvol":
            here = here._replace(device=stack.enter_context(_device(here)))
        yield here


@contextlib.contextmanager
def _entered(place: Place) -> Iterator[Held]:
    """Its folders, and nothing else of it. Raises OSError or Replaced."""
    parent = held.opened(os.path.dirname(place.path))
    with held.closing(parent):
        folder = held.enter(place, parent)
        with held.closing(folder):
            yield Held(place, parent, folder, -1)


@contextlib.contextmanager
def _device(here: Held) -> Iterator[int]:
    """The zvol, opened once; fio finds it behind a link to the descriptor, not to a name below /dev."""
    place = here.place
    try:
        device = input_file.open_as(node(place), input_file.BLOCK_DEVICE)
    except OSError as error:
        raise PlaceError(f"{node(place)}: {error.strerror}") from None
    with held.closing(device):
        os.symlink(trust.by(device), LOG_FILE, dir_fd=here.folder)
        yield device


# -- removing -----------------------------------------------------------------------------------------------------


def remove(place: Place, zfs: Command) -> None:
    """Remove what was made there; only files of ours, only a zvol or dataset that bears our mark. Raises PlaceError, and
    keeps the record then. What is gone already is no error."""
    names = {"directory": f"{PREFIX}{place.id}", "zvol": f"link-{place.id}", "dataset": f"mount-{place.id}"}
    lies = os.path.basename(place.path) == names.get(place.kind) or (place.kind == "dataset" and not place.path)
    if not ID.fullmatch(place.id) or not lies:
        raise PlaceError(f"{place.path} is not a place that zaudit uses: the record is damaged")
    match place.kind:
        case "directory":
            _directory(place, zfs)
        case "zvol":
            _directory(place, zfs)
            _destroy(place, zfs)
        case _:
            _destroy(place, zfs)
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(ledger.folder() / names["dataset"])
    ledger.forget(place)


def _directory(place: Place, zfs: Command) -> None:
    try:
        with _entered(place) as here:
            here.empty()
            if left := held.rest(here.folder):
                raise PlaceError(f"{place.path} holds what zaudit did not create ({left!r}): it is left alone")
            code, said = tools.act(here.actor, here.parent, ("rmdir", "--", here.name))
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


def _destroy(place: Place, zfs: Command) -> None:
    code, mark = zfs(("zfs", "get", "-Hp", "-o", "value", PROPERTY, place.dataset))
    if code:
        if "does not exist" in mark:
            return
        raise PlaceError(f"{place.dataset}: {mark.strip()}")
    if mark.strip() != place.id:
        raise PlaceError(f"{place.dataset} does not have the mark of this run: it is left alone")
    for _ in range(20):  # udev may have it open still
        code, said = zfs(("zfs", "destroy", place.dataset))
        if code == 0:
            return
        time.sleep(0.5)
    raise PlaceError(f"zfs destroy {place.dataset}: {said.strip()}")


def clean(zfs: Command) -> Iterator[tuple[Place, str]]:
    """Remove what dead runs left; (place, what is wrong, or empty)."""
    ledger.forget_parts()
    for place in ledger.places():
        if not ledger.in_use(place):
            try:
                remove(place, zfs)
                yield place, ""
            except PlaceError as error:
                yield place, str(error)
