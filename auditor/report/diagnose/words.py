"""What all reports of a diagnosis say alike."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.diagnose.model import Calls, Committer, Diagnosis, Outcome, Waiter
from auditor.judge.finding import Finding
from auditor.report.model import Report
from auditor.text import harmless, quoted
from auditor.units import duration, size
from auditor.verify.histogram import LEAST_BEYOND, Histogram
from auditor.verify.result import Run

KINDS: dict[Outcome, str] = {
    "NOT DURABLE": "bad",
    "CAUSE": "bad",
    "NOTHING STANDS OUT": "good",
    "NOBODY COMMITS": "good",
    "INCONCLUSIVE": "open",
}
QUANTILES = (0.5, 0.9, 0.99, 0.999)
BY_POWERS = (
    "Latencies are counted in powers of two: a percentile is at most the figure given, and more than half of it."
)


def pictured(found: Diagnosis) -> Run | None:
    """What the pictures of a verification draw; None where no latency was seen."""
    if not found.latency.samples:
        return None
    return Run(
        name=found.target, purpose="live", argv=(), began=found.taken, seconds=found.seconds, jobs=(),
        timeline=found.timeline, zil=None, others=None, idle_s=0.0, idle_commits=None, idle_writes={}, devices=(),
        txgs=found.txgs, counters={}, heat={}, syscalls=None, faults=(),
    )  # fmt: skip


def percentiles(latency: Histogram) -> list[tuple[str, str]]:
    """(p99, at most 33.6 ms) as far as ten samples lie beyond, else how many commits it takes."""
    told = ((q, latency.judged(q), round(LEAST_BEYOND / (1 - q))) for q in QUANTILES)
    return [
        (f"p{q * 100:g}", f"needs {enough:,} commits" if ns is None else f"≤ {duration(ns)}") for q, ns, enough in told
    ]


SINCE = "Counters in these files run since boot, import or mount: what counts is what grows between two looks."


def unseen(found: Diagnosis) -> list[str]:
    """The reasons that the answer does not give itself."""
    return [each for each in found.reasons if each not in found.answer]


OWN = "* "


def groups(found: Diagnosis) -> str:
    """The transaction groups that were synced meanwhile, and whether writers were held back."""
    done = [each for each in found.txgs if each.sync_s > 0]
    most = f"in {duration(max((each.sync_s for each in done), default=0) * 1e9)} at most, with at most "
    most += f"{size(max((each.dirty for each in done), default=0))} of dirty data"
    told = f"{len(done):,} synced, {most}" if done else "none was synced" if found.txgs else "not seen"
    times = "not seen" if found.held is None else f"{found.held:,} times, all pools together"
    return f"{told}; writers held back: {times}."


def own(found: Diagnosis) -> list[str]:
    """Sentences about the process that was named."""
    if found.own is None:
        return []
    told = [f"{found.own.text[:1].upper()}{found.own.text[1:]}.", *(f"Not seen: {each}." for each in found.own.faults)]
    if found.own.parent:
        told.append(f"Its parent is the same server: zaudit diagnose {found.own.parent} looks at all of it.")
    waiters = found.stacked.waiters if found.stacked else ()
    if any(each.own for each in found.committers) or any(each.own for each in waiters):
        told.append(f"Its threads have the mark {OWN.strip()} below.")
    return told


def sampled(found: Diagnosis) -> str:
    """What the samples of stacks are, as a title; empty where there are none."""
    if found.stacked is None or not found.stacked.samples:
        return ""
    return f"Who waits for commits ({found.stacked.samples:,} samples of stacks, {found.stacked.waiting:.2g} at a time)"


def took(ns: float | None) -> str:
    """A duration, or a dash where it is not known."""
    return "-" if ns is None else duration(ns)


def who(committer: Committer | Waiter) -> str:
    """postgres 338 (walwriter), with a mark where it is of the process that was named."""
    role = f" ({harmless(committer.role)})" if committer.role else ""
    return f"{OWN if committer.own else ''}{harmless(committer.name)} {committer.pid}{role}"


def committers(found: Diagnosis) -> list[tuple[str, Committer]]:
    """Who, and what it did: threads of the kernel that commit to one volume, or for NFS to one dataset, are one row."""
    rows: dict[tuple[str, str, str, int], list[Committer]] = {}
    for number, each in enumerate(found.committers):
        shared = (each.service, each.dataset, each.within, int(each.own))
        rows.setdefault(shared if each.service else ("", "", "", number), []).append(each)
    told = [
        (who(several[0]) if len(several) == 1 else _threads(several), _summed(several)) for several in rows.values()
    ]
    return sorted(told, key=lambda row: -row[1].part)


def _threads(several: Sequence[Committer]) -> str:
    return f"{OWN if several[0].own else ''}{several[0].service} ({len(several):,} threads of the kernel)"


def _summed(several: Sequence[Committer]) -> Committer:
    commits = sum(each.commits for each in several)
    took = sum(each.mean_ns * each.commits for each in several)
    calls = [each.calls for each in several if each.calls]
    return several[0]._replace(
        commits=commits,
        mean_ns=took / commits if commits else 0.0,
        part=sum(each.part for each in several),
        calls=Calls(
            sum(each.fsync for each in calls),
            sum(each.fdatasync for each in calls),
            sum(each.other for each in calls),
            any(each.at_most for each in calls),
        )
        if calls
        else None,
    )


OTHER = "other: writes with O_SYNC or O_DSYNC, sync=always, sync(2), or mapped pages that a sync had to write."


def by(committer: Committer) -> str:
    """By which calls it came to its commits: fdatasync, or how many by which; a zvol has none (zvol_write() of zvol_os.c)."""
    if committer.service == "zvol":
        return "flush, FUA"
    counts = _counts(committer.calls) if committer.calls else ["?"]
    alone = len(counts) == 1 and committer.calls and not committer.calls.at_most
    return counts[0].partition(" ")[0] if alone else ", ".join(counts)


def _counts(calls: Calls) -> list[str]:
    most, least = ("≤ ", "≥ ") if calls.at_most else ("", "")
    counts = (("fsync", most, calls.fsync), ("fdatasync", most, calls.fdatasync), ("other", least, calls.other))
    return [f"{name} {sign}{count:,}" for name, sign, count in counts if count]


def how_called(found: Diagnosis) -> list[str]:
    """Sentences below the committers: all calls together, and what the words stand for."""
    if found.uncalled and found.committers:
        return [f"By which calls they came to their commits was not seen: {harmless(found.uncalled)}."]
    if found.calls is None or not found.committers:
        return []
    zvols = sum(each.commits for each in found.committers if each.service == "zvol")
    calls = found.calls._replace(other=max(found.calls.other - zvols, 0))
    counts = [*_counts(calls), *([f"zvols {zvols:,}"] if zvols else [])]
    told = [f"All together: {', '.join(counts)}."] if len(counts) > 1 or calls.at_most else []
    told += ["fsync: also COMMIT of an NFS client."] if calls.fsync else []
    told += ["fdatasync: also msync."] if calls.fdatasync else []
    told += [OTHER] if calls.other else []
    return [" ".join(told)] if told else []


def beside(found: Diagnosis, report: Report | None) -> list[Finding]:
    """The findings of the audit that failed on what commits, its pool and the host."""
    if report is None:
        return []
    names = {each.dataset for each in found.datasets} | {found.pool, found.target}
    kinds = ("host", "pool", "vdev", "leaf", "disk")
    return [
        each
        for each in report.findings
        if each.failed
        and any(
            verdict.subject.name in names
            or (verdict.subject.kind in kinds and verdict.subject.within in ("", found.pool))
            for verdict in each.verdicts
        )
    ]


def next_step(found: Diagnosis) -> str:
    """One command or deed."""
    target = quoted(found.target)
    if found.causes and found.outcome != "INCONCLUSIVE":
        return found.causes[0].fix
    if found.outcome == "INCONCLUSIVE" and found.mean_ns is None:
        return f"as root, with tracefs: zaudit diagnose {target}"
    if found.outcome == "INCONCLUSIVE":
        return f"zaudit diagnose {target} --seconds 120, at a time when the load is steady"
    return f"zaudit verify {target} measures what the log path can do; it writes to the pool"
