r"""A recording as one text file, which diff, grep and git show as it is: a head, and the name and the lines of each member.

::

    zaudit-archive/1
    == zfs_version-4f1c2a90.out
     zfs-2.3.9-1                          one blank, and a line that is clean UTF-8 text
    \a \x1b[1mline                        any other, escaped
    \a line without a newline at its end\

The manifest is the last member, so an archive that is cut off is never taken for a whole one. Its content is as hostile as
that of a ``.tar.gz``, and the same limits hold (:mod:`auditor.recording.archive`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

ENDING = ".zaudit"
HEAD = b"zaudit-archive/1\n"
_MEMBER, _RAW, _ESCAPED, _GOES_ON = b"== ", b" ", b"\\", b"\\\n"
_PART = 1 << 20  # bytes of a longer line that are written on one
LONGEST = 4 * _PART + len(_ESCAPED + _GOES_ON)
_PARTS = re.compile(rb"[^\n]{0,%d}\n|[^\n]{1,%d}" % (_PART, _PART))
# control characters but the tab, and what breaks a line or turns its direction
_UNCLEAN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_TO_ESCAPE = re.compile(rb"[^\t -~]|\\")
_ESCAPE = re.compile(rb"\\(?:\\|x([0-9a-f]{2}))")
_ALL_ESCAPED = re.compile(rb"(?:[^\\]|\\\\|\\x[0-9a-f]{2})*")


class TextArchiveError(ValueError):
    """What is wrong with a text archive."""


def is_text(file: BinaryIO) -> bool:
    """Whether it is a text archive, by its first bytes. Reading goes on from its start."""
    head = file.read(len(HEAD))
    file.seek(0)
    return head == HEAD


def write(members: Iterable[tuple[str, bytes]], file: BinaryIO) -> None:
    """The same bytes for the same members."""
    file.write(HEAD)
    for name, data in members:
        file.write(_MEMBER + name.encode("ascii") + b"\n")
        for found in _PARTS.finditer(data):
            line = found[0]
            if _clean(line):
                file.write(_RAW + line)
            else:
                text = _TO_ESCAPE.sub(_escaped, line.removesuffix(b"\n"))
                file.write(_ESCAPED + text + (b"\n" if line.endswith(b"\n") else _GOES_ON))


def _clean(line: bytes) -> bool:
    try:
        return line.endswith(b"\n") and not _UNCLEAN.search(line.decode())
    except UnicodeDecodeError:
        return False


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\\\" if found[0] == b"\\" else b"\\x%02x" % ord(found[0])


def read(file: BinaryIO) -> Iterator[tuple[str, bytes | None]]:
    """The name of each member and None, and then its name and each part of its content. Raises TextArchiveError or OSError."""
    name = ""
    file.readline(len(HEAD))
    for number, line in enumerate(iter(lambda: file.readline(LONGEST), b""), 2):
        if not line.endswith(b"\n"):
            raise TextArchiveError(f"cut off in line {number}, or that line is longer than zaudit writes it")
        if line.startswith(_MEMBER):
            name = line[len(_MEMBER) : -1].decode("utf-8", "replace")
            yield name, None
        elif name and (part := _content(line)) is not None:
            yield name, part
        else:
            raise TextArchiveError(f"line {number} is not one of a text archive")


def _content(line: bytes) -> bytes | None:
    """What a line is of its member; None for one that is never written, as where line ends were converted."""
    if line.startswith(_ESCAPED):
        text = line[len(_ESCAPED) : -1]
        goes_on = (len(text) - len(text.rstrip(b"\\"))) % 2
        text = text[:-1] if goes_on else text
        whole = _ALL_ESCAPED.fullmatch(text) is not None
        return _ESCAPE.sub(_byte, text) + (b"" if goes_on else b"\n") if whole else None
    if line.startswith(_RAW) and not line.endswith(b"\r\n"):
        return line[len(_RAW) :]
    return line if line == b"\n" else None  # an editor has stripped its blank


def _byte(found: re.Match[bytes]) -> bytes:
    return bytes((int(found[1], 16),)) if found[1] else b"\\"
