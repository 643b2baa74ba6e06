"""The report for a person at 02:13: what a power cut would cost, the worst findings with the command that fixes each, what was
not seen, and the next step. All of it in 25 lines on an ordinary host; --verbose has every reason and observation."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.text import Text

from auditor.judge.finding import Finding
from auditor.judge.verdict import Verdict
from auditor.report import event_words, finding_words
from auditor.report.console import MARGIN, Hanging, Whole, body, head, printed, says
from auditor.report.findings_terminal import COST_STYLES, HEADLINE_STYLES, STYLES, answer, evidence, found
from auditor.report.model import Report
from auditor.text import harmless

NAME = "terminal"
OUTCOME_STYLES = {"lost": "bold red", "unknown": "bold magenta", "word": "yellow", "kept": "green"}
COLUMNS_SHOWN = 3
RULES_SHOWN = 2
FAILURES_SHOWN = 4
NEEDS_SHOWN = 3
PLACES_SHOWN = 2
SEVERAL = {"leaf": "leaves"}  # of all other kinds of subjects with an s
TABLE_AT = 44  # column of what an event costs, where no combination of events is longer
SAID_IN = 30  # columns at least for that; below the event where there are fewer
BROUGHT_SHOWN = 5
USED_SHOWN, USERS_SHOWN = 20, 4


def render(
    report: Report, *, width: int = 100, color: bool = False, ascii_only: bool = False, verbose: bool = False
) -> str:
    """The whole report as text that ends with a newline. width: columns; color: with ANSI styles."""
    return printed(_parts(report, verbose), width=width, color=color, ascii_only=ascii_only)


def _parts(report: Report, verbose: bool) -> Iterator[RenderableType]:
    yield _title(report)
    yield Text(report.headline, HEADLINE_STYLES.get(report.standing, "bold yellow"))
    yield from _first_fix(report)
    yield from table(report, columns=None if verbose else COLUMNS_SHOWN)
    yield Text()
    if not verbose:
        yield from _brief(report)
        return
    yield from _used(report)
    yield answer(report)
    yield from found(report)
    for finding in report.waived:
        yield Text()
        yield _waived(finding)
    yield from _passed(report)
    yield Text()
    yield from _end(report)


def _first_fix(report: Report) -> Iterator[RenderableType]:
    """What to do before anything else, for somebody who reads no further."""
    if found := finding_words.first(report):
        word, worst = found
        mended = _first_step(worst).append(f"  {worst.rule.id}", "dim not bold")
        yield Hanging(Text(f"{word} ", "bold"), mended, MARGIN)


def table(report: Report, columns: int | None = None) -> Iterator[RenderableType]:
    """What each event would cost: a block for datasets that fare alike, a line for events that end alike."""
    shown = report.columns[:columns]
    blocks = [(column, list(event_words.lines(column, report.events))) for column in shown]
    happenings = [event_words.happening(line.events) for _, lines in blocks for line in lines]
    at = max(TABLE_AT, *(len(each) + 2 for each in happenings), 0) + 2
    for column, lines in blocks:
        yield Text(event_words.where(column, report.users), "bold")
        for line in lines:
            happening = Text(f"  {event_words.happening(line.events)}")
            said = Text(line.text, OUTCOME_STYLES[line.cell.outcome])
            if line.why:
                more = f" and {len(line.why) - RULES_SHOWN} more" if len(line.why) > RULES_SHOWN else ""
                said.append(f"   {', '.join(line.why[:RULES_SHOWN])}{more}", "dim not bold")
            yield Hanging(happening, said, at, SAID_IN)
    if count := sum(len(column.names) for column in report.columns[len(shown) :]):
        they = "1 more dataset differs" if count == 1 else f"{count} more datasets differ"
        yield Text(f"{they} (--verbose shows them)", "dim")


def _used(report: Report) -> Iterator[RenderableType]:
    """Who uses the datasets, and what shows it."""
    for used in report.used[:USED_SHOWN]:
        for each in used.seen[:USERS_SHOWN]:
            line = Text(f"{harmless(used.dataset)} is used by {harmless(each.text)}")
            yield line.append(f"   {harmless(each.command)}", "dim")
        if (more := len(used.seen) - USERS_SHOWN) > 0:
            yield Text(f"and by {more} more (--format json names them)", "dim")
    if (more := len(report.used) - USED_SHOWN) > 0:
        yield Text(f"{more} more datasets are used (--format json names by whom)", "dim")
    if report.used:
        yield Text()


def _brief(report: Report) -> Iterator[RenderableType]:
    failed = [each for each in report.fresh if each.failed]
    grave = [each for each in failed if each.severity != "low"]
    for finding in grave[:FAILURES_SHOWN]:
        yield from _shortly(finding)
    rest = grave[FAILURES_SHOWN:]
    if rest:
        yield Hanging(Text("MORE", STYLES["low"]), Text(_more(rest)), MARGIN)
    if low := [each for each in failed if each.severity == "low"]:
        yield Hanging(Text("LOW", STYLES["low"]), Text(", ".join(_of_rules(low, named=False))), MARGIN)
    yield from _unseen(report)
    yield from _silenced(report)
    yield from _last(report)


def _more(rest: list[Finding]) -> str:
    """How many there are of what does not fit on the page, how grave they are and where: one of them may be the worst."""
    grades = dict.fromkeys(each.severity for each in rest)
    return "; ".join(
        f"{grade}: {', '.join(_of_rules([each for each in rest if each.severity == grade], named=True))}"
        for grade in grades
    )


def _of_rules(findings: list[Finding], *, named: bool) -> Iterator[str]:
    """``sync-disabled (56 datasets: tank04/db, tank05/db and 54 more)``. named: say where, not only how many places. Of known
    bugs which they are."""
    for id in dict.fromkeys(each.rule.id for each in findings):
        found = [verdict.subject for each in findings if each.rule.id == id for verdict in each.verdicts]
        subjects = list(dict.fromkeys(found))
        kind = subjects[0].kind
        places = [f"{len(subjects):,} {SEVERAL.get(kind, f'{kind}s')}"] if len(subjects) > 1 else []
        bugs = [bug.id for each in findings if each.rule.id == id for bug in each.bugs]
        if named or bugs:
            names = bugs or [harmless(str(each)) for each in subjects]
            left = f" and {len(names) - PLACES_SHOWN:,} more" if len(names) > PLACES_SHOWN else ""
            places.append(", ".join(names[:PLACES_SHOWN]) + left)
        yield f"{id} ({': '.join(places)})" if places else id


def _shortly(finding: Finding) -> Iterator[RenderableType]:
    """Two lines: what and where; the command that fixes it, or what to do, and what that costs."""
    severity = finding_words.severity(finding)
    words = Text.assemble((severity, STYLES[finding.severity]), " " * (MARGIN - len(severity)))
    said = Text.assemble(
        (finding.rule.id, "bold"), f"  {finding_words.where(finding)}: ", finding_words.shortly(finding)
    )
    yield Hanging(words, said, MARGIN)
    yield Hanging(Text("  Look" if finding_words.looks(finding) else "  Fix", "dim"), _first_step(finding), MARGIN)


def _first_step(finding: Finding) -> Text:
    """The command, or what to do where no command does it, and what that costs."""
    fix, commands = finding.fix, finding_words.commands(finding)
    step = Text(finding_words.condition(finding))
    step.append(commands[0], "bold") if commands else step.append(finding_words.first_sentence(fix.text))
    if len(commands) > 1:
        step.append(f"  and {len(commands) - 1} more like it", "dim not bold")
    return step.append(f"  [{fix.cost}]", COST_STYLES[fix.cost] + " not bold")


def _unseen(report: Report) -> Iterator[RenderableType]:
    """How many rules could not be decided, by what would decide them, and the gravest of them."""
    covered = report.coverage
    undecided = [each for each in report.fresh if not each.failed]
    if not undecided:
        return
    line = Text(f"{covered.undecided} of {covered.rules} rules could not be decided")
    needs = [_needs(count, remedy) for remedy, count in covered.remedies[:NEEDS_SHOWN]]
    if needs:
        line.append(": " + "; ".join(needs))
    worst = [each.rule.id for each in undecided if each.severity == undecided[0].severity]
    ids = list(dict.fromkeys(worst))
    more = f" and {len(ids) - RULES_SHOWN} more" if len(ids) > RULES_SHOWN else ""
    line.append(f". May be {undecided[0].severity}: {', '.join(ids[:RULES_SHOWN])}{more}")
    yield Hanging(Text("UNKNOWN", STYLES["undecided"]), line, MARGIN)


def _silenced(report: Report) -> Iterator[RenderableType]:
    """What somebody turned off, skipped, made milder or answers for: counted, with the gravest."""
    if words := finding_words.hidden(report):
        yield Text(words)
    for word, text in finding_words.known(report):
        yield Hanging(Text(word, STYLES["known"]), Text(text), MARGIN)
    for finding in report.waived[:1]:
        waiver = finding.waiver
        assert waiver is not None
        others = f" and {len(report.waived) - 1} more" if len(report.waived) > 1 else ""
        who = f"{harmless(waiver.owner)}: {harmless(waiver.reason)}"
        text = f"{finding.rule.id} ({finding.severity}){others}, until {waiver.expires} by {who}"
        yield Hanging(Text("WAIVED", STYLES["waived"]), Text(text), MARGIN)
    for rule, each in report.coverage.thresholds:
        values = f"{each.said(each.value)}, default {each.said(each.default)}"
        yield Text(f"Site policy: {rule}.{each.name} {values} ({each.text}).")
    for what, rules in finding_words.left_out(report):
        yield Text(f"{what}: {rules}.")
    for brought in report.brought[:BROUGHT_SHOWN]:
        yield Text(f"{harmless(brought.dataset)} was not named and is audited, too: {harmless(brought.why)}.")
    if len(report.brought) > BROUGHT_SHOWN:
        yield Text(f"So are {len(report.brought) - BROUGHT_SHOWN} more (--format json names all).")
    if report.edited:
        yield Text(f"No host has answered so, the recording is edited: {harmless(report.edited)}.", "yellow")
    if report.seen_from:
        yield Text(report.seen_from, "yellow")


def _last(report: Report) -> Iterator[RenderableType]:
    covered = report.coverage
    taken = datetime.fromtimestamp(report.taken, UTC).strftime("%Y-%m-%d %H:%M UTC")
    counts = f"{covered.passed} rules passed, {covered.not_applicable} do not apply"
    yield Text(f"{counts}. Seen {taken}, exit code {report.exit_code}. --verbose: evidence", "dim")
    yield Text.assemble("Next: ", (harmless(report.next_step), "bold"))


def _title(report: Report) -> Whole:
    words = (
        f"zaudit {report.zaudit}",
        f"{finding_words.listed([harmless(each) for each in report.targets])} on {harmless(report.hostname)}",
        f"OpenZFS {harmless(report.release)}",
        *(f"{count} {word}" for word, count in report.counts),
    )
    return Whole(Text(f"{' · ' if i else ''}{each}", "dim") for i, each in enumerate(words))


def _waived(finding: Finding) -> RenderableType:
    """What somebody answers for: as short as it can be said, with who and until when."""
    waiver = finding.waiver
    assert waiver is not None
    where = Text(finding_words.where(finding))
    where.append(f"   {finding.severity}{'' if finding.failed else ' if it fails'}", "dim")
    rows: list[tuple[str, Text]] = [("Risk", Text(finding.rule.impact))]
    rows.append(("Waived", Text(f"until {waiver.expires} by {harmless(waiver.owner)}: {harmless(waiver.reason)}")))
    sentence = finding_words.sentence(finding) if finding.failed else finding_words.question(finding)
    return Group(head("WAIVED", STYLES["waived"], finding.rule.id, where), says(sentence), body(rows))


def _passed(report: Report) -> Iterator[RenderableType]:
    by_rule: dict[str, list[Verdict]] = {}
    found = {finding.rule.id for finding in (*report.findings, *report.waived) if finding.bugs}
    for verdict in report.verdicts:
        if verdict.outcome == "pass" and verdict.rule.names[-1] not in found:
            by_rule.setdefault(verdict.rule.names[-1], []).append(verdict)
    for rule_id, verdicts in by_rule.items():
        yield Text()
        names = dict.fromkeys(harmless(str(verdict.subject)) for verdict in verdicts)
        where = Text(finding_words.listed(list(names)))
        yield head("passed", "green", rule_id, where)
        yield body([("Seen" if i == 0 else "", each) for i, each in enumerate(evidence(verdicts))])


def _end(report: Report) -> Iterator[RenderableType]:
    covered = report.coverage
    line = f"{covered.decided} of {covered.rules} rules decided"
    if covered.undecided:
        line += f"; {covered.undecided} unknown"
        if covered.remedies:
            line += ": " + ", ".join(_needs(count, remedy, "rule") for remedy, count in covered.remedies)
    line += f". Passed: {covered.passed}"
    line += f", not applicable here: {covered.not_applicable}."
    yield Text(line)
    yield from _silenced(report)
    yield Text(
        "zaudit cannot see a drive, controller or hypervisor that acknowledges a flush without doing it; only a power cut can.",
        "dim",
    )
    taken = datetime.fromtimestamp(report.taken, UTC).strftime("%Y-%m-%d %H:%M UTC")
    yield Text(f"Next: {report.next_step}   (seen {taken}, exit code {report.exit_code})")


def _needs(count: int, remedy: str, what: str = "") -> str:
    """ "1 rule needs root", "12 need root"."""
    subject = f"{count} {what}{'s' if count > 1 else ''}" if what else str(count)
    return f"{subject} need{'s' if count == 1 else ''} {finding_words.need(remedy)}"
