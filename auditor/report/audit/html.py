"""The report as one page: what each event would cost, the pool with what each disk promises, what failed, what was not seen.

It opens offline, prints, and works without a script."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from auditor.judge.cell import Cell
from auditor.judge.event import MEANS, Event
from auditor.judge.event_table import Column
from auditor.judge.finding import Finding
from auditor.report import event_words, finding_words, findings_html
from auditor.report.model import Report
from auditor.report.page import escaped, page, paragraph, section
from auditor.report.pool_tree import Disk, Leaf, Vdev

NAME = "html"
KINDS = {"kept": "good", "word": "open", "unknown": "open", "lost": "bad"}
WORDS = {"kept": "NO LOSS", "word": "RELIES ON", "unknown": "NOT KNOWN", "lost": "LOST"}
STANDINGS = dict.fromkeys(("damaged", "lost", "corrupted", "stalled"), "bad") | {"kept": "good"}
COLUMNS_SHOWN = 4
PASSES_SHOWN = 400


def render(report: Report, *, verbose: bool = False) -> str:
    """The whole page. verbose: with every rule that passed."""
    title = f"zaudit: {', '.join(report.targets)} on {report.hostname}"
    parts = [
        *_start(report, title),
        section("What each event would cost", _table(report), "long"),
        section("The pool, and what each disk promises", _pools(report), "long"),
        section("What failed", [_failure(each) for each in report.fresh if each.failed], "long"),
        section("What was not seen", _unseen(report), "long"),
        section("Waived or left out", _silenced(report), "long"),
        section("What passed", _passed(report) if verbose else [], "long"),
        *_end(report),
    ]
    return page(title, (part for part in parts if part))


def _start(report: Report, title: str) -> Iterator[str]:
    yield f"<h1>{escaped(title)}</h1>"
    taken = datetime.fromtimestamp(report.taken, UTC).strftime("%Y-%m-%d %H:%M UTC")
    yield paragraph(f"{taken} · OpenZFS {report.release} · zaudit {report.zaudit}", "dim small")
    counts = " · ".join(f"{count} {word}" for word, count in report.counts)
    kind = STANDINGS.get(report.standing, "open")
    fix = ""
    if found := finding_words.first(report):
        word, first = found
        commands = finding_words.commands(first)
        words = f"<code>{escaped(commands[0])}</code>" if commands else escaped(first.fix.text)
        fix = f"<p><b>{word}</b> ({escaped(first.rule.id)}): {escaped(finding_words.condition(first))}{words}</p>"
    yield (
        f'<div class="verdict {kind}"><div class="word">{escaped(report.headline)}</div>'
        f"<p>{escaped(counts)}</p>{fix}</div>"
    )


def _table(report: Report) -> Iterator[str]:
    """Events down, datasets that fare alike across."""
    shown, users = report.columns[:COLUMNS_SHOWN], report.users
    heads = "".join(f'<th scope="col">{escaped(event_words.where(column, users))}</th>' for column in shown)
    rows = "".join(
        f'<tr><th scope="row">{escaped(MEANS[event])}</th>'
        + "".join(f"<td>{_cells(column, event)}</td>" for column in shown)
        + "</tr>"
        for event in report.events
    )
    yield f'<div class="table" tabindex="0"><table><tr><td></td>{heads}</tr>{rows}</table></div>'
    if more := report.columns[COLUMNS_SHOWN:]:
        names = ", ".join(event_words.where(column, users) for column in more)
        yield paragraph(f"{len(more)} more groups of datasets: {names}", "dim small")


def _cells(column: Column, event: Event) -> str:
    """Today, and from the next boot on where that differs."""
    later = f"<br>from the next boot on: {_cell(column.next_boot[event])}" if event in column.next_boot else ""
    return _cell(column.cells[event]) + later


def _cell(cell: Cell) -> str:
    word = f'<span class="badge {KINDS[cell.outcome]}">{WORDS[cell.outcome]}</span>'
    if cell.outcome == "kept":
        return word
    said = event_words.detail(cell)
    rules = ", ".join(cell.rules[:4]) + (f" and {len(cell.rules) - 4} more" if len(cell.rules) > 4 else "")
    return f'{word}<br>{escaped(said)}<br><span class="dim small">{escaped(rules)}</span>'


def _pools(report: Report) -> Iterator[str]:
    for pool in report.pools:
        vdevs = "".join(f"<li>{_vdev(vdev)}</li>" for vdev in pool.vdevs)
        yield f"<h3>{escaped(pool.name)} ({escaped(pool.state)})</h3><ul>{vdevs}</ul>"


def _vdev(vdev: Vdev) -> str:
    left = f", can lose {escaped(vdev.left)} more" if vdev.left else ""
    leaves = "".join(f"<li>{_leaf(leaf)}</li>" for leaf in vdev.leaves)
    return f"<b>{escaped(vdev.role)}</b> {escaped(vdev.name)}{left}<ul>{leaves}</ul>"


def _leaf(leaf: Leaf) -> str:
    state = "" if leaf.state == "ONLINE" else f' <span class="badge bad">{escaped(leaf.state)}</span>'
    disks = "".join(f"<li>{_disk(disk)}</li>" for disk in leaf.disks)
    return f"{escaped(leaf.name)}{state}" + (f"<ul>{disks}</ul>" if disks else "")


def _disk(disk: Disk) -> str:
    return f'{escaped(disk.name)} {escaped(disk.model)}: <span class="{disk.kind}">{escaped(disk.promise)}</span>'


def _failure(finding: Finding) -> str:
    return findings_html.shown(finding)


def _unseen(report: Report) -> Iterator[str]:
    undecided = [each for each in report.fresh if not each.failed]
    if not undecided:
        return
    covered = report.coverage
    remedies = "; ".join(f"{count}: {remedy}" for remedy, count in covered.remedies)
    yield paragraph(f"{covered.undecided} of {covered.rules} rules could not be decided. {remedies}", "small")
    told = "".join(findings_html.shown(each) for each in undecided)
    yield f"<details><summary>Each of them, and why</summary>{told}</details>"


def _silenced(report: Report) -> Iterator[str]:
    if words := finding_words.hidden(report):
        yield paragraph(words)
    for word, text in finding_words.known(report):
        yield paragraph(f"{word.capitalize()} by the baseline: {text}.")
    for finding in report.waived:
        waiver = finding.waiver
        assert waiver is not None
        who = f"waived until {waiver.expires} by {waiver.owner}: {waiver.reason}"
        yield paragraph(f"{finding.rule.id} ({finding.severity}), {finding_words.where(finding)}: {who}")
    for what, rules in finding_words.left_out(report):
        yield paragraph(f"{what}: {rules}.")


def _passed(report: Report) -> Iterator[str]:
    passes = [verdict for verdict in report.verdicts if verdict.outcome == "pass"]
    rows = "".join(
        f"<li><b>{escaped(each.rule.id)}</b> {escaped(str(each.subject))}</li>" for each in passes[:PASSES_SHOWN]
    )
    more = f"<p>and {len(passes) - PASSES_SHOWN} more</p>" if len(passes) > PASSES_SHOWN else ""
    yield f"<details><summary>{len(passes)} verdicts</summary><ul>{rows}</ul>{more}</details>" if passes else ""


def _end(report: Report) -> Iterator[str]:
    yield f"<p><b>Next:</b> <code>{escaped(report.next_step)}</code></p>"
    if report.seen_from:
        yield paragraph(report.seen_from)
    never = "zaudit cannot see a drive, controller or hypervisor that acknowledges a flush without doing it."
    yield f"<footer>{escaped(never)} Exit code {report.exit_code}.</footer>"
