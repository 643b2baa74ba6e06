"""``--sweep``: the same amount written with a sync never, at the end, and ever more often; :mod:`knee` says what it means.

fio's job_runtime holds the final sync (end_fsync) as well as the syncs between. Each trial begins with a fresh file, and
trials of all intervals take turns, so that a pool that grows slower does so for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from auditor.units import size
from auditor.verify import fio_output
from auditor.verify.fio_output import FioError
from auditor.verify.knee import INTERVALS, Sweep
from auditor.verify.knee import Step as KneeStep
from auditor.verify.plan import Step
from auditor.verify.trial import Ran
from auditor.verify.units import ProfileError

AMOUNT, BLOCK, TRIALS = 128 << 20, 16 << 10, 3
LEAST = 4 << 20
FILE, JOB_FILE = "zaudit.sweep", "zaudit.sweep.fio"
SECONDS = 120  # after which a trial is slow; zaudit ends it some time later


def every(amount: int) -> tuple[int | None, ...]:
    """Bytes between two syncs, of each step; intervals that the amount does not reach would be one at the end again."""
    return (None, 0, *(interval for interval in INTERVALS if interval < amount))


def job_file(amount: int) -> str:
    """fio's job file of all intervals, a section each."""
    where = f"directory=${{ZAUDIT_DIRECTORY}}\nfilename_format={FILE}\n"
    head = f"[global]\n{where}ioengine=psync\nfallocate=none\nrw=write\n"
    jobs = "".join(f"\n[{_name(each)}]\n{_options(each)}" for each in every(amount))
    return f"{head}bs={BLOCK}\nsize={amount}\n{jobs}"


def _name(interval: int | None) -> str:
    return "sweep-never" if interval is None else f"sweep-{interval}"


def _options(interval: int | None) -> str:
    if interval is None:
        return ""
    return "end_fsync=1\n" + (f"fdatasync={interval // BLOCK}\n" if interval else "")


def steps(amount: int, limit: int) -> Iterator[Step]:
    """The runs of a sweep. Raises ProfileError for an amount of which nothing can be learnt."""
    if amount < LEAST or amount % BLOCK:
        raise ProfileError(
            f"a sweep of {size(amount)}: at least {size(LEAST)} are needed, in whole blocks of {size(BLOCK)}"
        )
    for _ in range(TRIALS):
        for each in every(amount):
            yield Step(_name(each), "sweep", (_name(each),), SECONDS, limit)


def result(runs: Iterable[Ran]) -> Sweep | None:
    """What the runs of a sweep took, None when there are none. Raises FioError when one of them failed, or when they did not
    all write the same amount."""
    seconds: dict[str, list[float]] = {}
    amounts: set[int] = set()
    for ran in runs:
        if ran.purpose == "sweep" and not ran.limited:  # one that was ended early took no time that means anything
            if ran.exit != 0:
                raise FioError(
                    f"{ran.name}: fio ended with exit code {ran.exit}: {ran.fault or ran.stderr.strip()[:200]}"
                )
            (job,) = fio_output.jobs(fio_output.documents(ran.stdout)[-1], {})
            seconds.setdefault(ran.name, []).append(job.seconds)
            amounts.add(job.write_bytes)
    if not seconds:
        return None
    if len(amounts) > 1:
        raise FioError(f"the runs of the sweep wrote from {min(amounts)} to {max(amounts)} bytes, not the same amount")
    (amount,) = amounts
    found = (KneeStep(each, tuple(seconds.get(_name(each), ()))) for each in every(amount))
    return Sweep(amount, tuple(step for step in found if step.seconds))
