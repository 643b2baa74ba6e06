"""How the kernel prints a named kstat, which the collectors of ``/proc/spl/kstat/zfs`` share.

A header (kstat number, type 1, flags, number of rows, size, creation time, snapshot time), the titles
``name type data``, and one row each. (OpenZFS module/os/linux/spl/spl-kstat.c)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from auditor.collect._json import integer
from auditor.facts import Fact, Known, Subject, known
from auditor.host.request import Files
from auditor.text import quoted

ROOT = "/proc/spl/kstat/zfs"
INT64 = "3"
IMPOSSIBLE = 1 << 63  # an unsigned counter that was decremented below 0 (seen: 18446744073709537686)


def lines(text: str, path: str) -> list[str]:
    """The rows as they are printed; raises ValueError when the text is no named kstat or not all of it."""
    if not text.endswith("\n"):
        raise ValueError(f"{path} is cut off")
    top, *printed = text.strip("\n").split("\n")
    header, titles = top.split(), printed.pop(0).split() if printed else []
    if len(header) != 7 or header[1] != "1" or not header[3].isdigit() or titles != ["name", "type", "data"]:
        raise ValueError(f"{path} is not a named kstat")
    if len(printed) < int(header[3]):
        raise ValueError(f"{path} has {len(printed)} of {header[3]} rows")
    return printed


def clocks(text: str, path: str) -> tuple[Known, Known]:
    """When it was created and when it was printed: nanoseconds of gethrtime(), since boot and without sleep. Raises
    ValueError as :func:`lines`."""
    lines(text, path)
    made, now = text.split(None, 7)[5:7]
    command = f"head -1 {quoted(path)}"
    return known(integer(made), f"created at {made} ns", command), known(integer(now), f"read at {now} ns", command)


def row(line: str, path: str) -> tuple[str, str, str]:
    """(name, type, value); raises ValueError when it is no row."""
    fields = line.split(None, 2)
    if len(fields) != 3:
        raise ValueError(f"{path}: a row without a value")
    return fields[0], fields[1], fields[2]


def rows(text: str, path: str) -> dict[str, tuple[str, str]]:
    """name -> (type, value); raises ValueError when the text is no named kstat or not all of it."""
    printed = lines(text, path)
    found = {name: (kind, value) for name, kind, value in (row(line, path) for line in printed)}
    if len(found) < len(printed):
        raise ValueError(f"{path}: a row comes twice")
    return found


def counts(text: str, path: str, names: Mapping[str, str]) -> Iterator[tuple[str, Known]]:
    """(fact, value) of the rows named; names: row -> fact. A row that this release does not have is left out."""
    found = rows(text, path)
    for row, fact in names.items():
        if row in found and (value := number(*found[row])) is not None:
            yield fact, known(value, f"{row} {value}", f"grep -w {row} {quoted(path)}")


def of_rows(reply: Files, path: str, subject: Subject, names: Iterable[str]) -> Iterator[Fact]:
    """Each row of the one file that was asked for, if it was there, under its own name."""
    for text in only(reply, path):
        for name, value in counts(text, path, {row: row for row in names}):
            yield Fact(subject, name, value)


def only(reply: Files, path: str) -> Iterator[str]:
    """The text of the one file that was asked for, if it was there."""
    if path in reply.text:
        yield reply.text[path]


def number(kind: str, value: str) -> int | None:
    """The value of a row; None when it is no sane count."""
    digits = value.removeprefix("-") if kind == INT64 else value
    if not (digits.isascii() and digits.isdigit()):
        return None
    return int(value) if int(digits) < IMPOSSIBLE else None
