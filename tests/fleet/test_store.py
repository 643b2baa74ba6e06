"""Recordings and rows in a store that speaks S3: read, listed, written as a whole or not at all, and errors in one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from auditor import Stop
from auditor.fleet import inputs, store
from tests.fake import CommandLine
from tests.fleet.fleets import spoilt, three
from tests.fleet.servers import KEYS, KINDS, s3

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(params=KINDS)
def system(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The file system of a store with a bucket ``fleet``."""
    s3fs = pytest.importorskip("s3fs")
    with s3(request.param, tmp_path / "server") as url:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": url}.items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        system = s3fs.S3FileSystem()
        system.mkdir("fleet")
        yield system
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def filled(system: Any, tmp_path: Path) -> Path:
    """A folder whose files are in the store, too."""
    folder = three(tmp_path / "all")
    spoilt(folder, folder / "db1.tar.gz")
    (folder / "note").write_text("")
    system.put(f"{folder}/", "fleet/recordings/", recursive=True)
    return folder


def test_from_a_store_to_a_store(system: Any, filled: Path, zaudit: CommandLine, tmp_path: Path) -> None:
    here = zaudit("fleet", "judge", filled, "-o", tmp_path / "rows")
    there = zaudit("fleet", "judge", "s3://fleet/recordings", "-o", "s3://fleet/rows.jsonl")
    assert (here.code, there.code) == (2, 2)
    ours = (tmp_path / "rows").read_text().replace(f"{filled}/", "s3://fleet/recordings/")
    assert system.cat("fleet/rows.jsonl").decode() == ours
    assert "10 recordings: 3 judged, 7 could not be judged" in there.err
    assert "1 other files" in there.err
    told, same = (zaudit("fleet", "report", where).out for where in ("s3://fleet/rows.jsonl", tmp_path / "rows"))
    assert told.splitlines()[:5] == same.splitlines()[:5]


def test_patterns_and_single_files(system: Any, filled: Path, zaudit: CommandLine) -> None:
    done = zaudit(
        "fleet", "judge", "s3://fleet/recordings/db[12]*", "s3://fleet/recordings/db3.tar.gz", "s3://fleet/none.tar.gz"
    )
    found = [json.loads(line) for line in done.out.splitlines()]
    kinds = [(row["kind"], Path(row["recording"]).name[:4]) for row in found if row["kind"] != "finding"]
    assert kinds == [("report", "db1."), ("report", "db2."), ("report", "db3."), ("unjudged", "none")]
    assert "FileNotFoundError" in found[-1]["error"]
    (before,) = inputs.find(["s3://fleet/recordings/db1.tar.gz"]).recordings
    system.pipe("fleet/recordings/db1.tar.gz", b"")
    system.invalidate_cache()
    (after,) = inputs.find(["s3://fleet/recordings/db1.tar.gz"]).recordings
    assert before.name == after.name
    assert before.stamp != after.stamp


def test_parquet_in_a_store(system: Any, filled: Path, zaudit: CommandLine) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    zaudit("fleet", "judge", filled, "-q", "-o", "s3://fleet/rows.parquet")
    with system.open("fleet/rows.parquet", "rb") as file:
        assert {"report", "finding", "unjudged"} == set(parquet.read_table(file).to_pydict()["kind"])


@pytest.mark.parametrize("size", [10, 12 << 20])  # which is sent at the end, and in pieces of 5 MiB
def test_a_file_is_there_as_a_whole_or_not_at_all(system: Any, size: int) -> None:
    system.pipe("fleet/rows", b"old")
    with suppress(ZeroDivisionError), store.written("s3://fleet/rows") as file:
        assert file.write(b"x" * size) == size
        raise ZeroDivisionError
    system.invalidate_cache()
    assert system.cat("fleet/rows") == b"old"
    assert system.list_multipart_uploads("fleet") == []
    with store.written("s3://fleet/rows") as file:
        file.write(b"y" * size)
    assert system.cat("fleet/rows") == b"y" * size


def test_what_goes_wrong_is_one_sentence(
    system: Any, filled: Path, zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = zaudit("fleet", "judge", filled, "-o", "s3://nowhere/rows")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "s3://nowhere/rows: FileNotFoundError" in done.err
    done = zaudit("fleet", "judge", "s3://nowhere/x", "-q")
    assert (done.code, done.out, done.err) == (
        2, "", "zaudit: s3://nowhere/x: FileNotFoundError: The specified bucket does not exist\n",
    )  # fmt: skip
    with pytest.raises(Stop, match="s3://nowhere/rows: FileNotFoundError"):
        list(store.lines("s3://nowhere/rows", 100))


def test_nobody_at_the_address_of_the_store(zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    s3fs = pytest.importorskip("s3fs")
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    done = zaudit("fleet", "judge", "s3://fleet/recordings")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "EndpointConnectionError" in done.err


def test_nothing_of_a_store_is_cached_on_disk(system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fsspec is configured for (FSSPEC_*, ~/.config/fsspec)."""
    import tempfile

    import fsspec

    def refused(*words: object, **options: object) -> None:
        raise AssertionError("a file on disk")

    system.pipe("fleet/rows", b"a\nb\n")
    monkeypatch.setitem(fsspec.config.conf, "s3", {"default_cache_type": "mmap"})
    type(system).clear_instance_cache()
    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    assert store.content("s3://fleet/rows") == b"a\nb\n"
    assert list(store.lines("s3://fleet/rows", 100)) == [b"a\n", b"b\n"]
