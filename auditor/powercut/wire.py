"""Frames between a host that writes and its witness: authenticated, numbered, bounded; and the witness's log.

length u32 | kind u8 | run 16 | session u32 | number u64 | body | tag 16

The tag is HMAC-SHA-256 over the direction and all before it. The witness opens with a nonce, the host answers with its own,
and both go into the key of all that follows: frames of another connection are refused. Numbers go up by one. A wrong frame
ends the connection; nothing behind it is read."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, BinaryIO, NamedTuple

from auditor import EXIT_BROKE, Stop, codec
from auditor.host import user_files
from auditor.powercut.sectors import Layout, mark_of
from auditor.text import harmless

PROTOCOL = 1
HEAD = struct.Struct("<IB16sIQ")
TAG = 16
LENGTH = 4  # of the length itself, which it does not count
LONGEST = 64 << 10  # bytes of a body
COMMIT = struct.Struct("<HQ")  # stream, generation
FAILED = struct.Struct("<HQH")  # stream, generation, errno
NUMBER = struct.Struct("<Q")
SHORTEST_KEY, LONGEST_KEY = 16, 4096  # bytes
NO_RUN = bytes(16)


class Kind(IntEnum):
    """Of a frame. CHALLENGE, WELCOME, SEEN, CUT and REFUSED come from the witness, all others from the host."""

    CHALLENGE = 1  # nonce
    HELLO = 2  # JSON: nonce, boot, machine, what for
    WELCOME = 3  # JSON: session, and what the witness has of the session before
    OPEN = 4  # JSON: what is written where; before the first commit
    ACK = 5  # a commit whose flush returned 0; of a control stream, a write that was completed
    FAIL = 6  # a commit whose flush failed
    SEEN = 7  # all up to this number are in the log of the witness
    CUT = 8  # the witness cuts the power now
    FOUND = 9  # JSON: what was left after the boot
    STOP = 10  # the host ends in order
    REFUSED = 11  # text: why


FROM_WITNESS = frozenset({Kind.CHALLENGE, Kind.WELCOME, Kind.SEEN, Kind.CUT, Kind.REFUSED})


class WireError(Stop):
    """A frame that is none, or not the one that comes next."""


class Frame(NamedTuple):
    """What a tag was right for."""

    kind: Kind
    run: bytes
    session: int
    number: int
    body: bytes = b""

    def document(self) -> dict[str, Any]:
        """The object in its body. Raises WireError."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise WireError("no JSON object")
        return found


def encoded(values: Mapping[str, Any]) -> bytes:
    """An object as a body. Raises WireError where it is too long for one."""
    body = json.dumps(values, separators=(",", ":"), sort_keys=True).encode()
    if len(body) > LONGEST:
        raise WireError(f"more than {LONGEST >> 10} KiB for one frame")
    return body


def connection_key(key: bytes, run: bytes, host_nonce: bytes, witness_nonce: bytes) -> bytes:
    """For all frames after HELLO."""
    return hmac.digest(key, b"zaudit powercut 1" + run + host_nonce + witness_nonce, hashlib.sha256)


def _tag(key: bytes, from_witness: bool, data: bytes) -> bytes:
    return hmac.digest(key, (b"W" if from_witness else b"H") + data, hashlib.sha256)[:TAG]


class Sender:
    """One direction of a connection: frames out."""

    def __init__(self, key: bytes, *, from_witness: bool) -> None:
        self._key, self._from_witness, self._number = key, from_witness, 0

    def rekey(self, key: bytes) -> None:
        self._key = key

    def frame(self, kind: Kind, run: bytes, session: int, body: bytes = b"") -> tuple[int, bytes]:
        """(its number, its bytes)."""
        number, self._number = self._number, self._number + 1
        data = HEAD.pack(HEAD.size - LENGTH + len(body) + TAG, kind, run, session, number) + body
        return number, data + _tag(self._key, self._from_witness, data)


class Receiver:
    """The other direction: bytes in, however they are cut."""

    def __init__(self, key: bytes, *, from_witness: bool) -> None:
        self._key, self._from_witness, self._number = key, from_witness, 0
        self._data = bytearray()
        self._dead = False

    def rekey(self, key: bytes) -> None:
        self._key = key

    def feed(self, data: bytes) -> None:
        """More bytes, of which :meth:`frames` makes frames."""
        self._data += data

    def frames(self) -> Iterator[Frame]:
        """Those that are whole, one by one, so that a key can change in between. Raises WireError, and ever after."""
        while (frame := self._next()) is not None:
            yield frame

    def _next(self) -> Frame | None:
        if self._dead:
            raise WireError("the connection is over")
        if len(self._data) < LENGTH:
            return None
        length = int.from_bytes(self._data[:LENGTH], "little")
        if not HEAD.size - LENGTH + TAG <= length <= HEAD.size - LENGTH + TAG + LONGEST:
            raise self._end("a frame of an impossible length")
        if len(self._data) < LENGTH + length:
            return None
        frame = bytes(self._data[: LENGTH + length])
        signed, tag = frame[:-TAG], frame[-TAG:]
        del self._data[: LENGTH + length]
        if not hmac.compare_digest(tag, _tag(self._key, self._from_witness, signed)):
            raise self._end("a frame with a wrong tag (another key, or somebody in between)")
        _, kind, run, session, number = HEAD.unpack_from(signed)
        if number != self._number:
            raise self._end(f"frame {number} where {self._number} comes next")
        try:
            known = Kind(kind)
        except ValueError:
            raise self._end(f"a frame of kind {kind}, which a later version may know") from None
        if (known in FROM_WITNESS) is not self._from_witness:
            raise self._end("a frame of the other direction")
        self._number += 1
        return Frame(known, run, session, number, signed[HEAD.size :])

    def _end(self, why: str) -> WireError:
        self._dead = True
        self._data.clear()
        return WireError(why)


# What a witness knows of a run: frames that it accepts in their order, and the log that they are kept in.
#
#    zauditW1 | run 16 | CRC-32 u32                  once
#    length u32 | CRC-32 u32 | kind u8 | session u32 | number u64 | body
#
# The log is all there is: what a run came to is computed from it, by the witness and by whoever has a copy. A record that is
# not whole, and all behind it, counts for nothing: it can only be of the moment in which the witness died.

MAGIC = b"zauditW1"
RECORD = struct.Struct("<II")
KEPT = struct.Struct("<BIQ")
SUFFIX = ".log"
STREAMS, SESSIONS, FAILURES = 64, 10_000, 32  # of a session, of a run, of a stream: more are refused
MANIFEST = LONGEST // 2  # bytes of OPEN: WELCOME repeats it
RUNS = 1_000
# of which a log consists
KEPT_KINDS = frozenset({Kind.HELLO, Kind.OPEN, Kind.ACK, Kind.FAIL, Kind.CUT, Kind.FOUND, Kind.STOP})


class StoreError(Stop):
    """A store that cannot be read or written."""


class StoreFull(StoreError):
    """The disk of the witness, or its --limit."""

    exit_code = EXIT_BROKE


class Stream:
    def __init__(self, layout: Layout) -> None:
        self.layout, self.newest = layout, 0
        self.failed: set[int] = set()

    def add(self, generation: int, *, failed: bool = False) -> None:
        """The next one. Raises WireError for any other."""
        if generation != self.newest + 1:
            raise WireError(f"generation {generation} where {self.newest + 1} comes next")
        if failed:
            if len(self.failed) == FAILURES:
                raise WireError(f"more than {FAILURES} flushes that failed")
            self.failed.add(generation)
        self.newest = generation


@dataclass
class Session:
    """From HELLO on. A session with streams ends with STOP, or by a power cut; one without reports what it found."""

    number: int
    hello: dict[str, Any]
    manifest: dict[str, Any] = field(default_factory=dict)
    streams: dict[int, Stream] = field(default_factory=dict)
    stopped: bool = False
    cut: bool = False  # the witness ordered it

    def __getitem__(self, name: str) -> str:
        """A word of HELLO; empty where it has none."""
        value = self.hello.get(name, "")
        return value if isinstance(value, str) else ""


class Run:
    def __init__(self, run: bytes) -> None:
        self.run = run
        self.size, self.digest = 0, ""  # bytes of its log that are whole, and their SHA-256
        self.sessions: list[Session] = []
        self.found: dict[int, dict[str, Any]] = {}  # by the session that it is about

    @property
    def writing(self) -> Session | None:
        """The newest session that wrote."""
        return next((each for each in reversed(self.sessions) if each.streams), None)

    def add(self, frame: Frame) -> None:
        """What a frame adds. Raises WireError for one that does not belong here, and is as before then."""
        if frame.run != self.run:
            raise WireError("a frame of another run")
        if frame.kind is Kind.HELLO:
            self._hello(frame)
            return
        if not self.sessions or frame.session != self.sessions[-1].number:
            raise WireError(f"a frame of session {frame.session}, which is over")
        session = self.sessions[-1]
        if session.stopped:
            raise WireError("a frame behind the end of its session")
        match frame.kind:
            case Kind.OPEN if not session.manifest and not session.hello.get("checks") and len(frame.body) <= MANIFEST:
                manifest = frame.document()
                session.streams = streams_of(manifest, mark_of(self.run, session.number))
                session.manifest = manifest
            case Kind.ACK if len(frame.body) == COMMIT.size:
                stream, generation = COMMIT.unpack(frame.body)
                _known(session, stream).add(generation)
            case Kind.FAIL if len(frame.body) == FAILED.size:
                stream, generation, _ = FAILED.unpack(frame.body)
                _known(session, stream).add(generation, failed=True)
            case Kind.FOUND if session.hello.get("checks"):
                self._found(frame.document())
            case Kind.CUT if session.streams:
                session.cut = True
            case Kind.STOP:
                session.stopped = True
            case _:
                raise WireError(f"a frame {frame.kind.name} that is not for this session")

    def _hello(self, frame: Frame) -> None:
        hello = frame.document()
        if frame.session != len(self.sessions) + 1 or frame.session > SESSIONS:
            raise WireError(f"session {frame.session} where {len(self.sessions) + 1} comes next")
        machine = hello.get("machine")
        if not isinstance(machine, str) or not isinstance(hello.get("boot"), str):
            raise WireError("a host that does not say which machine and which boot it is")
        if self.sessions and self.sessions[0]["machine"] != machine:
            raise WireError("this run belongs to another host: begin one of your own (zaudit powercut start)")
        self.sessions.append(Session(frame.session, hello))

    def _found(self, found: dict[str, Any]) -> None:
        number = found.get("session")
        if not isinstance(number, int) or not any(each.number == number and each.streams for each in self.sessions):
            raise WireError(f"a check of session {harmless(str(number)[:20])}, which wrote nothing")
        self.found.setdefault(number, found)  # the first check counts: a later one may find what was repaired


def _known(session: Session, stream: int) -> Stream:
    if stream not in session.streams:
        raise WireError(f"a commit of stream {stream}, which is not open")
    return session.streams[stream]


def streams_of(manifest: dict[str, Any], mark: str) -> dict[int, Stream]:
    """The streams that a session opens. Raises WireError."""
    listed = manifest.get("streams")
    if not isinstance(listed, list) or not 0 < len(listed) <= STREAMS:
        raise WireError(f"a session that opens none, or more than {STREAMS} streams")
    found: dict[int, Stream] = {}
    for each in listed:
        try:
            layout = codec.load(Layout, each)
        except codec.CodecError as error:
            raise WireError(f"a stream that cannot be read: {error}") from None
        if why := layout.fault() or ("the mark is not that of its session" if layout.mark != mark else ""):
            raise WireError(f"a stream that cannot be: {why}")
        if layout.stream in found:
            raise WireError("two streams of one number")
        found[layout.stream] = Stream(layout)
    return found


# -- the log ------------------------------------------------------------------------------------------------------


def record(frame: Frame) -> bytes:
    body = KEPT.pack(frame.kind, frame.session, frame.number) + frame.body
    return RECORD.pack(len(body), zlib.crc32(body)) + body


def read(file: BinaryIO) -> tuple[Run | None, int]:
    """(the run, bytes of its log that are whole); no run where not even the head is whole. Raises StoreError for a log of
    another version, or one whose records do not follow from each other."""
    head = file.read(len(_head(MAGIC, bytes(16))))
    magic, run = head[: len(MAGIC)], Run(head[len(MAGIC) : len(MAGIC) + 16])
    if head != _head(magic, run.run):
        return None, 0
    if magic != MAGIC:
        raise StoreError("is of a later version of zaudit")
    whole, digest = len(head), hashlib.sha256(head)
    while (frame := _next(file, run.run)) is not None:
        try:
            run.add(frame)
        except WireError as error:
            raise StoreError(f"is damaged at byte {whole}: {error}") from None
        data = record(frame)
        whole += len(data)
        digest.update(data)
    run.size, run.digest = whole, digest.hexdigest()
    return run, whole


def _head(magic: bytes, run: bytes) -> bytes:
    return magic + run + zlib.crc32(magic + run).to_bytes(4, "little")


def _next(file: BinaryIO, run: bytes) -> Frame | None:
    """The next record, None where there is no whole one."""
    head = file.read(RECORD.size)
    if len(head) < RECORD.size:
        return None
    length, crc = RECORD.unpack(head)
    if not KEPT.size <= length <= KEPT.size + LONGEST:
        return None
    body = file.read(length)
    if len(body) < length or zlib.crc32(body) != crc:
        return None
    kind, session, number = KEPT.unpack_from(body)
    if kind not in KEPT_KINDS:
        raise StoreError(f"has a record of kind {kind}: a later version of zaudit wrote it")
    return Frame(Kind(kind), run, session, number, body[KEPT.size :])


class Log:
    """The log of one run, open to be written. sync: what makes it durable."""

    def __init__(self, folder: int, run: bytes, limit: int, sync: Callable[[int], object] = os.fdatasync) -> None:
        """Raises StoreError."""
        self.name, self._limit, self._sync = f"{run.hex()}{SUFFIX}", limit, sync
        self._waiting = bytearray()
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            self._fd = os.open(self.name, flags, 0o600, dir_fd=folder)
            os.fsync(folder)
            self.run, self.size = self._recover(folder, run)
        except OSError as error:
            raise StoreFull(f"{self.name}: {error.strerror}") from None

    def _recover(self, folder: int, run: bytes) -> tuple[Run, int]:
        """What the log has; what is not whole behind it is kept in a separate file, and cut off."""
        with os.fdopen(os.dup(self._fd), "rb") as file:
            try:
                known, whole = read(file)
            except StoreError as error:
                raise StoreError(f"{self.name} {error}") from None
            file.seek(whole)
            rest = file.read()
        if known is not None and known.run != run:
            raise StoreError(f"{self.name} is the log of another run")
        if rest:
            name = f"{self.name}.{whole}.torn"
            torn = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
            with os.fdopen(torn, "wb") as copy:
                copy.write(rest)
                copy.flush()
                os.fsync(copy.fileno())
        os.ftruncate(self._fd, whole)
        self._sync(self._fd)
        if known is None:
            known, whole = Run(run), self._write(_head(MAGIC, run), 0)
            self._sync(self._fd)
        return known, whole

    def add(self, frame: Frame) -> None:
        """It is in the log after the next :meth:`sync`. Raises WireError and StoreFull."""
        data = record(frame)
        if self.size + len(self._waiting) + len(data) > self._limit:
            raise StoreFull(f"{self.name}: larger than --limit")
        self.run.add(frame)
        self._waiting += data

    def sync(self) -> None:
        """What was added is durable now. Raises StoreFull, and nothing more is to be added then."""
        try:
            self.size = self._write(bytes(self._waiting), self.size)
            self._sync(self._fd)
        except OSError as error:
            raise StoreFull(f"{self.name}: {error.strerror}") from None
        self._waiting.clear()

    def _write(self, data: bytes, at: int) -> int:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._fd, view, at)
            view, at = view[written:], at + written
        return at

    def close(self) -> None:
        os.close(self._fd)


def runs(folder: int, limit: int) -> list[tuple[str, Run]]:
    """All of a store, to be read: (name of the log, the run). Raises StoreError."""
    found = []
    for name in user_files.names(folder, 4 * RUNS):
        if not name.endswith(SUFFIX):
            continue
        file = user_files.open_member(name, folder)
        if file is None:
            raise StoreError(f"{harmless(name)} is no plain file")
        with file:
            if user_files.size(file) > limit:
                raise StoreError(f"{harmless(name)}: larger than --limit")
            try:
                run, _ = read(file)
            except StoreError as error:
                raise StoreError(f"{harmless(name)} {error}") from None
        if run:
            found.append((name, run))
    return found
