"""Before and after: noise is called noise, a change a change, and what cannot be told is said."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.verify.comparison import (
    COMPARED,
    LEAST_BLOCKS,
    LEAST_RATIO,
    MOST_BLOCKS,
    Comparison,
    Row,
    blocks,
    compare,
    interval,
    ratio_between,
    student,
)
from auditor.verify.result import Histogram, Run, Slice, Verification, together
from tests import shared
from tests.verify import samples, strategies


def rows(comparison: Comparison) -> dict[float, Row]:
    return {row.q: row for row in comparison.rows}


@cache
def restless(seed: int, slower: float = 1.0, seconds: int = 60, rate: int = 150) -> Run:
    """A run whose latency wanders for seconds at a time and whose transaction groups are of unlike severity."""
    chance = random.Random(seed)
    level, severity, slices = 0.0, 1.0, []
    for second in range(seconds):
        level = 0.8 * level + chance.gauss(0, 0.1)
        if syncing := second % 5 == 0:
            severity = chance.lognormvariate(2, 0.5)
        latencies = [
            chance.lognormvariate(level, 0.2) * 1e6 * slower * (severity if syncing and chance.random() < 0.1 else 1)
            for _ in range(rate)
        ]
        slices.append(Slice(second, second + 1.0, samples.histogram(latencies)))
    quiet = samples.run(seconds=3)
    job = quiet.log._replace(latency=together(each.syncs for each in slices), seconds=float(seconds))
    return quiet._replace(
        argv=samples.argv(seconds=seconds), timeline=tuple(slices), jobs=(job,), txgs=samples.txgs(seconds)
    )


def one(run: Run) -> Verification:
    return samples.traced((run,))


def test_the_same_result_twice_is_the_same() -> None:
    found = compare(samples.traced(), samples.traced())
    assert len(found.rows) == 2 * len(COMPARED)
    assert {row.change for row in found.rows} == {"within noise"}
    assert {row.ratio for row in found.rows} == {1.0}


@pytest.mark.slow
def test_two_runs_on_an_equal_pool_are_within_noise() -> None:
    """The level is 5 % for a whole comparison: 40 pairs may show a few, a test that counted samples shows nearly all."""
    alarms = sum(
        any(row.change != "within noise" for row in compare(one(restless(2 * i)), one(restless(2 * i + 1))).rows[:3])
        for i in range(40)
    )
    assert alarms <= 5


def test_a_run_that_is_slower_by_more_than_noise_is_seen() -> None:
    found = [rows(compare(one(restless(i)), one(restless(100 + i, 1.6)))) for i in range(20)]
    assert sum(each[0.5].change == "slower" for each in found) >= 18
    assert not any(row.change == "faster" for each in found for row in each.values())


def test_before_and_after_mirror_each_other() -> None:
    there = rows(compare(one(restless(1)), one(restless(2, 2.0))))
    back = rows(compare(one(restless(2, 2.0)), one(restless(1))))
    assert there[0.5].change == "slower"
    assert back[0.5].change == "faster"
    for q in COMPARED:
        one_way, other_way, end = there[q].ratio, back[q].ratio, back[q].high
        if one_way is not None and other_way is not None:
            assert one_way == pytest.approx(1 / other_way)
            assert there[q].low == pytest.approx(1 / end if end else 0)


def test_a_new_slog_that_helps_the_tail_alone() -> None:
    before, after = samples.run(spike_ms=40.0), samples.run(seed=3, spike_ms=2.0)
    found = rows(compare(one(before), one(after)))
    assert found[0.5].change == "within noise"
    assert found[0.999].change == "faster"


def test_less_than_five_percent_is_no_difference_however_sure() -> None:
    at, later = samples.bucket(1_000_000), samples.bucket(1_030_000)
    steady = samples.run()
    exact = [
        steady._replace(
            timeline=tuple(Slice(float(i), i + 1.0, Histogram(((ns, 800),))) for i in range(120)),
            jobs=(steady.log._replace(latency=Histogram(((ns, 96_000),))),),
        )
        for ns in (at, later)
    ]
    found = compare(one(exact[0]), one(exact[1])).rows[0]
    assert found.ratio is not None
    assert 1 < found.ratio < LEAST_RATIO
    assert found.change == "within noise"


def test_too_few_samples_beyond_a_percentile() -> None:
    found = rows(compare(one(restless(1, rate=20)), one(restless(2, rate=20))))
    assert found[0.999].change == "cannot tell"
    assert "1 samples lie beyond it, 10 are needed" in found[0.999].why
    assert found[0.999].before_ns is None
    assert found[0.5].change != "cannot tell"


def test_too_few_transaction_groups() -> None:
    found = compare(one(restless(1, seconds=25, rate=2000)), one(restless(2, 3.0, seconds=25, rate=2000)))
    assert {row.change for row in found.rows} == {"cannot tell"}
    assert all(f"{LEAST_BLOCKS} are needed" in row.why for row in found.rows)


def test_no_timeline_is_too_few() -> None:
    bare = restless(1)._replace(timeline=())
    assert {row.change for row in compare(one(bare), one(restless(2, 9.0))).rows} == {"cannot tell"}


@pytest.mark.slow
def test_nothing_is_compared_with_what_is_not_stable_storage() -> None:
    fast = samples.traced((samples.run(median_ms=0.2),))
    fast = fast._replace(chain=fast.chain._replace(outcome="CONTRADICTED"))
    found = compare(samples.traced((samples.run(),)), fast)
    assert {row.change for row in found.rows} == {"cannot tell"}
    assert all("after: the chain is CONTRADICTED" in row.why for row in found.rows)
    assert any("TRACED before, CONTRADICTED after" in note for note in found.notes)


def test_nothing_is_compared_with_what_was_not_judged() -> None:
    after = samples.traced()
    after = after._replace(latencies=(after.latencies[0]._replace(why_not="a scrub of tank ran"), after.latencies[1]))
    found = compare(samples.traced(), after)
    assert {row.why for row in found.rows if row.run == "log"} == {"after: a scrub of tank ran"}
    assert {row.change for row in found.rows if row.run == "together"} == {"within noise"}


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (lambda: samples.traced()._replace(profile="etcd"), "the profile: postgres before, etcd after"),
        (lambda: samples.traced()._replace(length="long"), "the length: quick before, long after"),
        (lambda: samples.traced((samples.run(size="4g"),)), "--size of job wal of run log: 1g before, 4g after"),
        (lambda: samples.traced((samples.run(seconds=60),)), "--runtime of job wal of run log: 120 before, 60 after"),
        (lambda: samples.traced()._replace(size=1 << 32), "the size of the files: 1073741824 before, 4294967296 after"),
        (lambda: samples.traced()._replace(job_file="[log]"), "the text of the profile postgres"),
        (lambda: samples.traced((samples.run("other"),)), "the runs: none of them is in both"),
    ],
)
def test_different_questions_are_not_compared(after: Callable[[], Verification], says: str) -> None:
    found = compare(samples.traced(), after())
    assert says in found.differs
    assert found.rows == ()


def test_what_fio_did_counts_not_only_what_it_was_told() -> None:
    run = samples.run()
    for job, says in (
        (run.log._replace(sync="fsync"), "synced by fdatasync before, by fsync after"),
        (run.log._replace(write_bytes=run.log.write_bytes * 2), "the size of a write"),
        (run.log._replace(seconds=40.0, write_bytes=run.log.write_bytes // 3, writes=run.log.writes // 3), "40 s and"),
    ):
        found = compare(one(run), one(run._replace(jobs=(job,))))
        assert len(found.differs) == 1
        assert says in found.differs[0]
    faster = run.log._replace(seconds=40.0)  # the same amount in a third of the time
    assert compare(one(run), one(run._replace(jobs=(faster,)))).differs == ()


def test_another_directory_is_no_difference() -> None:
    elsewhere = samples.traced((samples.run(place="/fast/wal/.zaudit-77"),))._replace(dataset="fast/wal")
    found = compare(samples.traced((samples.run(),)), elsewhere)
    assert found.differs == ()
    assert any("tank/db/wal before, fast/wal after" in note for note in found.notes)


def test_blocks_hold_whole_transaction_groups() -> None:
    run = samples.run()
    parts = blocks(run)
    assert len(parts) == MOST_BLOCKS
    assert sum(part.samples for part in parts) == together(each.syncs for each in run.timeline).samples
    slow = run._replace(txgs=samples.txgs(120, 13.0))
    assert len(blocks(slow)) == 9  # 117 of 120 s: the rest is no whole group
    assert len(blocks(samples.run(seconds=44, seed=9)._replace(txgs=()))) == 8


def test_an_interval_holds_the_percentile_and_widens_with_the_level() -> None:
    run = restless(5)
    for q in (0.5, 0.95):
        narrow, wide = interval(run, q, 0.9), interval(run, q, 0.999)
        assert isinstance(narrow, tuple)
        assert isinstance(wide, tuple)
        at = run.log.latency.percentile_ns(q)
        assert at is not None
        assert wide[0] <= narrow[0] <= at <= narrow[1] <= wide[1]
        assert wide[0] < at < wide[1]


def test_an_interval_without_end_is_no_reason_to_call_anything_faster() -> None:
    low, high = ratio_between(1e7, (9e6, math.inf), 5e6, (4.9e6, 5.1e6))
    assert low == 0
    assert high < 1  # "before" may have been larger still
    low, high = ratio_between(1e7, (9e6, 1.1e7), 5e6, (4.9e6, math.inf))
    assert math.isinf(high)


@pytest.mark.parametrize(
    ("p", "freedom", "quantile"),
    # tables of Student's t
    [
        (0.975, 5, 2.571),
        (0.9995, 5, 6.869),
        (0.975, 7, 2.365),
        (0.9995, 7, 5.408),
        (0.975, 11, 2.201),
        (0.9995, 11, 4.437),
    ],
)
def test_student(p: float, freedom: int, quantile: float) -> None:
    assert student(p, freedom) == pytest.approx(quantile, rel=0.01)


@pytest.mark.slow
@shared.examples(40, deadline=None)
@given(strategies.of(Verification), strategies.of(Verification))
def test_any_two_results_are_compared_or_not_without_an_accident(before: Verification, after: Verification) -> None:
    for one_, other in ((before, after), (before, before), (before, before._replace(chain=after.chain))):
        found = compare(one_, other)
        assert not (found.differs and found.rows)
        assert all(row.why for row in found.rows if row.change == "cannot tell")


@shared.examples(60, deadline=None)
@given(st.floats(1, 1e10), st.floats(1, 4), st.floats(1, 4), st.floats(1, 1e10), st.floats(1, 4), st.floats(1, 4))
def test_the_ratio_lies_in_its_interval(old: float, a: float, b: float, new: float, c: float, d: float) -> None:
    low, high = ratio_between(old, (max(old / a, 1), old * b), new, (max(new / c, 1), new * d))
    assert low <= new / old * (1 + 1e-9)
    assert high >= new / old * (1 - 1e-9)
