"""A diagnosis as text: the words that all pages use, the terminal, the line of a second, and JSON for programs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.diagnose.diagnosis import Calls, Committer, Diagnosis, Outcome, Row, Second, View, Waiter
from auditor.judge.finding import Finding
from auditor.report import report_json as audit_json
from auditor.report import terminal
from auditor.report.model import Report
from auditor.report.terminal import printed
from auditor.report.verify import charts
from auditor.report.verify.verification_text import drawn, title
from auditor.text import harmless, quoted, valid_unicode
from auditor.units import duration, size
from auditor.verify.codec import plain
from auditor.verify.result import LEAST_BEYOND, Histogram, Run

# What all reports of a diagnosis say alike.

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


# The lines of ``--watch``: columns of a fixed width, so that they stand below each other and can be cut apart by a program.

HEADER_EVERY = 20  # lines, after which the names of the columns come again
WIDTHS = {
    "time": 8, "commits/s": 9, "own/s": 7, "own mean": 8, "mean": 7, "p99": 7, "slowest": 7, "log write": 9, "flush": 7,
    "held": 5, "dirty": 8, "TXG": 4, "synced in": 9,
}  # fmt: skip
NARROWED = ("own/s", "own mean")
LAST = ("synced in", "slowest", "dirty", "TXG", "p99", "held")  # of which a narrow terminal lacks the first ones
GAP, NONE = "  ", "-"


def columns(*, narrowed: bool, width: int | None) -> list[str]:
    """Their names. narrowed: with those of the process or dataset that was named; width: of the terminal, None for a file."""
    told = [each for each in WIDTHS if narrowed or each not in NARROWED]
    for each in LAST:
        if width is not None and sum(WIDTHS[name] + len(GAP) for name in told) - len(GAP) > width:
            told.remove(each)
    return told


def header(told: Sequence[str]) -> str:
    """The names."""
    return _line(told, {each: each for each in told})


def row(second: Second, told: Sequence[str]) -> str:
    """One second; a dash for what was not seen."""
    return _line(told, {
        "time": time.strftime("%H:%M:%S", time.localtime(second.at)),
        "commits/s": _rate(second.commits, second.seconds),
        "own/s": _rate(second.own, second.seconds),
        "own mean": _took(second.own_mean_ns),
        "mean": _took(second.mean_ns),
        "p99": _took(second.p99_ns),
        "slowest": _took(second.most_ns),
        "log write": _took(second.write_ns),
        "flush": _took(second.flush_ns),
        "held": NONE if second.held is None else f"{second.held:,}",
        "dirty": NONE if second.dirty is None else size(second.dirty),
        "TXG": harmless(second.states) or NONE,
        "synced in": NONE if second.sync_s is None else duration(second.sync_s * 1e9),
    })  # fmt: skip


def legend(narrowed: str, untraced: str) -> list[str]:
    """What is said once, before the first line. narrowed: to what, or empty; untraced: why there is no trace, or empty."""
    told = []
    if untraced:
        told.append(f"How long commits take is not seen ({NONE}): {harmless(untraced)}.")
    if narrowed:
        told.append(f"own: of {harmless(narrowed)}; everything else is of the whole pool.")
    return [
        *told,
        "p99 and slowest: at most so long; log write, flush: mean of the slowest leg; held: writes held back;",
        "dirty: of the newest TXG that syncs or was synced; TXG: under way (O open, Q quiescing, W waiting, S syncing).",
    ]


def _line(told: Sequence[str], cells: Mapping[str, str]) -> str:
    return GAP.join(cells[each].rjust(WIDTHS[each]) for each in told)


def _rate(count: int | None, seconds: float) -> str:
    return NONE if count is None or seconds <= 0 else f"{count / seconds:,.0f}"


def _took(ns: float | None) -> str:
    return NONE if ns is None else duration(ns)


# The database's view of a diagnosis: what its reports on a terminal and on a page say alike, and how each shows it.

DATABASE_TITLE = "The database's view"
INDENT = (0, 0, 0, 2)


def database_counts(view: View) -> Iterator[tuple[str, str, str, str]]:
    """(what, how many, mean, why one of them is missing), the kernel's row behind the one that it stands beside."""
    for number, row in enumerate(view.rows):
        yield _cells(row, row.what)
        if number == 0 and view.kernel:
            yield _cells(view.kernel, f"{view.kernel.what} (kernel)")


def _cells(row: Row, what: str) -> tuple[str, str, str, str]:
    return what, "?" if row.counted is None else f"{row.counted:,}", took(row.mean_ns), row.why


def database_waits(view: View) -> list[tuple[str, str, str]]:
    return [(each.what, f"{each.mean:.1f}", f"{each.most:,}") for each in view.waits]


def database_active(view: View) -> str:
    return f"{view.active:.1f} backends at work, which waited for"


def database_terminal(view: View | None) -> Iterator[RenderableType]:
    """Nothing without a view."""
    if view is None:
        return
    yield from title(f"{DATABASE_TITLE}{f' ({harmless(view.server)})' if view.server else ''}")
    if view.first:
        yield Padding(Text(f"{harmless(view.first)}."), INDENT)
    if view.rows:
        table = _grid(("", "counted", "mean", ""))
        for what, *cells in database_counts(view):
            table.add_row(Text(harmless(what)), *cells[:2], Text(harmless(cells[2]), "dim"))
        yield Padding(table, INDENT)
    if view.waits:
        table = _grid((database_active(view), "mean", "most", ""))
        for what, mean, most in database_waits(view):
            table.add_row(Text(harmless(what)), mean, most, "")
        yield Padding(table, INDENT)
    if view.settings:
        yield Padding(Text(harmless(", ".join(view.settings)), "dim"), INDENT)
    yield from (Padding(Text(f"Not seen: {harmless(each)}.", "magenta"), INDENT) for each in view.unseen)


def _grid(head: tuple[str, str, str, str]) -> Table:
    """Words, two numbers, words."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", min_width=8)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(*(Text(each, "dim") for each in head))
    return table


# A diagnosis for a person: one sentence, then the shares, who commits, the devices, what stands out, and what to do.

STYLES = {"good": "bold green", "bad": "bold red", "open": "bold magenta"}
MOST, EVERY = 8, 200  # rows of a table without and with --verbose: nobody reads more on a terminal
BAR = 24
BESIDE = 72  # columns, from which on words have room beside the numbers


def render(
    found: Diagnosis,
    report: Report | None = None,
    *,
    zaudit: str = "",
    width: int = 100,
    color: bool = False,
    ascii_only: bool = False,
    verbose: bool = False,
) -> str:
    """The whole report as text that ends with a newline. report: the audit of the same pool."""
    width = max(width, 40)
    parts = [
        *_start(found, report, zaudit),
        *_shares(found),
        *_committers(found, width, verbose),
        *_waiters(found, verbose),
        *_datasets(found, verbose),
        *_devices(found),
        *title("Transaction groups"),
        Padding(Text(groups(found)), (0, 0, 0, 2)),
        *database_terminal(found.database),
        *_pictures(found, width),
        *_causes(found),
        *_beside(found, report),
        *_end(found),
    ]
    return printed(parts, width=width, color=color, ascii_only=ascii_only)


def _start(found: Diagnosis, report: Report | None, zaudit: str) -> Iterator[RenderableType]:
    host = f" on {harmless(report.hostname)}" if report else ""
    release = [f"OpenZFS {harmless(report.release)}"] if report else []
    head = (f"zaudit {zaudit}".rstrip(), f"{harmless(found.target)}{host}", *release, f"{found.seconds:.0f} s")
    yield Text(" · ".join(head), "dim")
    yield Text()
    yield Text(found.outcome, STYLES[KINDS[found.outcome]])
    yield Text(f"{harmless(found.answer)}.")
    reasons = unseen(found)
    yield from (Text(f"Not seen: {harmless(each)}.", "magenta") for each in reasons[:MOST])
    yield from _more(len(reasons) - MOST)
    yield from (Text(harmless(each)) for each in own(found))


def _shares(found: Diagnosis) -> Iterator[RenderableType]:
    if not found.shares or found.mean_ns is None:
        return
    yield from title(f"Where the {duration(found.mean_ns)} of a mean commit go")
    table = _table(2)
    for each in found.shares:
        bar = "█" * round(each.part * BAR)
        table.add_row(Text(each.what), duration(each.ns), f"{each.part:.0%}", Text(bar, "cyan"))
    yield Padding(table, (0, 0, 0, 2))
    if found.overlap > 0:
        yield Padding(
            Text(f"The parts add up to {found.overlap:.0%} more than the whole, and are scaled down alike.", "dim"),
            (0, 0, 0, 2),
        )


def _committers(found: Diagnosis, width: int, verbose: bool) -> Iterator[RenderableType]:
    if not found.committers:
        return
    yield from title("Who commits")
    words_beside = (*(["by"] if found.calls else []), "to") if width >= BESIDE else ()
    table = _table(4, first="fold")
    for _ in words_beside[1:]:
        table.add_column(overflow="fold")
    table.add_row("", *(Text(each, "dim") for each in ("commits", "mean", "time", *words_beside)))
    rows = committers(found)
    for who, each in rows[: EVERY if verbose else MOST]:
        where = " · ".join(harmless(word) for word in (each.dataset or "?", each.within) if word)
        told = {**({"by": by(each)} if found.calls else {}), "to": where}
        numbers = (f"{each.commits:,}", duration(each.mean_ns), f"{each.part:.0%}")
        if words_beside:
            table.add_row(*map(Text, (who, *numbers, *told.values())))
        else:
            below = (f"{name} {text}" for name, text in told.items())
            table.add_row(*map(Text, ("\n".join((who, *below)), *numbers)))
    yield Padding(table, (0, 0, 0, 2))
    yield from _more(len(rows) - (EVERY if verbose else MOST))
    yield from (Padding(Text(each, "dim"), (0, 0, 0, 2)) for each in how_called(found))


def _waiters(found: Diagnosis, verbose: bool) -> Iterator[RenderableType]:
    if found.stacked is None or not (told := sampled(found)):
        return
    yield from title(told)
    table = _table(2, first="fold")
    table.add_row("", *(Text(each, "dim") for each in ("samples", "of the waiting")))
    rows = found.stacked.waiters[: EVERY if verbose else MOST]
    for each in rows:
        table.add_row(Text(who(each)), f"{each.samples:,}", Text(f"{each.part:.0%} {harmless(each.within)}".rstrip()))
    yield Padding(table, (0, 0, 0, 2))
    yield from _more(len(found.stacked.waiters) - len(rows))


def _datasets(found: Diagnosis, verbose: bool) -> Iterator[RenderableType]:
    if not found.datasets:
        return
    yield from title("Datasets")
    table = _table(2, first="fold")
    table.add_row("", *(Text(each, "dim") for each in ("commits", "sync")))
    rows = found.datasets[: EVERY if verbose else MOST]
    for each in rows:
        commits = "?" if each.commits is None else f"{each.commits:,}"
        table.add_row(Text(harmless(each.dataset)), commits, Text(harmless(each.sync) or "?"))
    yield Padding(table, (0, 0, 0, 2))
    yield from _more(len(found.datasets) - len(rows))


def _devices(found: Diagnosis) -> Iterator[RenderableType]:
    if not found.devices:
        return
    blocks = "" if found.blocks is None else f", {found.blocks:,} log blocks"
    commits = "?" if found.commits is None else f"{found.commits:,}"
    yield from title(f"Devices ({commits} commits counted by the ZIL{blocks})")
    table = _table(6, first="fold")
    table.add_row("", *(Text(each, "dim") for each in ("writes", "mean", "flushes", "mean", "busy", "")))
    for each in sorted(found.devices, key=lambda each: (not each.log, each.top, each.device)):
        flushes = "?" if each.flushes is None else f"{each.flushes:,}"
        write = each.block_ns if each.write_ns is None else each.write_ns
        where = Text(f"{harmless(each.kind)} {harmless(each.top)}", "bold" if each.log else "dim")
        table.add_row(
            Text(harmless(each.device)), f"{each.writes:,}", took(write), flushes, took(each.flush_ns),
            f"{each.busy:.0%}", where,
        )  # fmt: skip
    yield Padding(table, (0, 0, 0, 2))


def _table(numbers: int, first: str = "") -> Table:
    """A column of words, some of numbers, and one of words."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", min_width=8)
    for _ in range(numbers if first == "" else numbers - 1):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _more(count: int) -> Iterator[RenderableType]:
    if count > 0:
        yield Padding(Text(f"and {count} more (--verbose, --format json)", "dim"), (0, 0, 0, 2))


def _pictures(found: Diagnosis, width: int) -> Iterator[RenderableType]:
    run = pictured(found)
    if run is None:
        return
    yield from drawn("When commits were slow", charts.heat_map_lines(run, width))
    yield from drawn("How many were slow", charts.percentile_curve(found.latency, (), width, rows=10))
    told = ", ".join(f"{name} {value}" for name, value in percentiles(found.latency))
    yield Text(f"{found.latency.samples:,} commits: {told}")
    yield Text(BY_POWERS, "dim")


def _causes(found: Diagnosis) -> Iterator[RenderableType]:
    if not found.causes:
        return
    yield from title("What stands out")
    for each in found.causes:
        seen: Sequence[str] = [
            f"{harmless(piece.text)}{f'   {piece.command}' if piece.command else ''}" for piece in each.evidence
        ]
        rule = [("Rule", Text(f"zaudit explain {each.rule}"))] if each.rule else []
        yield Padding(Text(f"{harmless(each.text)}.", "bold"), (0, 0, 0, 2))
        yield terminal._finding_rows(
            [*(("Seen", Text(line)) for line in seen), ("Fix", Text(harmless(each.fix))), *rule]
        )


def _beside(found: Diagnosis, report: Report | None) -> Iterator[RenderableType]:
    standing = beside(found, report)
    if standing:
        yield from title("What zaudit check says of the same datasets")
        told = [
            (each.severity.upper(), Text(f"{each.rule.id}: {harmless(each.rule.title)}")) for each in standing[:MOST]
        ]
        yield terminal._finding_rows(told)
        yield from _more(len(standing) - MOST)


def _end(found: Diagnosis) -> Iterator[RenderableType]:
    yield from title("Seen by")
    theirs = found.database.commands if found.database else ()
    yield terminal._finding_rows([("", Text(harmless(each))) for each in (*found.commands, *theirs)])
    yield Padding(Text(SINCE, "dim"), (0, 0, 0, 2))
    yield Text(f"Next: {harmless(next_step(found))}")


# A diagnosis for a program: ``diagnosis_schema.json``.

SCHEMA = "zaudit-diagnosis/1"


def render_json(found: Diagnosis, report: Report | None = None, *, zaudit: str = "") -> str:
    """JSON text that ends with a newline. report: the audit of the same pool."""
    document = {"schema": SCHEMA, "zaudit": zaudit, "diagnosis": plain(found, valid_unicode)}
    if report is not None:
        document["report"] = audit_json.document(report, False)
    return json.dumps(document, ensure_ascii=True, allow_nan=False) + "\n"
