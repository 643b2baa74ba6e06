"""A diagnosis as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.diagnose.diagnosis import Diagnosis, View
from auditor.report.diagnose import diagnosis_text as words
from auditor.report.model import Report
from auditor.report.page import escaped, page, paragraph, section
from auditor.report.verify import charts
from auditor.report.verify.verification_page import curve, heat
from auditor.text import duration


def render(found: Diagnosis, report: Report | None = None, *, zaudit: str = "") -> str:
    """The whole page. report: the audit of the same pool."""
    title = f"zaudit diagnose: {found.target}{f' on {report.hostname}' if report else ''}"
    parts = [
        f"<h1>{escaped(title)}</h1>",
        _verdict(found),
        section("Where the time of a commit goes", _shares(found)),
        section("When commits were slow", _heat(found)),
        section("How many were slow", _curve(found)),
        section("Who commits", _committers(found)),
        section(words.sampled(found), _waiters(found)),
        section("Datasets", _datasets(found)),
        section("Devices", _devices(found)),
        section("Transaction groups", [paragraph(words.groups(found))]),
        section(words.DATABASE_TITLE, _database(found.database)),
        section("What stands out", _causes(found), "long"),
        section("What zaudit check says of the same datasets", _beside(found, report)),
        section("Seen by", _commands(found), "long"),
        f"<p><b>Next:</b> {escaped(words.next_step(found))}</p>",
        f"<footer>{escaped(f'zaudit {zaudit} · {found.seconds:.0f} s')}</footer>",
    ]
    return page(title, (part for part in parts if part))


def _commands(found: Diagnosis) -> Iterator[str]:
    yield from (f"<pre>{escaped(each)}</pre>" for each in found.commands)
    yield paragraph(words.SINCE, "dim small")


def _verdict(found: Diagnosis) -> str:
    told = "".join(paragraph(f"Not seen: {each}.") for each in words.unseen(found))
    return (
        f'<div class="verdict {words.KINDS[found.outcome]}"><div class="word">{escaped(found.outcome)}</div>'
        f"<p><b>{escaped(found.answer)}.</b></p>{told}</div>{''.join(map(paragraph, words.own(found)))}"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The first column holds words, the others numbers; empty without rows."""
    if rows:
        names = "".join(f"<th>{escaped(each)}</th>" for each in head)
        cells = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
        yield f'<div class="table" tabindex="0"><table><tr>{names}</tr>{cells}</table></div>'


def _shares(found: Diagnosis) -> Iterator[str]:
    yield from _table(
        ("part", "mean", "share"), [(each.what, duration(each.ns), f"{each.part:.0%}") for each in found.shares]
    )
    if found.overlap > 0:
        yield paragraph(
            f"The parts add up to {found.overlap:.0%} more than the whole, and are scaled down alike.", "dim small"
        )


def _heat(found: Diagnosis) -> Iterator[str]:
    run = words.pictured(found)
    yield from heat(run, (), "commits") if run else ()


def _curve(found: Diagnosis) -> Iterator[str]:
    if found.latency.samples:
        yield charts.histogram(found.latency, "commits")
        yield from curve([charts.Curve(found.target, found.latency, ())], "commits")
        yield from _table(("", "latency"), words.percentiles(found.latency))
        yield paragraph(f"{found.latency.samples:,} commits. {words.BY_POWERS}", "dim small")


def _committers(found: Diagnosis) -> Iterator[str]:
    rows = [
        (
            who,
            f"{each.commits:,}",
            duration(each.mean_ns),
            f"{each.part:.0%}",
            *([words.by(each)] if found.calls else []),
            each.dataset or "?",
            each.within,
        )
        for who, each in words.committers(found)
    ]
    how = ("by",) if found.calls else ()
    yield from _table(("thread", "commits", "mean", "time", *how, "to", "within"), rows)
    yield from (paragraph(each, "dim small") for each in words.how_called(found))


def _waiters(found: Diagnosis) -> Iterator[str]:
    rows = [
        (words.who(each), f"{each.samples:,}", f"{each.part:.0%}", each.within)
        for each in (found.stacked.waiters if found.stacked else ())
    ]
    yield from _table(("thread", "samples", "of the waiting", "within"), rows)


def _datasets(found: Diagnosis) -> Iterator[str]:
    rows = [
        (each.dataset, "?" if each.commits is None else f"{each.commits:,}", each.sync or "?")
        for each in found.datasets
    ]
    yield from _table(("dataset", "commits", "sync"), rows)


def _devices(found: Diagnosis) -> Iterator[str]:
    rows = [
        (
            each.device, f"{each.kind} {each.top}", f"{each.writes:,}", words.took(each.write_ns),
            "?" if each.flushes is None else f"{each.flushes:,}", words.took(each.flush_ns),
            words.took(each.block_ns), f"{each.busy:.0%}",
        )
        for each in found.devices
    ]  # fmt: skip
    yield from _table(("device", "vdev", "writes", "mean", "flushes", "mean", "a log block", "busy"), rows)


def _causes(found: Diagnosis) -> Iterator[str]:
    for each in found.causes:
        seen = "".join(
            f"<dt>Seen</dt><dd>{escaped(piece.text)}{f' <code>{escaped(piece.command)}</code>' if piece.command else ''}</dd>"
            for piece in each.evidence
        )
        rule = f"<dt>Rule</dt><dd>{escaped(each.rule)}</dd>" if each.rule else ""
        yield (
            f'<div class="finding bad"><b>{escaped(each.text)}.</b>'
            f"<dl>{seen}<dt>Fix</dt><dd>{escaped(each.fix)}</dd>{rule}</dl></div>"
        )


def _beside(found: Diagnosis, report: Report | None) -> Iterator[str]:
    told = [(each.severity.upper(), each.rule.id, each.rule.title) for each in words.beside(found, report)]
    yield from _table(("severity", "rule", ""), told)


def _database(view: View | None) -> Iterator[str]:
    """Nothing without a view."""
    if view is None:
        return
    yield paragraph(f"{view.first}." if view.first else "")
    yield from _table(("", "counted", "mean", ""), list(words.database_counts(view)))
    yield from _table((words.database_active(view), "mean", "most"), words.database_waits(view))
    yield paragraph(", ".join(view.settings), "dim small")
    yield from (paragraph(f"Not seen: {each}.") for each in view.unseen)
    yield from (f"<pre>{escaped(each)}</pre>" for each in view.commands)
