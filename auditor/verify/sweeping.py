"""``--sweep``: the same amount written with a sync never, at the end, and ever more often; :mod:`knee` says what it means.

fio's job_runtime holds the final sync (end_fsync) as well as the syncs between. Each trial begins with a fresh file, and
trials of all intervals take turns, so that a pool that grows slower does so for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from auditor.verify import fio_output
from auditor.verify.fio_output import FioError
from auditor.verify.knee import INTERVALS, Sweep
from auditor.verify.knee import Step as KneeStep
from auditor.verify.plan import Step
from auditor.verify.trial import Ran

AMOUNT, BLOCK, TRIALS = 128 << 20, 16 << 10, 3
SECONDS = 120  # after which a trial is slow; zaudit ends it some time later
EVERY: tuple[int | None, ...] = (None, 0, *INTERVALS)


def job_file() -> str:
    """fio's job file of all intervals, a section each."""
    head = "[global]\ndirectory=${ZAUDIT_DIRECTORY}\nfilename_format=zaudit.sweep\nioengine=psync\nfallocate=none\nrw=write\n"
    return f"{head}bs={BLOCK}\nsize={AMOUNT}\n" + "".join(f"\n[{_name(every)}]\n{_options(every)}" for every in EVERY)


def _name(every: int | None) -> str:
    return "sweep-never" if every is None else f"sweep-{every}"


def _options(every: int | None) -> str:
    if every is None:
        return ""
    return "end_fsync=1\n" + (f"fdatasync={every // BLOCK}\n" if every else "")


def steps(limit: int) -> Iterator[Step]:
    """The runs of a sweep."""
    for _ in range(TRIALS):
        for every in EVERY:
            yield Step(_name(every), "sweep", (_name(every),), SECONDS, limit)


def result(runs: Iterable[Ran]) -> Sweep | None:
    """What the runs of a sweep took, None when there are none. Raises FioError when one of them failed."""
    seconds: dict[str, list[float]] = {}
    for ran in runs:
        if ran.purpose == "sweep" and not ran.limited:  # one that was ended early took no time that means anything
            if ran.exit != 0:
                raise FioError(
                    f"{ran.name}: fio ended with exit code {ran.exit}: {ran.fault or ran.stderr.strip()[:200]}"
                )
            (job,) = fio_output.jobs(fio_output.documents(ran.stdout)[-1], {})
            seconds.setdefault(ran.name, []).append(job.seconds)
    if not seconds:
        return None
    return Sweep(
        AMOUNT, tuple(KneeStep(every, tuple(seconds[_name(every)])) for every in EVERY if _name(every) in seconds)
    )
