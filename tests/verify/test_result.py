"""Percentiles against a plain sort, and a verdict on none of which too few samples lie beyond it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.facts import Known, Unknown
from auditor.verify import result, verification
from auditor.verify.result import LEAST_BEYOND, Histogram, Latency, Percentile, Run, Slice, Slo, Txg, together
from tests.verify import samples

SAMPLES = st.lists(st.integers(1, 10**9), min_size=1, max_size=400)
SHARES = st.sampled_from((0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999))


def exact(values: list[int]) -> Histogram:
    return Histogram.of({value: values.count(value) for value in values})


def percentile(of: Latency, q: float) -> Percentile:
    return next(each for each in of.percentiles if each.q == q)


def run_of(count: int, ns: int = 1_000_000, purpose: str = "log") -> Run:
    seen = samples.run(seconds=10)
    job = seen.jobs[0]._replace(latency=Histogram(((ns, count),)), syncs=count)
    return seen._replace(purpose=purpose, jobs=(job,))


# -- histograms ---------------------------------------------------------------------------------------------------


@given(SAMPLES, SHARES)
def test_a_percentile_is_that_of_a_plain_sort(values: list[int], q: float) -> None:
    ordered = sorted(values)
    assert exact(values).percentile_ns(q) == ordered[max(math.ceil(q * len(ordered) - 1e-9), 1) - 1]


@given(SAMPLES, SHARES)
def test_a_bucket_is_close_to_the_sample(values: list[int], q: float) -> None:
    ordered, found = sorted(values), samples.histogram(values).percentile_ns(q)
    true = ordered[max(math.ceil(q * len(ordered) - 1e-9), 1) - 1]
    assert found is not None
    assert true <= found <= true * (1 + 1 / 64) + 1


@given(SAMPLES, SHARES)
def test_it_is_judged_with_ten_samples_beyond_it_and_no_less(values: list[int], q: float) -> None:
    beyond = len(values) * (1 - q)
    judged = exact(values).judged(q)
    if beyond < LEAST_BEYOND - 1e-6:
        assert judged is None
    if beyond > LEAST_BEYOND + 1e-6:
        assert judged == exact(values).percentile_ns(q)


@pytest.mark.parametrize(("count", "judged"), [(999, False), (1000, True)])
def test_the_99th_percentile_needs_a_thousand_samples(count: int, judged: bool) -> None:
    assert (Histogram(((5, count),)).judged(0.99) is not None) == judged


@given(SAMPLES, SAMPLES)
def test_what_was_added_is_what_is_more(one: list[int], other: list[int]) -> None:
    assert together((exact(one), exact(other))) == exact(one + other)
    assert exact(one + other).minus(exact(one)) == exact(other)


@given(SAMPLES, st.integers(0, 10**9))
def test_the_share_above(values: list[int], limit: int) -> None:
    above = sum(value > limit for value in values)
    assert exact(values).share_above(limit) == pytest.approx(above / len(values))


def test_nothing_is_not_zero() -> None:
    empty = Histogram()
    assert empty.percentile_ns(0.5) is None
    assert empty.judged(0.5) is None
    assert empty.samples == 0
    assert Histogram.of({5: 0}) == empty


def test_what_is_no_earlier_state() -> None:
    with pytest.raises(ValueError, match="negative"):
        exact([1, 2]).minus(exact([3]))


# -- verdicts -----------------------------------------------------------------------------------------------------

SLO = (Slo(0.99, 5_000_000), Slo(0.9999, 1))


def test_met_and_missed() -> None:
    met, missed = (result.judge(run_of(2000, ns), SLO, "") for ns in (5_000_000, 5_000_001))
    assert percentile(met, 0.99)[1:] == (5_000_000, 20, 5_000_000, "met", "")
    assert percentile(missed, 0.99).judgement == "missed"


def test_no_verdict_with_too_few_samples() -> None:
    found = percentile(result.judge(run_of(2000), SLO, ""), 0.9999)
    assert (found.ns, found.judgement) == (None, "not judged")
    assert found.why == "0 samples beyond it, 10 are needed"


def test_no_verdict_while_something_stands() -> None:
    found = result.judge(run_of(2000, 1), SLO, "sync-disabled stands")
    assert found.why_not == "sync-disabled stands"
    assert {each.judgement for each in found.percentiles} == {"not judged"}
    assert percentile(found, 0.99).why == "sync-disabled stands"


@pytest.mark.parametrize("purpose", ["data", "group", "fresh", "recycled"])
def test_objectives_are_those_of_a_session_that_waits(purpose: str) -> None:
    found = result.judge(run_of(2000, 10**9, purpose), SLO, "")
    assert {each.judgement for each in found.percentiles} == {"not judged"}
    assert percentile(found, 0.99).why == "no objective"


def test_a_run_without_a_word_of_fio() -> None:
    found = result.judge(samples.run(seconds=5)._replace(jobs=()), SLO, "")
    assert {each.ns for each in found.percentiles} == {None}
    assert (found.commits_per_s, found.tail, found.bottleneck) == (None, "", "")


def test_commits_of_one_session() -> None:
    assert result.judge(run_of(2000, 2_000_000), (), "").commits_per_s == 500.0


def test_syncs_per_second_of_the_seconds_that_kept_the_objective() -> None:
    good, bad = Histogram(((1_000_000, 100),)), Histogram(((9_000_000, 50),))
    timeline = (Slice(0.0, 1.0, good), Slice(1.0, 2.0, bad), Slice(2.0, 3.0, good), Slice(3.0, 4.0, Histogram()))
    found = result.judge(run_of(2000)._replace(timeline=timeline), SLO[:1], "")
    assert found.at_slo == 100.0
    assert result.judge(run_of(2000)._replace(timeline=timeline[1:2]), SLO[:1], "").at_slo is None
    assert result.judge(run_of(2000)._replace(timeline=timeline), (), "").at_slo is None


def slow_in(seconds: set[int]) -> Run:
    fast, slow = Histogram(((1_000_000, 100),)), Histogram(((1_000_000, 80), (20_000_000, 20)))
    timeline = tuple(Slice(float(i), i + 1.0, slow if i in seconds else fast) for i in range(20))
    txgs = tuple(Txg(i, 5.0 * i - 5, 5.0, 0.5, 1, 1) for i in range(5))  # synced in seconds 0, 5, 10, 15
    return run_of(2000)._replace(timeline=timeline, txgs=txgs)


def test_the_tail_is_that_of_the_transaction_groups_only_when_it_is() -> None:
    assert "100% of the syncs slower than 10" in result.judge(slow_in({0, 5, 10, 15}), (), "").tail
    assert result.judge(slow_in({1, 2, 3, 6, 7, 8}), (), "").tail == ""
    assert result.judge(slow_in(set()), (), "").tail == ""
    assert result.judge(slow_in({0, 5, 10, 15})._replace(txgs=()), (), "").tail == ""


def test_bottlenecks() -> None:
    calm = run_of(2000)
    slow = tuple(each._replace(write_ms=200, flush_ms=1700) for each in calm.devices)
    idle = tuple(each._replace(write_ms=2, flush_ms=2) for each in calm.devices)
    job = calm.jobs[0]._replace(cpu_percent=95.0)

    def named(run: Run) -> str:
        return result.judge(run, (), "").bottleneck

    assert named(calm._replace(devices=slow)).startswith("the log device: nvme2n1 takes 950")
    assert named(calm._replace(devices=idle)).startswith("not the log device: nvme2n1")
    assert named(calm._replace(devices=())) == ""
    assert named(calm._replace(jobs=(job,))).startswith("the processor")
    held = named(calm._replace(counters={"dmu_tx_dirty_delay": 7}, jobs=(job,)))
    assert held.startswith("the write throttle held back 7")


def test_whether_every_objective_was_kept() -> None:
    met = verification.met(result.judge(run_of(2000), SLO[:1], "")).value
    missed = verification.met(result.judge(run_of(2000, 10**9), SLO, "")).value
    unjudged = verification.met(result.judge(run_of(2000), SLO, "")).value
    assert isinstance(met, Known)
    assert met.value is True
    assert isinstance(missed, Known)
    assert missed.value is False
    assert missed.evidence[0].text == "p99 1 s, objective 5 ms"
    assert isinstance(unjudged, Unknown)
    assert "10 are needed" in unjudged.reasons[0].text


def test_where_a_sync_means_nothing_neither_do_commits_per_second() -> None:
    asked = [Slo(0.99, 5_000_000)]
    for why in ("", "slog-virtual stands: durability first"):
        found = result.judge(run_of(5000), asked, why)
        assert found.commits_per_s == 1000.0
        assert found.bottleneck
    found = result.judge(run_of(5000), asked, result.MEANINGLESS)
    assert (found.commits_per_s, found.at_slo, found.tail, found.bottleneck) == (None, None, "", "")
    assert percentile(found, 0.99).ns == 1_000_000, "what was measured stays on the page"
    assert percentile(found, 0.99).judgement == "not judged"
