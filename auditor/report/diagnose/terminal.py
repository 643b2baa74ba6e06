"""A diagnosis for a person: one sentence, then the shares, who commits, the devices, what stands out, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.diagnose.model import Diagnosis
from auditor.report.console import body, printed
from auditor.report.diagnose import database, words
from auditor.report.model import Report
from auditor.report.verify import pictures
from auditor.report.verify.terminal import drawn, title
from auditor.text import harmless
from auditor.units import duration

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
        Padding(Text(words.groups(found)), (0, 0, 0, 2)),
        *database.terminal(found.database),
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
    yield Text(found.outcome, STYLES[words.KINDS[found.outcome]])
    yield Text(f"{harmless(found.answer)}.")
    reasons = words.unseen(found)
    yield from (Text(f"Not seen: {harmless(each)}.", "magenta") for each in reasons[:MOST])
    yield from _more(len(reasons) - MOST)
    yield from (Text(harmless(each)) for each in words.own(found))


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
    rows = words.committers(found)
    for who, each in rows[: EVERY if verbose else MOST]:
        where = " · ".join(harmless(word) for word in (each.dataset or "?", each.within) if word)
        told = {**({"by": words.by(each)} if found.calls else {}), "to": where}
        numbers = (f"{each.commits:,}", duration(each.mean_ns), f"{each.part:.0%}")
        if words_beside:
            table.add_row(*map(Text, (who, *numbers, *told.values())))
        else:
            below = (f"{name} {text}" for name, text in told.items())
            table.add_row(*map(Text, ("\n".join((who, *below)), *numbers)))
    yield Padding(table, (0, 0, 0, 2))
    yield from _more(len(rows) - (EVERY if verbose else MOST))
    yield from (Padding(Text(each, "dim"), (0, 0, 0, 2)) for each in words.how_called(found))


def _waiters(found: Diagnosis, verbose: bool) -> Iterator[RenderableType]:
    if found.stacked is None or not (told := words.sampled(found)):
        return
    yield from title(told)
    table = _table(2, first="fold")
    table.add_row("", *(Text(each, "dim") for each in ("samples", "of the waiting")))
    rows = found.stacked.waiters[: EVERY if verbose else MOST]
    for each in rows:
        table.add_row(
            Text(words.who(each)), f"{each.samples:,}", Text(f"{each.part:.0%} {harmless(each.within)}".rstrip())
        )
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
            Text(harmless(each.device)), f"{each.writes:,}", words.took(write), flushes, words.took(each.flush_ns),
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
    run = words.pictured(found)
    if run is None:
        return
    yield from drawn("When commits were slow", pictures.heat_map(run, width))
    yield from drawn("How many were slow", pictures.percentile_curve(found.latency, (), width, rows=10))
    told = ", ".join(f"{name} {value}" for name, value in words.percentiles(found.latency))
    yield Text(f"{found.latency.samples:,} commits: {told}")
    yield Text(words.BY_POWERS, "dim")


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
        yield body([*(("Seen", Text(line)) for line in seen), ("Fix", Text(harmless(each.fix))), *rule])


def _beside(found: Diagnosis, report: Report | None) -> Iterator[RenderableType]:
    standing = words.beside(found, report)
    if standing:
        yield from title("What zaudit check says of the same datasets")
        told = [
            (each.severity.upper(), Text(f"{each.rule.id}: {harmless(each.rule.title)}")) for each in standing[:MOST]
        ]
        yield body(told)
        yield from _more(len(standing) - MOST)


def _end(found: Diagnosis) -> Iterator[RenderableType]:
    yield from title("Seen by")
    theirs = found.database.commands if found.database else ()
    yield body([("", Text(harmless(each))) for each in (*found.commands, *theirs)])
    yield Padding(Text(words.SINCE, "dim"), (0, 0, 0, 2))
    yield Text(f"Next: {harmless(words.next_step(found))}")
