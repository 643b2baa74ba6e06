"""No spelling of a URL reaches a file of this machine: fleet takes objects in stores, and every other command takes paths."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from auditor.commands import _options
from auditor.fleet import inputs, store, workers
from auditor.text import is_url
from tests.commands.test_options import commands
from tests.fake import CommandLine
from tests.fleet.fleets import fleet
from tests.folded import for_each
from tests.golden import CANONICAL

REFUSED = "name local files without file://"
CHAINS = ("simplecache", "filecache", "blockcache", "cached", "dir", "reference", "libarchive", "tar")
SPELLINGS = (
    *("file://{}", "local://{}", "FILE://{}", "zip://*::file://{}", "asynclocal://{}", "git://{}:x", "hg://{}"),
    *(f"{chain}::file://{{}}" for chain in CHAINS),
    *(f"{chain}://x::file://{{}}" for chain in CHAINS),
    *(f"{chain}::s3://zaudit{{}}" for chain in CHAINS),
    *("s3://zaudit/x::file://{}", "s3://zaudit/::{}", "gs://x::local://{}", "generic://file://{}", "memory://{}"),
    *("ssh://localhost{}", "sftp://localhost{}", "ftp://localhost{}", "smb://localhost{}", "webhdfs://localhost{}"),
    *(
        "jupyter://localhost{}",
        "http://localhost{}",
        "https://localhost{}",
        "github://a:b@c{}",
        "data://{}",
        "root://{}",
    ),
)


def every_spelling() -> tuple[str, ...]:
    """With all that fsspec knows of itself, where it is installed."""
    try:
        from fsspec.registry import known_implementations as known
    except ImportError:
        known = {}
    return (*SPELLINGS, *(f"{name}://{{}}" for name in sorted(known) if name not in store.STORES))


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Of all that is in a folder the mode, and what is in it or where it leads."""
    found = {}
    for path in sorted(folder.iterdir()):
        mode = path.lstat().st_mode
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[path.name] = (mode, content)
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording, rows, a file that is to stay as it is, a link to it, and a FIFO that nobody writes to."""
    folder = fleet(tmp_path_factory.mktemp("urls"), {"db1": CANONICAL})
    (folder / "rows.jsonl").write_text("")
    (folder / "important").write_text("as it was\n")
    (folder / "important").chmod(0o600)
    (folder / "link").symlink_to("important")
    os.mkfifo(folder / "fifo", 0o600)
    return folder


def written(place: Path, url: str) -> tuple[object, ...]:
    return ("fleet", "judge", place / "db1.tar.gz", "-q", "-o", url)


def judged(place: Path, url: str) -> tuple[object, ...]:
    return ("fleet", "judge", url)


def reported(place: Path, url: str) -> tuple[object, ...]:
    return ("fleet", "report", url)


def compared(place: Path, url: str) -> tuple[object, ...]:
    return ("fleet", "report", place / "rows.jsonl", "--since", url)


@pytest.mark.parametrize("words", [written, judged, reported, compared])
def test_no_url_of_fleet_reaches_a_file(
    words: Callable[[Path, str], tuple[object, ...]], place: Path, zaudit: CommandLine
) -> None:
    """Nothing is read (the FIFO would keep us) or written, and the sentence says what to do."""
    before = state(place)

    @for_each("spelling", every_spelling())
    def each(spelling: str) -> None:
        for name in ("db1.tar.gz", "link", "fifo", "new"):
            done = zaudit(*words(place, spelling.format(place / name)))
            assert done.code == 2
            assert done.err.count("\n") == 1
            assert REFUSED in done.err

    each()
    assert state(place) == before


def test_a_key_in_a_store_decides_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may write into a store names its keys; one that reads like a chain is read nowhere."""
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setattr(store, "STORES", store.STORES | {"memory"})
    system = fsspec.filesystem("memory")
    system.pipe("/fleet/db1.tar.gz", (place / "db1.tar.gz").read_bytes())
    system.pipe(f"/fleet/x::file://{place}/db1.tar.gz", b"")
    try:
        good, chain = inputs.find(["memory://fleet"]).recordings
        assert workers.judge_recording(good.name)[0]["kind"] == "report"
        (row,) = workers.judge_recording(chain.name)
        assert (row["kind"], REFUSED in row["error"]) == ("unjudged", True)
    finally:
        system.rm("/fleet", recursive=True)


def test_what_a_url_is() -> None:
    assert all(is_url(spelling.format("/x")) for spelling in SPELLINGS)
    assert not any(map(is_url, ("/a://b", "./a://b", "a/b://c", "db1.tar.gz", "s3:/x", "C:x", "simplecache::x")))


def test_every_path_that_a_command_takes_is_checked_for_a_url() -> None:
    """A new option that names a file is a Local, or one that knows URLs."""
    kinds = [
        (each.name, parameter.name, parameter.type)
        for each in commands()
        for parameter in each.params
        if isinstance(parameter.type, click.Path)
    ]
    assert len(kinds) > 20
    assert [kind for kind in kinds if not isinstance(kind[2], _options.Local)] == []
