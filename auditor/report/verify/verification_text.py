"""A verification as text: the words that all pages use, the terminal, and JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.report import audit, event_words, finding_words, terminal
from auditor.report import report_json as audit_json
from auditor.report.document import Run as Run_
from auditor.report.finding_words import listed
from auditor.report.model import Report
from auditor.report.terminal import MARGIN, printed
from auditor.report.verify import charts
from auditor.report.verify.charts import Bar, Picture
from auditor.text import harmless, quoted, valid_unicode
from auditor.units import duration, size
from auditor.verify.codec import plain
from auditor.verify.comparison import TIMES, Comparison, Row, Step, Sweep, document, find, named
from auditor.verify.result import (
    CANNOT_EXCLUDE,
    JOB_FILE,
    Chain,
    Latency,
    Link,
    Percentile,
    Run,
    Verification,
    percentile_name,
)

# What the reports of a verification say alike, for a terminal and as a page.

STATUS = {"accounts": "agrees", "contradicts": "CONTRADICTS", "unseen": "not seen"}
JUDGEMENT = {"met": "met", "missed": "MISSED", "not judged": "?"}
Kind = Literal["good", "bad", "open"]
ABOVE = ("dataset", "system calls", "fio", "ZIL")
TRACED = "every sync was followed to a flush that completed"


def answer(chain: Chain) -> tuple[str, str]:
    """Was every sync followed to a flush? The verdict, and why."""
    if chain.outcome == "TRACED":
        return "TRACED", TRACED
    if chain.outcome == "CONTRADICTED":
        broken = [link for link in chain.links if link.status == "contradicts"]
        if not broken:
            return "CONTRADICTED", "; ".join(map(harmless, chain.reasons)) or "no link is named"
        # what is lost above is missing below as well; disks lie side by side
        named = broken[:1] if broken[0].name in ABOVE else broken
        return f"CONTRADICTED at {listed([harmless(link.name) for link in named])}", harmless(broken[0].text)
    return "INCONCLUSIVE", f"because {'; '.join(map(harmless, chain.reasons)) or 'a link was not seen'}"


def left_to_believe(chain: Chain, report: Report | None) -> str:
    """What a power cut rests on where every sync was followed: the word of the software is proved on this host, as it is now,
    and that of others is not. Empty where it was not followed, or where the table says that something goes anyway."""
    if chain.outcome != "TRACED" or report is None:
        return ""
    power = event_words.of_a_cut(report.columns)
    match power.outcome:
        case "word":
            return f"What is left to rely on at a power cut: {event_words.parties(power)}."
        case "unknown":
            return f"What else a power cut would take is not known: {listed(list(map(harmless, power.rules)))}."
        case "kept":
            return "At a power cut nothing else is relied on, in all that was seen."
    return ""


def kind(chain: Chain, report: Report | None) -> Kind:
    """The colour of the answer: that of the worse one, of the chain and of the audit. A pool on which every sync was followed
    and which loses commits at the next failure all the same is not green."""
    standing = report.standing if report else "kept"
    if chain.outcome == "CONTRADICTED" or standing in ("damaged", "lost", "corrupted", "stalled"):
        return "bad"
    return "good" if chain.outcome == "TRACED" and standing == "kept" else "open"


def figures(link: Link) -> str:
    """writes 4,812 · flushes 4,813."""
    return " · ".join(f"{harmless(what)} {number:,}" for what, number in link.figures)


def shown(percentile: Percentile) -> str:
    """The latency, or a dash where too few samples lie beyond it."""
    return "-" if percentile.ns is None else duration(percentile.ns)


def objectives(latencies: Sequence[Latency]) -> dict[tuple[tuple[float, int], ...], list[str]]:
    """(percentile, limit) of each set of objectives that some runs share -> these runs."""
    sets: dict[tuple[tuple[float, int], ...], list[str]] = {}
    for each in latencies:
        limits = tuple((one.q, one.limit_ns) for one in each.percentiles if one.limit_ns is not None)
        if limits:
            sets.setdefault(limits, []).append(each.run)
    return sets


def verdicts(latency: Latency) -> str:
    """p99 2 ms of 5 ms met, p99.9 not judged; or why nothing is judged."""
    if latency.why_not:
        return f"not judged: {harmless(latency.why_not)}"
    words = []
    for each in latency.percentiles:
        if each.limit_ns is not None:
            value = "" if each.ns is None else f" {duration(each.ns)}"
            word = "MISSED" if each.judgement == "missed" else each.judgement
            words.append(f"{percentile_name(each.q)}{value} of {duration(each.limit_ns)} {word}")
    return ", ".join(words) or "no objective"


def sentences(latency: Latency) -> Iterator[str]:
    """What a run says beside its percentiles, most important first."""
    if latency.why_not:
        yield f"Not judged: {harmless(latency.why_not)}."
    for each in latency.percentiles:
        if each.judgement == "not judged" and each.limit_ns is not None and each.why and each.why != latency.why_not:
            yield f"{percentile_name(each.q)} is not judged: {harmless(each.why)}."
    if latency.commits_per_s is not None:
        kept = f"; {latency.at_slo:,.0f} syncs/s in the seconds that kept the objective" if latency.at_slo else ""
        yield f"One session reaches {latency.commits_per_s:,.0f} commits/s (1/p50){kept}."
    for what, said in (("Tail", latency.tail), ("Bottleneck", latency.bottleneck)):
        if said:
            yield f"{what}: {harmless(said).removesuffix('.')}."


def pictured(verification: Verification, every: bool = False) -> list[tuple[Run, Sequence[Percentile]]]:
    """The runs to be drawn, with their percentiles: that of the log, or every one with a latency."""
    latencies = {each.run: each.percentiles for each in verification.latencies}
    runs = [run for run in verification.runs if run.latency.samples and run.name in latencies]
    first = [run for run in runs if run.purpose == "log"][:1] or runs[:1]
    return [(run, latencies[run.name]) for run in (runs if every else first)]


def samples(verification: Verification, name: str) -> int | None:
    """How many syncs a run has; None when there is no such run."""
    return next((run.latency.samples for run in verification.runs if run.name == name), None)


def commands(verification: Verification, between: str = " ") -> list[tuple[str, str]]:
    """(run, the exact command of fio), to be pasted in the place, with the job file beside it. between: two words."""
    return [(run.name, between.join(map(quoted, run.argv)) + _given(run)) for run in verification.runs]


def _given(run: Run) -> str:
    """The job file, where fio reads it from its standard input."""
    return f" <{JOB_FILE}" if run.argv[-1:] == ("-",) else ""


def next_step(verification: Verification, report: Report | None) -> str:
    """What to do after it: durability first, then what was not seen, then latency."""
    target = quoted(verification.target)
    again = f"zaudit verify {target} --profile {quoted(verification.profile)}"
    if verification.chain.outcome == "CONTRADICTED":
        return f"fix the link that is named, then zaudit check {target}, then {again}"
    if verification.chain.outcome == "INCONCLUSIVE":
        return f"fix what kept it from being seen, then {again}"
    if report and any(each.failed and each.severity in ("critical", "high") for each in report.findings):
        return f"fix what was found, then zaudit check {target}, then {again}"
    if any(each.judgement == "missed" for latency in verification.latencies for each in latency.percentiles):
        return f"remove the bottleneck, then {again} --compare FILE (this result, written with --format json)"
    if verification.length == "quick":
        return f"{again} --standard before it goes live"
    return f"zaudit check {target} every night"


def faults(verification: Verification) -> list[str]:
    """What could not be read during the runs, each once."""
    return list(dict.fromkeys(harmless(fault) for run in verification.runs for fault in run.faults))


def when(seconds: float) -> str:
    """A time as the reports write it; as a bare number where no calendar reaches."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.0f} s since 1970"


# Before and after, as a part of a report: for a terminal and as a page.

COMPARISON_TITLE = "Before and after"
CHANGE_STYLES = {"slower": "bold red", "faster": "green", "within noise": "", "cannot tell": "bold magenta"}
CHANGE_KINDS = {"slower": "bad", "faster": "good", "within noise": "dim", "cannot tell": "open"}
COMPARISON_HEADS = ("run", "", "before", "after", "ratio", "between", "")


def comparison_summary(comparison: Comparison) -> str:
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


def comparison_cells(row: Row) -> tuple[str, ...]:
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


def comparison_notes(comparison: Comparison) -> Iterator[str]:
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


def comparison_lines(comparison: Comparison) -> Iterator[RenderableType]:
    """The section of a report on a terminal."""
    yield Text()
    yield Text.assemble((COMPARISON_TITLE, "bold"), f"   {comparison_summary(comparison)}")
    yield Text(f"{harmless(comparison.before)} -> {harmless(comparison.after)}", "dim")
    if comparison.rows:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(max_width=14, overflow="fold", style="bold")
        for head in COMPARISON_HEADS[1:]:
            table.add_column(justify="right" if head in ("before", "after", "ratio") else "left", no_wrap=True)
        table.add_row(*(Text(head, "dim") for head in COMPARISON_HEADS))
        seen = ""
        for row in comparison.rows:
            *figures, change = comparison_cells(row)
            table.add_row(
                "" if row.run == seen else Text(harmless(row.run)), *figures, Text(change, CHANGE_STYLES[row.change])
            )
            seen = row.run
        yield Padding(table, (0, 0, 0, 2))
    yield from (Padding(Text(note), (0, 0, 0, 2)) for note in comparison_notes(comparison))


# ``--sweep``, as a part of a report: for a terminal, as a page and as data.

SWEEP_TITLE = "What a sync costs"
MARK = f"{TIMES:g} times one sync at the end"


def spread(step: Step) -> str:
    """2.04 s (2 to 2.07); a single trial has no spread."""
    if not step.seconds:
        return "not tried"
    between = f" ({min(step.seconds):.3g} to {max(step.seconds):.3g})" if len(step.seconds) > 1 else ""
    return f"{step.median_s:.3g} s{between}"


def sweep_rows(sweep: Sweep) -> list[Bar]:
    """A bar for each step, in times of "at the end"; none where that was not measured."""
    ends = [step for step in sweep.steps if step.every == 0 and _drawable(step)]
    if len(ends) != 1:
        return []
    unit = ends[0].median_s
    return [
        Bar(named(step.every), step.median_s / unit, min(step.seconds) / unit, max(step.seconds) / unit, spread(step))
        for step in sweep.steps
        if _drawable(step)
    ]


def _drawable(step: Step) -> bool:
    return bool(step.seconds) and all(math.isfinite(each) and each > 0 for each in step.seconds)


def sweep_lines(sweep: Sweep, width: int) -> Iterator[RenderableType]:
    """The section of a report on a terminal."""
    first, *others = find(sweep).says
    yield Text()
    yield Text.assemble((SWEEP_TITLE, "bold"), f"   {first}")
    yield Text(f"{size(sweep.amount)} written with a sync …", "dim")
    drawn = sweep_rows(sweep)
    if drawn:
        yield from (Text(line, no_wrap=True, overflow="crop") for line in charts.bar_lines(drawn, width, TIMES))
        yield Text(f"Bars on a log axis from one sync at the end; ┊ {MARK}, ─ slower trials.", "dim")
    else:
        yield from (Text(f"{named(step.every):>14}  {spread(step)}") for step in sweep.steps)
    yield from (Padding(Text(sentence), (0, 0, 0, 2)) for sentence in others)


def sweep_data(sweep: Sweep) -> dict[str, Any]:
    """What was measured and the knee in it, as JSON data."""
    return {"sweep": plain(sweep), "knee": plain(find(sweep))}


# What a verification found, for a person: was every sync followed to a flush, then how long it took.

STYLES: dict[Kind, str] = {"good": "bold green", "bad": "bold red", "open": "bold magenta"}
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
        *(terminal._blocks(audit.findings(report), width) if report else ()),
        *_pictures(verification, width, verbose),
        *(comparison_lines(comparison) if comparison else ()),
        *(sweep_lines(sweep, width) if sweep else ()),
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
    verdict, why = answer(verification.chain)
    yield Text.assemble((verdict, STYLES[kind(verification.chain, report)]), f"   {why}")
    if left := left_to_believe(verification.chain, report):
        yield Text(left)
    for latency in verification.latencies:
        yield Text.assemble((f"{harmless(latency.run)}: ", "bold"), verdicts(latency))
    if report:
        yield terminal._text((Run_(report.headline, "strong"), "   ", *audit.count_line(report)))


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
            says.append(f"\n{figures(link)}", "dim")
        table.add_row(Text(harmless(link.name), "bold"), Text(STATUS[link.status], STATUSES[link.status]), says)
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
        count = samples(verification, latency.run)
        cells = [_cell(latency, q) for q in asked]
        table.add_row(Text(harmless(latency.run), "bold"), "?" if count is None else f"{count:,}", *cells)
    sets = objectives(latencies)
    for limits, runs in sets.items():
        name = "objective" if len(sets) == 1 else f"objective of {', '.join(map(harmless, runs))}"
        of = dict(limits)
        table.add_row(Text(name, "dim"), "", *(Text(duration(of[q]) if q in of else "", "dim") for q in asked))
    yield Padding(table, (0, 0, 0, 2))
    for latency in latencies:
        for i, sentence in enumerate(sentences(latency)):
            yield _told(harmless(latency.run) if i == 0 else "", sentence)


def _cell(latency: Latency, q: float) -> Text:
    found: Percentile | None = next((each for each in latency.percentiles if each.q == q), None)
    if found is None:
        return Text("")
    text = Text(shown(found))
    if found.limit_ns is not None:
        text.append(f" {JUDGEMENT[found.judgement]}", JUDGEMENTS[found.judgement])
    return text


def _told(name: str, sentence: str) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=MARGIN, overflow="fold", style="bold")
    table.add_column(overflow="fold")
    table.add_row(Text(name), Text(sentence))
    return Padding(table, (0, 0, 0, 2))


def _pictures(verification: Verification, width: int, verbose: bool) -> Iterator[RenderableType]:
    for run, percentiles in pictured(verification, verbose):
        yield from drawn(f"When syncs were slow ({harmless(run.name)})", charts.heat_map_lines(run, width))
        curve = charts.percentile_curve(run.latency, percentiles, width)
        yield from drawn(f"How many were slow ({harmless(run.name)})", curve)


def drawn(name: str, picture: Picture | None) -> Iterator[RenderableType]:
    """A picture below its name, and how to read it."""
    if picture is not None:
        yield from title(name)
        yield from (Text(line, no_wrap=True, overflow="crop") for line in picture.lines)
        yield Padding(Text(picture.says, "dim"), (0, 0, 0, charts.LABEL + 2))


def _commands(verification: Verification) -> Iterator[RenderableType]:
    yield from title("What was run")
    yield terminal._finding_rows([(harmless(name), Text(command)) for name, command in commands(verification)])


def _end(verification: Verification, report: Report | None) -> Iterator[RenderableType]:
    yield Text()
    rows: list[tuple[str, RenderableType]] = [
        ("Proves", Text(harmless(verification.proves))),
        ("Does not", Text(harmless(verification.does_not))),
        ("Not read", Text("; ".join(faults(verification)))),
    ]
    yield Padding(_plain(rows), 0)
    for what, rules in finding_words.left_out(report) if report else ():
        yield Text(f"{what}: {rules}.")
    yield Text(CANNOT_EXCLUDE, "dim")
    step = next_step(verification, report)
    seen = f"(seen {when(verification.taken)}{f', exit code {report.exit_code}' if report else ''})"
    yield Text(f"Next: {harmless(step)}   {seen}")


def _plain(rows: Sequence[tuple[str, RenderableType]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=MARGIN - 2, no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for label, content in rows:
        if isinstance(content, Text) and content.plain:
            table.add_row(label, content)
    return table


# A verification for a program: ``verify_schema.json``. What this writes, ``--compare`` reads.


def render_json(
    verification: Verification,
    report: Report | None = None,
    *,
    comparison: Comparison | None = None,
    sweep: Sweep | None = None,
    zaudit: str = "",
    verbose: bool = False,
) -> str:
    """JSON text that ends with a newline. The rest as for a terminal. verbose: the audit with its passes."""
    found = document(verification)
    found["zaudit"] = report.zaudit if report else zaudit
    if report is not None:
        found["report"] = audit_json.document(report, verbose)
    if sweep is not None:
        found["sweep"] = sweep_data(sweep)
    if comparison is not None:
        found["comparison"] = plain(comparison, valid_unicode)
    # one line: with one a bucket, two minutes of latencies would have ten thousand
    return json.dumps(found, ensure_ascii=True, allow_nan=False) + "\n"
