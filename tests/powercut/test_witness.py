"""The witness as a server: who may say what, and what happens when the line, the disk or either side fails."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from auditor import EXIT_BROKE
from auditor.host import process, user_files
from auditor.host.trust import held
from auditor.powercut import wire, witness, writer
from auditor.powercut.sectors import Layout, Receipts
from auditor.powercut.target import Medium
from auditor.powercut.wire import COMMIT, NO_RUN, Kind, Receiver, Run, Sender, StoreError, WireError, encoded
from auditor.powercut.witness import CONNECTIONS, KeyFault, Witness, read_key
from auditor.powercut.writer import Link, LinkError, Writer
from tests.powercut.test_wire import MANIFEST, RUN, STREAMS

KEY = b"k" * 32
HELLO = {"boot": "b1", "machine": "m1"}


class Server:
    """A witness in a thread."""

    def __init__(self, store: Path, key: bytes = KEY, limit: int = 1 << 20, port: int = 0, **options: Any) -> None:
        self.said: list[str] = []
        self.witness = Witness(store, key, limit, self.said.append, **options)
        self.listener = witness.listen(("127.0.0.1", port))
        self.address = self.listener.getsockname()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            self.witness.serve(self.listener, self.over.is_set)

    def stop(self) -> None:
        self.over.set()
        self.thread.join()
        self.listener.close()


OPEN: list[Any] = []  # what a test opened


def kept(resource: Any) -> Any:
    """It is closed when the test is over."""
    OPEN.append(resource)
    return resource


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine that runs tests may be slow; who is silent for good is so for longer."""
    monkeypatch.setattr(writer, "SILENCE_S", 60.0)
    yield
    while OPEN:
        OPEN.pop().close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@contextmanager
def serving(store: Path, **options: Any) -> Iterator[Server]:
    server = Server(store, **options)
    try:
        yield server
    finally:
        server.stop()


def logged(store: Path) -> Run:
    with held(str(store)) as folder:
        ((_, run),) = wire.runs(folder, 1 << 20)
    return run


def link(server: Any, hello: dict[str, Any] = HELLO, key: bytes = KEY, run: bytes = RUN) -> Link:
    return kept(Link(server.address, key, run, hello))  # type: ignore[no-any-return]


def opened(server: Server, session: int = 1) -> Link:
    from auditor import codec
    from auditor.powercut.sectors import mark_of

    here = link(server)
    streams = [codec.plain(each._replace(mark=mark_of(RUN, session))) for each in STREAMS]
    here.send(Kind.OPEN, encoded({**MANIFEST, "streams": streams}))
    here.settle()
    return here


def commit(here: Link, count: int) -> None:
    """So many commits of stream 0."""
    for generation in range(1, count + 1):
        here.send(Kind.ACK, COMMIT.pack(0, generation))
        here.settle()


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    assert true()


def test_what_the_host_was_told_of_is_in_the_log(store: Path) -> None:
    with serving(store) as server:
        here = opened(server)
        commit(here, 299)
        assert logged(store).sessions[0].streams[0].newest == 299
        here.close()
        again = link(server, {**HELLO, "boot": "b2", "checks": True})
        assert again.session == 2
        assert witness.acknowledged(again.known)[0] == (299, frozenset())
        assert (again.known["session"], again.known["boot"], again.known["stopped"]) == (1, "b1", False)
        again.close()


def test_a_witness_that_is_started_again_goes_on(store: Path) -> None:
    with serving(store) as server:
        here = opened(server)
        here.send(Kind.ACK, COMMIT.pack(0, 1))
        here.settle()
    here.close()
    with serving(store) as server:
        assert link(server).known["streams"][0] == {"stream": 0, "newest": 1, "failed": []}


def test_another_key_gets_nowhere(store: Path) -> None:
    with serving(store) as server:
        with pytest.raises(LinkError, match=r"wrong tag .another key") as refused:
            link(server, key=b"x" * 32)
        assert refused.value.exit_code == EXIT_BROKE
        until(lambda: not server.witness._connections)
    assert [name for name in os.listdir(store) if name != "lock"] == []


def test_a_run_belongs_to_one_host(store: Path) -> None:
    with serving(store) as server:
        link(server).close()
        with pytest.raises(LinkError, match="belongs to another host: begin one of your own") as refused:
            link(server, {**HELLO, "machine": "m2"})
        assert refused.value.exit_code == EXIT_BROKE
        assert len(logged(store).sessions) == 1


def test_the_newest_connection_of_a_run_counts(store: Path) -> None:
    """The one before is half open since the power went; what still comes on it is not taken."""
    with serving(store) as server:
        old = opened(server)
        new = link(server, {**HELLO, "boot": "b2"})
        with pytest.raises(LinkError):
            commit(old, 100)
        assert new.session == 2
        assert logged(store).sessions[0].streams[0].newest == 0


class Recorder(threading.Thread):
    """Somebody in between, who sees all and may say it again."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self.listener = kept(socket.create_server(("127.0.0.1", 0)))
        self.address = self.listener.getsockname()
        self.server, self.data = server, bytearray()

    def run(self) -> None:
        host = kept(self.listener.accept()[0])
        with socket.create_connection(self.server.address) as upstream:
            threading.Thread(target=self._pass, args=(upstream, host), daemon=True).start()
            while data := host.recv(1 << 16):
                self.data += data
                upstream.sendall(data)

    def _pass(self, source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                to.sendall(data)


def test_a_recorded_connection_adds_nothing(store: Path) -> None:
    with serving(store) as server:
        between = Recorder(server)
        between.start()
        here = link(between)
        here.send(Kind.STOP)
        here.settle()
        here.close()
        between.join()
        before = logged(store)
        with socket.create_connection(server.address) as replay:
            replay.sendall(bytes(between.data))
            while replay.recv(1 << 16):
                pass
        assert len(logged(store).sessions) == len(before.sessions) == 1
        assert any("recorded from another connection" in each for each in server.said)


@pytest.mark.parametrize("kind", [Kind.CUT, Kind.SEEN, Kind.WELCOME, Kind.HELLO])
def test_a_host_says_only_what_hosts_say(kind: Kind, store: Path) -> None:
    with serving(store) as server:
        here = opened(server)
        here.send(kind, encoded(HELLO))
        with pytest.raises(LinkError):
            here.settle()
        assert len(logged(store).sessions) == 1
        assert not logged(store).sessions[0].cut


def test_strangers_keep_no_host_out(store: Path) -> None:
    """Of connections that say nothing the oldest goes; none takes more than its place."""
    with serving(store) as server:
        silent = [socket.create_connection(server.address) for _ in range(CONNECTIONS + 10)]
        here = opened(server)
        here.send(Kind.ACK, COMMIT.pack(0, 1))
        here.settle()
        assert len(server.witness._connections) <= CONNECTIONS
        for each in silent:
            each.close()


def test_a_full_store_is_said_and_loses_nothing(store: Path) -> None:
    with serving(store, limit=3000) as server:
        here = opened(server)
        with pytest.raises(LinkError, match=r"larger than --limit|hung up|hangs up|reset|Broken pipe"):
            commit(here, 10_000)
        assert logged(store).sessions[0].streams[0].newest > 10
        here.close()


def test_a_disk_that_fails_is_said(store: Path) -> None:
    """A host is told of nothing that is not durable."""
    bad = threading.Event()

    def sync(fd: int) -> None:
        if bad.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")
        os.fdatasync(fd)

    with serving(store, sync=sync) as server:
        here = opened(server)
        here.send(Kind.ACK, COMMIT.pack(0, 1))
        here.settle()
        bad.set()
        here.send(Kind.ACK, COMMIT.pack(0, 2))
        with pytest.raises(LinkError, match=r"No space left|hung up|reset|Broken pipe"):
            here.settle()
        here.close()
        bad.clear()
        assert link(server, {**HELLO, "boot": "b2", "checks": True}).known["streams"][0]["newest"] in (1, 2)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a small file system")
def test_a_disk_of_the_witness_that_is_full(store: Path) -> None:
    """All that the host was told of is in the log, and where there is room again the run goes on."""
    store.mkdir(mode=0o700)

    def mounted(*words: str) -> bool:
        return subprocess.run(["mount", *words, store], capture_output=True, check=False).returncode == 0

    if not mounted("-t", "tmpfs", "-o", "size=32k,mode=0700", "tmpfs"):
        pytest.skip("no mounts here")
    try:
        with serving(store) as server:
            here, told = opened(server), 0

            def fill() -> None:
                nonlocal told
                for told in range(10_000):
                    here.send(Kind.ACK, COMMIT.pack(0, told + 1))
                    here.settle()

            with pytest.raises(LinkError) as broken:
                fill()
            assert broken.value.exit_code == EXIT_BROKE
            until(lambda: any("No space left on device" in each for each in server.said))
            here.close()
            assert logged(store).sessions[0].streams[0].newest >= told > 100
            assert mounted("-o", "remount,size=1m")
            again = link(server, {**HELLO, "boot": "b2", "checks": True})
            assert witness.acknowledged(again.known)[0].newest >= told
            again.close()
    finally:
        subprocess.run(["umount", "-l", store], check=True)


def test_one_store_has_one_witness(store: Path) -> None:
    with serving(store), pytest.raises(StoreError, match="another witness uses it"):
        Witness(store, KEY, 1 << 20)


def test_the_key_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    path.write_text("0123456789abcdef0123\n")
    path.chmod(0o600)
    key = read_key(path)
    assert len(key) == 32
    for mode in (0o640, 0o604, 0o660):
        path.chmod(mode)
        with pytest.raises(KeyFault, match="others may read"):
            read_key(path)
    path.chmod(0o600)
    path.write_text("short")
    with pytest.raises(KeyFault, match="16 to 4096 bytes"):
        read_key(path)
    with pytest.raises(KeyFault):
        read_key(tmp_path / "none")
    with pytest.raises(KeyFault):
        read_key(tmp_path)


def test_a_key_comes_by_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    path.write_text("0123456789abcdef0123\n")
    path.chmod(0o600)
    expected = read_key(path)
    reader, other = os.pipe()
    os.write(other, b"0123456789abcdef0123")
    os.close(other)
    kept = os.dup(0)
    try:
        os.dup2(reader, 0)
        assert read_key(Path("-")) == expected
    finally:
        os.dup2(kept, 0)


def test_the_witness_cuts_once_a_session(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "cut"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/cuts\n')
    program.chmod(0o700)
    monkeypatch.setattr(witness, "CUT_AFTER_S", (0.0, 0.0))
    monkeypatch.setattr(process, "refusal", lambda program: "")  # it lies in /tmp here
    with serving(store, cut=program) as server:
        here = opened(server)
        commit(here, 20)
        until((tmp_path / "cuts").exists)
        assert logged(store).sessions[0].cut, "it is in the log before it is done"
        assert (tmp_path / "cuts").read_text() == f"{RUN.hex()} 1\n"
        here.close()


def test_a_program_that_others_could_change_cuts_nothing(store: Path, tmp_path: Path) -> None:
    program = tmp_path / "cut"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o777)
    with pytest.raises(StoreError, match="not run"):
        Witness(store, KEY, 1 << 20, cut=program)


# -- the host against its witness ---------------------------------------------------------------------------------


class Fake(threading.Thread):
    """A witness that has the key, and then says what the test wants."""

    def __init__(self, after: list[tuple[Kind, bytes]], *, challenge: bytes = b"w" * 16, key: bytes = KEY) -> None:
        super().__init__(daemon=True)
        self.listener = kept(socket.create_server(("127.0.0.1", 0)))
        self.address = self.listener.getsockname()
        self.after, self.challenge, self.key = after, challenge, key
        self.start()

    def run(self) -> None:
        from auditor.powercut.wire import connection_key

        sock, _ = self.listener.accept()
        sender, receiver = Sender(self.key, from_witness=True), Receiver(self.key, from_witness=False)
        with sock, suppress(OSError, WireError):
            sock.sendall(sender.frame(Kind.CHALLENGE, NO_RUN, 0, self.challenge)[1])
            hello = None
            while hello is None:
                receiver.feed(sock.recv(1 << 16))
                hello = next(receiver.frames(), None)
            sender.rekey(connection_key(self.key, RUN, bytes.fromhex(hello.document()["nonce"]), self.challenge))
            for kind, body in self.after:
                sock.sendall(sender.frame(kind, RUN, 1, body)[1])
            while sock.recv(1 << 16):
                pass


def test_an_old_welcome_is_not_taken() -> None:
    """Nothing that a witness said on another connection is believed: the key of this one has the nonce of this host."""
    from auditor.powercut.wire import connection_key

    listener = kept(socket.create_server(("127.0.0.1", 0)))

    def replay() -> None:
        sock, _ = listener.accept()
        sender = Sender(KEY, from_witness=True)
        old = sender.frame(Kind.CHALLENGE, NO_RUN, 0, b"w" * 16)[1]
        sender.rekey(connection_key(KEY, RUN, b"an older nonce..", b"w" * 16))
        with sock:
            sock.sendall(old + sender.frame(Kind.WELCOME, RUN, 1, encoded({"session": 1}))[1])
            while sock.recv(1 << 16):
                pass

    threading.Thread(target=replay, daemon=True).start()
    with pytest.raises(LinkError, match="wrong tag"):
        Link(listener.getsockname(), KEY, RUN, HELLO)


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([(Kind.WELCOME, b"nothing")], "no JSON object"),
        ([(Kind.SEEN, bytes(8))], "SEEN from the witness where WELCOME"),
        ([(Kind.REFUSED, b"no \x1b[31m room")], r"refuses: no \\x1b"),
    ],
)
def test_a_witness_that_does_not_greet(frames: list[tuple[Kind, bytes]], words: str) -> None:
    with pytest.raises(LinkError, match=words):
        Link(Fake(frames).address, KEY, RUN, HELLO)


@pytest.mark.parametrize(
    ("known", "found"),
    [({}, {}), ({"streams": [{"stream": 0, "newest": 3, "failed": [2]}]}, {0: (3, frozenset({2}))}),
     ({"streams": 3}, None), ({"streams": [{"stream": "x"}]}, None), ({"streams": [[]]}, None)],
)  # fmt: skip
def test_what_a_witness_may_have(known: dict[str, Any], found: Any) -> None:
    if found is None:
        with pytest.raises(WireError):
            witness.acknowledged(known)
    else:
        assert witness.acknowledged(known) == found


def media(tmp_path: Path, layouts: list[Layout]) -> list[Medium]:
    found = []
    for each in layouts:
        fd = os.open(tmp_path / str(each.stream), os.O_RDWR | os.O_CREAT, 0o600)
        found.append(Medium(fd, each._replace(slots=16), "fdatasync" if each.flushed else "direct"))
        found[-1].fill()
    return found


def test_writers_stop_when_the_witness_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have written no more than what may be on its way, and say so."""
    monkeypatch.setattr(writer, "SILENCE_S", 1.0)
    server = Fake([(Kind.WELCOME, b"{}")])
    here = link(server)
    run = Writer(here, media(tmp_path, STREAMS[:2]), 1)
    with pytest.raises(LinkError, match="silent for 1 s"):
        run.run(lambda: False)
    assert 0 < run.commits <= writer.UNSEEN + 2
    assert not any(each.name.startswith("Thread-w") for each in threading.enumerate())


def test_writers_stop_when_the_line_breaks(tmp_path: Path, store: Path) -> None:
    server = Server(store)
    here = opened(server)
    run = Writer(here, media(tmp_path, STREAMS), 1)
    threading.Timer(0.5, server.stop).start()
    with pytest.raises(LinkError):
        run.run(lambda: False)


def test_all_that_was_told_was_written(tmp_path: Path, store: Path) -> None:
    """The acknowledgements of a session, and what lies there."""
    from auditor.powercut.sectors import check, mark_of

    with serving(store) as server:
        here = opened(server)
        layouts = [each._replace(mark=mark_of(RUN, 1)) for each in STREAMS]
        files = media(tmp_path, layouts)
        run = Writer(here, files, 1)
        end = time.monotonic() + 1
        run.run(lambda: time.monotonic() > end)
        here.settle()
        session = logged(store).sessions[0]
        assert sum(each.newest for each in session.streams.values() if each.layout.flushed) >= run.commits > 10
        for medium in files:
            stream = session.streams[medium.layout.stream]
            left = check(medium.layout, Receipts(stream.newest, frozenset(stream.failed)), medium.read)
            assert left.damage == ()
            assert left.newest >= stream.newest
        here.close()


def test_a_flush_that_fails_is_no_acknowledgement(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(store) as server:
        here = opened(server)
        (medium,) = media(tmp_path, STREAMS[:1])
        monkeypatch.setattr(medium, "flush", lambda: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        with pytest.raises(LinkError, match="stream 0: Input/output error"):
            Writer(here, [medium], 1).run(lambda: False)
        until(lambda: len(logged(store).sessions[0].streams[0].failed) == writer.FLUSHES_FAILED)
        here.close()


def test_the_store_is_for_its_owner_alone(store: Path) -> None:
    with serving(store) as server:
        opened(server).close()
    assert {(store / name).stat().st_mode & 0o777 for name in os.listdir(store)} == {0o600}
    assert store.stat().st_mode & 0o777 == 0o700
    assert user_files.is_folder(str(store))
