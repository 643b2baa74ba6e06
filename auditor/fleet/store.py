"""Where rows of hosts are kept: JSON lines or Parquet, in a folder or a bucket."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

from auditor import Stop
from auditor.recording.archive import TOTAL_LIMIT

# Rows as one Parquet file, if pyarrow is installed: the columns that are asked for, and the whole row as JSON in ``row``.

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
    rows = (_row(line) for block in blocks for line in block.splitlines())
    with parquet.ParquetWriter(file, table, compression="zstd") as writer:
        while batch := list(islice(rows, AT_ONCE)):
            writer.write_table(arrow.Table.from_pylist(batch, schema=table))


def _row(line: str) -> dict[str, Any]:
    row = json.loads(line)
    return {name: row.get(name) for name in (*TEXTS, *NUMBERS, *LISTS)} | {"row": line}


# Recordings and rows in object stores (S3, Google Cloud Storage, Azure), by fsspec, where it is installed.
#
# fsspec also opens local files, caches in local folders, archives within files and git repositories, alone or as a chain
# (``simplecache::file://``). It follows links and waits for FIFOs, which breaks zaudit's promises about files. So only the
# protocols of object stores are allowed, and no chain: a key in a store may look like one too.

# https://filesystem-spec.readthedocs.io/en/latest/api.html#other-known-implementations
STORES = frozenset(("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"))
CHAIN = "::"
ENTRIES = 1_000_000
SAID = 300  # characters of an error


class NoStore(Stop):
    """A URL that cannot be opened, and why."""


def content(url: str) -> bytes:
    """All of it, where it is not larger than a recording may be. Raises NoStore."""
    with _read(url) as file:
        data: bytes = file.read(TOTAL_LIMIT + 1)
    if len(data) > TOTAL_LIMIT:
        raise NoStore(f"{url}: more than {TOTAL_LIMIT >> 20} MiB")
    return data


def lines(url: str, most: int) -> Iterator[bytes]:
    """The lines of a file; what follows the first ``most`` bytes of one is a line of its own. Raises NoStore."""
    with _read(url) as file, io.BufferedReader(file) as buffered:
        while line := buffered.readline(most):  # those of fsspec know no bound
            yield line


@contextmanager
def written(url: str) -> Iterator[BinaryIO]:
    """A file to write, which is there as a whole once the block has ended well, and not at all otherwise. Raises NoStore."""
    with _saying(url):
        system, path = _system(url)
        file = system.open(path, "wb", autocommit=False)
    try:
        yield _Written(file, url)  # type: ignore[misc]
        with _saying(url):
            file.close()
            file.commit()
    except BaseException:
        _forget(file)
        raise


def listed(url: str) -> Iterator[tuple[str, str]]:
    """(URL, what changes when its content does) of each file that a pattern, or a folder, means. Raises NoStore."""
    with _saying(url):
        system, path = _system(url)
        starred = any(char in path for char in "*?[")
        found = system.glob(path, detail=True) if starred else system.find(path, detail=True)
        if not starred and not found and system.exists(path):
            found = {path: system.info(path)}
    if len(found) > ENTRIES:
        raise NoStore(f"{url}: more than {ENTRIES:,} files")
    for name, info in sorted(found.items()):
        if info.get("type") == "file":
            stamp = [str(info.get(key, "")) for key in ("size", "ETag", "mtime", "LastModified")]
            yield system.unstrip_protocol(name), ":".join(stamp)


@contextmanager
def _read(url: str) -> Iterator[Any]:
    """A file to read. Its cache is in memory, whatever the configuration of fsspec says: another one ("mmap") is on disk."""
    with _saying(url):
        system, path = _system(url)
        with system.open(path, "rb", cache_type="readahead") as file:
            yield file


def _system(url: str) -> tuple[Any, str]:
    """The store that a URL is in, and the path there. Raises NoStore for what is no object in a store."""
    if url.partition("://")[0] not in STORES or CHAIN in url:
        raise NoStore(
            f"{url}: only objects in stores are read and written by URL (s3://, gs://, az://): name local files without file://"
        )
    system, path = _fsspec().core.url_to_fs(url)
    return system, path


def _forget(file: Any) -> None:
    """Discards what was written of it, and what it would still write when it is collected."""
    for step in (file.discard, partial(setattr, file, "closed", True), file.close):
        with suppress(Exception):
            step()


class _Written(io.RawIOBase):
    """A file of a store whose errors are ours."""

    def __init__(self, file: Any, url: str) -> None:
        self._file, self._url = file, url

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with _saying(self._url):
            return int(self._file.write(data))

    def tell(self) -> int:
        return int(self._file.tell())


@contextmanager
def _saying(url: str) -> Iterator[None]:
    """What goes wrong in the block becomes one sentence; each kind of store has errors of its own."""
    try:
        yield
    except (Stop, MemoryError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:SAID]
        raise NoStore(f"{url}: {type(error).__name__}" + (f": {said}" if said else "")) from None


def _fsspec() -> Any:
    try:
        import fsspec
    except ImportError:
        raise NoStore("URLs need fsspec (pip install 'zaudit[s3]')") from None
    return fsspec
