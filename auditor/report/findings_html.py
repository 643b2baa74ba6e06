"""Findings as parts of a page."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.judge.finding import Finding
from auditor.report import finding_words
from auditor.report.page import escaped, paragraph

EVIDENCE_SHOWN = 6


def shown(finding: Finding) -> str:
    """One finding: what and where at once, the evidence when it is opened."""
    words = (finding_words.severity(finding), finding_words.at_least(finding))
    word = ", ".join(filter(None, words)) if finding.failed else f"UNKNOWN, {finding.severity} if it fails"
    kind = "bad" if finding.failed else "open"
    says = finding_words.sentence(finding) if finding.failed else finding_words.question(finding)
    told = "".join(f"<dt>{label}</dt><dd>{content}</dd>" for label, content in _rows(finding))
    return (
        f'<div class="finding {kind}"><span class="badge {kind}">{word}</span> <b>{escaped(finding.rule.id)}</b> '
        f"{escaped(finding_words.where(finding))}{paragraph(says)}<dl>{told}</dl></div>"
    )


def _rows(finding: Finding) -> Iterator[tuple[str, str]]:
    """(label, HTML): what is at stake, how we know, how to mend it; or why nobody could tell."""
    fix = finding.fix
    bugs = [("" if i else "Bugs", escaped(each)) for i, each in enumerate(finding_words.bugs(finding))]
    if not finding.failed:
        yield from bugs
        for i, reason in enumerate(finding.reasons):
            remedy = f" <b>{escaped(reason.remedy)}</b>" if reason.remedy else ""
            yield "" if i else "Because", escaped(reason.text) + remedy
        return
    yield "Risk", escaped(finding.rule.impact)
    for i, (text, command) in enumerate(finding_words.evidence(finding.verdicts[0])[:EVIDENCE_SHOWN]):
        shell = f' <code class="dim">{escaped(command)}</code>' if command else ""
        yield "" if i else "Seen", escaped(text) + shell
    yield from bugs
    lesser = finding_words.lesser_bugs(finding)
    yield from (("" if i else "Lesser", escaped(text)) for i, (text, _) in enumerate(lesser))
    commands = finding_words.commands(finding)
    for i, command in enumerate(commands):
        needs = "" if i else escaped(finding_words.condition(finding))
        yield "" if i else "Fix", f"{needs}<code>{escaped(command)}</code>"
    yield "" if commands else "Fix", f"[{fix.cost}] {escaped(fix.text)}"
    if finding.rule.page:
        yield "More", f"<code>zaudit explain {escaped(finding.rule.id)}</code>"
