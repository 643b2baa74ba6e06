"""Rows as one Parquet file, if pyarrow is installed: the columns that are asked for, and the whole row as JSON in ``row``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO

from auditor.errors import Stop

TEXTS = (
    *("schema", "kind", "zaudit", "rules", "name", "host", "recording", "digest", "taken", "openzfs", "standing"),
    *("id", "rule", "outcome", "was", "severity", "harm", "event", "known", "place", "title", "error", "of"),
)
NUMBERS = ("exit_code", "findings", "total")
LISTS = ("says", "models", "remedies")
AT_ONCE = 20_000  # rows in memory


class NoParquet(Stop):
    """pyarrow is not there."""


def write(file: BinaryIO, blocks: Iterable[str]) -> None:
    """blocks: lines of JSON, one or more of them in each. Raises NoParquet before anything is written."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise NoParquet("Parquet needs pyarrow (pip install 'zaudit[parquet]')") from None
    columns = [(name, arrow.string()) for name in TEXTS] + [(name, arrow.int64()) for name in NUMBERS]
    columns += [(name, arrow.list_(arrow.string())) for name in LISTS] + [("row", arrow.string())]
    table = arrow.schema(columns)
    lines = (line for block in blocks for line in block.splitlines())
    with parquet.ParquetWriter(file, table, compression="zstd") as writer:
        for rows in _batches(lines):
            writer.write_table(arrow.Table.from_pylist(rows, schema=table))


def _batches(lines: Iterator[str]) -> Iterator[list[dict[str, Any]]]:
    while batch := list(islice(lines, AT_ONCE)):
        yield [_row(line) for line in batch]


def _row(line: str) -> dict[str, Any]:
    row = json.loads(line)
    return {name: row.get(name) for name in (*TEXTS, *NUMBERS, *LISTS)} | {"row": line}
