"""Drives of a guest in memory, over NBD, whose requests are written down in one order.

A write is done when it is answered, LAG_S after it arrived, and a flush when it arrives: one that does not wait for a write
overtakes it in the recording, as it does on a drive. A discard is a write of zeros.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.lab.points.recording import Entry, Kind
from tests.lab.power import disks as nbd

LAG_S = 0.0002
Waiting = queue.SimpleQueue[tuple[Entry, int] | None]


class Drives:
    """images: what the guest reads. entries: all requests since they were last taken."""

    def __init__(self, folder: Path, images: Mapping[str, bytes]) -> None:
        self.images = {name: bytearray(data) for name, data in images.items()}
        self.sockets = {name: folder / name for name in images}
        self.entries: list[Entry] = []
        self.lag = 0.0
        self.lock = threading.Lock()
        self.number = 0
        for name, path in self.sockets.items():
            threading.Thread(target=nbd.listen, args=(path, partial(self.serve, name=name)), daemon=True).start()

    def write(self, name: str, offset: int, data: bytes) -> None:
        """By the host, while no guest uses it."""
        self.images[name][offset : offset + len(data)] = data

    def take(self) -> list[Entry]:
        with self.lock:
            found, self.entries = self.entries, []
        return found

    def serve(self, connection: socket.socket, name: str) -> None:
        """One client of one drive, until it leaves."""
        waiting: Waiting = queue.SimpleQueue()
        sending = threading.Lock()
        completer = threading.Thread(target=self._complete, args=(connection, sending, waiting), daemon=True)
        completer.start()
        with connection:
            with contextlib.suppress(EOFError, OSError):
                if nbd.negotiate(connection, len(self.images[name]), nbd.HAS_FLAGS | nbd.SEND_FLUSH | nbd.SEND_TRIM):
                    while self._request(connection, name, sending, waiting):
                        pass
            waiting.put(None)
            completer.join()

    def _request(self, connection: socket.socket, name: str, sending: threading.Lock, waiting: Waiting) -> bool:
        _, _, command, handle, offset, length = nbd.REQUEST.unpack(nbd.receive(connection, nbd.REQUEST.size))
        if command == nbd.DISCONNECT:
            return False
        data = nbd.receive(connection, length) if command == nbd.WRITE else bytes(length if command == nbd.TRIM else 0)
        error = 0
        with self.lock:
            if command in (nbd.WRITE, nbd.TRIM):
                self.images[name][offset : offset + length] = data
                self.number += 1  # a guest has no threads: each request is one by itself
                waiting.put((Entry(Kind.WRITE, name, offset, data, length, self.number), handle))
                return True
            if command == nbd.READ:
                data = bytes(memoryview(self.images[name])[offset : offset + length])
                self.entries.append(Entry(Kind.READ, name, offset, b"", length, 0))
            elif command == nbd.FLUSH:
                self.entries.append(Entry(Kind.FLUSH, name, 0, b"", 0, 0))
            else:
                error = nbd.EINVAL
        _answer(connection, sending, handle, error, data)
        return True

    def _complete(self, connection: socket.socket, sending: threading.Lock, waiting: Waiting) -> None:
        while each := waiting.get():
            entry, handle = each
            if self.lag:
                time.sleep(self.lag)
            with self.lock:
                self.entries.append(entry)
            _answer(connection, sending, handle, 0, b"")


def _answer(connection: socket.socket, sending: threading.Lock, handle: int, error: int, data: bytes) -> None:
    with sending, contextlib.suppress(OSError):
        connection.sendall(nbd.REPLY.pack(nbd.REPLY_MAGIC, error, handle) + data)
