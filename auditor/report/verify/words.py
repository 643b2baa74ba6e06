"""What the reports of a verification say alike, for a terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal

from auditor.report import event_words
from auditor.report.finding_words import listed
from auditor.report.model import Report
from auditor.text import harmless, quoted
from auditor.units import duration
from auditor.verify.model import Chain, Latency, Link, Percentile, Slo, Verification
from auditor.verify.result import JOB_FILE, Run

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


def percentile_name(q: float) -> str:
    """p99.9."""
    return Slo(q, 0).name


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
