"""The folder that a file is written into, as a descriptor: found part by part, so that no other user decides where it is.

``openat`` with O_NOFOLLOW for each part of the path (:func:`auditor.host.trust.walk`). A symbolic link on the way is followed
only where nobody but root and the user who runs zaudit could have put it or could exchange it; so an owner of a folder on the
way chooses among his own folders at most, and cannot lead a write of root into /etc. What is done in the folder afterwards goes
through the descriptor: renaming the folder, or putting another in its place, changes nothing. (man 7 path_resolution, man 7
symlink, man 2 open)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from auditor.errors import Stop
from auditor.host import trust

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NoPlace(Stop):
    """Why nothing can be written under this name, in one sentence that has the name: the command line must change."""


@contextmanager
def held(path: str, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder, for as long as the block runs. make: the folders that are not there, for their owner alone.

    Raises NoPlace.
    """
    try:
        node, _ = trust.walk(path, strict=False, make=make_folder if make else None)
        try:
            folder = inside(".", node)
        finally:
            os.close(node)
    except trust.Served as error:
        raise NoPlace(f"{path}: {error.strerror}") from None
    except trust.Exchangeable as error:
        link = os.path.basename(error.filename)
        raise NoPlace(
            f"{path}: on the way, {link!r} is a link that another user could exchange; name where it leads"
        ) from None
    except OSError as error:
        raise NoPlace(f"{path}: {error.strerror or error}") from None
    try:
        yield folder
    finally:
        os.close(folder)


def inside(name: str, folder: int) -> int:
    """A descriptor of a folder in a folder; never through a link."""
    return os.open(name, _FOLDER, dir_fd=folder)


def make_folder(name: str, folder: int) -> None:
    """A new folder in a folder, for its owner alone, whatever the umask is. (A chmod afterwards would follow a link.)"""
    umask = os.umask(0o077)
    try:
        os.mkdir(name, 0o700, dir_fd=folder)
    finally:
        os.umask(umask)
