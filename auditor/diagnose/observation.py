"""An observation: everything that a diagnosis saw, as text. It is a member of a recording and is judged anew from there."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from auditor.verify import codec
from auditor.verify.trial import Logged, Reading

SCHEMA = "zaudit-observation/1"


class Tick(NamedTuple):
    """The histogram of all commits so far, as the kernel printed it. at: seconds since the epoch."""

    at: float
    commits: str


class Traced(NamedTuple):
    """What the kernel's histograms said at the end. commits: by thread and ZIL; ticks: of all, as they grew; queue: how long
    threads that wrote log blocks took from their commit to the first block, empty where that could not be traced. missed:
    calls that the kernel did not trace, None where it did not say. probed: the functions. calls: of zpl_fsync(), by thread and
    datasync; uncalled: why they were not counted, or empty."""

    commits: str
    ticks: tuple[Tick, ...]
    queue: str
    missed: int | None
    probed: tuple[str, ...]
    calls: str = ""
    uncalled: str = "they were not counted yet when this was recorded"


KERNEL = "kernel"  # role of its own threads, whose names can be believed
Service = Literal["zvol", "nfsd", ""]


def service(name: str, role: str) -> Service:
    """For whom a thread of the kernel commits: a volume, a client of NFS, or, empty, itself."""
    if role != KERNEL:
        return ""
    return "zvol" if name.startswith("zvol") else "nfsd" if name == "nfsd" else ""


class Process(NamedTuple):
    """A thread that committed. role: KERNEL, or what a server process says that it does ("walwriter"); within: the container
    or guest; both empty where nothing is known of it. waited: nanoseconds that it was ready and had no CPU meanwhile, None
    where that was not seen."""

    pid: int
    name: str
    role: str
    within: str
    waited: int | None


class Asked(NamedTuple):
    """What the database of --db said of the same time. engine: its word; said: JSON of :mod:`auditor.host.sql_watch`; fault:
    why it said nothing, empty where it did."""

    engine: str
    said: str
    fault: str


class Named(NamedTuple):
    """A process to which a diagnosis is narrowed, with those that it started. targets: datasets and volumes that they had open
    for writing; processes: how many were seen, with itself; threads: theirs. lost: threads that committed and were gone when
    somebody looked whose they are. parent: which is the same database server, or 0. faults: what was not seen of them."""

    pid: int
    name: str
    targets: tuple[str, ...]
    processes: int
    threads: tuple[int, ...]
    lost: tuple[int, ...]
    parent: int
    faults: tuple[str, ...]


class Waited(NamedTuple):
    """A thread that was seen waiting in zil_commit(), so many times. kernel: it is one of the kernel's own."""

    thread: int
    process: int
    name: str
    kernel: bool
    hits: int


class Stacks(NamedTuple):
    """What was seen in stacks. passes: how often all threads were looked at; threads: how many those were at most; faults: why
    not all were seen, or none."""

    passes: int
    threads: int
    waits: tuple[Waited, ...]
    faults: tuple[str, ...]


class Observation(NamedTuple):
    """One look at the load of one pool. target: what was asked for, a pool, dataset or zvol. before, after: the witnesses.
    untraced: why there is no trace, empty where there is. pipeline: nanoseconds that the threads of OpenZFS took which pass
    log blocks on, None where that was not seen. logged: by the kernel meanwhile. named: a process, None for a dataset.
    stacks: where root saw no trace. database: None where none was named."""

    target: str
    pool: str
    before: Reading
    after: Reading
    traced: Traced | None
    untraced: str
    processes: tuple[Process, ...]
    pipeline: int | None
    logged: Logged
    named: Named | None = None
    stacks: Stacks | None = None
    database: Asked | None = None


def to_text(observation: Observation) -> str:
    """As JSON."""
    return codec.to_member(SCHEMA, observation)


def from_text(text: str) -> Observation:
    """What an earlier release did not write is the default of its field. Raises codec.CodecError for anything that is not an
    observation of this schema."""
    return codec.from_member(Observation, SCHEMA, text, "diagnosis", _upgraded)


def _upgraded(document: dict[str, Any]) -> dict[str, Any]:
    whole = {**codec.plain(Observation._field_defaults), **document}
    traced = whole.get("traced")
    return {**whole, "traced": {**Traced._field_defaults, **traced}} if isinstance(traced, dict) else whole
