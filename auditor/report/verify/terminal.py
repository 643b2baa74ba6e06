"""What a verification found, for a person: was every sync followed to a flush, then how long it took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.report import finding_words, findings_terminal
from auditor.report.console import MARGIN, body, printed
from auditor.report.model import Report
from auditor.report.verify import before_and_after as comparison_part
from auditor.report.verify import pictures, words
from auditor.report.verify import sweep as sweep_part
from auditor.report.verify.pictures import Picture
from auditor.text import harmless
from auditor.units import duration
from auditor.verify.compare import Comparison
from auditor.verify.knee import Sweep
from auditor.verify.model import CANNOT_EXCLUDE, Chain, Latency, Percentile, Verification, percentile_name

STYLES: dict[words.Kind, str] = {"good": "bold green", "bad": "bold red", "open": "bold magenta"}
STATUSES = {"accounts": "green", "contradicts": "bold red", "unseen": "bold magenta"}
JUDGEMENTS = {"met": "green", "missed": "bold red", "not judged": "bold magenta"}


def render(
    verification: Verification,
    report: Report | None = None,
    *,
    comparison: Comparison | None = None,
    sweep: Sweep | None = None,
    zaudit: str = "",
    width: int = 100,
    color: bool = False,
    ascii_only: bool = False,
    verbose: bool = False,
) -> str:
    """The whole report as text that ends with a newline.

    report: the audit whose findings stand in it. comparison, sweep: shown after the pictures.
    zaudit: the version, where there is no audit. verbose: pictures of every run, and the commands of fio.
    """
    width = max(width, 40)
    parts = [
        *_start(verification, report, zaudit),
        *_chain(verification.chain),
        *_latency(verification),
        *(findings_terminal.found(report) if report else ()),
        *_pictures(verification, width, verbose),
        *(comparison_part.terminal(comparison) if comparison else ()),
        *(sweep_part.terminal(sweep, width) if sweep else ()),
        *(_commands(verification) if verbose else ()),
        *_end(verification, report),
    ]
    return printed(parts, width=width, color=color, ascii_only=ascii_only)


def _start(verification: Verification, report: Report | None, zaudit: str) -> Iterator[RenderableType]:
    host = f" on {harmless(report.hostname)}" if report else ""
    title = (
        f"zaudit {report.zaudit if report else zaudit}".rstrip(),
        f"{harmless(verification.target)}{host}",
        *([f"OpenZFS {harmless(report.release)}"] if report else []),
        f"verify {harmless(verification.profile)} {harmless(verification.length)}",
        harmless(verification.fio),
    )
    yield Text(" · ".join(title), "dim")
    yield Text()
    verdict, why = words.answer(verification.chain)
    yield Text.assemble((verdict, STYLES[words.kind(verification.chain, report)]), f"   {why}")
    if left := words.left_to_believe(verification.chain, report):
        yield Text(left)
    for latency in verification.latencies:
        yield Text.assemble((f"{harmless(latency.run)}: ", "bold"), words.verdicts(latency))
    if report:
        yield findings_terminal.answer(report)


def title(text: str) -> Iterator[RenderableType]:
    """The line above a section."""
    yield Text()
    yield Text(text, "bold")


def _chain(chain: Chain) -> Iterator[RenderableType]:
    yield from title("The chain, from the application down")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(max_width=16, overflow="fold")
    table.add_column(width=11, no_wrap=True)
    table.add_column(overflow="fold")
    for link in chain.links:
        says = Text(harmless(link.text))
        if link.figures:
            says.append(f"\n{words.figures(link)}", "dim")
        table.add_row(Text(harmless(link.name), "bold"), Text(words.STATUS[link.status], STATUSES[link.status]), says)
    yield Padding(table, (0, 0, 0, 2))


def _latency(verification: Verification) -> Iterator[RenderableType]:
    latencies = verification.latencies
    if not latencies:
        return
    yield from title("How long a sync took")
    asked = sorted({each.q for latency in latencies for each in latency.percentiles})
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(max_width=16, overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    for _ in asked:
        table.add_column(no_wrap=True)
    table.add_row("", *(Text(each, "dim") for each in ("samples", *map(percentile_name, asked))))
    for latency in latencies:
        count = words.samples(verification, latency.run)
        cells = [_cell(latency, q) for q in asked]
        table.add_row(Text(harmless(latency.run), "bold"), "?" if count is None else f"{count:,}", *cells)
    sets = words.objectives(latencies)
    for limits, runs in sets.items():
        name = "objective" if len(sets) == 1 else f"objective of {', '.join(map(harmless, runs))}"
        of = dict(limits)
        table.add_row(Text(name, "dim"), "", *(Text(duration(of[q]) if q in of else "", "dim") for q in asked))
    yield Padding(table, (0, 0, 0, 2))
    for latency in latencies:
        for i, sentence in enumerate(words.sentences(latency)):
            yield _told(harmless(latency.run) if i == 0 else "", sentence)


def _cell(latency: Latency, q: float) -> Text:
    found: Percentile | None = next((each for each in latency.percentiles if each.q == q), None)
    if found is None:
        return Text("")
    text = Text(words.shown(found))
    if found.limit_ns is not None:
        text.append(f" {words.JUDGEMENT[found.judgement]}", JUDGEMENTS[found.judgement])
    return text


def _told(name: str, sentence: str) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=MARGIN, overflow="fold", style="bold")
    table.add_column(overflow="fold")
    table.add_row(Text(name), Text(sentence))
    return Padding(table, (0, 0, 0, 2))


def _pictures(verification: Verification, width: int, verbose: bool) -> Iterator[RenderableType]:
    for run, percentiles in words.pictured(verification, verbose):
        yield from drawn(f"When syncs were slow ({harmless(run.name)})", pictures.heat_map(run, width))
        curve = pictures.percentile_curve(run.latency, percentiles, width)
        yield from drawn(f"How many were slow ({harmless(run.name)})", curve)


def drawn(name: str, picture: Picture | None) -> Iterator[RenderableType]:
    """A picture below its name, and how to read it."""
    if picture is not None:
        yield from title(name)
        yield from (Text(line, no_wrap=True, overflow="crop") for line in picture.lines)
        yield Padding(Text(picture.says, "dim"), (0, 0, 0, pictures.LABEL + 2))


def _commands(verification: Verification) -> Iterator[RenderableType]:
    yield from title("What was run")
    yield body([(harmless(name), Text(command)) for name, command in words.commands(verification)])


def _end(verification: Verification, report: Report | None) -> Iterator[RenderableType]:
    yield Text()
    rows: list[tuple[str, RenderableType]] = [
        ("Proves", Text(harmless(verification.proves))),
        ("Does not", Text(harmless(verification.does_not))),
        ("Not read", Text("; ".join(words.faults(verification)))),
    ]
    yield Padding(_plain(rows), 0)
    for what, rules in finding_words.left_out(report) if report else ():
        yield Text(f"{what}: {rules}.")
    yield Text(CANNOT_EXCLUDE, "dim")
    step = words.next_step(verification, report)
    seen = f"(seen {words.when(verification.taken)}{f', exit code {report.exit_code}' if report else ''})"
    yield Text(f"Next: {harmless(step)}   {seen}")


def _plain(rows: Sequence[tuple[str, RenderableType]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=MARGIN - 2, no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for label, content in rows:
        if isinstance(content, Text) and content.plain:
            table.add_row(label, content)
    return table
