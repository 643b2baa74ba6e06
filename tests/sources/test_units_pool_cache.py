"""The cache file of pools: their names are kept, and nothing else of it."""

from __future__ import annotations

import struct

import pytest

from auditor.host.live import allowed_part
from auditor.sources import units

NO_LIST, LIST, LISTS = 8, 19, 20  # data_type_t: a number of 64 bits, a list, an array of lists
END = bytes(4)


def pair(name: bytes, kind: int, elements: int, value: bytes, within: bytes = b"", order: str = "<") -> bytes:
    """As nvlist_pack() of libnvpair 2.1.11 does it: checked against it."""
    head = name + b"\0" * (8 - len(name) % 8) + value
    return struct.pack(f"{order}IHHII", 16 + len(head), len(name) + 1, 0, elements, kind) + head + within


def packed(*names: bytes, order: str = "<") -> bytes:
    """The cache file of such pools, each with vdevs in lists of lists."""
    number = pair(b"guid", NO_LIST, 1, b"\1\2\3\4\0\0\0\0", order=order)
    leaf = number + pair(b"tail", LISTS, 1, bytes(8 + 24), END, order) + END
    tree = number + pair(b"children", LISTS, 2, bytes(2 * (8 + 24)), leaf + leaf, order) + END
    pool = number + pair(b"vdev_tree", LIST, 1, struct.pack(f"{order}II", 0, 1) + bytes(16), tree, order) + number + END
    pools = b"".join(pair(name, LIST, 1, struct.pack(f"{order}II", 0, 1) + bytes(16), pool, order) for name in names)
    return bytes((0, order == "<", 0, 0)) + struct.pack(f"{order}II", 0, 1) + pools + END


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (packed(b"rpool", b"tank"), "rpool\ntank\n"),
        (packed(b"rpool", b"a pool", order=">"), "rpool\na pool\n"),
        (packed(), ""),
        (b"", ""),
        (packed(b"tank")[:-1], "?\n"),
        (packed(b"tank")[:40], "?\n"),
        (packed(b"tank") + b"x", "?\n"),
        (packed(b"tank\npassword"), "?\n"),
        (packed(b"t\xff"), "?\n"),
        (packed(b"tank").replace(b"tank\0", b"tankk"), "?\n"),
        (b"\0\1\0\0", "?\n"),
        (b"\0\1" + b"\xff" * 1000, "?\n"),
        (b"\0\1" + bytes(10) + struct.pack("<IHHII", 16, 1, 0, 2**32 - 1, LISTS), "?\n"),
        (b"\1\1\0\0" + bytes(16), "?\n"),  # XDR
        (b"password=secret\n", "?\n"),
    ],
)
def test_names(data: bytes, kept: str) -> None:
    text = data.decode("utf-8", "surrogateescape")
    assert allowed_part(units.PATH, text) == kept
    assert allowed_part(units.PATH, kept) == kept


def test_wherever_it_ends_too_early_it_is_damaged() -> None:
    whole = packed(b"rpool", b"tank")
    for end in range(1, len(whole)):
        assert units.keep_pool_cache(whole[:end].decode("utf-8", "surrogateescape")) == "?\n"
