"""psycopg and PyMySQL as far as zaudit uses them: they connect to a socket of the test, and whoever made it answers for the
server. What they were asked, and what they would have sent, is noted."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


class ConnStatus(IntEnum):
    """Of libpq."""

    OK, BAD, STARTED, MADE, AWAITING_RESPONSE = range(5)


class PollingStatus(IntEnum):
    """Of libpq."""

    FAILED, READING, WRITING, OK = range(4)


class Drivers:
    """Both. at: the address of the server that they connect to, whatever the DSN says. server: is the connection, once it is
    made. version: of libpq. conninfo: what psycopg was told, for each connection that it began. sent: how often it sent
    anything. words: what PyMySQL was told. password: that it has. paths: of unix sockets that it connected to."""

    def __init__(self, at: Any, server: Any) -> None:
        self.at, self.server = at, server
        self.version = 170000
        self.conninfo: list[tuple[str, dict[str, str]]] = []
        self.sent = 0
        self.words: list[dict[str, Any]] = []
        self.password = b""
        self.paths: list[str] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In the place of those that are installed."""
        drivers = self

        class Link:
            """PGconn: three steps, in the second of which it sends something."""

            def __init__(self) -> None:
                unix = not isinstance(drivers.at, tuple)
                self.socket_ = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
                self.socket_.connect(drivers.at)
                self.status, self.nonblocking, self.error_message = ConnStatus.STARTED, 0, b""
                self.host = os.fsencode(os.path.dirname(drivers.at)) if unix else b"127.0.0.1"
                self.port = b"5432"
                self.socket = self.socket_.fileno()

            @classmethod
            def connect_start(cls, text: bytes) -> Link:
                return cls()

            def connect_poll(self) -> PollingStatus:
                if self.status == ConnStatus.STARTED:
                    self.status = ConnStatus.MADE
                    return PollingStatus.WRITING
                drivers.sent += 1
                self.status = ConnStatus.OK
                return PollingStatus.OK

            def finish(self) -> None:
                self.socket_.close()

        class Connection:
            """Of PyMySQL."""

            def __init__(self, defer_connect: bool, **words: Any) -> None:
                assert defer_connect
                drivers.words.append(words)
                self.unix_socket = words.get("unix_socket", "" if "host" in words else drivers.at)
                self.host, self.port, self.bind_address = words.get("host"), words.get("port", 3306), None
                self.password, self.open = drivers.password, False

            def connect(self, link: socket.socket | None = None) -> None:
                if link is None:
                    drivers.paths.append(os.readlink(self.unix_socket))
                else:
                    link.close()
                drivers.sent += 1

            def __getattr__(self, name: str) -> Any:
                return getattr(drivers.server, name)

        def make_conninfo(dsn: str, **words: str) -> str:
            self.conninfo.append((dsn, words))
            return dsn

        def connected(link: Link) -> Any:
            link.finish()
            return self.server

        psycopg, pymysql = ModuleType("psycopg"), ModuleType("pymysql")
        pq, conninfo = ModuleType("psycopg.pq"), ModuleType("psycopg.conninfo")
        vars(pq).update(PGconn=Link, ConnStatus=ConnStatus, PollingStatus=PollingStatus, version=lambda: self.version)
        vars(conninfo).update(make_conninfo=make_conninfo)
        vars(psycopg).update(pq=pq, conninfo=conninfo, Connection=connected, OperationalError=RuntimeError)
        vars(pymysql).update(connect=Connection)
        for module in (psycopg, pymysql, pq, conninfo):
            monkeypatch.setitem(sys.modules, module.__name__, module)


@contextlib.contextmanager
def listening(folder: Path) -> Iterator[str]:
    """The path of a unix socket on which this process listens."""
    with socket.socket(socket.AF_UNIX) as server:
        path = str(folder / "s")
        server.bind(path)
        server.listen()
        yield path


Installed = Callable[[Any], Drivers]
