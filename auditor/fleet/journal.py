"""What has been judged so far, beside the file that is to be written, so that an interrupted run can be resumed.

``FILE.part``: a line of JSON that says with what was judged, then one for each recording: its name, its stamp and its rows. It
is continued only where zaudit has begun it and it is a plain file of this user's that nobody else may write; only what was
judged by the same rules and the same release is taken from it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from auditor.fleet.inputs import Input
from auditor.host import input_file, trust
from auditor.host.folder import held
from auditor.host.writing import CannotWrite, complaining

MARK = b'{"zaudit-fleet-part": 1, '  # with which every journal begins, whatever judged
LINE = 256 << 20  # bytes of the rows of one recording, twice encoded
_FLAGS = os.O_RDWR | os.O_APPEND


class Journal:
    """path: of the journal; how: a digest of what decides the rows. Raises NoPlace or CannotWrite."""

    def __init__(self, path: Path, how: str) -> None:
        self.path = path
        self._head = MARK + json.dumps({"how": how}).encode()[1:] + b"\n"
        self._where: dict[Input, tuple[int, int]] = {}
        with complaining(path):
            self._file = self._opened()
            try:
                self._found()
            except BaseException:
                self._file.close()
                raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __contains__(self, each: Input) -> bool:
        return bool(each.stamp) and each in self._where

    def add(self, each: Input, rows: str) -> None:
        """Rows of one recording; they are there once this returns, should the program be killed."""
        with complaining(self.path):
            start = self._file.seek(0, os.SEEK_END)
            self._file.write(json.dumps([*each, rows]).encode() + b"\n")
            self._file.flush()
            self._where[each] = start, self._file.tell() - start

    def rows(self, each: Input) -> str:
        """Those of one recording. Raises KeyError."""
        start, size = self._where[each]
        self._file.seek(start)
        return str(json.loads(self._file.read(size))[2])

    def remove(self) -> None:
        """Once everything has been written elsewhere."""
        with complaining(self.path), held(os.path.dirname(self.path) or ".") as folder:
            os.unlink(self.path.name, dir_fd=folder)

    def _opened(self) -> BinaryIO:
        other = CannotWrite(f"{self.path}: not a file for this user alone, so it is not continued; remove it")
        with held(os.path.dirname(self.path) or ".") as folder:
            try:
                descriptor = _open(self.path.name, folder)
            except input_file.WrongKind:
                raise other from None
        found = os.fstat(descriptor)
        if not trust.private(descriptor) or found.st_uid != os.geteuid() or found.st_nlink != 1:
            os.close(descriptor)
            raise other
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno == errno.EWOULDBLOCK:
                raise CannotWrite(f"{self.path}: another zaudit is writing it") from None
            raise
        return os.fdopen(descriptor, "r+b")

    def _found(self) -> None:
        """Where the rows of each recording are; what was written last may not be whole, and what was judged otherwise is of
        no use: it is cut off. Not of a file that zaudit has not begun."""
        self._file.seek(0)
        head = self._file.read(len(MARK))
        if head and head != MARK:
            raise CannotWrite(
                f"{self.path}: not made by zaudit, so it is left alone; move it away or name another output"
            )
        whole = 0
        for start, line in self._lines():
            if not start:
                if line != self._head:
                    break
            else:
                try:
                    name, stamp, rows = json.loads(line)
                except (ValueError, TypeError):
                    break
                if not all(isinstance(each, str) for each in (name, stamp, rows)):
                    break
                self._where[Input(name, stamp)] = start, len(line)
            whole = start + len(line)
        self._file.truncate(whole)
        if not whole:
            self._file.write(self._head)
            self._file.flush()

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        start = self._file.seek(0)
        while (line := self._file.readline(LINE)).endswith(b"\n"):
            yield start, line
            start += len(line)


def _open(name: str, folder: int) -> int:
    """A new file, or the one that is there. Raises OSError, WrongKind for what is no file."""
    try:
        return os.open(name, _FLAGS | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except FileExistsError:
        return input_file.open_as(name, input_file.FILE, folder=folder, flags=_FLAGS)
