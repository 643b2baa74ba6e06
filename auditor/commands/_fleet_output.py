"""Where the rows of a fleet go: a file, standard output, or a URL; as lines of JSON or as Parquet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from auditor.commands._options import Local, Output
from auditor.text import is_url

LINE = 16 << 20  # bytes of one row
Write = Callable[[BinaryIO, Iterable[str]], None]


class Place(Output):
    """A file, as a Path; a URL, as a text; None: standard output."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises BadParameter."""
        return value if is_url(str(value)) else super().convert(value, param, ctx)


class Source(Local):
    """A file to read, as a Path; a URL, as a text."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises BadParameter."""
        return value if is_url(str(value)) else super().convert(value, param, ctx)


def writer(place: Path | str | None) -> Write:
    """What writes rows in the way that the name asks for."""
    if place and str(place).endswith(".parquet"):
        from auditor.fleet import store

        return store.write
    return _lines


def write(place: Path | str | None, blocks: Iterable[str]) -> None:
    """A file is written as a whole or not at all. Raises NoPlace, CannotWrite, NoStore or NoParquet."""
    how = writer(place)
    if place is None:
        for block in blocks:
            sys.stdout.write(block)
        sys.stdout.flush()
    elif isinstance(place, str):
        from auditor.fleet import store

        with store.written(place) as file:
            how(file, blocks)
    else:
        from auditor.host import user_files

        user_files.replace(place, lambda file: how(file, blocks))


def _lines(file: BinaryIO, blocks: Iterable[str]) -> None:
    for block in blocks:
        file.write(block.encode())


def lines(places: Iterable[Path | str]) -> Iterator[bytes]:
    """The lines of files and URLs, one at a time. Raises OSError, NoStore, or BadRows for a line that no row is as long as."""
    from auditor.fleet.rows import BadRows

    for place in places:
        if str(place).endswith(".parquet"):
            raise BadRows(f"{place}: Parquet is for stores; the report reads lines of JSON (fleet judge -o FILE.jsonl)")
        for line in _of(place):
            if len(line) == LINE:
                raise BadRows(f"{place}: a line of more than {LINE >> 20} MiB is no row")
            yield line


def _of(place: Path | str) -> Iterator[bytes]:
    from auditor.fleet import store
    from auditor.fleet.rows import BadRows
    from auditor.host import user_files

    if isinstance(place, str):
        yield from store.lines(place, LINE)
        return
    with user_files.open_input(place) as file:
        if isinstance(file, int):
            raise BadRows(f"{place}: a folder; rows are in files")
        while line := file.readline(LINE):
            yield line
