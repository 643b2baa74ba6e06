"""What a command has printed so far, no more than is allowed of one and of all together."""

from __future__ import annotations

import io
import re
from threading import Lock

from auditor.host.limits import ANSWERS_BYTES, HALF_BYTES, HISTORY_BYTES, LINE_BYTES, OUTPUT_BYTES, PART_BYTES


def branches(pattern: str) -> list[str]:
    """The alternatives of a regular expression, where it has some at its top: each for itself is found four times as fast in
    the lines of a history, as it begins with letters or is anchored. A class may hold no bar and no parenthesis."""
    found, depth, escaped = [""], 0, False
    for char in pattern:
        depth += 0 if escaped else {"(": 1, ")": -1}.get(char, 0)
        if char == "|" and not depth and not escaped:
            found.append("")
        else:
            found[-1] += char
        escaped = char == "\\" and not escaped
    return found


class Total:
    """Bytes of the answers of one run. Many threads add to it."""

    def __init__(self, limit: int = ANSWERS_BYTES) -> None:
        self.late = f"more than {limit >> 20} MiB of answers in all"
        self._left = limit
        self._lock = Lock()

    def take(self, size: int) -> bool:
        """Whether there was room for so many more; below 0 gives back."""
        with self._lock:
            self._left -= size
            return self._left >= 0


class Lines:
    """The lines in which a pattern is found, as they come; the others are forgotten at once. first: of the first line in which
    this one is found, nothing but the match is kept."""

    def __init__(self, pattern: str, first: str = "") -> None:
        self._kept = [re.compile(each.encode()).search for each in branches(pattern)]
        self._first = re.compile(first.encode()) if first else None
        self._rest = b""

    def of(self, data: bytes) -> bytes:
        """What is kept of this and of the part of a line before it. Raises ValueError where a line has no end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES:
            raise ValueError(f"a line of more than {LINE_BYTES >> 10} KiB")
        return b"".join(kept + b"\n" for line in lines if (kept := self._of_line(line)) is not None)

    def end(self) -> bytes:
        """What is kept of a last line without an end."""
        return (self._of_line(self._rest) if self._rest else b"") or b""

    def _of_line(self, line: bytes) -> bytes | None:
        begins = self._first and self._first.search(line)
        if begins:
            self._first = None
        for found in self._kept:
            if found(line):
                return line
        return begins[0] if begins else None


class Output:
    """Both streams. keep, first: as of Lines, of standard output. part: more is kept of what is not the whole answer."""

    def __init__(self, keep: str, first: str, total: Total, *, part: bool = False) -> None:
        self.out, self.err = io.BytesIO(), io.BytesIO()
        self._lines = Lines(keep, first) if keep else None
        self._total, self._most = total, PART_BYTES if part else HALF_BYTES
        self._printed = 0

    def take(self, stream: io.BytesIO, data: bytes) -> str:
        """Keep what came; why no more is taken, or an empty string."""
        self._printed += len(data)
        if self._printed > (limit := HISTORY_BYTES if self._lines else OUTPUT_BYTES):
            return f"more than {limit >> 20} MiB of output"
        if self._lines and stream is self.out:
            try:
                data = self._lines.of(data)
            except ValueError as error:
                return str(error)
        stream.write(data)
        return "" if self._total.take(len(data)) else self._total.late

    def said(self, *, whole: bool) -> tuple[bytes, bytes]:
        """Both streams; the beginning of them where it is not the whole answer."""
        if whole:
            return self.out.getvalue() + (self._lines.end() if self._lines else b""), self.err.getvalue()
        kept = tuple(stream.getbuffer()[: self._most].tobytes() for stream in (self.out, self.err))
        self._total.take(sum(map(len, kept)) - self.out.tell() - self.err.tell())
        return kept[0], kept[1]
