"""The cache file of pools: their names are kept, and nothing else of it."""

from __future__ import annotations

import struct

import pytest

from auditor.host import pool_cache
from auditor.host.telling import told

BODY = struct.pack(">iIII", 0, 1, 0, 0) + b"\0" * 8  # of a pool: an empty list


def packed(*names: bytes) -> bytes:
    """As nvlist_pack() of libnvpair 2.1.11 does it: checked against it."""
    pairs = b""
    for name in names:
        rest = struct.pack(">I", len(name)) + name + b"\0" * (-len(name) % 4) + struct.pack(">II", 19, 1) + BODY
        pairs += struct.pack(">II", 8 + len(rest), 48) + rest
    return b"\1\1\0\0" + struct.pack(">II", 0, 1) + pairs + b"\0" * 8


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (packed(b"rpool", b"tank"), "rpool\ntank\n"),
        (packed(), ""),
        (b"", ""),
        (packed(b"tank")[:-1], "?\n"),
        (packed(b"tank")[:40], "?\n"),
        (packed(b"tank") + b"x", "?\n"),
        (packed(b"tank\npassword"), "?\n"),
        (packed(b"t\xff"), "?\n"),
        (b"\1\1\0\0", "?\n"),
        (b"\1" + b"\xff" * 1000, "?\n"),
        (b"password=secret\n", "?\n"),
    ],
)
def test_names(data: bytes, kept: str) -> None:
    text = data.decode("utf-8", "surrogateescape")
    assert told(pool_cache.PATH, text) == kept
    assert told(pool_cache.PATH, kept) == kept
