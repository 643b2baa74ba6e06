"""The pure parts of the crash points (tests/lab/points): what is tried, and what is said of it."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path

import pytest

from auditor.data import torn_pages
from auditor.durability.answers import Rank
from tests.lab.points import recording, run, torn
from tests.lab.points.explore import SECTOR, Disks, Point, Points, Tally, cuts, merge, subsets
from tests.lab.points.recording import MARKS, Block, Entry, Kind, Record
from tests.lab.points.workload import PLANS, Finding, Observation, Plan, Script, Slot, generations, judge

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


def test_only_what_no_flush_followed_may_be_lost(tmp_path: Path) -> None:
    disks = Disks(tmp_path, ("d0", "l0"))
    found = list(Points(RUN, cut=0).walk(disks, 2))
    assert bytes(disks.durable["l0"][:106]) == b"first".ljust(100, b"\0") + b"second"
    assert bytes(disks.durable["d0"][:4]) == bytes(4)  # it was never flushed
    acknowledged = {(point.kind, point.kept) for point in found if point.at == len(RUN)}
    assert ("none", ()) in acknowledged
    assert all(write in (("d0", 0, b"data"),) for _, kept in acknowledged for write in kept)
    before = {point.kept for point in found if point.at == 5}
    assert (("d0", 0, b"data"),) in before  # the log's write is lost, the flush not yet done
    assert (("d0", 0, b"data"), ("l0", 100, b"second")) in before


def test_a_lying_drive_loses_across_a_flush(tmp_path: Path) -> None:
    points = Points(RUN, cut=0, lying=True, stride=0)
    found = [point.kept for point in points.walk(Disks(tmp_path, ("d0", "l0")), 2) if point.at == len(RUN)]
    assert (("d0", 0, b"data"),) in found


def test_a_crash_is_laid_over_the_disks_and_taken_off_again(tmp_path: Path) -> None:
    disks = Disks(tmp_path, ("d0",))
    disks.settle([("d0", 0, b"durable")])
    disks.lay([("d0", 3, b"XY"), ("d0", 40, b"Z")])
    assert (tmp_path / "d0").read_bytes()[:8] == b"durXYle\0"
    assert disks.content([("d0", 2, 5), ("d0", 40, 41)]) == (b"rXY", b"Z")
    os_written = [("d0", 60, 64)]
    with (tmp_path / "d0").open("r+b") as file:
        file.seek(60)
        file.write(b"afterwards"[:4])
    disks.restore(os_written)
    assert (tmp_path / "d0").read_bytes() == bytes(disks.durable["d0"])


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
    whole = torn_pages.Setting(4096, "latency", "fsync", True)
    split = whole._replace(page=16384)
    table = torn_pages.Table((2, 3, 0), (2, 3, 9), "2.3.9", 9, {whole: {4096: 2}, split: {16384: 0, 131072: 3}})
    assert [words.split()[0] for words in torn.differences("2.3", table)] == ["wrong", "loose"]


@pytest.mark.parametrize(("line", "table"), torn_pages.load().items(), ids=list(torn_pages.load()))
def test_the_formula_holds_the_table(line: str, table: torn_pages.Table) -> None:
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
