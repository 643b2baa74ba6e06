"""The report for a person at 02:13: the answer first, then the worst finding with the command that mends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.text import Text

from auditor.facts import AGAIN
from auditor.judge.finding import Finding
from auditor.judge.verdict import Verdict
from auditor.report import finding_words
from auditor.report.console import body, head, printed, says
from auditor.report.model import Report
from auditor.text import harmless

NAME = "terminal"
STYLES = {
    "critical": "bold white on red",
    "high": "bold red",
    "medium": "bold yellow",
    "low": "cyan",
    "undecided": "bold magenta",
    "waived": "bold blue",
}
HEADLINE_STYLES = {"lost": "bold red", "corrupted": "bold red", "stalled": "bold red", "nothing found": "bold"}
COST_STYLES = {"safe": "green", "needs restart": "yellow", "rebuilds the pool": "red", "destroys data": "bold red"}
EVIDENCE_SHOWN = 4
COMMANDS_SHOWN = 3
LEFT_OUT_SHOWN = 5


def render(
    report: Report, *, width: int = 100, color: bool = False, ascii_only: bool = False, verbose: bool = False
) -> str:
    """The whole report as text that ends with a newline. width: columns; color: with ANSI styles."""
    return printed(_parts(report, verbose), width=width, color=color, ascii_only=ascii_only)


def _parts(report: Report, verbose: bool) -> Iterator[RenderableType]:
    yield _title(report)
    yield Text()
    yield answer(report)
    yield from found(report)
    for finding in report.waived:
        yield Text()
        yield _waived(finding)
    if verbose:
        yield from _passed(report)
    yield Text()
    yield from _end(report, verbose)


def found(report: Report) -> Iterator[RenderableType]:
    """The findings, worst first, each after an empty line."""
    for group in _grouped(report.findings):
        yield Text()
        if finding_words.unasked(group[0]):
            yield _unasked(group, report)
        else:
            yield _failed(group[0]) if group[0].failed else _undecided(group)


def _title(report: Report) -> Text:
    covered = report.coverage
    words = (
        f"zaudit {report.zaudit}",
        f"{', '.join(map(harmless, report.targets))} on {harmless(report.hostname)}",
        f"OpenZFS {harmless(report.release)}",
        f"{covered.decided} of {covered.rules} rules decided",
    )
    return Text(" · ".join(words), "dim")


def answer(report: Report) -> Text:
    """The headline, and how many findings of which severity."""
    line = Text(report.headline, HEADLINE_STYLES.get(report.standing, "bold yellow"))
    for i, (word, count) in enumerate(report.counts):
        line.append("   " if i == 0 else " · ", "default not bold")
        line.append(f"{count} {word}", STYLES[word] if word != "critical" else "bold red")
    return line


def _failed(finding: Finding) -> RenderableType:
    rule = finding.rule
    rows: list[tuple[str, Text]] = []
    if finding.severity != "low":
        rows.append(("At stake", Text(rule.impact)))
    rows += [("Seen" if i == 0 else "", each) for i, each in enumerate(_evidence(finding.verdicts))]
    rows += [("Mend" if i == 0 else "", each) for i, each in enumerate(_mend(finding))]
    first = head(finding.severity.upper(), STYLES[finding.severity], rule.id, Text(finding_words.where(finding)))
    return Group(first, says(finding_words.sentence(finding)), body(rows))


def _waived(finding: Finding) -> RenderableType:
    """What somebody answers for: as short as it can be said, with who and until when."""
    waiver = finding.waiver
    assert waiver is not None
    where = Text(finding_words.where(finding))
    where.append(f"   {'is' if finding.failed else 'would be'} {finding.severity}", "dim")
    rows: list[tuple[str, Text]] = [("At stake", Text(finding.rule.impact))]
    rows.append(("Waived", Text(f"until {waiver.expires} by {harmless(waiver.owner)}: {harmless(waiver.reason)}")))
    sentence = finding_words.sentence(finding) if finding.failed else finding_words.question(finding)
    return Group(head("WAIVED", STYLES["waived"], finding.rule.id, where), says(sentence), body(rows))


def _grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Each failure alone; what is undecided for the same reasons together, where the worst of it stands."""
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        key: object = id(finding) if finding.failed else finding_words.unasked(finding) or finding.reasons
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def _undecided(group: Sequence[Finding]) -> RenderableType:
    worst = group[0]
    where = Text(finding_words.where(*group))
    where.append(f"   would be {worst.severity}", "dim")
    rows: list[tuple[str, Text]] = []
    others = list(dict.fromkeys(finding.rule.id for finding in group[1:] if finding.rule.id != worst.rule.id))
    if others:
        rows.append(("Also", Text(", ".join(others))))
    for i, reason in enumerate(worst.reasons[:EVIDENCE_SHOWN]):
        text = Text(harmless(reason.text))
        if reason.remedy:
            text.append(f"   {reason.remedy}", "bold")
        rows.append(("Because" if i == 0 else "", text))
    if len(worst.reasons) > EVIDENCE_SHOWN:
        rows.append(("", Text(f"and {len(worst.reasons) - EVIDENCE_SHOWN} more reasons", "dim")))
    sentence = says(finding_words.question(worst))
    return Group(head("UNKNOWN", STYLES["undecided"], worst.rule.id, where), sentence, body(rows))


def _unasked(group: Sequence[Finding], report: Report) -> RenderableType:
    """What an older zaudit did not ask, once for all rules that want it."""
    rules = list(dict.fromkeys(finding.rule.id for finding in group))
    where = Text(f"{len(rules)} rule{'s' if len(rules) > 1 else ''}")
    where.append(f"   would be {group[0].severity}{' at worst' if len(rules) > 1 else ''}", "dim")
    rows = [
        ("Rules", Text(finding_words.listed(rules))),
        ("Lacks", Text(harmless(finding_words.listed(report.unasked)))),
    ]
    first = head("UNKNOWN", STYLES["undecided"], "not in the recording", where)
    return Group(first, says(finding_words.recorded_by(report)), body(rows))


def _evidence(verdicts: Sequence[Verdict]) -> Iterator[Text]:
    """What was seen of the first subject, each with what repeats the observation, and how many others it was seen of."""
    first, others = verdicts[0], verdicts[1:]
    lines = finding_words.evidence(first)
    for text, command in lines[:EVIDENCE_SHOWN]:
        line = Text(text)
        if command:
            line.append(f"   {command}", "dim")
        yield line
    more = [f"{len(lines) - EVIDENCE_SHOWN} more observations"] if len(lines) > EVIDENCE_SHOWN else []
    more += [f"the like of {len(others)} others"] if len(others) > 1 else ["the like of the other"] if others else []
    if more:
        yield Text(f"and {' and '.join(more)} (--format json has all)", "dim")


def _mend(finding: Finding) -> Iterator[Text]:
    """The commands, what they cost, and what no command can say."""
    fix = finding.rule.fix
    commands = finding_words.commands(finding)
    for command in commands[:COMMANDS_SHOWN]:
        yield Text(command, "bold")
    if len(commands) > COMMANDS_SHOWN:
        yield Text(f"and {len(commands) - COMMANDS_SHOWN} more like it (--format json has all)", "dim")
    yield Text.assemble((f"[{fix.cost}] ", COST_STYLES[fix.cost]), fix.text)


def _passed(report: Report) -> Iterator[RenderableType]:
    by_rule: dict[str, list[Verdict]] = {}
    for verdict in report.verdicts:
        if verdict.outcome == "pass":
            by_rule.setdefault(verdict.rule.id, []).append(verdict)
    for rule_id, verdicts in by_rule.items():
        yield Text()
        where = Text(finding_words.listed([harmless(str(verdict.subject)) for verdict in verdicts]))
        yield head("passed", "green", rule_id, where)
        yield body([("Seen" if i == 0 else "", each) for i, each in enumerate(_evidence(verdicts))])


def _end(report: Report, verbose: bool) -> Iterator[RenderableType]:
    covered = report.coverage
    line = f"{covered.decided} of {covered.rules} rules decided"
    if covered.undecided:
        line += f"; {covered.undecided} unknown"
        if covered.remedies:
            line += ": " + ", ".join(f"{count} need {_need(remedy)}" for remedy, count in covered.remedies)
    line += f". Passed: {covered.passed}" + ("" if verbose else " (--verbose shows them)")
    line += f", not applicable here: {covered.not_applicable}."
    yield Text(line)
    for rule, each in covered.thresholds:
        values = f"{each.said(each.value)}, default {each.said(each.default)}"
        yield Text(f"Site policy: {rule}.{each.name} {values} ({each.text}).")
    for what, rules in _left_out(report):
        yield Text(f"{what}: {rules}.")
    if report.edited:
        yield Text(f"No host has answered so, the recording is edited: {harmless(report.edited)}.", "yellow")
    if report.seen_from:
        yield Text(report.seen_from, "yellow")
    yield Text(
        "zaudit cannot see a drive, controller or hypervisor that acknowledges a flush without doing it; only a power cut can.",
        "dim",
    )
    taken = datetime.fromtimestamp(report.taken, UTC).strftime("%Y-%m-%d %H:%M UTC")
    yield Text(f"Next: {report.next_step}   (seen {taken}, exit code {report.exit_code})")


def _left_out(report: Report) -> Iterator[tuple[str, str]]:
    """(by what, which) of the rules that were not judged or count as less; of many the gravest alone."""
    by: dict[str, list[str]] = {}
    for each in report.left_out:
        what = f"Counts as {each.counts_as} by" if each.counts_as else "Left out by"
        by.setdefault(f"{what} {harmless(each.by)}", []).append(f"{each.rule} ({each.severity})")
    for what, rules in by.items():
        shown = rules[:LEFT_OUT_SHOWN]
        more = f" and {len(rules) - len(shown)} more (--format json names all)" if len(rules) > len(shown) else ""
        yield what, ", ".join(shown) + more


def _need(remedy: str) -> str:
    if remedy == AGAIN:
        return "a new recording"
    if remedy == "run as root":
        return "root"
    if remedy.startswith("apt install "):
        return f"{remedy.removeprefix('apt install ')} ({remedy})"
    return remedy
