"""The witness: a server on another machine that keeps what hosts report. It needs neither root nor ZFS.

One thread, one loop: check what came, add it to the logs, sync the logs, and only then tell the hosts. So whatever a host
was told is in the log after the death of the witness, and only the holder of the key can have sent what is in the log."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import random
import re
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auditor import Stop
from auditor.host import process, trust, user_files
from auditor.host.live import ENVIRONMENT
from auditor.host.process import Time
from auditor.host.trust import held
from auditor.powercut import wire
from auditor.powercut.sectors import Receipts
from auditor.powercut.wire import Frame, Kind, Receiver, Sender, StoreError, StoreFull, WireError
from auditor.text import harmless
from auditor.verify import ledger

PORT = 5409
CONNECTIONS = 32  # at once; more are closed
GREETING_S = 10.0  # in which a connection says who it is
CHUNK = 64 << 10
TICK_S = 0.2
CUT_AFTER_S = (5.0, 30.0)  # after the first commit of a session, a random time
CUT_WITHIN_S = 0.05  # and then after the next receipt: the latency of a switch is spread over the window
CUT_S = 60.0  # in which the program that cuts ends
NONCE = 16
Say = Callable[[str], object]


class KeyFault(Stop):
    """A key that cannot be used."""


def read_key(path: Path) -> bytes:
    """The shared key: a file that nobody else may read, or standard input (``-``). Raises KeyFault."""
    try:
        if (number := user_files.stream(path)) is not None or str(path) == "-":
            with os.fdopen(os.dup(number if number and number != 1 else 0), "rb") as file:
                key = file.read(wire.LONGEST_KEY + 1)
        else:
            descriptor = user_files.open_as(path, user_files.FILE)
            with os.fdopen(descriptor, "rb") as file:
                if not user_files.private(file):
                    raise KeyFault(f"{path}: others may read or change it (chmod 600 {path}, and be its owner)")
                key = file.read(wire.LONGEST_KEY + 1)
    except OSError as error:
        raise KeyFault(f"{path}: {error.strerror}") from None
    key = key.strip()
    if not wire.SHORTEST_KEY <= len(key) <= wire.LONGEST_KEY:
        raise KeyFault(f"{path}: a key has {wire.SHORTEST_KEY} to {wire.LONGEST_KEY} bytes (openssl rand -hex 32)")
    return hashlib.sha256(b"zaudit powercut key" + key).digest()


@dataclass
class Connection:
    socket: socket.socket
    peer: str
    receiver: Receiver
    sender: Sender
    nonce: bytes
    until: float  # it has said who it is
    out: bytearray = field(default_factory=bytearray)
    log: wire.Log | None = None
    session: int = 0
    newest: int = -1  # number of the last frame that was added
    cut_at: float = 0.0  # the witness cuts at the next commit after this


class Witness:
    """All connections, all logs. cut: the program that cuts the power of the host, or none."""

    def __init__(
        self, store: Path, key: bytes, limit: int, say: Say = print, cut: Path | None = None,
        sync: Callable[[int], object] = os.fdatasync,
    ) -> None:  # fmt: skip
        """Raises StoreError, NoPlace."""
        if cut is not None and (why := process.refusal(str(cut)) or ("" if os.path.isfile(cut) else "it is no file")):
            raise StoreError(f"{cut}: not run: {why}")
        self._key, self._limit, self._say, self._cut, self._sync = key, limit, say, cut, sync
        with held(str(store), make=True) as folder:
            self._folder = os.dup(folder)
        if trust.doubt(self._folder, str(store), self._folder, "."):
            raise StoreError(f"{store}: others could put something there: choose a folder of your own")
        lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self._folder)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise StoreError(f"{store}: another witness uses it") from None
        self._lock = lock
        self._connections: list[Connection] = []
        self._logs: dict[bytes, wire.Log] = {}
        self._selector = selectors.DefaultSelector()

    def serve(self, listener: socket.socket, ended: Callable[[], bool] = lambda: False) -> None:
        """Until it is ended. Raises StoreFull where nothing more can be kept."""
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)
        try:
            while not ended():
                for key, _ in self._selector.select(TICK_S):
                    if key.fileobj is listener:
                        self._accept(listener)
                    else:
                        self._hear(key.data)
                self._settle()
        finally:
            self.close()

    def close(self) -> None:
        for each in list(self._connections):
            self._drop(each)
        for log in self._logs.values():
            log.close()
        self._logs.clear()
        self._selector.close()
        os.close(self._lock)
        os.close(self._folder)

    # -- connections ----------------------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        try:
            accepted, address = listener.accept()
        except OSError:  # it has gone again, or there are no descriptors left
            return
        if len(self._connections) >= CONNECTIONS:
            if (oldest := next((each for each in self._connections if each.log is None), None)) is None:
                accepted.close()
                return
            self._drop(oldest)  # who has no key keeps nobody out
        accepted.setblocking(False)
        with contextlib.suppress(OSError):
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        peer = harmless(str(address[0] if isinstance(address, tuple) else address))
        both = Receiver(self._key, from_witness=False), Sender(self._key, from_witness=True)
        new = Connection(accepted, peer, *both, secrets.token_bytes(NONCE), time.monotonic() + GREETING_S)
        self._connections.append(new)
        self._selector.register(accepted, selectors.EVENT_READ, new)
        self._send(new, Kind.CHALLENGE, wire.NO_RUN, new.nonce)

    def _hear(self, here: Connection) -> None:
        if here not in self._connections:
            return  # dropped within this round
        try:
            data = here.socket.recv(CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._drop(here)
            return
        here.receiver.feed(data)
        try:
            for frame in here.receiver.frames():
                self._take(here, frame)
        except (WireError, StoreError) as error:
            self._refuse(here, error)

    def _refuse(self, here: Connection, error: Stop) -> None:
        self._say(f"{here.peer}: {error}")
        run = here.log.run.run if here.log else wire.NO_RUN
        if here.session:
            self._send(here, Kind.REFUSED, run, str(error).encode()[:500])
        self._settle_one(here)
        self._drop(here)

    def _drop(self, here: Connection) -> None:
        if here in self._connections:
            self._connections.remove(here)
            self._selector.unregister(here.socket)
            here.socket.close()
            if here.log and not any(each.log is here.log for each in self._connections):
                with contextlib.suppress(StoreError):
                    here.log.sync()
                here.log.close()
                self._logs.pop(here.log.run.run, None)

    def _send(self, here: Connection, kind: Kind, run: bytes, body: bytes = b"") -> None:
        _, data = here.sender.frame(kind, run, max(here.session, 0), body)
        here.out += data
        try:
            sent = here.socket.send(here.out)
            del here.out[:sent]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._drop(here)
        if len(here.out) > CHUNK:  # it does not read: it is no host of ours
            self._drop(here)

    # -- frames ---------------------------------------------------------------------------------------------------

    def _take(self, here: Connection, frame: Frame) -> None:
        if here.log is None:
            self._greet(here, frame)
            return
        if frame.kind is Kind.CUT or frame.session != here.session:
            raise WireError("a frame that no host sends")
        here.log.add(frame)
        here.newest = frame.number
        if frame.kind is Kind.OPEN:
            self._say(f"{here.peer}: session {here.session} writes")
        elif frame.kind is Kind.ACK and self._cut:
            self._aim(here)

    def _greet(self, here: Connection, frame: Frame) -> None:
        """HELLO, and what the host needs to go on. Raises WireError and StoreError."""
        if frame.kind is not Kind.HELLO or frame.run == wire.NO_RUN:
            raise WireError("a connection that does not begin with HELLO")
        hello = frame.document()
        nonces = hello.pop("nonce", None), hello.pop("challenge", None)
        if nonces[1] != here.nonce.hex() or not re.fullmatch(f"[0-9a-f]{{{2 * NONCE}}}", str(nonces[0])):
            raise WireError("a HELLO that was recorded from another connection")
        key = wire.connection_key(self._key, frame.run, bytes.fromhex(str(nonces[0])), here.nonce)
        here.sender.rekey(key)
        here.receiver.rekey(key)
        here.session = -1  # it has the key, and may know from now on why it is refused
        if hello.get("protocol") != wire.PROTOCOL:
            raise WireError(
                f"the host speaks protocol {harmless(str(hello.get('protocol'))[:20])}, this is {wire.PROTOCOL}"
            )
        log = self._log(frame.run)
        body = wire.encoded({**hello, "here": ledger.boot_id() == hello.get("boot")})
        session = len(log.run.sessions) + 1
        log.add(Frame(Kind.HELLO, frame.run, session, 0, body))
        log.sync()
        others = [each for each in self._connections if each.log is log]
        here.log, here.session, here.newest = log, session, frame.number
        for other in others:
            self._drop(other)  # half open since the power went, or of a host that began again
        before = log.run.writing
        self._send(here, Kind.WELCOME, frame.run, wire.encoded(_known(before)))
        self._say(f"{here.peer}: run {frame.run.hex()[:8]}, session {session}")
        if log.run.sessions[-1].hello["here"]:
            self._say("the witness runs on the machine that is to be cut: it will know nothing afterwards")

    def _log(self, run: bytes) -> wire.Log:
        if run not in self._logs:
            kept = sum(name.endswith(wire.SUFFIX) for name in user_files.names(self._folder, 4 * wire.RUNS))
            if kept >= wire.RUNS and f"{run.hex()}{wire.SUFFIX}" not in user_files.names(self._folder, 4 * wire.RUNS):
                raise StoreError(f"the store has {wire.RUNS} runs: move it away, or begin another")
            self._logs[run] = wire.Log(self._folder, run, self._limit, self._sync)
        return self._logs[run]

    def _settle(self) -> None:
        """The end of a round: sync what was added, tell the hosts, let go of who said nothing."""
        for each in list(self._connections):
            if each.log is None and time.monotonic() > each.until:
                self._drop(each)
            else:
                self._settle_one(each)

    def _settle_one(self, here: Connection) -> None:
        if here.log is None or here.newest < 0:
            return
        try:
            here.log.sync()
        except StoreFull as error:
            self._logs.pop(here.log.run.run, None)
            here.log.close()
            here.newest, here.log = -1, None
            self._say(str(error))
            self._send(here, Kind.REFUSED, wire.NO_RUN, str(error).encode()[:500])
            self._drop(here)
            return
        newest, here.newest = here.newest, -1
        self._send(here, Kind.SEEN, here.log.run.run, wire.NUMBER.pack(newest))

    # -- the cut --------------------------------------------------------------------------------------------------

    def _aim(self, here: Connection) -> None:
        """Order the cut of a session, once, a random time after a receipt."""
        now = time.monotonic()
        if not here.cut_at:
            here.cut_at = now + random.SystemRandom().uniform(*CUT_AFTER_S)
        elif now > here.cut_at:
            here.cut_at = float("inf")
            assert here.log
            here.log.add(Frame(Kind.CUT, here.log.run.run, here.session, 0))
            here.log.sync()
            self._say(f"{here.peer}: session {here.session} is cut: {self._cut}")
            threading.Thread(target=self._run_cut, args=(here.log.run.run, here.session), daemon=True).start()

    def _run_cut(self, run: bytes, session: int) -> None:
        time.sleep(random.SystemRandom().uniform(0, CUT_WITHIN_S))
        done = process.run((str(self._cut), run.hex(), str(session)), Time.of(CUT_S), ENVIRONMENT)
        if done.exit != 0:
            self._say(f"{self._cut}: {done.fault or f'exit code {done.exit}'}")


def listen(address: tuple[str, int]) -> socket.socket:
    """Where hosts connect; [::] is IPv4, too. Raises StoreError."""
    try:
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        both = family == socket.AF_INET6 and address[0] == "::"
        return socket.create_server(address, family=family, dualstack_ipv6=both and socket.has_dualstack_ipv6())
    except OSError as error:
        raise StoreError(f"{address[0]}:{address[1]}: {error.strerror or error}") from None


def _known(session: wire.Session | None) -> dict[str, Any]:
    """What WELCOME says: of the session that wrote last, all that a check needs."""
    if session is None:
        return {}
    return {
        "session": session.number,
        "boot": session["boot"],
        "stopped": session.stopped,
        "streams": [
            {"stream": number, "newest": each.newest, "failed": sorted(each.failed)}
            for number, each in session.streams.items()
        ],
        "manifest": session.manifest,
    }


def acknowledged(known: dict[str, Any]) -> dict[int, Receipts]:
    """What WELCOME says of each stream. Raises WireError."""
    found = {}
    try:
        for each in known.get("streams", ()):
            numbers = [int(number) for number in (each["stream"], each["newest"], *each["failed"])]
            found[numbers[0]] = Receipts(numbers[1], frozenset(numbers[2:]))
    except (TypeError, KeyError, ValueError):
        raise WireError("a witness that does not say what it has") from None
    return found
