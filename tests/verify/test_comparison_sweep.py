"""A sweep: which runs it has, and what their output comes to."""

from __future__ import annotations

import json
import re

import pytest

from auditor.verify import comparison, fio, profile
from auditor.verify.fio import FioError
from auditor.verify.profile import ProfileError
from auditor.verify.trial import FioRun
from tests.golden import FIO, fio_output
from tests.verify.worlds import NOTHING

MIB = 1 << 20
DOCUMENT = json.loads(fio_output(FIO / "postgres" / "log.out.gz"))


def ran(name: str, ms: int, amount: int = 16 * MIB, *, exit: int = 0, limited: bool = False) -> FioRun:
    """A run of fio that took so long to write the amount."""
    job = {**DOCUMENT["jobs"][0], "jobname": name, "job_runtime": ms}
    job["write"] = {**job["write"], "io_bytes": amount}
    said = json.dumps({**DOCUMENT, "jobs": [job]})
    return FioRun(
        name, "sweep", (name,), ("fio",), NOTHING, NOTHING, NOTHING, 0.0, 1.0, exit, said, "no space", limited=limited
    )


def taken(amount: int, sync_ms: int) -> list[FioRun]:
    """All runs of a sweep in which writing takes 100 ms and each sync so long."""
    steps = list(fio.sweep_steps(amount, 1 << 30))
    every = dict(zip((step.name for step in steps), fio.sweep_intervals(amount), strict=False))
    return [ran(step.name, 100 + sync_ms * (amount // (every[step.name] or amount)), amount) for step in steps]


@pytest.mark.parametrize("amount", [4 * MIB, 16 * MIB, fio.AMOUNT, 1 << 30])
def test_each_interval_takes_its_turn_and_fits_into_the_amount(amount: int) -> None:
    steps = [step.name for step in fio.sweep_steps(amount, 123)]
    assert steps == steps[: len(steps) // 3] * 3
    assert {step.limit for step in fio.sweep_steps(amount, 123)} == {123}
    text = fio.sweep_job_file(amount)
    assert re.findall(r"^\[(sweep-.*)\]$", text, re.MULTILINE) == steps[: len(steps) // 3]
    assert f"size={amount}\n" in text
    blocks = [int(each) for each in re.findall(r"^fdatasync=(\d+)$", text, re.MULTILINE)]
    assert blocks == sorted(blocks, reverse=True)
    assert all(0 < each * fio.BLOCK < amount for each in blocks)
    assert blocks[-1] == 1
    jobs, sections = profile.parse(text.replace("zaudit.sweep", "zaudit.x"), "sweep.fio").sections, len(steps) // 3
    assert len(jobs) == sections
    assert [job.sync for job in jobs[2:]] == ["fdatasync"] * (sections - 2)


@pytest.mark.parametrize("amount", [0, MIB, 4 * MIB + 1])
def test_an_amount_of_which_nothing_can_be_learnt_is_refused(amount: int) -> None:
    with pytest.raises(ProfileError, match="at least 4 MiB are needed, in whole blocks of 16 KiB"):
        list(fio.sweep_steps(amount, 1 << 30))


def test_what_fio_says_is_what_was_measured() -> None:
    found = fio.sweep_of(taken(16 * MIB, sync_ms=1))
    assert found is not None
    assert found.amount == 16 * MIB
    assert [step.every for step in found.steps] == list(fio.sweep_intervals(16 * MIB))
    assert {len(step.seconds) for step in found.steps} == {fio.TRIALS}
    assert [step.median_s for step in found.steps[-2:]] == [pytest.approx(0.356), pytest.approx(1.124)]
    assert comparison.find(found).sync_ms == pytest.approx(1.0, rel=0.01)


def test_no_sweep() -> None:
    assert fio.sweep_of([]) is None
    assert fio.sweep_of([ran("log", 5)._replace(purpose="log")]) is None


def test_a_run_that_was_ended_early_counts_for_nothing() -> None:
    runs = taken(4 * MIB, sync_ms=1)
    found = fio.sweep_of([*runs[:-1], runs[-1]._replace(limited=True)])
    assert found is not None
    assert [len(step.seconds) for step in found.steps] == [3] * (len(found.steps) - 1) + [2]


def test_a_run_that_failed_is_an_error() -> None:
    with pytest.raises(FioError, match="sweep-0: fio ended with exit code 1: no space"):
        fio.sweep_of([ran("sweep-0", 5, exit=1)])


def test_runs_of_different_amounts_are_not_compared() -> None:
    with pytest.raises(FioError, match="from 1048576 to 16777216 bytes"):
        fio.sweep_of([ran("sweep-0", 5), ran("sweep-never", 5, MIB)])
