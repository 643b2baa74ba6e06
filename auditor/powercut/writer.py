"""The host's side of a session: it writes, flushes, and reports each commit to the witness before the next. Where the
witness is silent for a second, or a frame is wrong, the writers stop: a run without a witness is no run."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import secrets
import select
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from auditor import EXIT_BROKE, Stop
from auditor.interrupt import ENDING
from auditor.powercut import wire
from auditor.powercut.sectors import slots_of, unit
from auditor.powercut.target import Medium
from auditor.powercut.wire import COMMIT, FAILED, NO_RUN, NUMBER, PROTOCOL, Frame, Kind, Receiver, Sender, WireError
from auditor.text import harmless

CONNECT_S = 10.0
SILENCE_S = 1.0  # of a witness that has something to answer
HEAR_S = 0.1
UNSEEN = 256  # frames that the witness has not answered: more are not sent
BURST_S, PAUSE_S = (0.05, 0.3), (0.02, 0.2)  # in the pauses nothing is flushed, and the control stream fills the cache
FLUSHES_FAILED = 8  # of a stream, after which it ends
CHUNK = 64 << 10


class LinkError(Stop):
    """The witness cannot be reached, or does not answer as one."""

    exit_code = EXIT_BROKE


class Link:
    """The connection to the witness, as one session."""

    def __init__(self, address: tuple[str, int], key: bytes, run: bytes, hello: Mapping[str, Any]) -> None:
        """Raises LinkError."""
        self.run, self.session = run, 0
        self._where = f"{address[0]}:{address[1]}"
        self._receiver, self._sender = Receiver(key, from_witness=True), Sender(key, from_witness=False)
        self._sending, self._told = threading.Lock(), threading.Condition()
        self._unseen: deque[tuple[int, float]] = deque()
        try:
            self._socket = socket.create_connection(address, CONNECT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise LinkError(f"{self._where}: no witness: {error.strerror or error}") from None
        try:
            self.known = self._greet(key, hello)
        except BaseException:
            self._socket.close()
            raise
        self._socket.settimeout(SILENCE_S)

    def _greet(self, key: bytes, hello: Mapping[str, Any]) -> dict[str, Any]:
        challenge, nonce = self._expect(Kind.CHALLENGE).body, secrets.token_bytes(16)
        words = {**hello, "protocol": PROTOCOL, "nonce": nonce.hex(), "challenge": challenge.hex()}
        _, data = self._sender.frame(Kind.HELLO, self.run, 0, wire.encoded(words))
        self._socket.sendall(data)
        key = wire.connection_key(key, self.run, nonce, challenge)
        self._sender.rekey(key)
        self._receiver.rekey(key)
        welcome = self._expect(Kind.WELCOME)
        self.session = welcome.session
        with self._named():
            return welcome.document()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """What goes wrong with the line or on it is a LinkError."""
        try:
            yield
        except WireError as error:
            raise LinkError(f"{self._where}: {error}") from None
        except OSError as error:
            raise LinkError(f"{self._where}: {error.strerror or error}") from None

    def _expect(self, kind: Kind) -> Frame:
        """The next frame. Raises LinkError."""
        with self._named():
            while True:
                for frame in self._receiver.frames():
                    if frame.kind is Kind.REFUSED:
                        raise LinkError(f"{self._where}: the witness refuses: {_text(frame)}")
                    if frame.kind is not kind or frame.run not in (NO_RUN, self.run):
                        comes = f"{frame.kind.name} from the witness where {kind.name} comes next"
                        raise LinkError(f"{self._where}: {comes}")
                    return frame
                data = self._socket.recv(CHUNK)
                if not data:
                    why = "another key, or another run of this host began"
                    raise LinkError(f"{self._where}: the witness hangs up: {why}")
                self._receiver.feed(data)

    def send(self, kind: Kind, body: bytes = b"") -> None:
        """Send a frame; waits where the witness has too many before it. Raises LinkError."""
        with self._told:
            while len(self._unseen) >= UNSEEN:
                if not self._told.wait(SILENCE_S):
                    raise LinkError(f"{self._where}: the witness was silent for {SILENCE_S:g} s")
        with self._sending:  # numbers go out in their order
            number, data = self._sender.frame(kind, self.run, self.session, body)
            with self._told:
                self._unseen.append((number, time.monotonic()))
            with self._named():
                self._socket.sendall(data)

    def hear(self, seconds: float) -> None:
        """Take what the witness says, for so long. Raises LinkError, also where it owes an answer for too long."""
        with self._named():
            data = self._socket.recv(CHUNK) if select.select([self._socket], [], [], seconds)[0] else None
            if data == b"":
                raise WireError("the witness hung up")
            self._receiver.feed(data or b"")
            for frame in self._receiver.frames():
                self._hear(frame)
        with self._told:
            late = self._unseen and time.monotonic() - self._unseen[0][1] > SILENCE_S
        if late:
            raise LinkError(f"{self._where}: the witness was silent for {SILENCE_S:g} s")

    def _hear(self, frame: Frame) -> None:
        if frame.kind is Kind.REFUSED:
            raise LinkError(f"{self._where}: the witness refuses: {_text(frame)}")
        if frame.kind is not Kind.SEEN or frame.run != self.run or len(frame.body) != NUMBER.size:
            raise WireError(f"{frame.kind.name} from the witness, which says nothing now")
        (number,) = NUMBER.unpack(frame.body)
        with self._told:
            while self._unseen and self._unseen[0][0] <= number:
                self._unseen.popleft()
            self._told.notify_all()

    def settle(self) -> None:
        """Wait until the witness has all. Raises LinkError."""
        while self._unseen:
            self.hear(HEAR_S)

    def close(self) -> None:
        self._socket.close()


def _text(frame: Frame) -> str:
    return harmless(frame.body.decode("utf-8", "replace"))


class Writer:
    """All streams of a session, a thread each; the thread that runs it hears the witness."""

    def __init__(self, link: Link, media: Sequence[Medium], seed: int) -> None:
        self._link, self._media = link, media
        self._random = random.Random(seed)
        self._over, self._busy = threading.Event(), threading.Event()
        self._fault: Stop | None = None
        self.commits = 0

    def run(self, ended: Callable[[], bool]) -> None:
        """Until it is ended, or the power is. Raises LinkError, or Stop where nothing can be written any more."""
        self._busy.set()
        threads = [threading.Thread(target=self._guard, args=(each,), daemon=True) for each in self._media]
        if any(not each.layout.flushed for each in self._media):
            threads.append(threading.Thread(target=self._pace, daemon=True))
        for each in threads:
            each.start()
        try:
            while not ended() and not self._over.is_set():
                self._link.hear(HEAR_S)
        finally:
            self._over.set()
            self._busy.set()
            until = time.monotonic() + SILENCE_S  # one may hang in a write, which is no reason to say nothing
            with contextlib.suppress(LinkError):
                while any(each.is_alive() for each in threads) and time.monotonic() < until:
                    self._link.hear(HEAR_S)
        if self._fault:
            raise self._fault

    def _guard(self, medium: Medium) -> None:
        try:
            (self._commit if medium.layout.flushed else self._control)(medium)
        except Stop as error:
            self._fault = self._fault or error
        except OSError as error:
            self._fault = self._fault or LinkError(f"stream {medium.layout.stream}: {error.strerror}")
        finally:
            self._over.set()

    def _commit(self, medium: Medium) -> None:
        layout, generation, previous, failed = medium.layout, 0, 0, 0
        while not self._over.is_set():
            if not self._busy.wait(HEAR_S) or self._over.is_set():
                continue
            generation += 1
            try:
                _write(medium, generation, previous)
                medium.flush()
            except OSError as error:
                failed += 1
                self._link.send(Kind.FAIL, FAILED.pack(layout.stream, generation, error.errno or errno.EIO))
                if failed == FLUSHES_FAILED:
                    raise
                continue
            self._link.send(Kind.ACK, COMMIT.pack(layout.stream, generation))
            previous = generation
            self.commits += 1

    def _control(self, medium: Medium) -> None:
        """Write and report; never flush."""
        generation = 0
        while not self._over.is_set():
            generation += 1
            _write(medium, generation, 0)
            self._link.send(Kind.ACK, COMMIT.pack(medium.layout.stream, generation))

    def _pace(self) -> None:
        """Bursts of commits, and pauses in which the cache fills with what nobody flushes."""
        while not self._over.is_set():
            self._busy.set()
            self._over.wait(self._random.uniform(*BURST_S))
            if not self._over.is_set():
                self._busy.clear()
                self._over.wait(self._random.uniform(*PAUSE_S))


def _write(medium: Medium, generation: int, previous: int) -> None:
    for slot in slots_of(medium.layout, generation):
        medium.write(slot, unit(medium.layout, slot, generation, previous))


def child(work: Callable[[Callable[[], bool]], None]) -> int:
    """Do the work in a process that may give up its rights: 0, or the exit code of what it raised, with its text on
    standard error. work: gets a function that says whether a signal came, after which it ends in order."""
    pid = os.fork()
    if pid:
        while True:
            try:
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            except (KeyboardInterrupt, SystemExit):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
    code, ended = 0, threading.Event()
    signal.set_wakeup_fd(-1)
    for number in ENDING:
        signal.signal(number, lambda *_: ended.set())
    try:
        work(ended.is_set)
    except Stop as error:
        os.write(2, f"zaudit powercut: {error}\n".encode("utf-8", "replace"))
        code = error.exit_code
    except BaseException as error:
        os.write(2, f"zaudit powercut: {type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        code = EXIT_BROKE
    os._exit(code)
