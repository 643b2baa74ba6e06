"""In the guest: what all programs that commit share. Commits are numbered from 0; commit n is there when its record is."""

import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

RECORD = 8192


Ack = Callable[[int], object]


@dataclass
class Left:
    """What is there after the power cut."""

    have: set[int] = field(default_factory=set)
    damage: list[str] = field(default_factory=list)


def record(number: int, size: int = RECORD) -> bytes:
    """The number, something that compresses by half, a check sum."""
    body = (struct.pack("<Q", number) + os.urandom(64) * (size // 128) + bytes(size))[: size - 4]
    return body + struct.pack("<I", zlib.crc32(body))


def number_of(data: bytes, size: int = RECORD) -> int:
    """The number of an intact record, -1 for anything else."""
    if len(data) != size or zlib.crc32(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
        return -1
    return int.from_bytes(data[:8], "little")


class Workload(Protocol):
    """A program that commits."""

    def prepare(self) -> None:
        """Files and tables, before anything counts."""

    def run(self, ack: Ack) -> NoReturn:
        """Commit until the power is gone."""

    def stop(self, *, killed: bool) -> None:
        """End what goes on without run(): a server, in order, or killed."""

    def check(self) -> Left:
        """After it."""


class Alone:
    """A program that is no more than its run()."""

    def stop(self, *, killed: bool) -> None:
        """Nothing goes on without it."""
