"""What recorder.c wrote: one total order of the writes, flushes and acknowledgements of all devices."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

HEAD = struct.Struct("<IIQQQ")  # struct entry of recorder.c
MARKS = "marks"  # the file to which points.c writes an acknowledgement
CHAIN, NEXT_USED, MAGIC_AT = 184, 136, 144  # zil_chain_t: its size, zc_nused, zc_eck.zec_magic (include/sys/zil.h)
MAGIC = 0x210DA7AB10C7A11
WRITE_RECORD, POINTER = 192, 64  # lr_write_t: its size, lr_blkptr
PROPERTIES, FRONT = (
    48,
    4 << 20,
)  # blkptr_t: blk_prop; what lies before offset 0 of a device (include/sys/spa.h, vdev_impl.h)
TX_WRITE = 9


class Kind(IntEnum):
    WRITE = 1
    FLUSH = 2
    READ = 3


class Entry(NamedTuple):
    kind: Kind
    device: str
    offset: int
    data: bytes  # of a write
    length: int
    thread: int

    @property
    def end(self) -> int:
        return self.offset + self.length


class Record(NamedTuple):
    """A write in the log. copied: with its data, not a pointer to a block; then (offset, bytes) of that on its device."""

    offset: int
    length: int
    copied: bool
    block: tuple[int, int] = (0, 0)


class Block(NamedTuple):
    """A block of the intent log. entries: the writes that make it up; used: bytes that its checksum covers."""

    entries: tuple[int, ...]
    device: str
    offset: int
    length: int
    used: int
    records: tuple[Record, ...]


def read(path: Path) -> list[Entry]:
    found = []
    with path.open("rb") as file:
        while head := file.read(HEAD.size):
            kind, name_length, thread, offset, length = HEAD.unpack(head)
            name = file.read(name_length).decode()
            data = file.read(length) if kind == Kind.WRITE else b""
            found.append(Entry(Kind(kind), name, offset, data, length, thread))
    return found


def log_blocks(entries: Iterable[Entry]) -> Iterator[Block]:
    """libzpool writes each block in two parts, one after the other of the same thread, cut at a random sector."""
    begun: dict[int, tuple[tuple[int, ...], Entry, bytes]] = {}
    for number, entry in enumerate(entries):
        if entry.kind != Kind.WRITE or entry.device == MARKS:
            continue
        before = begun.pop(entry.thread, None)
        follows = before and before[1].device == entry.device and before[1].offset + len(before[2]) == entry.offset
        if before and follows and not _begins_block(entry.data):
            numbers, first, data = before[0] + (number,), before[1], before[2] + entry.data
        else:
            if before and (block := _parse(*before)):
                yield block
            numbers, first, data = (number,), entry, entry.data
        begun[entry.thread] = numbers, first, data
        if len(numbers) == 2 and (block := _parse(*begun.pop(entry.thread))):
            yield block
    for each in begun.values():
        if block := _parse(*each):
            yield block


def _begins_block(data: bytes) -> bool:
    return len(data) >= CHAIN and bool(struct.unpack_from("<Q", data, MAGIC_AT)[0] == MAGIC)


def _parse(entries: tuple[int, ...], first: Entry, data: bytes) -> Block | None:
    if not _begins_block(data):
        return None
    used = struct.unpack_from("<Q", data, NEXT_USED)[0]
    return Block(entries, first.device, first.offset, len(data), used, tuple(_records(data[:used])))


def _block(pointer: bytes) -> tuple[int, int]:
    """Of blkptr_t: its first DVA, in sectors behind the labels, and its physical size. Nothing where the data is in place."""
    place, properties = struct.unpack_from("<8xQ", pointer)[0], struct.unpack_from("<Q", pointer, PROPERTIES)[0]
    if not properties:
        return 0, 0
    return ((place & (1 << 63) - 1) << 9) + FRONT, ((properties >> 16 & 0xFFFF) + 1) << 9


def _records(data: bytes) -> Iterator[Record]:
    at = CHAIN
    while at + 32 <= len(data):
        kind, length = struct.unpack_from("<QQ", data, at)
        if length == 0:
            return
        if kind & 0xFF == TX_WRITE:
            offset, size = struct.unpack_from("<QQ", data, at + 40)
            copied = length > WRITE_RECORD
            yield Record(offset, size, copied, (0, 0) if copied else _block(data[at + POINTER : at + WRITE_RECORD]))
        at += length
