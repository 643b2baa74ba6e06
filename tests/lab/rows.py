"""Results of the lab: JSON with the names of the columns on the first line and one row on each other. Where the release of
the rows that follow begins, an object names it. Of a name that ends with .gz it is packed (``git diff`` unpacks it).
"""

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]
RELEASE = ("line", "zfs", "kernel")


def read(path: Path) -> list[Row]:
    """All rows, none when there is no file yet. What a row has no value for is None."""
    head, *body = json.loads(_content(path)) if path.exists() else ((),)
    rows, release = list[Row](), dict[str, str]()
    for each in body:
        if isinstance(each, dict):
            release = each
        else:
            rows.append(release | dict(zip(head, each, strict=True)))
    return rows


def _content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def write(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """All rows; the file is complete at every moment."""
    every = list(rows)
    head = list(dict.fromkeys(name for each in every for name in each if name not in RELEASE))
    content: list[object] = [head]
    release: Mapping[str, object] = {}
    for row in every:
        own = {name: row[name] for name in RELEASE if name in row}
        content += [own] * (own != release) + [[row.get(name) for name in head]]
        release = own
    lines = (json.dumps(each, separators=(",", ":")) for each in content)
    part = path.with_suffix(f".{os.getpid()}")
    whole = ("[\n" + ",\n".join(lines) + "\n]\n").encode()
    part.write_bytes(gzip.compress(whole, mtime=0) if path.suffix == ".gz" else whole)
    part.replace(path)
