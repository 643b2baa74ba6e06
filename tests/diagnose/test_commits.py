"""What the kernel's histograms print, whole, cut off and hostile."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from auditor.diagnose import commits
from auditor.diagnose.observation import Tick

HEAD = "# event histogram\n#\n# trigger info: hist:keys=us.log2:vals=hitcount:sort=hitcount:size=4096 [active]\n#\n\n"
THREADS = """# event histogram
#
# trigger info: hist:keys=common_pid.execname,zil:vals=hitcount,us:sort=hitcount:size=4096 [active]
#

{ common_pid: python3         [       340], zil:          1 } hitcount:          1  us:        275
{ common_pid: zvol_tq-0       [       236], zil:          2 } hitcount:         37  us:    1898123
{ common_pid: a } b [1]       [       338], zil:          3 } hitcount:        300  us:    8127205

Totals:
    Hits: 338
    Entries: 3
    Dropped: 0
"""


def log2(rows: dict[int, int], dropped: int = 0) -> str:
    body = "".join(f"{{ us: ~ 2^{power:<2} }} hitcount: {count:10}\n" for power, count in rows.items())
    return f"{HEAD}{body}\nTotals:\n    Hits: {sum(rows.values())}\n    Entries: {len(rows)}\n    Dropped: {dropped}\n"


def test_threads_with_names_of_any_kind() -> None:
    found = commits.by_thread(THREADS).rows
    assert [(each.pid, each.name, each.zil, each.commits, each.us) for each in found] == [
        (340, "python3", 1, 1, 275),
        (236, "zvol_tq-0", 2, 37, 1898123),
        (338, "a } b [1]", 3, 300, 8127205),
    ]
    assert commits.complete(THREADS)
    assert not commits.complete(THREADS.replace("Dropped: 0", "Dropped: 7"))
    assert not commits.complete(THREADS[:300])


@given(st.dictionaries(st.integers(0, 40), st.integers(1, 10**9), max_size=20))
def test_powers_of_two_are_called_by_their_upper_end(rows: dict[int, int]) -> None:
    found = commits.latencies(log2(rows))
    assert dict(found.counts) == {2**power * 1000: count for power, count in rows.items()}


def test_slices_are_what_was_added() -> None:
    ticks = [Tick(101.0, log2({5: 10})), Tick(102.0, log2({5: 10, 7: 3})), Tick(103.0, log2({5: 11, 7: 3}))]
    found = commits.slices(100.0, ticks)
    assert [(each.at_s, each.to_s, each.syncs.counts) for each in found] == [
        (0.0, 1.0, ((32000, 10),)),
        (1.0, 2.0, ((128000, 3),)),
        (2.0, 3.0, ((32000, 1),)),
    ]
    with pytest.raises(ValueError, match="negative count"):
        commits.slices(100.0, ticks[::-1])


@pytest.mark.parametrize(
    "name",
    [
        "\n",
        "\n{ common_pid: ",
        "a\n{ b",
        "x } hitcount: 1",
        "[ 1], zil: 2 }",
        "\n    Dropped: 9",
        "\r\x1b[2K\u2028",
        "# event\n{",
        "\ufffd" * 15,
    ],
)
def test_no_name_of_a_thread_costs_another_one_its_entry(name: str) -> None:
    text = THREADS.replace("python3         ", name.ljust(16))
    found = commits.by_thread(text)
    assert [(each.pid, each.zil, each.commits, each.us) for each in found.rows] == [
        (340, 1, 1, 275),
        (236, 2, 37, 1898123),
        (338, 3, 300, 8127205),
    ]
    assert found.rows[0].name == (name.rstrip(" ") or " ")
    assert not found.unread
    assert commits.complete(text)


@pytest.mark.parametrize(
    ("text", "pids"),
    [
        (THREADS.replace("us:        275", ""), [236, 338]),
        (THREADS.replace("[       340]", "[x]"), [236, 338]),
        (THREADS.replace("python3         ", "x" * 17), [236, 338]),
        (THREADS[: THREADS.index("  us:    8127205")], [340, 236]),
    ],
)
def test_an_entry_that_cannot_be_read_is_counted_and_costs_no_other(text: str, pids: list[int]) -> None:
    found = commits.by_thread(text)
    assert ([each.pid for each in found.rows], found.unread) == (pids, 1)


def test_what_is_no_histogram_of_latencies_is_none() -> None:
    with pytest.raises(ValueError, match="histogram of latencies"):
        commits.latencies(log2({5: 10}).replace("2^5", "2^x"))


@given(st.text(max_size=300))
@example("\x1e{")
def test_no_text_breaks_the_readers(text: str) -> None:
    entries = sum(line.startswith("{") for line in text.split("\n"))
    found = commits.by_thread(text)
    assert len(found.rows) + found.unread <= entries
    assert not entries or found.rows or found.unread
    with suppress(ValueError):
        assert len(commits.latencies(text).counts) <= entries


def test_no_more_entries_are_read_than_a_histogram_has() -> None:
    row = "{ common_pid: a               [         1], zil:          1 } hitcount:          1  us:        275\n"
    found = commits.by_thread(row * (commits.MOST + 3))
    assert (len(found.rows), found.unread) == (commits.MOST, 3)


def test_what_is_longer_than_any_histogram_is_not_read_to_its_end() -> None:
    found = commits.by_thread("\n" * commits.LARGEST + THREADS)
    assert (found.rows, found.unread) == ((), 1)
