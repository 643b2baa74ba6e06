"""Recordings as text: every byte comes back, a person sees text, and what is hostile or cut off is one clear error."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.host.request import Capture, Files
from auditor.recording import archive, recording
from auditor.recording.archive import RecordingError
from auditor.recording.recording import MANIFEST, Recording
from tests.fake import CommandLine
from tests.golden import CANONICAL
from tests.shared import HOSTS, host, some

HEAD = archive.HEAD
PATH = Path("rec.zaudit")
MEMBERS = st.dictionaries(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True),
    st.binary(max_size=80) | st.text("a\\x \n\t\r\x1b\x85\u2028\u202eé=", max_size=40).map(str.encode),
    max_size=4,
)


def written(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    archive.write_text(members.items(), file)
    return file.getvalue()


def read(data: bytes) -> dict[str, bytes]:
    return archive.unpacked(io.BytesIO(data), PATH)


@given(MEMBERS)
def test_every_byte_comes_back(members: Any) -> None:
    assert read(written(members)) == members


@given(MEMBERS)
def test_a_terminal_an_editor_and_git_see_text(members: Any) -> None:
    text = written(members).decode()
    assert not {char for char in text if not char.isprintable()} - {"\n", "\t"}


def test_what_it_looks_like() -> None:
    members = {"a.out": "tank\tsync é\n\nend".encode(), "b.err": b"\\\x1b[1m\xff\\\n", "empty": b"", "line": b"\n"}
    assert written(members) == (
        b"zaudit-archive/1\n== a.out\n tank\tsync \xc3\xa9\n \n\\end\\\n"
        b"== b.err\n\\\\\\\\x1b[1m\\xff\\\\\n== empty\n== line\n \n"
    )


def test_lines_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (b"x" * (3 << 20), b"x" * (1 << 20) + b"\n", b"\xff\n" * 5 + b"\\" * ((1 << 20) + 7)):
        assert read(written({"a": data})) == {"a": data}
        assert max(map(len, written({"a": data}).split(b"\n"))) < archive.LONGEST


@pytest.mark.parametrize(
    "text",
    [
        b" x\n",
        b"== ../x\n",
        b"== /etc/passwd\n",
        b"== .hidden\n",
        b"== a/b\n",
        b"== \n",
        b"== a\x1b[31m\n",
        b"== a\xff\n",
        b"== a\n== a\n",
        b"== a\nx\n",
        b"== a\n x",
        b"== a\n x\r\n",
        b"== a\n\\\\x1\n",
        b"== a\n\\\\q\n",
        b"== a\n\\\\xZZ\n",
        b"==a\n",
        b"== a",
        b"== a\n\\\\\\",
    ],
)
def test_what_zaudit_never_writes_is_one_sentence(text: bytes) -> None:
    with pytest.raises(RecordingError) as error:
        read(HEAD + text)
    assert str(error.value).startswith("rec.zaudit: ")
    assert "\x1b" not in str(error.value)


def test_an_archive_of_another_edition_is_no_recording() -> None:
    with pytest.raises(RecordingError):
        read(b"zaudit-archive/2\n== a\n x\n")


def test_a_line_whose_blank_an_editor_stripped_is_an_empty_line() -> None:
    assert read(HEAD + b"== a\n x\n\n y\n") == {"a": b"x\n\ny\n"}


@pytest.mark.parametrize(("limit", "value"), [("COUNT_LIMIT", 3), ("MEMBER_LIMIT", 9), ("TOTAL_LIMIT", 39)])
def test_the_limits_of_a_recording_hold(limit: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written({f"m{number}": b"123456789\n" for number in range(4)})
    assert read(whole)
    monkeypatch.setattr(archive, limit, value)
    with pytest.raises(RecordingError, match="too large"):
        read(whole)


def test_no_line_is_read_whole_that_is_longer_than_one_of_ours() -> None:
    with pytest.raises(RecordingError, match="longer than zaudit writes"):
        read(HEAD + b"== a\n " + bytes(archive.LONGEST) + b"\n")


def test_an_archive_that_is_cut_off_anywhere_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rec.zaudit"
    recording.write(Recording(0.0, 0, ("tank",), commands={("zfs", "get"): Capture(0, b"sync\tstandard\n" * 9)}), path)
    whole = path.read_bytes()
    for size in some(range(len(whole)), 8):
        path.write_bytes(whole[:size])
        with pytest.raises(RecordingError):
            recording.load(path)


def test_the_name_of_a_member_depends_on_its_question_alone() -> None:
    past = host(CANONICAL)
    whole = {name: data for name, data in recording.members(past) if name != MANIFEST}
    for left_out in list(past.commands)[::7]:
        fewer = Recording(0.0, 0, (), commands={key: each for key, each in past.commands.items() if key != left_out})
        some = {name: data for name, data in recording.members(fewer) if name != MANIFEST}
        assert some.items() <= whole.items()


def test_questions_that_would_share_a_name_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "DIGEST", 0)
    commands: dict[tuple[str, ...], Capture] = {("zfs", "get", each): Capture(0, each.encode()) for each in "!?+"}
    files: dict[tuple[str, ...], Files] = {
        ("/proc/x!",): Files({"/proc/x!": "1"}),
        ("/proc/x?",): Files({"/proc/x?": "2"}),
    }
    past = Recording(0.0, 0, (), commands=commands, files=files)
    for name in ("rec", "rec.zaudit"):
        recording.write(past, tmp_path / name)
        assert recording.load(tmp_path / name) == past


def test_the_longest_name_is_one_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "DIGEST", 0)
    commands: dict[tuple[str, ...], Capture] = {("x" * 200, each): Capture(0, b"1") for each in "12"}
    assert all(archive.NAME.fullmatch(name) for name, _ in recording.members(Recording(0.0, 0, (), commands=commands)))


def test_record_converts_between_all_that_hold_a_recording(zaudit: CommandLine, tmp_path: Path) -> None:
    source, past = HOSTS / CANONICAL, host(CANONICAL)
    for name in ("a.zaudit", "b", "c.tar.gz", "d.tgz", "e.zaudit"):
        done = zaudit("record", "--replay", source, "-o", tmp_path / name)
        assert (done.code, done.out) == (0, "")
        source = tmp_path / name
        assert recording.load(source) == past
    assert (tmp_path / "a.zaudit").read_bytes() == (tmp_path / "e.zaudit").read_bytes()


@pytest.mark.parametrize("more", ["--redact", "tank", "--consistent"])
def test_a_recording_is_converted_as_it_is(zaudit: CommandLine, more: str, tmp_path: Path) -> None:
    done = zaudit("record", more, "--replay", HOSTS / CANONICAL, "-o", tmp_path / "a.zaudit")
    assert done.code == 2
    assert "does not go with --replay" in done.err
    assert not list(tmp_path.iterdir())
