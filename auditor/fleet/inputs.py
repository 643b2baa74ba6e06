"""Which recordings are meant: files, folders of them, patterns and URLs. What lies beside them is counted, never guessed at."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from auditor.errors import Stop
from auditor.fleet import store
from auditor.host import trust
from auditor.recording.archive import ENDINGS, MANIFEST
from auditor.text import is_url

DEEP = 4  # folders within a folder
MOST = 1_000_000
STARS = frozenset("*?[")


class TooMany(Stop):
    """More recordings than are judged at once."""


class Input(NamedTuple):
    """name: of a recording, for messages and rows. stamp: another one when its content may be another."""

    name: str
    stamp: str


class Found(NamedTuple):
    """recordings: each once, in the order of the words and by name within each. beside: how many other files lie in the
    folders. too_deep: folders that were not looked into."""

    recordings: tuple[Input, ...]
    beside: int
    too_deep: tuple[str, ...]


def found(words: Iterable[str]) -> Found:
    """A word that means no recording is an input as well: that it cannot be judged is to be told. Raises TooMany, NoStore or
    OSError."""
    walk = _Walk()
    every: dict[str, Input] = {}
    for word in words:
        none = True
        for each in walk.word(word):
            none = False
            every.setdefault(each.name, each)
            if len(every) > MOST:
                raise TooMany(f"more than {MOST:,} recordings: judge them in parts")
        if none:
            every.setdefault(word, Input(word, ""))
    return Found(tuple(every.values()), walk.beside, tuple(walk.too_deep))


class _Walk:
    def __init__(self) -> None:
        self.beside = 0
        self.too_deep: list[str] = []

    def word(self, word: str) -> Iterator[Input]:
        """What one word means."""
        if is_url(word):
            for url, stamp in store.listed(word):
                if url.endswith(ENDINGS):
                    yield Input(url, stamp)
                else:
                    self.beside += 1
        elif STARS & set(word) and (_of_another(word) or not os.path.lexists(word)):
            for name in sorted(_matching(word)):
                yield from self._path(name, named=False)
        else:
            yield from self._path(word, named=True)

    def _path(self, path: str, *, named: bool) -> Iterator[Input]:
        """named: somebody wrote this name, and is told when it is no recording."""
        if _of_another(path):
            yield Input(path, "")
        elif os.path.isdir(path) and not os.path.lexists(os.path.join(path, MANIFEST)):
            yield from self._folder(path, DEEP)
        elif named or path.endswith(ENDINGS) or os.path.isdir(path):
            yield Input(path, _stamp(path))
        else:
            self.beside += 1

    def _folder(self, folder: str, deep: int) -> Iterator[Input]:
        """Recordings below it. No link to a folder is followed: it may lead in a circle."""
        with os.scandir(folder) as entries:
            names = sorted((each.name, each.is_dir(follow_symlinks=False)) for each in entries)
        for name, is_folder in names:
            path = os.path.join(folder, name)
            if _of_another(path):
                yield Input(path, "")
            elif name.endswith(ENDINGS) or (is_folder and os.path.lexists(os.path.join(path, MANIFEST))):
                yield Input(path, _stamp(path))
            elif is_folder and deep:
                yield from self._folder(path, deep - 1)
            elif is_folder:
                self.too_deep.append(path)
            else:
                self.beside += 1


def _matching(pattern: str) -> Iterator[str]:
    """As glob.glob, without ** (folders are searched through). What is not to be asked stands for what lies there."""
    above, name = os.path.split(pattern)
    for folder in _matching(above) if STARS & set(above) else (above,):
        if _of_another(folder or "."):
            yield folder
        elif STARS & set(name):
            yield from (os.path.join(folder, each) for each in glob.glob(name, root_dir=folder or None))
        elif _of_another(path := os.path.join(folder, name)) or os.path.lexists(path):
            yield path


def _of_another(path: str) -> bool:
    """Whether another user serves its file system, who could let wait whoever asks it; who judges it says so."""
    try:
        os.close(trust.reach(path))
    except OSError as error:
        return isinstance(error, trust.Served)
    return False


def _stamp(path: str) -> str:
    """Size, time and number of a file; of a folder those of all that is in it."""
    try:
        found = os.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            return f"{found.st_ino}:{found.st_size}:{found.st_mtime_ns}"
        with os.scandir(path) as entries:
            every = sorted((each.name, each.stat(follow_symlinks=False)) for each in entries)
    except OSError:
        return ""
    return (
        f"{len(every)}:{max((one.st_mtime_ns for _, one in every), default=0)}:{sum(one.st_size for _, one in every)}"
    )
