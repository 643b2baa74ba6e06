"""Recordings: what is written is read back whole, and what is hostile, cut or foreign is one clear error."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.host.request import Capture, Files, Read, Run
from auditor.host.trust import NoPlace
from auditor.host.user_files import CannotWrite
from auditor.recording import archive as members_of
from auditor.recording import recording
from auditor.recording.recording import MANIFEST, Recording, RecordingError, ReplayHost

BYTES = st.binary(max_size=60)
TEXT = st.binary(max_size=60).map(lambda data: data.decode("utf-8", "surrogateescape"))
PATHS = st.text("abc/._- ", min_size=1, max_size=12).map(lambda name: "/sys/" + name)
CAPTURES = st.builds(
    Capture,
    st.none() | st.integers(-15, 255),
    BYTES,
    BYTES,
    st.integers(0, 99).map(float),
    st.sampled_from(["", "not installed"]),
    st.sampled_from(["", "^History for "]),
    st.just(()),
    st.just(()),
)
FILES = st.builds(
    Files,
    st.dictionaries(PATHS, TEXT, max_size=3),
    st.dictionaries(PATHS, TEXT, max_size=2),
    st.dictionaries(PATHS, TEXT, max_size=2),
    st.dictionaries(PATHS, TEXT, max_size=2),
    st.dictionaries(PATHS, st.floats(allow_nan=False, allow_infinity=False), max_size=2),
    st.just(()),
)
RECORDINGS = st.builds(
    Recording,
    taken=st.integers(0, 2**33).map(float),
    euid=st.integers(0, 65535),
    targets=st.tuples(TEXT),
    options=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
    zaudit=st.just("0.1.0"),
    commands=st.dictionaries(st.lists(TEXT, min_size=1, max_size=3).map(tuple), CAPTURES, max_size=4),
    files=st.dictionaries(st.lists(PATHS, min_size=1, max_size=2).map(tuple), FILES, max_size=3),
    paths=st.dictionaries(PATHS, PATHS, max_size=2),
)


@given(RECORDINGS, st.sampled_from(["rec", "rec.tar.gz", "rec.zaudit"]))
def test_round_trip(tmp_path_factory: Any, original: Any, name: Any) -> None:
    path = tmp_path_factory.mktemp("rec") / name
    recording.write(original, path)
    assert recording.load(path) == original


def test_a_replay_answers_what_was_asked_and_nothing_else() -> None:
    run, read = Run(("zfs", "version")), Read(("/proc/uptime",))
    host = ReplayHost(
        Recording(
            0.0, 0, (), commands={run.argv: Capture(0, b"x")}, files={read.patterns: Files({"/proc/uptime": "1"})}
        )
    )
    assert host.run(run).stdout == b"x"
    assert host.run(Run(("zfs", "list"))).fault == "not in the recording"
    assert host.read(read).text == {"/proc/uptime": "1"}
    assert host.read(Read(("/proc/x",))).errors == {"/proc/x": "not in the recording"}
    with pytest.raises(FileNotFoundError):
        host.realpath("/x")


def archive(path: Any, *members: Any, mode: Any = "w:gz") -> Any:
    with tarfile.open(path, mode) as tar:
        for info, data in members:
            if isinstance(info, str):
                info = tarfile.TarInfo(info)
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def manifest(**changes: Any) -> Any:
    whole = {
        "schema": recording.SCHEMA,
        "zaudit": "0.1.0",
        "taken": 0,
        "euid": 0,
        "targets": [],
        "options": {},
        "paths": {},
        "captures": [],
    }
    return json.dumps({**whole, **changes}).encode()


def link(name: Any, target: Any) -> Any:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


def huge(name: Any) -> Any:
    info = tarfile.TarInfo(name)
    info.size = 10 << 30
    return info


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ([("../../etc/passwd", b"x")], "has a name that none in a recording has"),
        ([("/etc/passwd", b"x")], "has a name that none in a recording has"),
        ([("a/b", b"x"), ("b", b"x")], "in another folder"),
        ([(".hidden", b"x")], "not a zaudit recording"),
        ([("a\x1b[31m", b"x")], "has a name that none in a recording has"),
        ([(link("x", "/etc/shadow"), b"")], "not a plain file"),
        ([("notes.txt", b"x")], "not a zaudit recording"),
        ([(MANIFEST, b"")], "cut off"),
        ([(MANIFEST, b"[1]")], "not a zaudit recording"),
        ([(MANIFEST, b"[" * 100_000)], "not a zaudit recording"),
        ([(MANIFEST, manifest(schema="zaudit-recording/99"))], "one of a newer release"),
        ([(MANIFEST, manifest(captures=[{"run": ["zfs"], "exit": 0, "stdout": "001.out"}]))], "'001.out' is missing"),
        ([(MANIFEST, manifest(captures=[{"run": "zfs", "exit": 0}]))], "malformed"),
        ([(MANIFEST, manifest(captures=[{"run": ["zfs"], "exit": "no"}]))], "malformed"),
        ([(MANIFEST, manifest(captures=7))], "malformed"),
        ([(MANIFEST, manifest(taken="yesterday"))], "malformed"),
        ([(MANIFEST, manifest(options=[]))], "malformed"),
        ([(MANIFEST, manifest(taken="A" * 100_000))], "malformed"),
        ([(MANIFEST, manifest(captures=[{"run": ["zfs"], "exit": 0, "stdout": "A" * 100_000}]))], "is missing"),
        *(
            ([(MANIFEST, manifest(taken=taken))], "malformed")
            for taken in (1e308, float("nan"), float("inf"), -1, 253402300800, 253402214399, -62135596801, 10**400)
        ),
        ([(MANIFEST, manifest().replace(b'"taken": 0', b'"taken": 1' + b"0" * 5000))], "not a zaudit recording"),
    ],
)
def test_hostile_and_foreign_archives(tmp_path: Any, members: Any, says: Any) -> None:
    path = archive(tmp_path / "rec.tar.gz", *members)
    with pytest.raises(RecordingError) as error:
        recording.load(path)
    assert says in str(error.value)
    assert "\x1b" not in str(error.value)
    assert len(str(error.value)) < len(str(path)) + 300
    assert list(tmp_path.iterdir()) == [path], "nothing may be written"


def test_a_member_of_ten_gigabytes_is_refused_before_it_is_unpacked(tmp_path: Any) -> None:
    path = tmp_path / "rec.tar.gz"
    with gzip.open(path, "wb") as packed:
        packed.write(huge("big").tobuf())
        packed.write(bytes(1 << 20))
    with pytest.raises(RecordingError, match="too large"):
        recording.load(path)


def test_a_header_that_unpacks_to_gigabytes_is_refused(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(members_of, "TOTAL_LIMIT", 1 << 20)
    monkeypatch.setattr(members_of, "COUNT_LIMIT", 10)
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 1 << 30
    path = tmp_path / "rec.tar.gz"
    with gzip.open(path, "wb") as packed:
        packed.write(info.tobuf())
        packed.write(bytes(8 << 20))
    with pytest.raises(RecordingError):
        recording.load(path)


def test_too_many_members(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(members_of, "COUNT_LIMIT", 3)
    path = archive(tmp_path / "rec.tar.gz", *((f"m{i}", b"") for i in range(5)))
    with pytest.raises(RecordingError, match="too large"):
        recording.load(path)


@pytest.mark.parametrize(
    "data",
    [b"", b"not gzip", b"\x1f\x8b\x08\x00", gzip.compress(b"not tar"), gzip.compress(b"x" * 5000)],
    ids=["empty", "not gzip", "a head alone", "not tar", "x"],  # the head of gzip says when it was made
)
def test_what_is_no_archive(tmp_path: Any, data: Any) -> None:
    path = tmp_path / "rec.tar.gz"
    path.write_bytes(data)
    with pytest.raises(RecordingError):
        recording.load(path)


def test_an_archive_cut_off_anywhere_is_an_error(tmp_path: Any) -> None:
    path = tmp_path / "rec.tar.gz"
    recording.write(Recording(0.0, 0, ("tank",), commands={("zfs", "get"): Capture(0, bytes(range(256)) * 40)}), path)
    whole = path.read_bytes()
    last = range(len(whole) - 9, len(whole))  # the check sum and the length of gzip
    for size in (*range(0, len(whole), max(len(whole) // 40, 1)), *last):
        path.write_bytes(whole[:size])
        with pytest.raises(RecordingError, match="not a whole"):
            recording.load(path)


def test_no_bit_of_an_archive_can_be_another_without_notice(tmp_path: Any) -> None:
    path = tmp_path / "rec.tar.gz"
    answers: dict[tuple[str, ...], Capture] = {("zfs", "get"): Capture(0, b"sync\tdisabled\n" * 40)}
    recording.write(Recording(0.0, 0, ("tank",), commands=answers, kept=frozenset()), path)
    whole, good = path.read_bytes(), recording.load(path)
    unnoticed = []
    for place in range(10, len(whole)):  # what is before it says when and how it was packed
        other = bytearray(whole)
        other[place] ^= 1 << place % 8
        path.write_bytes(other)
        try:
            assert recording.load(path) == good, place
            unnoticed.append(place)
        except RecordingError:
            continue
    assert len(unnoticed) < 5, (
        unnoticed
    )  # codes that nothing uses, and what fills up the last byte before the check sum


def test_what_follows_an_archive_is_an_error(tmp_path: Any) -> None:
    path = tmp_path / "rec.tar.gz"
    recording.write(Recording(0.0, 0, ("tank",)), path)
    whole = path.read_bytes()
    for junk in (b"junk", gzip.compress(b"junk"), gzip.compress(bytes(20_000))):
        path.write_bytes(whole + junk)
        with pytest.raises(RecordingError, match="not a whole"):
            recording.load(path)


@pytest.mark.parametrize(
    "headers",
    [
        {"GNU.sparse.size": "x"},
        {"GNU.sparse.map": "0,a,b"},
        {"GNU.sparse.map": "0,1,2"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a", "GNU.sparse.realsize": "9" * 5000},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a", "GNU.sparse.realsize": "512"},
        {"size": "9" * 400},
        {"size": "-1"},
    ],
)
def test_extended_headers_that_are_no_numbers_or_holes(tmp_path: Any, headers: Any) -> None:
    info = tarfile.TarInfo("a")
    info.pax_headers, info.size = headers, 512
    path = tmp_path / "rec.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(b"1\n0\n512\n".ljust(512, b"\0")))
    with pytest.raises(RecordingError):
        recording.load(path)


def test_folders_missing_files_and_links(tmp_path: Any) -> None:
    with pytest.raises(RecordingError, match="no such file"):
        recording.load(tmp_path / "none")
    with pytest.raises(RecordingError, match="not a zaudit recording"):
        recording.load(tmp_path)
    (tmp_path / MANIFEST).symlink_to("/etc/hostname")
    with pytest.raises(RecordingError, match="not a zaudit recording"):
        recording.load(tmp_path)


FOLDERS = Files({}, {"/proc/7/root/wal": "/srv"}, {}, {"/proc/7/root/wal": "0:40"})
OLD = Recording(
    1.0,
    0,
    ("tank",),
    commands={("zfs", "get"): Capture(0, b"old"), ("zfs", "list"): Capture(0, b"old")},
    files={("/proc/7/root/wal",): FOLDERS},
)
NEW = Recording(2.0, 0, ("tank",), commands={("zpool", "get"): Capture(0, b"new")})


def everything(folder: Path) -> dict[str, bytes | str]:
    """Content of files, targets of links."""
    return {
        str(each.relative_to(folder)): os.readlink(each) if each.is_symlink() else each.read_bytes()
        for each in folder.rglob("*")
        if each.is_symlink() or not each.is_dir()
    }


@pytest.mark.parametrize("name", ["rec", "rec.tar.gz", "rec.tgz", "rec.zaudit"])
def test_a_recording_is_replaced_by_another(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir() if name == "rec" else (tmp_path / name).touch()  # empty, as mktemp makes it
    for each in (OLD, NEW, OLD):
        recording.write(each, tmp_path / name)
        assert recording.load(tmp_path / name) == each
        assert [path.name for path in tmp_path.iterdir()] == [name]
    files = (tmp_path / name).iterdir() if name == "rec" else [tmp_path / name]
    assert {file.stat().st_mode & 0o7777 for file in files} == {0o600}


def test_what_lies_beside_a_recording_in_its_folder_stays(tmp_path: Path) -> None:
    recording.write(OLD, tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").write_text("mine")
    recording.write(NEW, tmp_path)
    assert recording.load(tmp_path) == NEW
    assert (tmp_path / "notes.txt").read_text() == (tmp_path / "sub" / "file").read_text() == "mine"
    assert not list(tmp_path.glob("*zfs*"))
    recording.write(OLD, tmp_path)
    (foreign,) = (name for name, _ in recording.members(NEW) if name != MANIFEST)
    (tmp_path / foreign).write_text("mine")
    before = everything(tmp_path)
    with pytest.raises(RecordingError, match=f"{foreign} does not belong to the recording there"):
        recording.write(NEW, tmp_path)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", ["rec", "rec.tar.gz", "rec.zaudit"])
@pytest.mark.parametrize("there", ["text", "archive", "folder", "link", "dangling", "fifo", "foreign", "cut"])
def test_what_is_no_recording_is_neither_overwritten_nor_followed(name: str, there: str, tmp_path: Path) -> None:
    place, precious = tmp_path / "in" / name, tmp_path / "precious.tar.gz"
    place.parent.mkdir()
    recording.write(OLD, precious)
    match there:
        case "text":
            place.write_text("mine")
        case "archive":
            archive(place, ("notes.txt", b"mine"))
        case "folder":
            place.mkdir()
            (place / "notes.txt").write_text("mine")
        case "link":
            place.symlink_to(precious)
        case "dangling":
            place.symlink_to(tmp_path / "nowhere")
        case "fifo":
            os.mkfifo(place)
        case "foreign":
            place.mkdir()
            (place / MANIFEST).write_text('{"schema": "another", "captures": []}')
        case "cut":
            place.write_bytes(precious.read_bytes()[:-3])
    state = everything(tmp_path) if there != "fifo" else {}
    for attempt in (members_of.possible, partial(recording.write, NEW)):
        with pytest.raises(RecordingError, match="exists and is not a recording; zaudit does not overwrite it"):
            attempt(place)
    assert there == "fifo" or everything(tmp_path) == state


@pytest.mark.parametrize("name", ["rec", "rec.tar.gz"])
def test_a_write_that_fails_leaves_the_old_recording(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    recording.write(OLD, tmp_path / name)
    before = everything(tmp_path)

    def full(recording: Recording) -> Any:
        yield "001-zpool.out", b"half"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recording, "members", full)
    with pytest.raises(CannotWrite, match=f"{name}: No space left on device; the old one is unchanged"):
        recording.write(NEW, tmp_path / name)
    assert everything(tmp_path) == before


def test_whether_a_recording_can_be_written_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, says in (
        ("none/x.tar.gz", "/none: No such file or directory"),
        ("file/x.tar.gz", "/file: Not a directory"),
        ("file/x", "/file: Not a directory"),
    ):
        with pytest.raises(NoPlace, match=says):
            members_of.possible(tmp_path / name)
    for name in ("x.tar.gz", "x", "a/b/c"):
        members_of.possible(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_is_no_recording_is_not_overwritten(tmp_path: Any) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(RecordingError, match="does not overwrite"):
        recording.write(Recording(0.0, 0, ()), tmp_path)
    assert (tmp_path / "precious").read_text() == "x"


@pytest.mark.parametrize("value", ["NaN", "Infinity", '"1"', "true", "null"])
def test_a_time_that_cannot_be_compared_is_refused(tmp_path: Path, value: str) -> None:
    """A file that was changed NaN seconds after the start would be neither younger nor older."""
    files: dict[tuple[str, ...], Files] = {
        ("/proc/9/root/etc/my.cnf",): Files({"/proc/9/root/etc/my.cnf": ""}, changed={"/proc/9/root/etc/my.cnf": 7.5})
    }
    recording.write(Recording(0.0, 0, (), files=files), tmp_path / "rec")
    member = next(path for path in (tmp_path / "rec").iterdir() if "my.cnf" in path.name)
    member.write_text(member.read_text().replace("7.5", value))
    with pytest.raises(RecordingError, match="malformed"):
        recording.load(tmp_path / "rec")
