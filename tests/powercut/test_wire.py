"""Frames: every truncation, duplicate, exchange, bit flip and replay of a session of 40 frames adds nothing."""

from __future__ import annotations

import os
from contextlib import suppress
from copy import deepcopy
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor import codec
from auditor.powercut import wire
from auditor.powercut.sectors import mark_of
from auditor.powercut.target import CONTROL, PROFILES, layout_of
from auditor.powercut.wire import (
    COMMIT,
    FAILED,
    LONGEST,
    Frame,
    Kind,
    Log,
    Receiver,
    Run,
    Sender,
    StoreError,
    StoreFull,
    WireError,
    connection_key,
    encoded,
)
from tests.shared import some

RUN, KEY = bytes(range(16)), b"k" * 32
MARK = mark_of(RUN, 1)
STREAMS = [layout_of(PROFILES["fsync"], MARK, 0), layout_of(PROFILES["fsync"], MARK, 1), layout_of(CONTROL, MARK, 1000)]
MANIFEST = {"layer": "pool", "subject": "tank/db", "streams": [codec.plain(each) for each in STREAMS], "drives": []}
HELLO = Frame(Kind.HELLO, RUN, 1, 0, encoded({"boot": "b1", "machine": "m1"}))


def commits() -> list[tuple[Kind, bytes]]:
    """OPEN, 38 commits of three streams, one of which failed, and STOP."""
    frames = [(Kind.OPEN, encoded(MANIFEST))]
    for number in range(38):
        stream, generation = (0, 1, 1000)[number % 3], number // 3 + 1
        if number == 9:
            frames.append((Kind.FAIL, FAILED.pack(stream, generation, 5)))
        else:
            frames.append((Kind.ACK, COMMIT.pack(stream, generation)))
    return [*frames, (Kind.STOP, b"")]


def session() -> list[bytes]:
    """The same as frames of a connection."""
    sender = Sender(KEY, from_witness=False)
    return [sender.frame(kind, RUN, 1, body)[1] for kind, body in commits()]


def newest(data: bytes, key: bytes = KEY) -> list[int]:
    """What a witness has of each stream after these bytes, whatever is wrong with them."""
    run, receiver = Run(RUN), Receiver(key, from_witness=False)
    run.add(HELLO)
    receiver.feed(data)
    try:
        for frame in receiver.frames():
            run.add(frame)
    except WireError:
        with pytest.raises(WireError):
            list(receiver.frames())  # and nothing behind it
    streams = run.sessions[0].streams
    return [streams[each.stream].newest if streams else 0 for each in STREAMS]


FRAMES = session()
WHOLE = b"".join(FRAMES)
AFTER = [newest(b"".join(FRAMES[:count])) for count in range(len(FRAMES) + 1)]


def test_the_session() -> None:
    assert len(FRAMES) == 40
    assert AFTER[0] == AFTER[1] == [0, 0, 0]
    assert AFTER[-1] == [13, 13, 12]


def test_every_truncation_is_a_prefix() -> None:
    ends = [sum(map(len, FRAMES[:count])) for count in range(len(FRAMES) + 1)]
    for at in some(range(len(WHOLE) + 1), 5):
        assert newest(WHOLE[:at]) == AFTER[sum(each <= at for each in ends) - 1]


def test_every_bit_ends_it_there() -> None:
    before = Receiver(KEY, from_witness=False)
    for number, frame in enumerate(FRAMES):
        for bit in some(range(8 * len(frame)), 7):
            receiver = deepcopy(before)
            data = bytearray(frame)
            data[bit // 8] ^= 1 << bit % 8
            receiver.feed(bytes(data) + b"".join(FRAMES[number + 1 :]))
            with suppress(WireError):  # or a length that never comes
                assert next(receiver.frames(), None) is None, f"frame {number}, bit {bit}"
        before.feed(frame)
        assert len(list(before.frames())) == 1


def test_every_duplicate_and_every_exchange_ends_it_there() -> None:
    for number in range(len(FRAMES)):
        for other in range(len(FRAMES)):
            twice = [*FRAMES[: number + 1], FRAMES[other], *FRAMES[number + 1 :]]
            if other != number + 1:
                assert newest(b"".join(twice)) == AFTER[number + 1]
            if other > number:
                swapped = list(FRAMES)
                swapped[number], swapped[other] = swapped[other], swapped[number]
                assert newest(b"".join(swapped)) == AFTER[number]
        left_out = FRAMES[:number] + FRAMES[number + 1 :]
        assert newest(b"".join(left_out)) == AFTER[number]


def test_another_connection_adds_nothing() -> None:
    """Its key follows from both nonces, so what was recorded is of no use; nor is what the witness itself said."""
    ours = connection_key(KEY, RUN, b"h" * 16, b"w" * 16)
    keys = {
        connection_key(KEY, RUN, host, at_witness)
        for host in (b"h" * 16, b"i" * 16)
        for at_witness in (b"w" * 16, b"x" * 16)
    }
    assert len(keys) == 4
    for key in (*(keys - {ours}), KEY):
        sender = Sender(key, from_witness=False)
        assert newest(b"".join(sender.frame(kind, RUN, 1, body)[1] for kind, body in commits()), ours) == [0, 0, 0]
    reflected = Sender(ours, from_witness=True)
    assert newest(b"".join(reflected.frame(kind, RUN, 1, body)[1] for kind, body in commits()), ours) == [0, 0, 0]


def test_a_frame_of_the_other_direction_is_none() -> None:
    sender = Sender(KEY, from_witness=False)
    receiver = Receiver(KEY, from_witness=False)
    receiver.feed(sender.frame(Kind.SEEN, RUN, 1, bytes(8))[1])
    with pytest.raises(WireError, match="other direction"):
        list(receiver.frames())


@given(st.binary(max_size=300))
def test_whatever_comes_first_is_no_frame(data: bytes) -> None:
    assert newest(data) == [0, 0, 0]


@given(st.lists(st.integers(1, 50), max_size=60))
def test_frames_do_not_depend_on_how_they_arrive(cuts: list[int]) -> None:
    receiver, at, found = Receiver(KEY, from_witness=False), 0, []
    for size in [*cuts, len(WHOLE)]:
        receiver.feed(WHOLE[at : at + size])
        found += [(each.kind, each.body) for each in receiver.frames()]
        at += size
    assert found == commits()


def test_a_frame_is_bounded() -> None:
    receiver = Receiver(KEY, from_witness=False)
    receiver.feed((LONGEST + 1000).to_bytes(4, "little"))
    with pytest.raises(WireError, match="impossible length"):
        list(receiver.frames())
    with pytest.raises(WireError, match="64 KiB"):
        encoded({"x": "y" * LONGEST})


# -- what a frame may say -----------------------------------------------------------------------------------------


def opened() -> Run:
    run = Run(RUN)
    run.add(HELLO)
    run.add(Frame(Kind.OPEN, RUN, 1, 1, encoded(MANIFEST)))
    return run


def test_acknowledgements_follow_each_other() -> None:
    run = opened()
    for body in (COMMIT.pack(0, 2), COMMIT.pack(0, 0), COMMIT.pack(7, 1), b"", COMMIT.pack(0, 1) + b"x"):
        with pytest.raises(WireError):
            run.add(Frame(Kind.ACK, RUN, 1, 2, body))
    run.add(Frame(Kind.ACK, RUN, 1, 2, COMMIT.pack(0, 1)))
    run.add(Frame(Kind.FAIL, RUN, 1, 3, FAILED.pack(0, 2, 5)))
    assert (run.sessions[0].streams[0].newest, run.sessions[0].streams[0].failed) == (2, {2})
    with pytest.raises(WireError):
        run.add(Frame(Kind.ACK, RUN, 1, 4, COMMIT.pack(0, 1)))


@pytest.mark.parametrize(
    "frame",
    [
        Frame(Kind.OPEN, RUN, 1, 2, encoded(MANIFEST)),
        Frame(Kind.FOUND, RUN, 1, 2, encoded({"session": 1})),
        Frame(Kind.ACK, RUN, 2, 2, COMMIT.pack(0, 1)),
        Frame(Kind.ACK, bytes(16), 1, 2, COMMIT.pack(0, 1)),
        Frame(Kind.SEEN, RUN, 1, 2, bytes(8)),
        Frame(Kind.HELLO, RUN, 5, 2, encoded({"boot": "b", "machine": "m1"})),
        Frame(Kind.HELLO, RUN, 2, 2, encoded({"boot": "b", "machine": "another"})),
        Frame(Kind.HELLO, RUN, 2, 2, encoded({"boot": "b"})),
        Frame(Kind.HELLO, RUN, 2, 2, b"[" * 30_000),
        Frame(Kind.HELLO, RUN, 2, 2, b"\xff"),
    ],
)
def test_what_does_not_belong_there_changes_nothing(frame: Frame) -> None:
    run = opened()
    with pytest.raises(WireError):
        run.add(frame)
    assert (len(run.sessions), run.sessions[0].streams[0].newest, run.found) == (1, 0, {})


def test_a_session_ends_for_good() -> None:
    run = opened()
    run.add(Frame(Kind.STOP, RUN, 1, 2))
    with pytest.raises(WireError):
        run.add(Frame(Kind.ACK, RUN, 1, 3, COMMIT.pack(0, 1)))
    run = opened()
    run.add(Frame(Kind.HELLO, RUN, 2, 0, encoded({"boot": "b2", "machine": "m1", "checks": True})))
    with pytest.raises(WireError):
        run.add(Frame(Kind.ACK, RUN, 1, 2, COMMIT.pack(0, 1)))
    run.add(Frame(Kind.FOUND, RUN, 2, 1, encoded({"session": 1, "first": True})))
    run.add(Frame(Kind.FOUND, RUN, 2, 2, encoded({"session": 1, "first": False})))
    assert run.found[1]["first"], "what a later check finds may have been repaired"
    with pytest.raises(WireError):
        run.add(Frame(Kind.FOUND, RUN, 2, 3, encoded({"session": 2})))


@pytest.mark.parametrize(
    "streams",
    [
        [],
        [{}],
        [{**codec.plain(STREAMS[0]), "mark": mark_of(RUN, 2)}],
        [{**codec.plain(STREAMS[0]), "slots": 7}],
        [{**codec.plain(STREAMS[0]), "slots": "many"}],
        [codec.plain(STREAMS[0])] * 2,
        [{**codec.plain(STREAMS[0]), "stream": number} for number in range(65)],
        "none",
    ],
)
def test_streams_that_cannot_be(streams: object) -> None:
    run = Run(RUN)
    run.add(HELLO)
    with pytest.raises(WireError):
        run.add(Frame(Kind.OPEN, RUN, 1, 1, encoded({**MANIFEST, "streams": streams})))
    assert run.sessions[0].streams == {}


# -- the log ------------------------------------------------------------------------------------------------------


def frames_of_log() -> list[Frame]:
    return [HELLO, *(Frame(kind, RUN, 1, number + 1, body) for number, (kind, body) in enumerate(commits()))]


def state(run: Run | None) -> list[object]:
    """All that a log says."""
    return [] if run is None else [
        (each.number, each.hello, each.stopped, {n: (one.newest, {*one.failed}) for n, one in each.streams.items()})
        for each in run.sessions
    ]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> int:
    return os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)


def test_every_torn_tail_of_the_log_is_a_prefix(tmp_path: Path, folder: int) -> None:
    """Cut short anywhere, and with other bytes behind: what is whole counts, what is not is kept aside."""
    log = Log(folder, RUN, 1 << 20)
    states, ends = [state(log.run)], [log.size]
    for frame in frames_of_log():
        log.add(frame)
        log.sync()
        states.append(state(log.run))
        ends.append(log.size)
    log.close()
    path = tmp_path / log.name
    data = path.read_bytes()
    assert len(data) == ends[-1]
    for at in some(range(len(data) + 1), 5):
        for tail in (b"", b"\xa5" * 40):
            run, whole = wire.read(BytesIO(data[:at] + tail))
            count = sum(each <= at for each in ends)
            assert state(run) == (states[count - 1] if count else [])
            assert whole == (ends[count - 1] if count else 0)
    path.write_bytes(data[: ends[20] + 3])
    again = Log(folder, RUN, 1 << 20)
    assert state(again.run) == states[20]
    assert path.read_bytes() == data[: ends[20]]
    assert (tmp_path / f"{log.name}.{ends[20]}.torn").read_bytes() == data[ends[20] : ends[20] + 3]
    for frame in frames_of_log()[20:]:
        again.add(frame)
    again.sync()
    again.close()
    assert path.read_bytes() == data


class Dies(Exception):
    """The witness, in the middle of what it does."""


class Power:
    """It goes at one of the syncs. durable: what was there at the last one that returned."""

    def __init__(self, path: Path, at: int) -> None:
        self.path, self.left, self.durable = path, at, b""

    def sync(self, _: int) -> None:
        self.left -= 1
        if not self.left:
            raise Dies
        self.durable = self.path.read_bytes()


def test_what_was_synced_outlives_the_witness(tmp_path: Path, folder: int) -> None:
    """It dies at each sync of its log; of what it had written since the one before anything may be there."""
    path = tmp_path / f"{RUN.hex()}.log"
    for at in range(1, 45):
        for rest in ("none", "half", "all"):
            path.unlink(missing_ok=True)
            power = Power(path, at)
            told = 0
            with suppress(Dies):
                log = Log(folder, RUN, 1 << 20, power.sync)
                for frame in frames_of_log():
                    log.add(frame)
                    log.sync()
                    told += 1
                log.close()
            there, durable = path.read_bytes(), power.durable
            keep = {"none": len(durable), "half": (len(durable) + len(there)) // 2, "all": len(there)}[rest]
            path.write_bytes(there[:keep])
            after = Log(folder, RUN, 1 << 20)
            known = sum(each.newest for each in after.run.sessions[0].streams.values()) if after.run.sessions else 0
            expected = Run(RUN)
            for frame in frames_of_log()[:told]:
                expected.add(frame)
            least = sum(each.newest for each in expected.sessions[0].streams.values()) if expected.sessions else 0
            assert least <= known <= least + 1
            after.close()


def test_a_log_that_is_damaged_in_the_middle_is_left_alone(tmp_path: Path, folder: int) -> None:
    """Records that are whole and do not follow from each other are no work of a power cut."""
    log = Log(folder, RUN, 1 << 20)
    for frame in frames_of_log():
        log.add(frame)
    log.sync()
    log.close()
    path = tmp_path / log.name
    data = path.read_bytes()
    records = [wire.record(each) for each in frames_of_log()]
    start = len(data) - sum(map(len, records))
    path.write_bytes(data[:start] + b"".join([*records[:5], *records[6:]]))
    with pytest.raises(StoreError, match="damaged at byte"):
        Log(folder, RUN, 1 << 20)
    later = wire.record(HELLO._replace(kind=99))  # type: ignore[arg-type]
    path.write_bytes(data[:start] + later)
    with pytest.raises(StoreError, match="a later version of zaudit wrote it"):
        Log(folder, RUN, 1 << 20)
    path.write_bytes(wire._head(b"zauditW2", RUN) + data[start:])
    with pytest.raises(StoreError, match="is of a later version"):
        Log(folder, RUN, 1 << 20)
    path.write_bytes(data)
    path.rename(tmp_path / f"{bytes(16).hex()}.log")
    with pytest.raises(StoreError, match="the log of another run"):
        Log(folder, bytes(16), 1 << 20)


def test_a_full_store_keeps_what_it_has(tmp_path: Path, folder: int) -> None:
    log = Log(folder, RUN, 1500)
    kept = 0

    def fill() -> None:
        nonlocal kept
        for frame in frames_of_log():
            log.add(frame)
            log.sync()
            kept += 1

    with pytest.raises(StoreFull, match="larger than --limit"):
        fill()
    log.close()
    again = Log(folder, RUN, 1 << 20)
    for frame in frames_of_log()[kept:]:
        again.add(frame)
    assert state(again.run)[0][2]  # type: ignore[index]
    again.close()
