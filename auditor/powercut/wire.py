"""Frames between a host that writes and its witness: authenticated, numbered, bounded. No I/O, no clock.

    length u32 | kind u8 | run 16 | session u32 | number u64 | body | tag 16

The tag is HMAC-SHA-256 over the direction and all before it. The witness opens with a nonce, the host answers with its own, and
both count into the key of all that follows: of what was recorded from another connection, nothing is accepted. Numbers go up by
one. Whatever is wrong with a frame ends the connection; nothing behind it is looked at.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from auditor.errors import Stop

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
        return document(self.body)


def document(body: bytes) -> dict[str, Any]:
    """The object that bytes are. Raises WireError."""
    try:
        found = json.loads(body)
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
        """From the next frame on."""
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
        """From the next frame on."""
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
