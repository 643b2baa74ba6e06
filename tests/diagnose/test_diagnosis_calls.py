"""By which calls threads came to their commits: told where it is certain, bounded where it is not, never made up."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.diagnose import observation
from auditor.diagnose.commits import Thread
from auditor.diagnose.conclusion import called, diagnose
from auditor.diagnose.diagnosis import Calls
from auditor.diagnose.observation import KERNEL, Process
from tests.diagnose import worlds

TRACED = worlds.traced({(100, "postgres", 1): (400, 400 * 5300)})
COUNTS = st.integers(0, 1000)


def told(commits: dict[int, int], fsync: int, fdatasync: int, *, disabled: bool = False) -> list[Calls]:
    """Of one thread. commits: by ZIL."""
    threads = [Thread(100, "postgres", zil, count, count * 5300) for zil, count in commits.items()]
    seen = TRACED._replace(calls=worlds.calls({100: (fsync, fdatasync)}), uncalled="")
    found = called(seen, threads, disabled=disabled)
    assert found.why_not == ""
    return [found.rows[each] for each in threads]


@pytest.mark.parametrize(
    ("commits", "counts", "disabled", "rows"),
    [
        ({1: 400}, (0, 400), False, [Calls(0, 400, 0, False)]),
        ({1: 400}, (2, 398), False, [Calls(2, 398, 0, False)]),
        ({1: 400}, (0, 0), False, [Calls(0, 0, 400, False)]),
        ({1: 400}, (0, 0), True, [Calls(0, 0, 400, False)]),
        ({1: 400}, (100, 0), False, [Calls(100, 0, 300, False)]),
        ({1: 400}, (403, 0), False, [Calls(400, 0, 0, False)]),  # those that had begun, and were not read at the same moment
        ({1: 400}, (900, 0), False, [Calls(400, 0, 0, True)]),  # to a dataset with sync=disabled of another pool
        ({1: 400}, (100, 0), True, [Calls(100, 0, 300, True)]),
        ({1: 400, 2: 100}, (0, 500), False, [Calls(0, 400, 0, False), Calls(0, 100, 0, False)]),
        ({1: 400, 2: 100}, (400, 100), False, [Calls(400, 100, 0, True), Calls(100, 100, 0, True)]),
        ({1: 400, 2: 100}, (0, 300), False, [Calls(0, 300, 100, True), Calls(0, 100, 0, True)]),
        ({1: 400, 2: 100}, (0, 0), False, [Calls(0, 0, 400, False), Calls(0, 0, 100, False)]),
    ],
)  # fmt: skip
def test_what_is_told(commits: dict[int, int], counts: tuple[int, int], disabled: bool, rows: list[Calls]) -> None:
    assert told(commits, *counts, disabled=disabled) == rows


@given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS), min_size=1, max_size=4), st.booleans())
def test_the_truth_is_within_what_is_told(truth: list[tuple[int, int, int]], disabled: bool) -> None:
    """truth: of each ZIL commits by fsync, fdatasync and otherwise."""
    commits = {zil: sum(each) for zil, each in enumerate(truth)}
    rows = told(commits, sum(each[0] for each in truth), sum(each[1] for each in truth), disabled=disabled)
    for (fsync, fdatasync, other), row in zip(truth, rows, strict=True):
        assert row.fsync >= fsync
        assert row.fdatasync >= fdatasync
        assert row.other <= other
        assert row.at_most or (fsync, fdatasync, other) == row[:3]


def test_the_whole_is_the_sum_of_the_threads_and_counts_no_call_twice() -> None:
    threads = [Thread(100, "a", 1, 400, 1), Thread(100, "a", 2, 100, 1), Thread(101, "b", 1, 50, 1)]
    seen = TRACED._replace(calls=worlds.calls({100: (400, 100), 101: (20, 0), 7: (99, 99)}), uncalled="")
    assert called(seen, threads, disabled=False).whole == Calls(420, 100, 30, False)
    assert called(seen, [], disabled=False).whole == Calls(0, 0, 0, False)


def test_what_was_not_counted_is_told_as_such_and_changes_no_outcome() -> None:
    seen = worlds.observation(worlds.load(), TRACED, (Process(100, "postgres", "", "", 40_000_000),))
    found = diagnose(seen, worlds.facts())
    assert (found.outcome, found.calls, found.committers[0].calls) == ("NOTHING STANDS OUT", None, None)
    assert found.uncalled == "they were not counted yet when this was recorded"
    broken = diagnose(seen._replace(traced=TRACED._replace(calls="{ x }", uncalled="")), worlds.facts())
    assert (broken.outcome, broken.calls) == ("NOTHING STANDS OUT", None)
    assert broken.uncalled == "the histogram of calls had no room for all that came"
    assert diagnose(seen._replace(traced=None), worlds.facts()).uncalled == ""


def test_a_recording_of_before_says_that_calls_were_not_counted() -> None:
    seen = worlds.observation(worlds.load(), TRACED)
    document = json.loads(observation.to_text(seen))
    del document["traced"]["calls"], document["traced"]["uncalled"]
    assert observation.from_text(json.dumps(document)) == seen


def test_calls_to_a_dataset_with_sync_disabled_are_no_commits() -> None:
    files = worlds.load(commits={"tank/db": 400, "tank/web": 0}, rows={})
    path = next(path for path, text in files[1].items() if "tank/web" in text)
    files[1][path] = worlds.objset("tank/web", writes=50)
    seen = worlds.observation(files, TRACED._replace(calls=worlds.calls({100: (300, 0)}), uncalled=""))
    idle = worlds.observation((files[0], {**files[1], path: files[0][path]}), seen.traced)
    for look in (seen, idle):  # a sync of a file that nobody writes to is a call, too
        for sync, at_most in (("standard", False), ("disabled", True)):
            found = diagnose(look, worlds.facts(sync={"tank/web": sync}))
            assert found.committers[0].calls == Calls(300, 0, 100, at_most)


def test_a_thread_of_the_kernel_tells_for_whom_it_commits() -> None:
    rows = {
        (50, "zvol_tq-0", 1): (200, 1),
        (51, "nfsd", 2): (100, 1),
        (52, "zvol", 3): (50, 1),
        (53, "sync", 4): (25, 1),
    }
    who = tuple(
        Process(pid, name, KERNEL if pid != 52 else "", "", None)
        for pid, name in ((50, "zvol_tq-0"), (51, "nfsd"), (52, "zvol"))
    )
    found = diagnose(worlds.observation(worlds.load(), worlds.traced(rows), who), worlds.facts())
    assert {each.pid: each.service for each in found.committers} == {50: "zvol", 51: "nfsd", 52: "", 53: ""}
