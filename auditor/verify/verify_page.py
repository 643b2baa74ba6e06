"""The page of a verification: was every sync followed to a flush, then how long it took; as JSON for programs, too."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Unpack

from auditor.codec import plain
from auditor.report import audit_page, html, phrases, report_json, terminal
from auditor.report import document as doc
from auditor.report.html import Element, element, joined
from auditor.report.model import Report
from auditor.report.phrases import listed
from auditor.text import duration, quoted, size, utc, valid_unicode
from auditor.verify import charts, result
from auditor.verify.comparison import Comparison, Step, Sweep, document, find, named
from auditor.verify.result import Latency, Percentile, Verification, percentile_name

TONES: dict[result.Status, doc.Tone] = {"accounts": "good", "contradicts": "bad", "unseen": "open"}
SIGNS: dict[doc.Tone, str] = {"good": "✓", "bad": "✗", "open": "?"}
JUDGED: dict[str, doc.Look] = {"met": "good", "missed": "bad", "not judged": "open"}
CHANGES: dict[str, doc.Look] = {"slower": "bad", "faster": "good", "within noise": "dim", "cannot tell": "open"}
SCALE = tuple("some" if share == 0 else f"over {share * 100:g} %" for share in charts.LEVELS)

STATUS = {"accounts": "agrees", "contradicts": "CONTRADICTS", "unseen": "not seen"}
JUDGEMENT = {"met": "met", "missed": "MISSED", "not judged": "?"}
ABOVE = ("dataset", "system calls", "fio", "ZIL")
TRACED = "every sync was followed to a flush that completed"


def answer(chain: result.Chain) -> tuple[str, str]:
    if chain.outcome == "TRACED":
        return "TRACED", TRACED
    if chain.outcome == "CONTRADICTED":
        broken = [link for link in chain.links if link.status == "contradicts"]
        if not broken:
            return "CONTRADICTED", "; ".join(chain.reasons) or "no link is named"
        # what is lost above is missing below as well; disks lie side by side
        named = broken[:1] if broken[0].name in ABOVE else broken
        return f"CONTRADICTED at {listed([link.name for link in named])}", broken[0].text
    return "INCONCLUSIVE", f"because {'; '.join(chain.reasons) or 'a link was not seen'}"


def left_to_believe(chain: result.Chain, report: Report | None) -> str:
    """What a power cut still relies on where every sync was followed. Empty where it was not, or a loss is shown."""
    if chain.outcome != "TRACED" or report is None:
        return ""
    power = phrases.of_a_cut(report.columns)
    match power.outcome:
        case "word":
            return f"What is left to rely on at a power cut: {phrases.parties(power)}."
        case "unknown":
            return f"What else a power cut would take is not known: {listed(power.rules)}."
        case "kept":
            return "At a power cut nothing else is relied on, in all that was seen."
    return ""


def kind(chain: result.Chain, report: Report | None) -> doc.Tone:
    """The colour of the answer: the worse one of the chain and the audit."""
    standing = report.standing if report else "kept"
    if chain.outcome == "CONTRADICTED" or standing in ("damaged", "lost", "corrupted", "stalled"):
        return "bad"
    return "good" if chain.outcome == "TRACED" and standing == "kept" else "open"


def shown(percentile: Percentile) -> str:
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
        return f"not judged: {latency.why_not}"
    words = []
    for each in latency.percentiles:
        if each.limit_ns is not None:
            value = "" if each.ns is None else f" {duration(each.ns)}"
            word = "MISSED" if each.judgement == "missed" else each.judgement
            words.append(f"{percentile_name(each.q)}{value} of {duration(each.limit_ns)} {word}")
    return ", ".join(words) or "no objective"


def sentences(latency: Latency) -> Iterator[str]:
    """What a run says next to its percentiles, most important first."""
    if latency.why_not:
        yield f"Not judged: {latency.why_not}."
    for each in latency.percentiles:
        if each.judgement == "not judged" and each.limit_ns is not None and each.why and each.why != latency.why_not:
            yield f"{percentile_name(each.q)} is not judged: {each.why}."
    if latency.commits_per_s is not None:
        kept = f"; {latency.at_slo:,.0f} syncs/s in the seconds that kept the objective" if latency.at_slo else ""
        yield f"One session reaches {latency.commits_per_s:,.0f} commits/s (1/p50){kept}."
    for what, said in (("Tail", latency.tail), ("Bottleneck", latency.bottleneck)):
        if said:
            yield f"{what}: {said.removesuffix('.')}."


def pictured(verification: Verification, every: bool = False) -> list[tuple[result.Run, Sequence[Percentile]]]:
    """The runs to be drawn, with their percentiles: that of the log, or every one with a latency."""
    latencies = {each.run: each.percentiles for each in verification.latencies}
    runs = [run for run in verification.runs if run.latency.samples and run.name in latencies]
    first = [run for run in runs if run.purpose == "log"][:1] or runs[:1]
    return [(run, latencies[run.name]) for run in (runs if every else first)]


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
    return list(dict.fromkeys(fault for run in verification.runs for fault in run.faults))


# -- the page --------------------------------------------------------------------------------------------------------------


def write(
    format_: str,
    verification: Verification,
    report: Report | None = None,
    *,
    comparison: Comparison | None = None,
    sweep: Sweep | None = None,
    zaudit: str = "",
    verbose: bool = False,
    **screen: Unpack[terminal.Screen],
) -> str:
    """json (``zaudit schema verify``, which ``--compare`` reads), html, or else for a terminal. verbose: with pictures of
    every run, and the commands of fio; in JSON the audit with its passes."""
    if format_ != "json":
        page = built(verification, report, comparison, sweep, zaudit, whole=verbose or format_ == "html")
        return html.write(page) if format_ == "html" else terminal.write(page, **screen)
    found = document(verification)
    found["zaudit"] = report.zaudit if report else zaudit
    if report is not None:
        found["report"] = report_json.document(report, verbose)
    if sweep is not None:
        found["sweep"] = {"sweep": plain(sweep), "knee": plain(find(sweep))}
    if comparison is not None:
        found["comparison"] = plain(comparison, valid_unicode)
    # one line: with one a bucket, two minutes of latencies would have ten thousand
    return json.dumps(found, ensure_ascii=True, allow_nan=False) + "\n"


def built(
    verification: Verification,
    report: Report | None,
    comparison: Comparison | None,
    sweep: Sweep | None,
    zaudit: str,
    *,
    whole: bool,
) -> doc.Document:
    """report: the audit whose findings are part of it. zaudit: the version, where there is no audit."""
    host = f" on {report.hostname}" if report else ""
    facts = (
        f"zaudit {report.zaudit if report else zaudit}".rstrip(),
        f"{verification.target}{host}",
        *([f"OpenZFS {report.release}"] if report else []),
        f"verify {verification.profile} {verification.length}",
        verification.fio,
    )
    code = f", exit code {report.exit_code}" if report else ""
    blocks: tuple[doc.Block, ...] = (
        _verdict(verification, report),
        doc.section("The chain, from the application down", [_chain(verification.chain)]),
        doc.section("How long a sync took", _latency(verification)),
        doc.section("Findings of zaudit check", _findings(report) if report else ()),
        *_pictures(verification, whole),
        *([compared(comparison)] if comparison else []),
        *([swept(sweep)] if sweep else []),
        doc.section("What was run", _commands(verification) if whole else ()),
        doc.section("What this shows, and what it does not", _limits(verification)),
        doc.section("", [doc.Say(f"Next: {next_step(verification, report)}   (seen {utc(verification.taken)}{code})")]),
    )
    return doc.Document(f"zaudit verify: {verification.target}{host}", facts, blocks)


def _verdict(verification: Verification, report: Report | None) -> doc.Verdict:
    verdict, why = answer(verification.chain)
    blocks = [doc.Say(why, "strong")]
    if left := left_to_believe(verification.chain, report):
        blocks.append(doc.Say(left))
    blocks += [doc.Say((doc.Run(f"{each.run}: ", "strong"), verdicts(each))) for each in verification.latencies]
    if report:
        blocks.append(doc.Say((doc.Run(report.headline, "strong"), "   ", *audit_page.count_line(report))))
    return doc.Verdict(kind(verification.chain, report), verdict, tuple(blocks))


def _chain(chain: result.Chain) -> doc.Chain:
    """The disks, which lie side by side in the pool, side by side."""
    ends = (*ABOVE, result.KERNEL_LOG)
    links = [
        (each, TONES[each.status]) for each in sorted(chain.links, key=lambda each: each.name == result.KERNEL_LOG)
    ]
    return doc.Chain(
        tuple(
            doc.Link(each.name, tone, SIGNS[tone], STATUS[each.status], each.text, each.figures, each.name not in ends)
            for each, tone in links
        )
    )


def _latency(verification: Verification) -> Iterator[doc.Block]:
    latencies = verification.latencies
    if not latencies:
        return
    asked = sorted({each.q for latency in latencies for each in latency.percentiles})
    rows: list[Sequence[doc.Line]] = []
    for latency in latencies:
        count = next((run.latency.samples for run in verification.runs if run.name == latency.run), None)
        cells = (_cell(latency, q) for q in asked)
        rows.append((doc.Run(latency.run, "strong"), "?" if count is None else f"{count:,}", *cells))
    sets = objectives(latencies)
    for limits, runs in sets.items():
        name = "objective" if len(sets) == 1 else f"objective of {', '.join(runs)}"
        of = dict(limits)
        rows.append((doc.Run(name, "dim"), "", *(doc.Run(duration(of[q]) if q in of else "", "dim") for q in asked)))
    yield doc.table((doc.Column(most=16), doc.Column("samples", number=True), *map(percentile_name, asked)), rows)
    for latency in latencies:
        yield doc.labelled(
            (doc.Run("" if i else latency.run, "strong"), each) for i, each in enumerate(sentences(latency))
        )


def _cell(latency: Latency, q: float) -> doc.Line:
    found = next((each for each in latency.percentiles if each.q == q), None)
    if found is None:
        return ""
    if found.limit_ns is None:
        return shown(found)
    return shown(found), " ", doc.Run(JUDGEMENT[found.judgement], JUDGED[found.judgement])


def _findings(report: Report) -> Iterator[doc.Block]:
    yield from audit_page.findings(report)
    covered = report.coverage
    yield doc.Say(f"{covered.decided} of {covered.rules} rules decided; {covered.undecided} unknown.", "dim")
    yield from (doc.Say(f"{what}: {rules}.", "dim") for what, rules in phrases.left_out(report))


def _pictures(verification: Verification, whole: bool) -> Iterator[doc.Section]:
    runs = pictured(verification, whole)
    for run, percentiles in runs:
        yield doc.section(f"When syncs were slow ({run.name})", [heat(run, percentiles, "syncs")])
    drawn = [charts.Curve(run.name, run.latency, percentiles) for run, percentiles in runs]
    yield doc.section(
        f"How many were slow ({', '.join(run.name for run, _ in runs)})" if runs else "", [curve(drawn, "syncs")]
    )


def heat(run: result.Run, percentiles: Sequence[Percentile], what: str) -> doc.Picture:
    """When they were slow, with what the colours mean. what: syncs, commits."""

    def drawn() -> Element | None:
        picture = charts.latency_map(run, percentiles)
        synced = any(each.sync_s > 0 for each in run.txgs)
        keys = [element("span", element("i", class_=f"s{i}"), share) for i, share in enumerate(SCALE)]
        if synced:
            keys.append(element("span", element("i", class_="t"), "a transaction group was synced"))
        scale = element("div", element("span", f"share of the {what} of that moment:"), *keys, class_="scale")
        return joined((picture, scale)) if picture else None

    return doc.Picture(partial(charts.heat_map_lines, run), drawn)


def curve(curves: Sequence[charts.Curve], what: str, rows: int = 14) -> doc.Picture:
    """How many were slow, with how to read it. what: syncs, commits."""
    says = f"The latency that a share of the {what} did not exceed; dotted where too few samples lie beyond it to be judged."

    def drawn() -> Element | None:
        picture = charts.percentile_curves(curves)
        return joined((picture, element("p", says, class_="dim small"))) if picture else None

    def lines(width: int) -> doc.Drawing | None:
        return charts.percentile_curve(curves[0].latency, curves[0].percentiles, width, rows) if curves else None

    return doc.Picture(lines, drawn)


def _commands(verification: Verification) -> Iterator[doc.Block]:
    yield doc.Say(f"Written to {verification.place}", "dim")
    if verification.job_file:
        yield doc.Code(tuple(verification.job_file.splitlines()), f"job file of {verification.profile}")
    for run in verification.runs:  # fio reads the job file from its standard input
        words = tuple(map(quoted, run.argv))
        words = (*words[:-1], f"{words[-1]} <{result.JOB_FILE}") if words[-1:] == ("-",) else words
        yield doc.Code(words, run.name, continued=True)


def _limits(verification: Verification) -> Iterator[doc.Block]:
    yield doc.labelled(
        (
            ("Proves", verification.proves),
            ("Does not", verification.does_not),
            ("Not read", "; ".join(faults(verification))),
            ("Never", result.CANNOT_EXCLUDE),
        )
    )


# -- before and after ------------------------------------------------------------------------------------------------------


def comparison_summary(comparison: Comparison) -> str:
    """The answer: what became slower, what faster, or that it cannot be told."""
    if comparison.differs:
        return "Not compared: they answer different questions."
    if not comparison.rows:
        return "Unknown: no run has syncs in both."
    said = []
    for change in ("slower", "faster", "cannot tell"):
        names = [f"{row.run} {percentile_name(row.q)}" for row in comparison.rows if row.change == change]
        if names:
            said.append(f"{change}: {', '.join(names)}")
    noise = sum(row.change == "within noise" for row in comparison.rows)
    if noise:
        said.append(f"{noise} of {len(comparison.rows)} within noise")
    whole = "; ".join(said)
    return f"{whole[:1].upper()}{whole[1:]}."


def comparison_notes(comparison: Comparison) -> Iterator[str]:
    """What differs, why something cannot be told (each reason once), and what else to know."""
    yield from (f"Differs: {each}." for each in comparison.differs)
    reasons: dict[str, list[str]] = {}
    for row in comparison.rows:
        if row.why:
            reasons.setdefault(row.why, []).append(f"{row.run} {percentile_name(row.q)}")
    yield from (f"Unknown: {', '.join(which)}: {why}." for why, which in reasons.items())
    yield from comparison.notes
    if any(row.low is not None for row in comparison.rows):
        yield "The ratios lie between these figures, all of them together with 95 % confidence."


def compared(comparison: Comparison) -> doc.Section:
    heads, titles = ("before", "after", "ratio"), ("run", "", "before", "after", "ratio", "between", "")
    columns = [doc.Column(head, number=head in heads, most=14 if head == "run" else None) for head in titles]
    rows, last = list[Sequence[doc.Line]](), None
    for row in comparison.rows:
        between = ""
        if row.low is not None:
            between = f"{row.low:.2f} to {row.high:.2f}" if row.high is not None else f"{row.low:.2f} or more"
        took = ("-" if ns is None else duration(ns) for ns in (row.before_ns, row.after_ns))
        figures = (percentile_name(row.q), *took, "" if row.ratio is None else f"{row.ratio:.2f}", between)
        rows.append(
            (doc.Run("" if row.run == last else row.run, "strong"), *figures, doc.Run(row.change, CHANGES[row.change]))
        )
        last = row.run
    return doc.Section(
        "Before and after",
        (
            doc.Say(comparison_summary(comparison), "strong"),
            doc.Say(f"{comparison.before} -> {comparison.after}", "dim"),
            doc.table(columns, rows),
            *(doc.Say(note) for note in comparison_notes(comparison)),
        ),
    )


# -- ``--sweep`` -----------------------------------------------------------------------------------------------------------


DOUBLING, LONGEST = 4, 40  # cells of a bar


def spread(step: Step) -> str:
    """2.04 s (2 to 2.07); a single trial has no spread."""
    if not step.seconds:
        return "not tried"
    between = f" ({min(step.seconds):.3g} to {max(step.seconds):.3g})" if len(step.seconds) > 1 else ""
    return f"{step.median_s:.3g} s{between}"


def _bar(step: Step, end: float) -> tuple[doc.Line, doc.Line]:
    """How many times the time of one sync at the end, by the medians, and as a bar on a log axis."""
    times = step.median_s / end if step.seconds and end > 0 else 0.0
    if not 0 < times < math.inf:
        return "", ""
    return f"{times:.3g}", doc.Run("█" * min(round(DOUBLING * math.log2(max(times, 1))), LONGEST), "low")


def swept(sweep: Sweep) -> doc.Section:
    first, *others = find(sweep).says
    end = next((step.median_s for step in sweep.steps if step.every == 0 and step.seconds), 0.0)
    columns = ("", "", doc.Column("times", number=True), doc.Column("", aside=True))
    rows = ((named(step.every), spread(step), *_bar(step, end)) for step in sweep.steps)
    return doc.Section(
        "What a sync costs",
        (
            doc.Say(first, "strong"),
            doc.Say(f"{size(sweep.amount)} written with a sync …", "dim"),
            doc.table(columns, rows),
            doc.Say("times: that of one sync at the end, by the medians, with bars on a log axis.", "dim"),
            *map(doc.Say, others),
        ),
    )
