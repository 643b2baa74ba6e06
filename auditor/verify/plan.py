"""What a verification will do: which runs of fio, for how long, how many bytes; before anything is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from auditor.facts import HOST, Facts, Subject, value_of
from auditor.verify.actor import BOUND, Actor
from auditor.verify.profile import FILE_FORMAT, Profile, Section
from auditor.verify.strace_output import CALLS
from auditor.verify.units import ProfileError, size_bytes

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
