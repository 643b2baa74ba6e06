"""A .tar.gz from anybody: what the usual tar programs pack is read, and what a recording has no use for is refused in one
sentence, before anything is read by its numbers."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from auditor.recording import archive, recording
from auditor.recording.recording import RecordingError
from tests.folded import for_each
from tests.shared import briefly

# of fixtures/archives/recording: GNU tar 1.35, busybox 1.37 and bsdtar 3.7.4, with -C FOLDER . and with FOLDER, in every format
# that they write, and with a name that is too long for one field of a header
ARCHIVES = Path(__file__).parent.parent.parent / "fixtures/archives"
with zipfile.ZipFile(ARCHIVES / "archives.zip") as whole:
    PACKED = {name: whole.read(name) for name in whole.namelist()}
NAMES = {path.name for path in (ARCHIVES / "recording").iterdir()}
END = bytes(2 * archive.BLOCK)


@for_each("name", sorted(PACKED))
def test_what_other_programs_pack_is_read(name: str) -> None:
    members = archive.unpacked(io.BytesIO(PACKED[name]), Path(name))
    assert recording.parse(name, members) == recording.load(ARCHIVES / "recording")


def test_every_program_and_format_has_an_archive() -> None:
    found = {name.removesuffix(".tar.gz") for name in PACKED}
    gnu = {f"gnu-tar-{each}" for each in ("gnu", "oldgnu", "posix", "ustar")}
    others = {"busybox", "bsdtar", "bsdtar-gnutar", "bsdtar-pax", "bsdtar-ustar"}
    assert {each + more for each in gnu | others for more in ("", "-folder")} <= found


def block(name: str, kind: bytes = b"0", size: int | bytes = 0, magic: bytes = b"ustar\x0000") -> bytes:
    """A header. size: a number, or the field itself."""
    digits = size if isinstance(size, bytes) else b"%011o\0" % size
    whole = b"".join(
        (
            name.encode("utf-8", "surrogateescape").ljust(100, b"\0"),
            b"0000644\0" * 3,
            digits.ljust(12, b"\0"),
            b"0" * 11 + b"\0" + b" " * 8 + kind,
            bytes(100) + magic,
        )
    ).ljust(archive.BLOCK, b"\0")
    return whole[:148] + b"%06o\0 " % sum(whole) + whole[156:]


def member(name: str, data: bytes = b"x", kind: bytes = b"0") -> bytes:
    return block(name, kind, len(data)) + data + bytes(-len(data) % archive.BLOCK)


def record(text: str) -> bytes:
    """Of a pax header."""
    length = len(text.encode()) + 2
    while len(f"{length}{text}".encode()) + 2 != length:
        length = len(f"{length}{text}".encode()) + 2
    return f"{length} {text}\n".encode()


def read(*parts: bytes, end: bytes = END) -> dict[str, bytes]:
    return archive.unpacked(io.BytesIO(gzip.compress(b"".join(parts) + end, 1)), Path("rec.tar.gz"))


def test_headers_are_made_here_as_tarfile_makes_them() -> None:
    info = tarfile.TarInfo("a")
    info.size = 5
    ours, theirs = (tarfile.TarInfo.frombuf(each, "utf-8", "strict") for each in (block("a", size=5), info.tobuf()))
    assert (ours.name, ours.size, ours.type) == (theirs.name, theirs.size, theirs.type)
    assert record("path=" + "ä" * 60) == b"130 path=" + "ä".encode() * 60 + b"\n"


@for_each(
    "parts, found",
    [
        ((member("./a"), member("./b", b"y" * 1000)), {"a": b"x", "b": b"y" * 1000}),
        ((block("./", b"5"), block("./notes/", b"5"), member("./a")), {"a": b"x"}),
        ((block("rec", b"5"), member("rec/a"), member("rec/b")), {"a": b"x", "b": b"x"}),
        ((block("rec/", b"\0", magic=b""), member("rec/a", kind=b"\0")), {"a": b"x"}),
        ((member("var/lib/rec/a"),), {"a": b"x"}),
        # what macOS and people add
        ((member("._rec"), member("rec/._a"), member("rec/.DS_Store"), member("rec/a"), member("rec/b")), {"a", "b"}),
        ((member("a"), member(".hidden"), member("../../.profile")), {"a"}),
        # extended headers
        ((member("x", record("path=a"), b"x"), member("other")), {"a": b"x"}),
        ((member("x", record("mtime=1.5") + record("SCHILY.xattr.user.x=a\nb"), b"x"), member("a")), {"a": b"x"}),
        ((member("x", record("size=3"), b"x"), block("a", size=0) + b"abc".ljust(512, b"\0")), {"a": b"abc"}),
        ((member("g", record("comment=a commit"), b"g"), member("a"), member("b")), {"a", "b"}),
        ((member("././@LongLink", b"a\0", b"L"), member("other")), {"a": b"x"}),
        ((block("a", size=b"\x80" + bytes(10) + b"\3") + b"abc".ljust(512, b"\0"),), {"a": b"abc"}),
        ((block("a", size=b"         3 ") + b"abc".ljust(512, b"\0"),), {"a": b"abc"}),
        ((), {}),
    ],
)
def test_what_is_read(parts: tuple[bytes, ...], found: Any) -> None:
    content = read(*parts)
    assert (content if isinstance(found, dict) else content.keys()) == found


@for_each(
    "parts, says",
    [
        ((block("a", b"1"),), "member 'a' is a hard link, not a plain file"),
        ((block("a", b"2"),), "is a symbolic link"),
        ((member("././@LongLink", b"/etc/shadow\0", b"K"), block("a", b"2")), "is a symbolic link"),
        ((block("a", b"3"),), "is a character device"),
        ((block("a", b"4"),), "is a block device"),
        ((block("a", b"6"),), "is a FIFO"),
        ((block("a", b"S"),), "is a sparse file"),
        *(((block("a", kind),), "is of an unknown kind") for kind in (b"7", b"M", b"D", b"V", b"X", b"\xff")),
        ((member("x", record("GNU.sparse.major=1"), b"x"), member("a")), "sparse"),
        ((member("x", record("GNU.sparse.map=0,1"), b"g"), member("a")), "sparse"),
        # names
        ((member("../a"),), "member 1 has a name that none in a recording has"),
        ((member("rec/../a"),), "has a name that"),
        ((member("/a"),), "has a name that"),
        ((member("a\x1b[31m"),), "has a name that"),
        ((member("a\udcff"),), "has a name that"),
        (
            (member("x" * 150, kind=b"0")[:0] + member("x", record("path=" + "a" * 150), b"x"), member("a")),
            "has a name that",
        ),
        ((member("a"), member("rec/b")), "in another folder"),
        ((member("a"), member("./a")), "member 'a' is in it twice"),
        (
            (member("x", record("path=b"), b"x"), member("x", record("path=c"), b"x"), member("a")),
            "two headers name one",
        ),
        (
            (member("././@LongLink", b"b", b"L"), member("x", record("path=c"), b"x"), member("a")),
            "two headers name one",
        ),
        ((member("g", record("path=b"), b"g"), member("a")), "names several members"),
        ((member("g", record("size=1"), b"g"), member("a")), "names several members"),
        # numbers
        ((block("a", size=b"\x80" + b"\xff" * 11),), "too large at member 'a'"),
        ((block("a", size=b"\xff" * 12),), "not a tar archive, or a header in it is damaged"),
        ((block("a", size=b"-1"),), "header in it is damaged"),
        ((block("a", size=b"0o7"),), "header in it is damaged"),
        ((block("a", size=b"1_0"),), "header in it is damaged"),
        ((block("a", size=(128 << 20) + 1),), "too large at member 'a'"),
        ((member("x", record("size=" + "9" * 20), b"x"), block("a")), "too large at member 'a'"),
        ((member("x", record("size=" + "9" * 400), b"x"), block("a")), "extended header in it is damaged"),
        ((member("x", record("size=-1"), b"x"), block("a")), "extended header in it is damaged"),
        ((block("rec/", b"5", 512), bytes(512)), "a folder in it has a size"),
        *(
            ((member("x", data, b"x"), member("a")), "extended header in it is damaged")
            for data in (b"6 a=b", b"99 a=b\n", b"5 a=b\n", b"0 a=b\n", b" a=b\n", b"x a=b\n", b"1" * 30 + b" a=b\n")
        ),
        ((block("x", b"x", archive.HEADER_LIMIT + 1),), "extended tar headers are larger"),
        ((block("x", b"g", 1 << 30),), "extended tar headers are larger"),
        ((block("x", b"L", 1 << 32),), "extended tar headers are larger"),
        # whole blocks
        ((member("a")[:-1], member("b")), "not a tar archive, or a header in it is damaged"),
        ((member("a"), bytes(512), member("b")), "something else follows its last member"),
        ((member("a").replace(b"0000644", b"0000640"),), "header in it is damaged"),
    ],
    ids=lambda case: case[1],
)
def test_what_is_refused(parts: tuple[bytes, ...], says: str) -> None:
    with pytest.raises(RecordingError) as error:
        read(*parts)
    assert says in str(error.value)
    assert str(error.value).startswith("rec.tar.gz: ")
    assert len(str(error.value)) < 400
    assert "\x1b" not in str(error.value)


@for_each("end", [b"", bytes(100), bytes(511)], ids=len)
def test_without_its_end_an_archive_may_lack_members(end: bytes) -> None:
    """As tar leaves it when it dies, and gzip ends as always."""
    with pytest.raises(RecordingError, match=r"not a whole .tar.gz \(its end is missing\)"):
        read(member("a"), end=end)


@for_each("junk", [b"x", bytes(512), gzip.compress(b""), gzip.compress(END)], ids=len)
def test_nothing_follows_the_one_member_of_gzip(junk: bytes) -> None:
    whole = gzip.compress(member("a") + END)
    assert archive.unpacked(io.BytesIO(whole), Path("rec")) == {"a": b"x"}
    with pytest.raises(RecordingError, match="something else follows its gzip data"):
        archive.unpacked(io.BytesIO(whole + junk), Path("rec"))


def test_the_check_sum_at_the_very_end_counts() -> None:
    whole = bytearray(gzip.compress(member("a") + END))
    whole[-8] ^= 1
    with pytest.raises(RecordingError, match="its data are damaged"):
        archive.unpacked(io.BytesIO(bytes(whole)), Path("rec"))


def extended(size: int, records: bytes = b"6 a=b\n") -> bytes:
    return member("x", records * (size // len(records)), b"x")


@pytest.mark.parametrize(
    ("size", "times"), briefly([(1 << 24, 1), (1 << 14, 20), (archive.HEADER_LIMIT, 2100), (600, 28_000)], quick=2)
)
def test_few_extended_records_are_taken_apart(size: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 kB of archive with 20 million records took most of a minute."""
    taken: list[int] = []
    usual = archive._records

    def counted(data: bytes) -> dict[str, Any]:
        taken.append(len(data))
        return usual(data)

    with monkeypatch.context() as patch:
        patch.setattr(archive, "_records", counted)
        with pytest.raises(RecordingError, match="extended tar headers are larger"):
            read(extended(size) * times)
    assert max(taken, default=0) <= archive.HEADER_LIMIT
    assert sum(taken) <= archive.HEADERS_LIMIT


class Counted(io.BytesIO):
    """How many bytes of it are read."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        return data


@for_each("first", [block("a", size=1 << 32), block("x", b"x", 1 << 30), block("a", b"2")], ids=len)
def test_behind_what_is_refused_nothing_is_unpacked(first: bytes) -> None:
    file = Counted(gzip.compress(first + bytes(64 << 20), 0))
    with pytest.raises(RecordingError, match=r"too large|are larger|symbolic link"):
        archive.unpacked(file, Path("rec"))
    assert file.taken <= 4 * archive.PIECE


def test_zeros_at_the_end_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "STREAM_LIMIT", 1 << 20)
    assert read(member("a"), end=bytes(500 << 10)) == {"a": b"x"}
    with pytest.raises(RecordingError, match="unpacks to more than a recording may hold"):
        read(member("a"), end=bytes(2 << 20))


def test_what_unpacks_to_nothing_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty blocks of deflate: five bytes each, and no end of them."""
    monkeypatch.setattr(archive, "STREAM_LIMIT", 1 << 20)
    head = gzip.compress(b"")[:10]
    with pytest.raises(RecordingError, match="unpacks to more than a recording may hold"):
        archive.unpacked(io.BytesIO(head + b"\0\0\0\xff\xff" * (1 << 20)), Path("rec"))


def test_members_that_are_skipped_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "ENTRY_LIMIT", 4)
    assert read(*(member(f".{number}") for number in range(4))) == {}
    with pytest.raises(RecordingError, match="more than 4 members"):
        read(*(member(f".{number}") for number in range(5)))
    monkeypatch.setattr(archive, "TOTAL_LIMIT", 1000)
    with pytest.raises(RecordingError, match="too large"):
        read(member(".a", bytes(600)), member(".b", bytes(600)))


@for_each(
    "header",
    [block("d/", b"5"), block("d/"), *(block("x", kind) for kind in (b"x", b"g", b"K"))],
    ids=lambda each: each[156:157].decode(),
)
def test_headers_of_every_kind_are_counted(header: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 MB of archive with 890,000 of folders, or of extended headers without a record, took 10 s."""
    monkeypatch.setattr(archive, "ENTRY_LIMIT", 4)
    assert "a" in read(member("a"), *[header] * 3)
    with pytest.raises(RecordingError, match="more than 4 members, folders and extended headers"):
        read(member("a"), *[header] * 4)


def test_as_many_members_as_a_recording_may_have_fit_in_every_format() -> None:
    """With an extended header each, as tar --format=posix writes them."""
    usual = record("mtime=1764187270.123456789") + record("atime=1764187270.123456789") + record("ctime=1764187270.1")
    assert len(usual) * archive.COUNT_LIMIT <= archive.HEADERS_LIMIT
    fill = 4 * archive.BLOCK * archive.COUNT_LIMIT
    assert fill <= archive.STREAM_LIMIT - archive.TOTAL_LIMIT
