"""What a verification will do, before anything is made: runs, bytes, the sweep, and the reasons to refuse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from auditor.facts import HOST, Facts, Judged, Known, Subject, Unknown, value_of
from auditor.text import harmless, size
from auditor.verify import fio
from auditor.verify.comparison import INTERVALS, Sweep
from auditor.verify.comparison import Step as KneeStep
from auditor.verify.fio import CALLS, FioError
from auditor.verify.ledger import BOUND, Actor
from auditor.verify.profile import FILE_FORMAT, Profile, ProfileError, Section, size_bytes
from auditor.verify.trial import Ran

# What a verification will do: which runs of fio, for how long, how many bytes; before anything is made.

Length = Literal["quick", "standard", "long"]
SECONDS: dict[Length, int] = {"quick": 36, "standard": 120, "long": 600}
TXGS_LEAST = 6  # a run that saw fewer knows nothing of their rhythm
WARM_S, CALLS_S, IDLE_S = 2, 2, 3
QUICK = ("log",)
EVERYTHING = ("log", "binlog", "group", "fresh", "recycled", "variant", "data")
DIRTY_DEFAULT = 4 << 30  # zfs_dirty_data_max_max where nobody could read it (zfs.4)
SIZE_LEAST, SIZE_MOST = 256 << 20, 8 << 30
ENV = "env"  # so that a command line in a report is all that it takes to repeat the run
LIMIT = 10 << 30  # bytes that a verification may write unless it is told otherwise


class Step(NamedTuple):
    """One run of fio. limit: bytes after which zaudit ends it."""

    name: str
    purpose: str
    sections: tuple[str, ...]
    seconds: int
    limit: int


class Plan(NamedTuple):
    """kind: directory, zvol or dataset (a scratch one; properties: what it is made with). size: what ${ZAUDIT_SIZE} stands
    for; bytes_on_disk: of all files together; most_bytes: written at most; sweep: bytes of each trial of a sweep, 0 for none.
    """

    dataset: str
    kind: str
    properties: tuple[tuple[str, str], ...]
    profile: Profile
    length: Length
    size: int
    steps: tuple[Step, ...]
    bytes_on_disk: int
    most_bytes: int
    sweep: int = 0

    @property
    def seconds(self) -> int:
        return sum(step.seconds + IDLE_S for step in self.steps)


def make(dataset: Subject, facts: Facts, profile: Profile, length: Length, size: str, limit: int) -> Plan:
    """The plan for one dataset. size: of --size, or empty. Raises ProfileError."""
    kind = "zvol" if value_of(facts.get(dataset, "type")) == "volume" else "directory"
    log = profile.of("log")
    assert log is not None  # parse() sees to that
    runtime = max(SECONDS[length], (TXGS_LEAST + 1) * _number(facts, "zfs_txg_timeout", 5))
    data = profile.of("data")
    given = size_bytes(size) if size else _data_size(facts, data)
    wanted = [profile.of(each) for each in (QUICK if length == "quick" or kind == "zvol" else EVERYTHING)]
    sections = [each for each in wanted if each]
    steps = [Step("warm", "warm", (log.name,), WARM_S, limit), Step("calls", "calls", (log.name,), CALLS_S, limit)]
    steps += [Step(each.name, each.purpose, (each.name,), runtime, limit) for each in sections]
    if data in sections and log is not data and data:
        _apart_at_once(_in_order(profile, log, data))
        steps.append(Step("together", "together", (log.name, data.name), runtime, limit))
    if not log.writes:
        raise ProfileError(f"[{log.name}] writes nothing: there is no sync to follow")
    if kind == "zvol" and not _one_file(log):
        raise ProfileError(
            f"[{log.name}] on a zvol: one job named log with one file, {FILE_FORMAT}; others lie beside it"
        )
    return Plan(
        dataset=dataset.name,
        kind=kind,
        properties=(),
        profile=profile,
        length=length,
        size=given,
        steps=tuple(steps),
        bytes_on_disk=sum(each.size(given) for each in {each.name: each for each in sections}.values()),
        most_bytes=limit,
    )


def _in_order(profile: Profile, *sections: Section) -> list[Section]:
    """As they stand in the job file, which is how fio takes them up."""
    return [each for each in profile.sections if each in sections]


def _apart_at_once(sections: list[Section]) -> None:
    """Raises ProfileError where fio would run the second after the first, or report both as one."""
    first, second = sections
    if _on(second, "stonewall"):
        raise ProfileError(f"[{second.name}] stonewall: it would run after [{first.name}], not together with it")
    if _on(first, "group_reporting") and _on(second, "group_reporting") and not _on(second, "new_group"):
        text = f"[{second.name}] group_reporting: fio would report it and [{first.name}] as one; put new_group into it"
        raise ProfileError(text)


def _on(section: Section, option: str) -> bool:
    return section.options.get(option, "0") != "0"


def _one_file(log: Section) -> bool:
    """Whether all that it writes is the one file that is a link to the scratch zvol."""
    options = log.options
    named = log.name == "log" and options.get("filename_format") == FILE_FORMAT
    return named and log.jobs == 1 and options.get("nrfiles", "1") == "1"


def _data_size(facts: Facts, data: Section | None) -> int:
    """Of each job of the data section: together twice the dirty data that OpenZFS keeps, so that not all of it is overwritten
    in memory before it is written once."""
    total = 2 * _number(facts, "zfs_dirty_data_max", DIRTY_DEFAULT)
    each = min(max(total, SIZE_LEAST), SIZE_MOST) // max(data.jobs if data else 1, 1)
    return each & ~0xFFFFF


def _number(facts: Facts, parameter: str, otherwise: int) -> int:
    found = value_of(facts.get(HOST, parameter))
    return found if isinstance(found, int) and found > 0 else otherwise


def environment(plan: Plan, step: Step) -> dict[str, str]:
    """What fio's job file takes from its environment. The directory is where fio is started."""
    return {"ZAUDIT_DIRECTORY": ".", "ZAUDIT_RUNTIME": str(step.seconds), "ZAUDIT_SIZE": str(plan.size)}


def command(plan: Plan, step: Step, actor: Actor, preload: Sequence[str] = (), trace: str = "TRACE") -> tuple[str, ...]:
    """The command line of a step, with what it needs in its environment; it reads the job file from its standard input.

    Threads, so that nothing of fio outlives it; setpriv, so that fio does not outlive zaudit and has the rights of the actor
    alone. What is preloaded is named after that: a program that still has those of root never loads it.

    preload: NAME=value, of the environment. trace: where strace writes.
    """
    strace = ("strace", "-f", "-y", "-qq", "-e", "signal=none", "-e", f"trace={','.join(CALLS)}", "-o", trace)
    return (
        *actor.setpriv,
        *((*strace, *BOUND) if step.purpose == "calls" else ()),  # what strace traces would outlive it
        *(ENV, *(f"{name}={value}" for name, value in environment(plan, step).items()), *preload),
        *("fio", "--thread", "--output-format=json+", "--eta=never"),
        *(() if step.purpose in ("warm", "calls", "sweep") else ("--status-interval=1",)),
        *(f"--section={name}" for name in step.sections),
        "-",
    )


# Where a run would harm, or could say nothing: it is refused, with the words that override it where that can be right.

OVERRIDES = ("degraded", "scrub", "full", "space")
FULL_PERCENT, TIMES_THE_SIZE = 90, 2


class Refusal(NamedTuple):
    """override: the word for --despite, empty where nothing overrides it."""

    text: str
    override: str = ""


def refusals(plan: Plan, facts: Facts) -> Iterator[Refusal]:
    """All reasons against this plan. What cannot be seen is a reason too."""
    dataset = Subject("dataset", plan.dataset)
    pool = Subject("pool", plan.dataset.partition("/")[0])
    name = harmless(pool.name)
    yield from _never(plan, dataset, pool, facts)
    yield from _unless(facts.get(pool, "state"), "ONLINE", f"pool {name} is {{}}", "degraded")
    scan = facts.get(pool, "scan_state")
    if not isinstance(scan, Known) or scan.value == "in progress":
        what = facts.get(pool, "scan_function")
        running = f"a {what.value} is running" if isinstance(what, Known) else "a scrub or resilver may be running"
        yield Refusal(f"pool {name}: {running}: its I/O cannot be told from that of the run", "scrub")
    capacity = _whole_number(facts.get(pool, "capacity_percent"), facts.get(pool, "list_capacity_percent"))
    if capacity is None or capacity > FULL_PERCENT:
        yield Refusal(f"pool {name} is {'of unknown fullness' if capacity is None else f'{capacity} % full'}", "full")
    space, needed = _whole_number(facts.get(dataset, "available")), TIMES_THE_SIZE * plan.bytes_on_disk
    if space is None or space < needed:
        have = "an unknown amount" if space is None else size(space)
        yield Refusal(f"{harmless(plan.dataset)} has {have} left, {size(needed)} are wanted (twice the files)", "space")


def _never(plan: Plan, dataset: Subject, pool: Subject, facts: Facts) -> Iterator[Refusal]:
    suspended = facts.get(pool, "suspended")
    if not isinstance(suspended, Known) or suspended.value:
        word = "is suspended" if isinstance(suspended, Known) else f"may be suspended ({_why(suspended)})"
        yield Refusal(f"pool {harmless(pool.name)} {word}: no write would return")
    if plan.kind == "directory":
        mounted = facts.get(dataset, "mounted")
        if not isinstance(mounted, Known) or not mounted.value:
            why = "is not mounted" if isinstance(mounted, Known) else f"may not be mounted ({_why(mounted)})"
            yield Refusal(f"{harmless(dataset.name)} {why}")
    for subject, what in ((pool, "pool"), (dataset, "dataset")):
        readonly = facts.get(subject, "readonly")
        if not isinstance(readonly, Known) or readonly.value != "off":
            word = "is read-only" if isinstance(readonly, Known) else f"may be read-only ({_why(readonly)})"
            yield Refusal(f"{what} {harmless(subject.name)} {word}")


def _unless(found: Judged, good: str, text: str, override: str) -> Iterator[Refusal]:
    if isinstance(found, Unknown):
        yield Refusal(text.format(f"in an unknown state ({_why(found)})"), override)
    elif found.value != good:
        yield Refusal(text.format(found.value), override)


def _why(found: Unknown) -> str:
    return "; ".join(reason.text for reason in found.reasons)


def _whole_number(*candidates: Judged) -> int | None:
    return next((each.value for each in candidates if isinstance(each, Known) and isinstance(each.value, int)), None)


# ``--sweep``: the same amount written with a sync never, at the end, and ever more often; ``comparison`` says what it means.
#
# fio's job_runtime holds the final sync (end_fsync) as well as the syncs between. Each trial begins with a fresh file, and
# trials of all intervals take turns, so that a pool that grows slower does so for all of them.

AMOUNT, BLOCK, TRIALS = 128 << 20, 16 << 10, 3
LEAST = 4 << 20
FILE, JOB_FILE = "zaudit.sweep", "zaudit.sweep.fio"
SWEEP_SECONDS = 120  # after which a trial is slow; zaudit ends it some time later


def sweep_intervals(amount: int) -> tuple[int | None, ...]:
    """Bytes between two syncs, of each step; intervals that the amount does not reach would be one at the end again."""
    return (None, 0, *(interval for interval in INTERVALS if interval < amount))


def sweep_job_file(amount: int) -> str:
    """fio's job file of all intervals, a section each."""
    where = f"directory=${{ZAUDIT_DIRECTORY}}\nfilename_format={FILE}\n"
    head = f"[global]\n{where}ioengine=psync\nfallocate=none\nrw=write\n"
    jobs = "".join(f"\n[{_sweep_name(each)}]\n{_sweep_options(each)}" for each in sweep_intervals(amount))
    return f"{head}bs={BLOCK}\nsize={amount}\n{jobs}"


def _sweep_name(interval: int | None) -> str:
    return "sweep-never" if interval is None else f"sweep-{interval}"


def _sweep_options(interval: int | None) -> str:
    if interval is None:
        return ""
    return "end_fsync=1\n" + (f"fdatasync={interval // BLOCK}\n" if interval else "")


def sweep_steps(amount: int, limit: int) -> Iterator[Step]:
    """The runs of a sweep. Raises ProfileError for an amount of which nothing can be learnt."""
    if amount < LEAST or amount % BLOCK:
        raise ProfileError(
            f"a sweep of {size(amount)}: at least {size(LEAST)} are needed, in whole blocks of {size(BLOCK)}"
        )
    for _ in range(TRIALS):
        for each in sweep_intervals(amount):
            yield Step(_sweep_name(each), "sweep", (_sweep_name(each),), SWEEP_SECONDS, limit)


def sweep_of(runs: Iterable[Ran]) -> Sweep | None:
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
            (job,) = fio.jobs_of(fio.documents(ran.stdout)[-1], {})
            seconds.setdefault(ran.name, []).append(job.seconds)
            amounts.add(job.write_bytes)
    if not seconds:
        return None
    if len(amounts) > 1:
        raise FioError(f"the runs of the sweep wrote from {min(amounts)} to {max(amounts)} bytes, not the same amount")
    (amount,) = amounts
    found = (KneeStep(each, tuple(seconds.get(_sweep_name(each), ()))) for each in sweep_intervals(amount))
    return Sweep(amount, tuple(step for step in found if step.seconds))
