"""The page of a diagnosis: one sentence, then the shares, who commits, the devices, what stands out, and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Unpack

from auditor.codec import plain
from auditor.diagnose.diagnosis import Cause, Committer, Diagnosis, Outcome, View
from auditor.facts import Subject
from auditor.judge.finding import Finding
from auditor.report import document as doc
from auditor.report import html, report_json, terminal
from auditor.report.html import joined
from auditor.report.model import Report
from auditor.text import duration, quoted, size, valid_unicode
from auditor.verify import charts
from auditor.verify.result import LEAST_BEYOND, Histogram, Run
from auditor.verify.verify_page import curve, heat

TONES: dict[Outcome, doc.Tone] = {
    "NOT DURABLE": "bad",
    "CAUSE": "bad",
    "NOTHING STANDS OUT": "good",
    "NOBODY COMMITS": "good",
    "INCONCLUSIVE": "open",
}
QUANTILES = (0.5, 0.9, 0.99, 0.999)
SINCE = "Counters in these files run since boot, import or mount: what counts is what grows between two looks."
OWN = "* "
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


def groups(found: Diagnosis) -> str:
    """The transaction groups that were synced meanwhile, and whether writers were held back."""
    done = [each for each in found.txgs if each.sync_s > 0]
    most = f"in {duration(max((each.sync_s for each in done), default=0) * 1e9)} at most, with at most "
    most += f"{size(max((each.dirty for each in done), default=0))} of dirty data"
    told = f"{len(done):,} synced, {most}" if done else "none was synced" if found.txgs else "not seen"
    times = "not seen" if found.held is None else f"{found.held:,} times, all pools together"
    return f"{told}; writers held back: {times}."


def process_lines(found: Diagnosis) -> list[str]:
    if found.own is None:
        return []
    told = [f"{found.own.text[:1].upper()}{found.own.text[1:]}.", *(f"Not seen: {each}." for each in found.own.faults)]
    if found.own.parent:
        told.append(f"Its parent is the same server: zaudit diagnose {found.own.parent} looks at all of it.")
    if any(each.own for each in found.committers):
        told.append(f"Its threads have the mark {OWN.strip()} below.")
    return told


def took(ns: float | None) -> str:
    return "-" if ns is None else duration(ns)


def who(committer: Committer) -> str:
    """postgres 338 (walwriter), with a mark where it is of the process that was named."""
    role = f" ({committer.role})" if committer.role else ""
    return f"{OWN if committer.own else ''}{committer.name} {committer.pid}{role}"


def committers(found: Diagnosis) -> list[tuple[str, Committer]]:
    """Who, and what it did: threads of the kernel for one volume, or for NFS on one dataset, are one row."""

    def threads(several: Sequence[Committer]) -> str:
        return f"{OWN if several[0].own else ''}{several[0].service} ({len(several):,} threads of the kernel)"

    rows: dict[tuple[str, str, str, int], list[Committer]] = {}
    for number, each in enumerate(found.committers):
        shared = (each.service, each.dataset, each.within, int(each.own))
        rows.setdefault(shared if each.service else ("", "", "", number), []).append(each)
    told = [(who(several[0]) if len(several) == 1 else threads(several), _summed(several)) for several in rows.values()]
    return sorted(told, key=lambda row: -row[1].part)


def _summed(several: Sequence[Committer]) -> Committer:
    commits = sum(each.commits for each in several)
    took = sum(each.mean_ns * each.commits for each in several)
    return several[0]._replace(
        commits=commits, mean_ns=took / commits if commits else 0.0, part=sum(each.part for each in several)
    )


def beside(found: Diagnosis, report: Report | None) -> list[Finding]:
    """The findings of the audit that failed on what commits, its pool and the host."""
    names = {each.dataset for each in found.datasets} | {found.pool, found.target}
    kinds = ("host", "pool", "vdev", "leaf", "disk")

    def concerned(subject: Subject) -> bool:
        return subject.name in names or (subject.kind in kinds and subject.within in ("", found.pool))

    findings = report.findings if report else ()
    return [each for each in findings if each.failed and any(concerned(one.subject) for one in each.verdicts)]


def next_step(found: Diagnosis) -> str:
    target = quoted(found.target)
    if found.causes and found.outcome != "INCONCLUSIVE":
        return found.causes[0].fix
    if found.outcome == "INCONCLUSIVE" and found.mean_ns is None:
        return f"as root, with tracefs: zaudit diagnose {target}"
    if found.outcome == "INCONCLUSIVE":
        return f"zaudit diagnose {target} --seconds 120, at a time when the load is steady"
    return f"zaudit verify {target} measures what the log path can do; it writes to the pool"


# -- the page --------------------------------------------------------------------------------------------------------------

SCHEMA = "zaudit-diagnosis/1"
MOST, EVERY = 8, 200  # rows of a table in brief and whole: nobody reads more on a terminal
BAR = 24


def write(
    format_: str,
    found: Diagnosis,
    report: Report | None = None,
    *,
    zaudit: str = "",
    verbose: bool = False,
    **screen: Unpack[terminal.Screen],
) -> str:
    """json (``zaudit schema diagnose``), html, or else for a terminal. report: the audit of the same pool."""
    if format_ == "json":
        document = {"schema": SCHEMA, "zaudit": zaudit, "diagnosis": plain(found, valid_unicode)}
        if report is not None:
            document["report"] = report_json.document(report, False)
        return json.dumps(document, ensure_ascii=True, allow_nan=False) + "\n"
    page = built(found, report, zaudit, EVERY if verbose or format_ == "html" else MOST)
    return html.write(page) if format_ == "html" else terminal.write(page, **screen)


def built(found: Diagnosis, report: Report | None, zaudit: str, most: int) -> doc.Document:
    """most: rows of a table."""
    host = f" on {report.hostname}" if report else ""
    release = [f"OpenZFS {report.release}"] if report else []
    facts = (f"zaudit {zaudit}".rstrip(), f"{found.target}{host}", *release, f"{found.seconds:.0f} s")
    theirs = found.database.commands if found.database else ()
    blocks: tuple[doc.Block, ...] = (
        _verdict(found, most),
        _shares(found),
        doc.section("Who commits", _committers(found, most)),
        doc.section("Datasets", _datasets(found, most)),
        _devices(found),
        doc.Section("Transaction groups", (doc.Say(groups(found)),)),
        *_database(found.database),
        *_pictures(found),
        doc.section("What stands out", map(_cause, found.causes)),
        doc.section("What zaudit check says of the same datasets", _beside(found, report, most)),
        doc.section("Seen by", [*(doc.Code((each,)) for each in (*found.commands, *theirs)), doc.Say(SINCE, "dim")]),
        doc.section("", [doc.Say(f"Next: {next_step(found)}")]),
    )
    return doc.Document(f"zaudit diagnose: {found.target}{host}", facts, blocks)


def _more(count: int) -> Iterator[doc.Block]:
    if count > 0:
        yield doc.Say(f"and {count} more (--verbose, --format json)", "dim")


def _verdict(found: Diagnosis, most: int) -> doc.Verdict:
    reasons = [each for each in found.reasons if each not in found.answer]
    blocks = (
        doc.Say(f"{found.answer}.", "strong"),
        *(doc.Say(f"Not seen: {each}.", "open") for each in reasons[:most]),
        *_more(len(reasons) - most),
        *map(doc.Say, process_lines(found)),
    )
    return doc.Verdict(TONES[found.outcome], found.outcome, blocks)


def _shares(found: Diagnosis) -> doc.Section:
    if not found.shares or found.mean_ns is None:
        return doc.Section("", ())
    columns = (
        doc.Column("part"),
        doc.Column("mean", number=True),
        doc.Column("share", number=True),
        doc.Column("", aside=True),
    )
    rows = (
        (each.what, duration(each.ns), f"{each.part:.0%}", doc.Run("█" * round(each.part * BAR), "low"))
        for each in found.shares
    )
    overlap = f"The parts add up to {found.overlap:.0%} more than the whole, and are scaled down alike."
    more = [doc.Say(overlap, "dim")] if found.overlap > 0 else []
    return doc.section(f"Where the {duration(found.mean_ns)} of a mean commit go", [doc.table(columns, rows), *more])


def _committers(found: Diagnosis, most: int) -> Iterator[doc.Block]:
    if not found.committers:
        return
    numbers = (doc.Column(head, number=True) for head in ("commits", "mean", "time"))
    every = committers(found)
    rows = (
        (
            who,
            f"{each.commits:,}",
            duration(each.mean_ns),
            f"{each.part:.0%}",
            " · ".join(word for word in (each.dataset or "?", each.within) if word),
        )
        for who, each in every[:most]
    )
    yield doc.table((doc.Column("thread"), *numbers, doc.Column("to", aside=True)), rows)
    yield from _more(len(every) - most)


def _datasets(found: Diagnosis, most: int) -> Iterator[doc.Block]:
    rows = (
        (each.dataset, "?" if each.commits is None else f"{each.commits:,}", each.sync or "?")
        for each in found.datasets[:most]
    )
    yield doc.table(("dataset", doc.Column("commits", number=True), "sync"), rows)
    yield from _more(len(found.datasets) - most)


def _devices(found: Diagnosis) -> doc.Section:
    blocks = "" if found.blocks is None else f", {found.blocks:,} log blocks"
    commits = "?" if found.commits is None else f"{found.commits:,}"
    numbers = (doc.Column(head, number=True) for head in ("writes", "mean", "flushes", "mean", "busy"))
    rows = (
        (
            each.device, f"{each.writes:,}", took(each.block_ns if each.write_ns is None else each.write_ns),
            "?" if each.flushes is None else f"{each.flushes:,}", took(each.flush_ns), f"{each.busy:.0%}",
            doc.Run(f"{each.kind} {each.top}", "strong" if each.log else "dim"),
        )
        for each in sorted(found.devices, key=lambda each: (not each.log, each.top, each.device))
    )  # fmt: skip
    shown = [doc.table((doc.Column("device"), *numbers, doc.Column("vdev", aside=True)), rows)] if found.devices else []
    return doc.section(f"Devices ({commits} commits counted by the ZIL{blocks})", shown)


def _pictures(found: Diagnosis) -> Iterator[doc.Section]:
    run = pictured(found)
    if run is None:
        return
    yield doc.section("When commits were slow", [heat(run, (), "commits")])
    drawn = curve([charts.Curve(found.target, found.latency, ())], "commits", rows=10)
    bars = charts.histogram(found.latency, "commits")
    told = ", ".join(f"{name} {value}" for name, value in percentiles(found.latency))
    yield doc.section(
        "How many were slow",
        [
            doc.Picture(drawn.lines, lambda: joined((bars, drawn.drawn()))),
            doc.Say(f"{found.latency.samples:,} commits: {told}"),
            doc.Say(BY_POWERS, "dim"),
        ],
    )


def _cause(cause: Cause) -> doc.Finding:
    seen = ((each.text, doc.Run(f"   {each.command}" if each.command else "", "repeat")) for each in cause.evidence)
    rule = [("Rule", doc.command(f"zaudit explain {cause.rule}"))] if cause.rule else []
    rows = doc.labelled([*(("Seen", each) for each in seen), ("Fix", cause.fix), *rule]).rows
    return doc.Finding(doc.Run("CAUSE", "bad"), "", doc.Run(f"{cause.text}.", "strong"), "", rows)


def _beside(found: Diagnosis, report: Report | None, most: int) -> Iterator[doc.Block]:
    standing = beside(found, report)
    if standing:
        yield doc.labelled(
            (doc.Run(each.severity.upper(), each.severity), f"{each.rule.id}: {each.rule.title}")
            for each in standing[:most]
        )
        yield from _more(len(standing) - most)


def _database(view: View | None) -> Iterator[doc.Section]:
    if view is None:
        return
    blocks: list[doc.Block] = [doc.Say(f"{view.first}.")] if view.first else []
    numbers = (doc.Column("counted", number=True), doc.Column("mean", number=True))
    rows = [(row, row.what) for row in view.rows]
    if view.kernel:  # behind the one that it is next to
        rows.insert(1, (view.kernel, f"{view.kernel.what} (kernel)"))
    cells = (
        (what, "?" if row.counted is None else f"{row.counted:,}", took(row.mean_ns), doc.Run(row.why, "dim"))
        for row, what in rows
    )
    blocks.append(doc.table((doc.Column(""), *numbers, doc.Column("")), cells))
    active = f"{view.active:.1f} backends at work, which waited for"
    waits = ((each.what, f"{each.mean:.1f}", f"{each.most:,}") for each in view.waits)
    blocks.append(
        doc.table((doc.Column(active), doc.Column("mean", number=True), doc.Column("most", number=True)), waits)
    )
    blocks += [doc.Say(", ".join(view.settings), "dim")] if view.settings else []
    blocks += [doc.Say(f"Not seen: {each}.", "open") for each in view.unseen]
    yield doc.section(f"The database's view{f' ({view.server})' if view.server else ''}", blocks)
