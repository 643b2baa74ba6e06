"""What a verification says, before anybody decides how it looks."""

from __future__ import annotations

from typing import Literal, NamedTuple

from auditor.verify.result import Run

Status = Literal["accounts", "contradicts", "unseen"]
Outcome = Literal["TRACED", "CONTRADICTED", "INCONCLUSIVE"]
Judgement = Literal["met", "missed", "not judged"]
KERNEL_LOG = "kernel's log"  # name of the link
FOREIGN_LOAD = "foreign load"  # how a reason begins that names what others did
CANNOT_EXCLUDE = (
    "What even TRACED cannot exclude: OpenZFS ignores the result of a flush (zio_flush in module/zfs/zio.c), so one that "
    "failed is seen only where the kernel logged it, and a drive, controller or hypervisor may complete one without doing "
    "it. Only a power cut tells."
)


class Link(NamedTuple):
    """One link of the chain of custody. status: whether what it saw accounts for all syncs of the link above it.

    name: dataset, system calls, fio, ZIL, or a disk. figures: (what, number) as the witness counted them.
    """

    name: str
    status: Status
    text: str
    figures: tuple[tuple[str, int], ...] = ()


class Chain(NamedTuple):
    """links: from the application down. reasons: of INCONCLUSIVE, one sentence each."""

    outcome: Outcome
    links: tuple[Link, ...]
    reasons: tuple[str, ...] = ()


def percentile_name(q: float) -> str:
    """p99, p99.9."""
    return f"p{q * 100:.4f}".rstrip("0").rstrip(".")


class Slo(NamedTuple):
    """One objective. q: the percentile as a share (0.99); limit_ns."""

    q: float
    limit_ns: int

    @property
    def name(self) -> str:
        """p99, p99.9."""
        return percentile_name(self.q)


class Percentile(NamedTuple):
    """One percentile of the sync latency of a run. ns: None with too few samples beyond it (beyond < 10).

    limit_ns: of the objective, None without one. judgement: "not judged" comes with why.
    """

    q: float
    ns: int | None
    beyond: int
    limit_ns: int | None
    judgement: Judgement
    why: str = ""


class Latency(NamedTuple):
    """What one run says of latency. why_not: why nothing of it is judged, empty when it is.

    commits_per_s: of one session, 1/p50; at_slo: syncs per second in the seconds that kept the objective. tail: a
    sentence on the slowest syncs and the rhythm of the transaction groups, or empty. bottleneck: a sentence with figures.
    """

    run: str
    percentiles: tuple[Percentile, ...]
    commits_per_s: float | None
    at_slo: float | None
    tail: str
    bottleneck: str
    why_not: str


class Verification(NamedTuple):
    """One verification of one dataset or zvol. target: what was asked for; dataset: that was written to; place: the directory
    or the folder of the scratch zvol. profile: name of the profile or path of the job file. chain: of the log run.
    latencies: one a run that syncs. proves, does_not: what the profile says of itself. taken: seconds since the epoch.
    job_file: the text of the profile; size: bytes that ${ZAUDIT_SIZE} in it stood for.
    """

    target: str
    dataset: str
    place: str
    profile: str
    length: str
    taken: float
    chain: Chain
    runs: tuple[Run, ...]
    latencies: tuple[Latency, ...]
    proves: str
    does_not: str
    fio: str
    job_file: str
    size: int
