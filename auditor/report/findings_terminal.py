"""Findings on a terminal, each with what was seen and how to fix it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from auditor.judge.finding import Finding
from auditor.judge.verdict import Verdict
from auditor.report import finding_words
from auditor.report.console import Whole, body, head, says
from auditor.report.model import Report
from auditor.text import harmless

STYLES = {
    "critical": "bold white on red",
    "high": "bold red",
    "medium": "bold yellow",
    "low": "cyan",
    "undecided": "bold magenta",
    "waived": "bold blue",
    "known": "blue",
}
HEADLINE_STYLES = dict.fromkeys(("damaged", "lost", "corrupted", "stalled"), "bold red") | {"kept": "bold green"}
COST_STYLES = {"safe": "green", "needs restart": "yellow", "rebuilds the pool": "red", "destroys data": "bold red"}
EVIDENCE_SHOWN = 12
COMMANDS_SHOWN = 3


def answer(report: Report) -> Whole:
    """The headline, and how many findings of which severity."""
    parts = [Text(report.headline, HEADLINE_STYLES.get(report.standing, "bold yellow"))]
    for i, (word, count) in enumerate(report.counts):
        style = STYLES[word] if word != "critical" else "bold red"
        parts.append(Text.assemble("   " if i == 0 else " · ", (f"{count} {word}", style)))
    return Whole(parts)


def found(report: Report) -> Iterator[RenderableType]:
    """The findings, worst first, each after an empty line."""
    for group in _grouped(report.fresh):
        yield Text()
        if finding_words.unasked(group[0]):
            yield _unasked(group, report)
        else:
            yield failed(group[0]) if group[0].failed else _undecided(group)


def failed(finding: Finding) -> RenderableType:
    """A failure alone: what it puts at risk, what was seen, what mends it."""
    rule = finding.rule
    rows: list[tuple[str, Text]] = []
    if finding.severity != "low":
        rows.append(("Risk", Text(rule.impact)))
    seen = finding.verdicts[:1] if finding.bugs else finding.verdicts
    rows += [("Seen" if i == 0 else "", each) for i, each in enumerate(evidence(seen))]
    rows += [("" if i else "Bugs", Text(each)) for i, each in enumerate(finding_words.bugs(finding))]
    rows += [("" if i else "Lesser", Text(each)) for i, each in enumerate(_lesser(finding))]
    rows += [("Fix" if i == 0 else "", each) for i, each in enumerate(_fix(finding))]
    if rule.page:
        rows.append(("More", Text(f"zaudit explain {rule.id}", "dim")))
    where = Text(finding_words.where(finding))
    if least := finding_words.at_least(finding):
        where.append(f"   {least}", "dim")
    first = head(finding_words.severity(finding), STYLES[finding.severity], rule.id, where)
    return Group(first, says(finding_words.sentence(finding)), body(rows))


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
    where.append(f"   {worst.severity} if it fails", "dim")
    rows = [("" if i else "Bugs", Text(each)) for i, each in enumerate(finding_words.bugs(worst))]
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
    where.append(
        f"   {'at most ' if len(rules) > 1 else ''}{group[0].severity} if {'they fail' if len(rules) > 1 else 'it fails'}",
        "dim",
    )
    rows = [
        ("Rules", Text(finding_words.listed(rules))),
        ("Lacks", Text(harmless(finding_words.listed(report.unasked)))),
    ]
    first = head("UNKNOWN", STYLES["undecided"], "not in the recording", where)
    return Group(first, says(finding_words.recorded_by(report)), body(rows))


def evidence(verdicts: Sequence[Verdict]) -> Iterator[Text]:
    """What was seen of the first subject, each with what repeats the observation, and how many others it was seen of."""
    first, others = verdicts[0], verdicts[1:]
    names = list(dict.fromkeys(harmless(str(each.subject)) for each in others if each.subject != first.subject))
    lines = finding_words.evidence(first)
    for text, command in lines[:EVIDENCE_SHOWN]:
        line = Text(text)
        if command:
            line.append(f"   {command}", "dim")
        yield line
    hidden = len(lines) - EVIDENCE_SHOWN
    more = [f"{hidden} more observation{'s' if hidden > 1 else ''} (--format json has all)"] if hidden > 0 else []
    more += [f"the same on {len(names)} more: {finding_words.listed(names)}"] if names else []
    if more:
        yield Text(f"and {' and '.join(more)}", "dim")


def _lesser(finding: Finding) -> Iterator[str]:
    lesser = finding_words.lesser_bugs(finding)
    yield from (text for text, _ in lesser[:EVIDENCE_SHOWN])
    if len(lesser) > EVIDENCE_SHOWN:
        yield f"and {len(lesser) - EVIDENCE_SHOWN} more (--format json has all)"


def _fix(finding: Finding) -> Iterator[Text]:
    """The commands, what they cost, and what no command can say."""
    fix = finding.fix
    commands = finding_words.commands(finding)
    for i, command in enumerate(commands[:COMMANDS_SHOWN]):
        yield Text.assemble("" if i else finding_words.condition(finding), (command, "bold"))
    if len(commands) > COMMANDS_SHOWN:
        yield Text(f"and {len(commands) - COMMANDS_SHOWN} more like it (--format json has all)", "dim")
    yield Text.assemble((f"[{fix.cost}] ", COST_STYLES[fix.cost]), fix.text)
