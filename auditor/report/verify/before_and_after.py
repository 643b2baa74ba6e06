"""Before and after, as a part of a report: for a terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.report.page import escaped, paragraph, section
from auditor.verify.model import percentile_name
from auditor.text import harmless
from auditor.units import duration
from auditor.verify.compare import Comparison, Row

TITLE = "Before and after"
STYLES = {"slower": "bold red", "faster": "green", "within noise": "", "cannot tell": "bold magenta"}
KINDS = {"slower": "bad", "faster": "good", "within noise": "dim", "cannot tell": "open"}
HEADS = ("run", "", "before", "after", "ratio", "between", "")


def summary(comparison: Comparison) -> str:
    """The answer: what became slower, what faster, or that it cannot be told."""
    if comparison.differs:
        return "Not compared: they answer different questions."
    if not comparison.rows:
        return "Cannot tell: no run has syncs in both."
    said = []
    for change in ("slower", "faster", "cannot tell"):
        names = [f"{harmless(row.run)} {percentile_name(row.q)}" for row in comparison.rows if row.change == change]
        if names:
            said.append(f"{change}: {', '.join(names)}")
    noise = sum(row.change == "within noise" for row in comparison.rows)
    if noise:
        said.append(f"{noise} of {len(comparison.rows)} within noise")
    whole = "; ".join(said)
    return f"{whole[:1].upper()}{whole[1:]}."


def cells(row: Row) -> tuple[str, ...]:
    """Percentile, before, after, ratio, between which it lies, change."""
    between = ""
    if row.low is not None:
        between = f"{row.low:.2f} to {row.high:.2f}" if row.high is not None else f"{row.low:.2f} or more"
    return (
        percentile_name(row.q),
        "-" if row.before_ns is None else duration(row.before_ns),
        "-" if row.after_ns is None else duration(row.after_ns),
        "" if row.ratio is None else f"{row.ratio:.2f}",
        between,
        row.change,
    )


def notes(comparison: Comparison) -> Iterator[str]:
    """What differs, why something cannot be told (each reason once), and what to know beside."""
    yield from (harmless(f"Differs: {each}.") for each in comparison.differs)
    reasons: dict[str, list[str]] = {}
    for row in comparison.rows:
        if row.why:
            reasons.setdefault(row.why, []).append(f"{row.run} {percentile_name(row.q)}")
    yield from (harmless(f"Cannot tell {', '.join(which)}: {why}.") for why, which in reasons.items())
    yield from map(harmless, comparison.notes)
    if any(row.low is not None for row in comparison.rows):
        yield "The ratios lie between these figures, all of them together with 95 % confidence."


def terminal(comparison: Comparison) -> Iterator[RenderableType]:
    """The section of a report on a terminal."""
    yield Text()
    yield Text.assemble((TITLE, "bold"), f"   {summary(comparison)}")
    yield Text(f"{harmless(comparison.before)} -> {harmless(comparison.after)}", "dim")
    if comparison.rows:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(max_width=14, overflow="fold", style="bold")
        for head in HEADS[1:]:
            table.add_column(justify="right" if head in ("before", "after", "ratio") else "left", no_wrap=True)
        table.add_row(*(Text(head, "dim") for head in HEADS))
        seen = ""
        for row in comparison.rows:
            *figures, change = cells(row)
            table.add_row(
                "" if row.run == seen else Text(harmless(row.run)), *figures, Text(change, STYLES[row.change])
            )
            seen = row.run
        yield Padding(table, (0, 0, 0, 2))
    yield from (Padding(Text(note), (0, 0, 0, 2)) for note in notes(comparison))


def html(comparison: Comparison) -> str:
    """The section of a page."""
    rows = []
    for row in comparison.rows:
        *figures, change = cells(row)
        told = "".join(f"<td>{escaped(figure)}</td>" for figure in figures)
        badge = f'<span class="badge {KINDS[row.change]}">{change}</span>'
        rows.append(f"<tr><td><b>{escaped(row.run)}</b></td>{told}<td>{badge}</td></tr>")
    heads = "".join(f"<th>{head}</th>" for head in HEADS)
    table = f'<div class="table" tabindex="0"><table><tr>{heads}</tr>{"".join(rows)}</table></div>' if rows else ""
    said = (paragraph(note, "small") for note in notes(comparison))
    names = paragraph(f"{comparison.before} -> {comparison.after}", "dim small")
    return section(TITLE, [f"<p><b>{escaped(summary(comparison))}</b></p>", names, table, *said])
