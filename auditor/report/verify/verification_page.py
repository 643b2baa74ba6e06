"""A verification as a page."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from auditor.report import audit, finding_words
from auditor.report import html as html_
from auditor.report.model import Report
from auditor.report.page import escaped, page, paragraph, section
from auditor.report.verify import charts
from auditor.report.verify import verification_text as words
from auditor.units import duration, size
from auditor.verify.comparison import TIMES, Comparison, Sweep, find, named
from auditor.verify.result import (
    CANNOT_EXCLUDE,
    KERNEL_LOG,
    Chain,
    Latency,
    Link,
    Percentile,
    Run,
    Verification,
    percentile_name,
)

STATUSES = {"accounts": ("good", "✓"), "contradicts": ("bad", "✗"), "unseen": ("open", "?")}
JUDGEMENTS = {"met": "good", "missed": "bad", "not judged": "open"}
SCALE = "".join(
    f'<span><i class="s{i}"></i>{"some" if share == 0 else f"over {share * 100:g} %"}</span>'
    for i, share in enumerate(charts.LEVELS)
)


def render(
    verification: Verification,
    report: Report | None = None,
    *,
    comparison: Comparison | None = None,
    sweep: Sweep | None = None,
    zaudit: str = "",
) -> str:
    """The whole page; all as for a terminal."""
    title = f"zaudit verify: {verification.target}{f' on {report.hostname}' if report else ''}"
    parts = [
        *_start(verification, report, title),
        section("The chain, from the application down", _chain(verification.chain)),
        section("How long a sync took", _latency(verification)),
        section("Findings", _findings(report), "long"),
        *_pictures(verification),
        comparison_section(comparison) if comparison else "",
        sweep_section(sweep) if sweep else "",
        section("What was run", _commands(verification), "long"),
        *_end(verification, report, zaudit),
    ]
    return page(title, (part for part in parts if part))


def _start(verification: Verification, report: Report | None, title: str) -> Iterator[str]:
    facts = (
        words.when(verification.taken),
        *([f"OpenZFS {report.release}"] if report else []),
        f"profile {verification.profile}, {verification.length}",
        verification.fio,
    )
    yield f"<h1>{escaped(title)}</h1>"
    yield paragraph(" · ".join(facts), "dim small")
    kind = words.kind(verification.chain, report)
    verdict, why = words.answer(verification.chain)
    lines = "".join(
        f"<p><b>{escaped(latency.run)}</b>: {escaped(words.verdicts(latency))}</p>"
        for latency in verification.latencies
    )
    audit = ""
    if report:
        counts = " · ".join(f"{count} {word}" for word, count in report.counts)
        audit = f"<p><b>{escaped(report.headline)}</b> {escaped(counts)}</p>"
    believed = paragraph(words.left_to_believe(verification.chain, report))
    yield (
        f'<div class="verdict {kind}"><div class="word">{escaped(verdict)}</div>'
        f"<p><b>{escaped(why)}</b></p>{believed}{lines}{audit}</div>"
    )


# -- chain -----------------------------------------------------------------------------------------------------------


def _chain(chain: Chain) -> Iterator[str]:
    """Links one below the other; the disks, which lie side by side in the pool, side by side."""
    above = [link for link in chain.links if link.name in words.ABOVE]
    below = [link for link in chain.links if link.name == KERNEL_LOG]
    disks = [link for link in chain.links if link not in above and link not in below]
    items = [f'<li class="link">{_link(link)}</li>' for link in above]
    if disks:
        legs = "".join(f'<div class="link">{_link(link)}</div>' for link in disks)
        items.append(f'<li class="legs">{legs}</li>')
    items += [f'<li class="link">{_link(link)}</li>' for link in below]
    yield f'<ol class="chain">{"".join(items)}</ol>'


def _link(link: Link) -> str:
    kind, sign = STATUSES[link.status]
    numbers = "".join(f"<div><b>{number:,}</b><span>{escaped(what)}</span></div>" for what, number in link.figures)
    return (
        f'<span class="sign {kind}">{sign}</span><span class="name">{escaped(link.name)}</span>'
        f'<span class="badge {kind}">{words.STATUS[link.status]}</span><div>{escaped(link.text)}</div>'
        + (f'<div class="figures">{numbers}</div>' if numbers else "")
    )


# -- latency ---------------------------------------------------------------------------------------------------------


def _latency(verification: Verification) -> Iterator[str]:
    latencies = verification.latencies
    if not latencies:
        return
    asked = sorted({each.q for latency in latencies for each in latency.percentiles})
    names = "".join(f"<th>{percentile_name(q)}</th>" for q in asked)
    rows = []
    for latency in latencies:
        count = words.samples(verification, latency.run)
        number = "?" if count is None else f"{count:,}"
        cells = "".join(f"<td>{_cell(latency, q)}</td>" for q in asked)
        rows.append(f'<tr><td><b>{escaped(latency.run)}</b></td><td class="number">{number}</td>{cells}</tr>')
    head = f'<tr><th>run</th><th class="number">syncs</th>{names}</tr>'
    yield f'<div class="table" tabindex="0"><table>{head}{"".join(rows)}</table></div>'
    for latency in latencies:
        told = "".join(f"<li>{escaped(sentence)}</li>" for sentence in words.sentences(latency))
        yield f"<h3>{escaped(latency.run)}</h3><ul>{told}</ul>" if told else ""


def _cell(latency: Latency, q: float) -> str:
    found = next((each for each in latency.percentiles if each.q == q), None)
    if found is None:
        return ""
    value = f"<b>{words.shown(found)}</b>"
    if found.limit_ns is None:
        return value
    word = "MISSED" if found.judgement == "missed" else found.judgement
    kind = JUDGEMENTS[found.judgement]
    return f'{value} <span class="badge {kind}">{word}</span><br><span class="dim small">of {duration(found.limit_ns)}</span>'


# -- pictures --------------------------------------------------------------------------------------------------------


def _pictures(verification: Verification) -> Iterator[str]:
    runs = words.pictured(verification, every=True)
    yield from (section(f"When syncs were slow ({run.name})", heat(run, each, "syncs")) for run, each in runs)
    curves = [charts.Curve(run.name, run.latency, percentiles) for run, percentiles in runs]
    yield section("How many were slow", curve(curves, "syncs"))


def heat(run: Run, percentiles: Sequence[Percentile], what: str) -> Iterator[str]:
    """When they were slow, with what the colours mean. what: syncs, commits."""
    if drawn := charts.latency_map(run, percentiles):
        synced = (
            '<span><i class="t"></i>a transaction group was synced</span>'
            if any(each.sync_s > 0 for each in run.txgs)
            else ""
        )
        yield drawn
        yield f'<div class="scale"><span>share of the {what} of that moment:</span>{SCALE}{synced}</div>'


def curve(curves: Sequence[charts.Curve], what: str) -> Iterator[str]:
    """How many were slow, with how to read it. what: syncs, commits."""
    if drawn := charts.percentile_curves(curves):
        yield drawn
        yield paragraph(
            f"The latency that a share of the {what} did not exceed; dotted where too few samples lie beyond it to be judged.",
            "dim small",
        )


# -- findings --------------------------------------------------------------------------------------------------------


def _findings(report: Report | None) -> Iterator[str]:
    if report is None:
        return
    if not report.findings:
        yield paragraph(report.headline)
    if unasked := list(dict.fromkeys(each.rule.id for each in report.findings if finding_words.unasked(each))):
        yield paragraph(f"{finding_words.recorded_by(report)} Undecided for that: {', '.join(unasked)}.")
    for finding in report.findings:
        if not finding_words.unasked(finding):
            yield html_._block(audit.failed(finding) if finding.failed else audit._undecided([finding], report)).html
    covered = report.coverage
    yield paragraph(f"{covered.decided} of {covered.rules} rules decided; {covered.undecided} unknown.", "dim small")
    for what, rules in finding_words.left_out(report):
        yield paragraph(f"{what}: {rules}.", "dim small")


# -- the end ---------------------------------------------------------------------------------------------------------


def _commands(verification: Verification) -> Iterator[str]:
    yield paragraph(f"Written to {verification.place}", "dim small")
    if verification.job_file:
        yield f"<h3>job file of {escaped(verification.profile)}</h3><pre>{_lines(verification.job_file)}</pre>"
    for name, command in words.commands(verification, between=" \\\n    "):  # an option a line, and still to be pasted
        yield f"<h3>{escaped(name)}</h3><pre>{html.escape(command)}</pre>"


def _lines(text: str) -> str:
    """Escaped, with the ends of its lines."""
    return "\n".join(escaped(line) for line in text.splitlines())


def _end(verification: Verification, report: Report | None, zaudit: str) -> Iterator[str]:
    rows = (
        ("Proves", verification.proves),
        ("Does not", verification.does_not),
        ("Not read", "; ".join(words.faults(verification))),
        ("Never", CANNOT_EXCLUDE),
    )
    told = "".join(f"<dt>{label}</dt><dd>{escaped(text)}</dd>" for label, text in rows if text)
    yield section("What this shows, and what it does not", [f"<dl>{told}</dl>"])
    step = words.next_step(verification, report)
    yield f"<p><b>Next:</b> {escaped(step)}</p>"
    version = report.zaudit if report else zaudit
    code = f", exit code {report.exit_code}" if report else ""
    told = f"zaudit {version} · {verification.fio} · seen {words.when(verification.taken)}{code}"
    yield f"<footer>{escaped(told)}</footer>"


# -- next to each other --------------------------------------------------------------------------------------------------


def comparison_section(comparison: Comparison) -> str:
    """The section of a page."""
    rows = []
    for row in comparison.rows:
        *figures, change = words.comparison_cells(row)
        told = "".join(f"<td>{escaped(figure)}</td>" for figure in figures)
        badge = f'<span class="badge {words.CHANGE_KINDS[row.change]}">{change}</span>'
        rows.append(f"<tr><td><b>{escaped(row.run)}</b></td>{told}<td>{badge}</td></tr>")
    heads = "".join(f"<th>{head}</th>" for head in words.COMPARISON_HEADS)
    table = f'<div class="table" tabindex="0"><table><tr>{heads}</tr>{"".join(rows)}</table></div>' if rows else ""
    said = (paragraph(note, "small") for note in words.comparison_notes(comparison))
    names = paragraph(f"{comparison.before} -> {comparison.after}", "dim small")
    return section(
        words.COMPARISON_TITLE, [f"<p><b>{escaped(words.comparison_summary(comparison))}</b></p>", names, table, *said]
    )


def sweep_section(sweep: Sweep) -> str:
    """The section of a page."""
    first, *others = find(sweep).says
    drawn = words.sweep_rows(sweep)
    if drawn:
        picture = charts.bars(drawn, TIMES, words.MARK)
    else:
        told = "".join(f"<tr><td>{named(step.every)}</td><td>{words.spread(step)}</td></tr>" for step in sweep.steps)
        picture = f"<table>{told}</table>"
    says = "Bars on a log axis from one sync at the end, by the medians; the line is from the fastest to the slowest trial."
    return section(
        words.SWEEP_TITLE,
        [
            f"<p><b>{escaped(first)}</b></p>",
            paragraph(f"{size(sweep.amount)} written with a sync …", "dim small"),
            picture,
            paragraph(says, "dim small") if drawn else "",
            *(paragraph(sentence) for sentence in others),
        ],
    )
