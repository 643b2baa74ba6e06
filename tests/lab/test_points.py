"""The pure parts of the crash points (tests/lab/points): what is tried, and what is said of it."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from auditor.data import releases
from auditor.durability.answers import Rank
from tests.lab.points import kernel, recording, run, torn
from tests.lab.points.drives import Drives
from tests.lab.points.explore import SECTOR, Disks, Files, Point, Points, Tally, cuts, merge, subsets
from tests.lab.points.recording import MARKS, Block, Entry, Kind, Record
from tests.lab.points.workload import PLANS, Finding, Observation, Plan, Script, Slot, generations, judge
from tests.lab.power import disks as nbd
from tests.lab.power import workloads
from tests.lab.power.commit import Workload
from tests.lab.power.workloads import Sequences, workload

A, B = Slot("a", 0, 64), Slot("a", 64, 64)


def write(device: str, offset: int, data: bytes, thread: int = 1) -> Entry:
    return Entry(Kind.WRITE, device, offset, data, len(data), thread)


def flush(device: str) -> Entry:
    return Entry(Kind.FLUSH, device, 0, b"", 0, 1)


def mark(token: str) -> Entry:
    return write(MARKS, 0, token.encode())


def log_block(*records: tuple[int, int, bytes], size: int = 2 * SECTOR) -> bytes:
    """zil_chain_t and lr_write_t, with what the explorer reads of them."""
    body = b""
    for offset, length, data in records:
        fields = (9, 192 + len(data), 5, 1, 3, offset, length, 0)
        body += struct.pack("<8Q", *fields) + bytes(128) + data
    chain = bytes(136) + struct.pack("<QQ", 184 + len(body), recording.MAGIC) + bytes(32)
    return (chain + body).ljust(size, b"\0")


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    heads = [(1, "l0", 7, 512, b"abc"), (2, "l0", 7, 0, b""), (3, "d0", 8, 1024, b""), (1, "marks", 7, 0, b"a2")]
    lengths = [3, 0, 4096, 2]
    raw = b"".join(
        recording.HEAD.pack(kind, len(name), thread, offset, length) + name.encode() + data
        for (kind, name, thread, offset, data), length in zip(heads, lengths, strict=True)
    )
    (tmp_path / "log").write_bytes(raw)
    assert recording.read(tmp_path / "log") == [
        Entry(Kind.WRITE, "l0", 512, b"abc", 3, 7),
        Entry(Kind.FLUSH, "l0", 0, b"", 0, 7),
        Entry(Kind.READ, "d0", 1024, b"", 4096, 8),
        Entry(Kind.WRITE, MARKS, 0, b"a2", 2, 7),
    ]


def test_the_two_parts_of_a_log_block_belong_together() -> None:
    whole = log_block((0, 16384, b"x" * 64), (16384, 4096, b""))
    entries = [
        write("l0", 8192, whole[:512], thread=1),
        write("d0", 0, b"data of a txg", thread=2),
        write("l0", 8192 + 512, whole[512:], thread=1),
        mark("a2"),
        write("l0", 0, log_block(), thread=2),
    ]
    assert list(recording.log_blocks(entries)) == [
        Block(
            (0, 2), "l0", 8192, 2 * SECTOR, 184 + 192 + 64 + 192, (Record(0, 16384, True), Record(16384, 4096, False))
        ),
        Block((4,), "l0", 0, 2 * SECTOR, 184, ()),
    ]


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_subsets_are_bounded_and_have_each_write_alone_and_each_missing(count: int) -> None:
    found = list(subsets(count, 8))
    everything = frozenset(range(count))
    assert all(kept <= everything for _, kept in found)
    assert len(found) <= 1 + 2 * 8 + 4
    if count <= 8:
        assert {kept for kind, kept in found if kind == "alone"} == {frozenset((each,)) for each in everything}
        assert {kept for kind, kept in found if kind == "missing"} == {everything - {each} for each in everything}
    assert ("none", frozenset()) in found


def test_a_log_block_is_cut_at_each_4_kib() -> None:
    found = list(cuts(3 * SECTOR + 512))
    assert [parts for kind, parts in found if kind == "beginning"] == [((0, each * SECTOR),) for each in (1, 2, 3)]
    gaps = [sum(end - start for start, end in parts) for kind, parts in found if kind == "gap"]
    assert gaps == [2 * SECTOR + 512] * 3 + [3 * SECTOR]
    assert list(cuts(SECTOR)) == []


def test_extents_are_merged() -> None:
    assert merge([("d", 5, 9), ("d", 0, 5), ("l", 0, 5), ("d", 20, 30), ("d", 22, 25)]) == [
        ("d", 0, 9),
        ("d", 20, 30),
        ("l", 0, 5),
    ]


RUN = [
    write("l0", 0, b"first"),
    flush("l0"),
    mark("start"),
    write("d0", 0, b"data"),
    write("l0", 100, b"second"),
    flush("l0"),
    mark("a2"),
]


def disks_of(*names: str) -> Disks:
    return Disks(lambda *_: None, {name: bytes(4096) for name in names})


def test_only_what_no_flush_followed_may_be_lost() -> None:
    disks = disks_of("d0", "l0")
    found = list(Points(RUN, cut=0).walk(disks, 2))
    assert bytes(disks.durable["l0"][:106]) == b"first".ljust(100, b"\0") + b"second"
    assert bytes(disks.durable["d0"][:4]) == bytes(4)  # it was never flushed
    acknowledged = {(point.kind, point.kept) for point in found if point.at == len(RUN)}
    assert ("none", ()) in acknowledged
    assert all(write in (("d0", 0, b"data"),) for _, kept in acknowledged for write in kept)
    before = {point.kept for point in found if point.at == 5}
    assert (("d0", 0, b"data"),) in before  # the log's write is lost, the flush not yet done
    assert (("d0", 0, b"data"), ("l0", 100, b"second")) in before


def test_a_lying_drive_loses_across_a_flush() -> None:
    points = Points(RUN, cut=0, lying=True, stride=0)
    found = [point.kept for point in points.walk(disks_of("d0", "l0"), 2) if point.at == len(RUN)]
    assert (("d0", 0, b"data"),) in found


def test_a_crash_is_laid_over_the_disks_and_taken_off_again(tmp_path: Path) -> None:
    files = Files(tmp_path, ("d0",))
    disks = Disks(files.write, {"d0": bytes(100)})
    disks.settle([("d0", 0, b"durable")])
    disks.lay([("d0", 3, b"XY"), ("d0", 40, b"Z")])
    assert (tmp_path / "d0").read_bytes()[:8] == b"durXYle\0"
    assert disks.content([("d0", 2, 5), ("d0", 40, 41)]) == (b"rXY", b"Z")
    files.write("d0", 60, b"afterwards"[:4])
    disks.dirty.append(("d0", 60, 64))
    disks.restore()
    assert (tmp_path / "d0").read_bytes()[:100] == bytes(disks.durable["d0"]) == b"durable".ljust(100, b"\0")
    files.opened.close()


def script(*lines: str) -> Script:
    return Script(lines)


WRITTEN = script(
    "create d0 mirror l0 l1",
    "dataset a 16384 latency",
    "write a 0 64 1 fsync",
    "write a 64 64 1 fsync",
    "txg",
    "write a 0 64 2 fsync",
    "write b 0 64 2 fsync",
    "commit a one",
    "add l2",
    "write a 0 64 3 fsync",
    "commit b two",
)


def test_what_a_script_promises() -> None:
    assert WRITTEN.devices == ("d0", "l0", "l1", "l2")
    other = Slot("b", 0, 64)
    assert WRITTEN.promises() == {"one": {A: 2, B: 1}, "two": {A: 2, B: 1, other: 2}}


@pytest.mark.parametrize(
    ("runs", "found"),
    [
        (((0, 64, 2), (64, 128, 1)), []),
        (((0, 64, 3), (64, 128, 1)), []),
        (((0, 64, 1), (64, 128, 1)), [("lost", A, 0)]),
        (((0, 40, 3), (40, 64, 2), (64, 128, 1)), [("torn", A, 40)]),
        (((0, 40, 3), (40, 64, 1), (64, 128, 1)), [("lost", A, 0), ("torn", A, 40)]),
        (((0, 64, 2),), [("lost", B, 0)]),
        (((8, 64, 2), (64, 128, 1)), [("lost", A, 0), ("torn", A, 8)]),
        (((0, 64, (1 << 32) - 1), (64, 128, 1)), [("wrong", A, 0)]),
    ],
)
def test_the_oracle(runs: tuple[tuple[int, int, int], ...], found: list[tuple[str, Slot, int]]) -> None:
    seen = Observation(0, 0, {"a": runs}, ())
    assert [(each.what, each.slot, each.at) for each in judge(seen, (A, B), {A: 2, B: 1})] == found


def test_what_else_the_oracle_counts() -> None:
    text = "import 0\nrun a 0 128 2\nunreadable a 0 52\nchecksum 3\n"
    found = judge(Observation.parse(text), (A, B), {A: 2})
    assert [each.what for each in found] == ["checksum", "unreadable"]
    assert [each.what for each in judge(Observation.parse("import 5\n"), (A,), {})] == ["import"]
    assert [each.what for each in judge(Observation.parse("hang\n"), (A,), {})] == ["import"]


def test_generations_of_a_slot() -> None:
    assert generations([(0, 32, 1), (32, 200, 1)], A) == [(0, 1)]
    assert generations([(100, 128, 4)], B) == [(0, 0), (36, 4)]
    assert generations([], A) == [(0, 0)]


def test_a_page_is_apart_where_its_records_lie_in_two_blocks() -> None:
    """What the log splits, and the two blocks of a page that is larger than its records: but not within one log block."""
    entries = [
        mark("start"),
        write("l0", 0, log_block((0, 16384, b""), (16384, 8192, b"12345678"), (24576, 8192, b"12345678"))),
        mark("0.0"),
        write("l0", 8192, log_block((0, 10760, b"12345678"))),
        write("l0", 16384, log_block((10760, 5624, b"12345678"))),
        mark("152.1"),
    ]
    assert torn.apart(entries, 16384) == {0: Counter(), 152: Counter({10760: 1})}


def test_differences_of_table_and_formula() -> None:
    whole = releases.TornSetting(4096, "latency", "fsync", True)
    split = whole._replace(page=16384)
    table = releases.TornPages((2, 3, 0), (2, 3, 9), "2.3.9", 9, {whole: {4096: 2}, split: {16384: 0, 131072: 3}})
    assert [words.split()[0] for words in torn.differences("2.3", table)] == ["wrong", "loose"]


@pytest.mark.parametrize(("line", "table"), releases.load_torn_pages().items(), ids=list(releases.load_torn_pages()))
def test_the_formula_holds_the_table(line: str, table: releases.TornPages) -> None:
    """Both ways: what it calls whole never came apart, and what it says may come apart did."""
    assert list(torn.differences(line, table)) == []
    assert {each.page for each in table.apart} == {4096, 8192, 16384, 32768, 65536}


def test_rows_that_differ_in_their_records_alone_are_one() -> None:
    rows = [{"page": 8, "recordsizes": [record], "apart": record > 64} for record in (128, 8, 16)]
    assert torn.merge(rows) == [
        {"page": 8, "recordsizes": [128], "apart": True},
        {"page": 8, "recordsizes": [8, 16], "apart": False},
    ]


@pytest.mark.parametrize("plan", PLANS, ids=[each.name for each in PLANS])
def test_the_model_promises_what_no_point_may_lose(plan: Plan) -> None:
    """And says of each control that it loses: a run that finds otherwise has found a mistake of one of them."""
    for event in ("crash", "power"):
        assert run.foretold(plan, event, "commits") is Rank.SAFE
    assert all(run.foretold(plan, "power", "commits", control) is Rank.LOST for control in run.CONTROLS)


def test_a_page_of_which_the_log_holds_a_pointer_is_whole() -> None:
    ranks = {each.name: run.foretold(each, "power", "consistency") for each in PLANS}
    assert (ranks["log"], ranks["throughput"], ranks["large writes without a log"]) == (Rank.LOST, Rank.SAFE, Rank.SAFE)


def test_a_finding_that_the_model_excludes_is_a_disagreement() -> None:
    log, throughput = (next(each for each in PLANS if each.name == name) for name in ("log", "throughput"))
    tally = Tally()
    tally.count(Point(1, "none", ()), [Finding("torn", A, 8)])
    assert list(run.disagreements(log, tally)) == []  # with a log pages come apart
    assert len(list(run.disagreements(throughput, tally))) == 1
    tally.count(Point(1, "none", ()), [Finding("lost", A)])
    assert len(list(run.disagreements(log, tally))) == 1
    tally.count(Point(1, "prefix", ()), [Finding("lost", A)])  # a kernel crash, too
    assert [words.split(" at ")[1].split(",")[0] for words in run.disagreements(log, tally)] == ["crash", "power"]


@pytest.mark.parametrize("control", run.CONTROLS)
def test_a_kernel_crash_takes_no_cache_of_a_drive(control: run.Control) -> None:
    tally = Tally()
    tally.count(Point(1, "none", ()), [Finding("lost", A)])
    assert list(run.disagreements(PLANS[0], tally, control)) == []
    tally.count(Point(1, "prefix", ()), [Finding("lost", A)])
    assert len(list(run.disagreements(PLANS[0], tally, control))) == 1


def ask(connection: socket.socket, command: int, offset: int = 0, data: bytes = b"", length: int = 0) -> None:
    head = nbd.REQUEST.pack(0x25609513, 0, command, offset, offset, length or len(data))
    connection.sendall(head + data)


def answer(connection: socket.socket, length: int = 0) -> tuple[int, int, bytes]:
    """(error, handle, data)."""
    _, error, handle = nbd.REPLY.unpack(nbd.receive(connection, nbd.REPLY.size))
    return error, handle, nbd.receive(connection, length)


def test_drives_write_down_requests_in_the_order_in_which_they_are_done(tmp_path: Path) -> None:
    drives = Drives(tmp_path, {"d0": bytes(1 << 16), "marks": bytes(1 << 16)})
    drives.lag = 0.5  # so long that the flush overtakes the write on any machine
    ours, theirs = socket.socketpair()
    threading.Thread(target=drives.serve, args=(theirs, "d0"), daemon=True).start()
    assert nbd.receive(ours, 18)[:8] == b"NBDMAGIC"
    ours.sendall(bytes(4) + struct.pack(">8sII", b"IHAVEOPT", nbd.GO, 0))
    size = struct.unpack(">HQH", nbd.receive(ours, 20 + 12)[20:])
    assert size == (0, 1 << 16, nbd.HAS_FLAGS | nbd.SEND_FLUSH | nbd.SEND_TRIM)
    nbd.receive(ours, 20 + 14 + 20)
    ask(ours, nbd.WRITE, 4096, b"x" * 4096)
    ask(ours, nbd.FLUSH)
    assert answer(ours)[:2] == (0, 0)
    assert answer(ours)[:2] == (0, 4096)
    drives.lag = 0
    ask(ours, nbd.READ, 4096, length=8)
    assert answer(ours, 8) == (0, 4096, b"x" * 8)
    ask(ours, nbd.TRIM, 4096, length=4096)
    assert answer(ours)[:2] == (0, 4096)
    ask(ours, 9)
    assert answer(ours)[0] == nbd.EINVAL
    kinds = [(each.kind, each.offset, each.data[:1]) for each in drives.take()]
    assert kinds == [(Kind.FLUSH, 0, b""), (Kind.WRITE, 4096, b"x"), (Kind.READ, 4096, b""), (Kind.WRITE, 4096, b"\0")]
    assert drives.take() == []
    ours.close()


def test_a_drive_of_zeros_after_its_discards_is_what_is_on_it(tmp_path: Path) -> None:
    drives = Drives(tmp_path, {"d0": bytes(8)})
    drives.write("d0", 2, b"abc")
    assert drives.images["d0"] == b"\0\0abc\0\0\0"


def run_until(program: Workload, commits: int) -> None:
    class Enough(Exception):
        pass

    def acknowledge(number: int) -> None:
        if number + 1 == commits:
            raise Enough

    program.prepare()
    with contextlib.suppress(Enough):
        program.run(acknowledge)


@pytest.mark.parametrize("name", ["rename", "recreate", "truncate", *(f"sequence{seed}" for seed in range(6))])
def test_a_workload_finds_what_it_committed(tmp_path: Path, name: str) -> None:
    program = workload(name, tmp_path, tmp_path)
    run_until(program, 12)
    left = program.check()
    assert left.have == set(range(12))
    assert left.damage == []


@pytest.mark.parametrize("seed", range(4))
def test_a_sequence_whose_last_operations_are_there_in_part_is_of_the_commit_before(tmp_path: Path, seed: int) -> None:
    program = Sequences(tmp_path / "files", str(seed))
    run_until(program, 8)
    for operation in program.operations(8)[:1]:
        program.do(8, *operation)
    assert program.check().have >= set(range(8))


def test_a_sequence_of_no_moment_is_damage(tmp_path: Path) -> None:
    program = Sequences(tmp_path / "files", "1")
    run_until(program, 8)
    next(path for path in sorted((tmp_path / "files").iterdir())).write_bytes(b"something else")
    left = program.check()
    assert (left.have, len(left.damage)) == (set(), 1)


@pytest.mark.parametrize("how", ["rename", "recreate", "truncate"])
def test_a_file_of_an_older_commit_is_a_loss(tmp_path: Path, how: str) -> None:
    program = workload(how, tmp_path, tmp_path)
    run_until(program, 9)
    (tmp_path / "files" / "file0").unlink()  # commit 8
    assert program.check().have == set(range(8))


@pytest.mark.parametrize(
    ("seen", "promised", "found"),
    [
        ({"imported": "", "have": [[0, 4]], "damage": [], "checksum": 0}, 5, []),
        ({"imported": "", "have": [[0, 3]], "damage": [], "checksum": 0}, 5, ["lost"]),
        ({"imported": "", "have": [], "damage": ["torn"], "checksum": 2}, 0, ["unreadable", "checksum"]),
        (
            {
                "imported": "",
                "have": [],
                "damage": ["page 7 is torn at byte 10760: generation 2, then 1"],
                "checksum": 0,
            },
            0,
            ["torn"],
        ),
        ({"imported": "cannot import"}, 5, ["import"]),
        ({"dead": "no answer"}, 5, ["dead"]),
    ],
)
def test_the_oracle_of_the_kernel(seen: dict[str, Any], promised: int, found: list[str]) -> None:
    assert [each.what for each in kernel.judge(seen, promised)] == found


def test_pages_in_the_kernel_come_apart_where_the_table_says_so() -> None:
    sampled = [each for each in kernel.PLANS if each.workload.startswith("pages")]
    assert {bool(each.torn) for each in sampled} == {True, False}
    for plan in sampled:
        setting = releases.TornSetting(16384, plan.model().logbias, "fsync", "log" in plan.vdevs)
        apart = {line: table.apart[setting][16384] for line, table in releases.load_torn_pages().items()}
        assert all(apart[line] for line in plan.torn)
        assert plan.torn or not any(apart.values())


def test_what_is_acknowledged_after_so_many_requests() -> None:
    entries = [write("d0", 0, b"x"), mark("0"), write("d0", 0, b"y"), mark("1")]
    assert [kernel.acknowledged(entries[:count]) for count in range(5)] == [0, 0, 1, 1, 2]
    assert {plan.name for plan in kernel.PLANS} == {plan.name for plan in dict.fromkeys(kernel.PLANS)}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (b"old", True),
        (b"newer", True),
        (b"ned", True),
        (b"new", True),
        (b"ol", False),
        (b"older", False),
        (None, False),
    ],
)
def test_a_write_may_be_there_in_part(found: bytes | None, expected: bool) -> None:
    assert workloads.one_of([b"old", b"newer"], found) is expected
    assert workloads.one_of([None, b"old", b"newer"], None)
