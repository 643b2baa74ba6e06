"""The page of an audit: what each event costs, the worst findings with the command that fixes each, what is unknown, and the
next step. In brief, for a person at 02:13, it has 25 lines on an ordinary host; whole, every reason and observation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Unpack, get_args

from auditor.facts import AGAIN, HOST, ROOT, Facts, Known, Subject, is_true
from auditor.judge.event_table import Column
from auditor.judge.finding import Finding
from auditor.judge.precedence import TOGETHER
from auditor.judge.verdict import Verdict as Judged
from auditor.report import document as doc
from auditor.report import phrases, terminal
from auditor.report.model import Report
from auditor.text import few, harmless, lower_headline, shortened, utc

TONES: dict[str, doc.Tone] = {**dict.fromkeys(("damaged", "lost", "corrupted", "stalled"), "bad"), "kept": "good"}
COSTS: dict[str, doc.Look] = {each: each for each in get_args(doc.Cost)}
RESTARTS = {"database": " of the database", "host": " of the host"}
EVIDENCE_SHOWN = 12
COMMANDS_SHOWN = 3
COLUMNS_SHOWN = 3
RULES_SHOWN = 2
FAILURES_SHOWN = 4
NEEDS_SHOWN = 3
PLACES_SHOWN = 2
BROUGHT_SHOWN = 5
USED_SHOWN, USERS_SHOWN = 20, 4
SEVERAL = {"leaf": "leaves"}  # of all other kinds of subjects with an s
NEVER = "zaudit cannot see a drive, controller or hypervisor that acknowledges a flush without doing it"


def write_text(report: Report, *, verbose: int = 0, **screen: Unpack[terminal.Screen]) -> str:
    """For a terminal. verbose: 0 in brief, 1 the whole page, 2 with every rule that passed."""
    page = whole(report, passed=verbose > 1) if verbose else brief(report)
    return terminal.write(page, **screen)


def write_html(report: Report, *, verbose: int = 0) -> str:
    """The whole page. verbose: 2 with every rule that passed."""
    from auditor.report import html

    return html.write(whole(report, passed=verbose > 1))


def brief(report: Report) -> doc.Document:
    """The answer, the first step, the table, and the worst findings in two lines each."""
    blocks = (
        _verdict(report, counts=False),
        *events(report, COLUMNS_SHOWN),
        doc.section("", [doc.labelled(_brief(report)), *_silenced(report), *_last(report)]),
    )
    return doc.Document(_heading(report), _facts(report, counts=True), blocks)


def whole(report: Report, *, passed: bool) -> doc.Document:
    """Everything. passed: with every rule that passed."""
    blocks = (
        _verdict(report, counts=True),
        doc.section("What each event would cost", events(report)),
        doc.section("The pool, and what each disk promises", _pools(report.facts)),
        doc.section("Who uses it", _used(report)),
        doc.section("What failed", map(failed, (each for each in report.fresh if each.failed))),
        doc.section("What is unknown", _unknown(report)),
        doc.section("Waived or left out", [*map(_waived, report.waived), *_silenced(report, waived=False)]),
        doc.section("What passed", _passed(report) if passed else ()),
        doc.section("", _end(report)),
    )
    return doc.Document(_heading(report), _facts(report, counts=False), blocks)


# -- the beginning -------------------------------------------------------------------------------------------------------


def _heading(report: Report) -> str:
    return f"zaudit: {', '.join(report.targets)} on {report.hostname}"


def _facts(report: Report, *, counts: bool) -> tuple[doc.Line, ...]:
    where = f"{phrases.listed(report.targets)} on {report.hostname}"
    counted = [f"{count} {word}" for word, count in report.counts] if counts else [utc(report.taken)]
    return (f"zaudit {report.zaudit}", where, f"OpenZFS {report.release}", *counted)


def count_line(report: Report) -> tuple[str | doc.Run, ...]:
    """How many findings of which severity: 1 critical · 12 unknown."""
    looks = dict[str, doc.Look](critical="critical", high="high", medium="medium", low="low", unknown="undecided")
    runs = (doc.Run(f"{count} {word}", looks.get(word, "known")) for word, count in report.counts)
    return tuple(each for run in runs for each in (" · ", run))[1:]


def _verdict(report: Report, *, counts: bool) -> doc.Verdict:
    """The headline, and what to do before anything else, for somebody who reads no further."""
    blocks: list[doc.Block] = []
    found, rootless = phrases.first(report), dict(report.coverage.remedies).get(ROOT, 0)
    if rootless and (found is None or found[1].severity not in ("high", "critical")):
        again = f"Run this again as root: {rootless} rule{'s have' if rootless > 1 else ' has'} no answer without it"
        blocks.append(doc.labelled([(doc.Run("Look first", "strong"), again)]))
    if found:
        word, worst = found
        step = (*_first_step(worst), doc.Run(f"  {worst.rule.id}", "dim"))
        blocks.append(doc.labelled([(doc.Run(f"Then {word.split()[0].lower()}" if blocks else word, "strong"), step)]))
    if counts and report.counts:
        blocks.append(doc.Say(count_line(report)))
    return doc.Verdict(TONES.get(report.standing, "open"), report.headline, tuple(blocks))


def events(report: Report, most: int | None = None) -> Iterator[doc.Block]:
    """What each event would cost: a group for datasets that fare alike, a line for events that end alike."""
    shown = report.columns[:most]
    if not shown:
        yield doc.Say("What each event would lose is unknown while the pool does not work.", "undecided")
    else:
        yield doc.Events(tuple((phrases.where(each, report.users), tuple(_costs(each, report))) for each in shown))
    if count := sum(len(column.names) for column in report.columns[len(shown) :]):
        they = "1 more dataset differs" if count == 1 else f"{count} more datasets differ"
        yield doc.Say(f"{they} (--verbose shows them)", "dim")
    yield from (doc.Say(each, "dim") for each in phrases.losses_of_the_pool(shown))  # of every pool, and no finding
    yield from (doc.Say(f"power cuts: {each}") for each in phrases.tried(shown))


def _costs(column: Column, report: Report) -> Iterator[tuple[str, doc.Line]]:
    for line in phrases.lines(column, report.events):
        why = doc.Run(f"   {few(line.why, RULES_SHOWN)}" if line.why else "", "dim")
        yield phrases.happening(line.events, report.events), (doc.Run(line.text, line.cell.outcome), why)


def _pools(facts: Facts) -> Iterator[doc.Block]:
    """As trees: vdevs, their devices and disks, and what each disk promises, so that a reader sees the weak link."""
    for pool in facts.linked(HOST, "pools"):
        name = doc.Run(f"{pool.name} ({facts.get(pool, 'state').word('unknown')})", "strong")
        yield doc.Tree((doc.Item(name, tuple(_vdev(facts, each) for each in facts.linked(pool, "vdevs"))),))


def _vdev(facts: Facts, vdev: Subject) -> doc.Item:
    role = facts.get(vdev, "allocation_class").word("unknown").replace("normal", "data")
    left = facts.get(vdev, "failures_left").word()
    more = "no device may fail" if left == "0" else f"can lose {left} more"
    leaves = tuple(_leaf(facts, leaf) for leaf in facts.linked(vdev, "leaves"))
    return doc.Item((doc.Run(role, "strong"), f" {vdev.name}{f', {more}' if left else ''}"), leaves)


def _leaf(facts: Facts, leaf: Subject) -> doc.Item:
    state = facts.get(leaf, "state").word("unknown")
    disks = tuple(_disk(facts, disk) for disk in facts.linked(leaf, "disks"))
    return doc.Item((leaf.name, doc.Run("" if state == "ONLINE" else f" {state}", "bad")), disks)


def _disk(facts: Facts, disk: Subject) -> doc.Item:
    model = facts.get(disk, "model").word("unknown")
    return doc.Item((f"{disk.name} {model}: ", doc.Run(*promise(facts, disk))))


def promise(facts: Facts, disk: Subject) -> tuple[str, doc.Tone]:
    """What a disk does with a cache when the power goes, and whether that is enough."""
    virtual, cache, grade = (facts.get(disk, name) for name in ("virtual", "volatile_cache", "plp_grade"))
    failed = facts.get(disk, "plp_failed")
    if is_true(facts.get(disk, "lost_flushed")):
        return "lost data at a power cut that it had flushed", "bad"
    if is_true(failed):
        return "its power-loss protection has failed", "bad"
    if is_true(virtual):
        return "virtual: relies on the storage behind it", "open"
    if isinstance(cache, Known) and cache.value is False:
        return "no volatile cache", "good"
    keeps = facts.get(disk, "keeps_acknowledged")
    if is_true(keeps) and isinstance(grade, Known):
        return f"keeps its cache without power (grade {grade.value} of 5)", "good"
    if isinstance(cache, Known):
        return "volatile cache: relies on the drive to honour flushes", "open"
    return "whether it has a volatile cache is not known", "open"


def _used(report: Report) -> Iterator[doc.Block]:
    for dataset, users in [*report.used.items()][:USED_SHOWN]:
        for each in users.evidence[:USERS_SHOWN]:
            yield doc.Say((f"{dataset} is used by {each.text}", doc.Run(f"   {each.command}", "repeat")))
        if (more := len(users.evidence) - USERS_SHOWN) > 0:
            yield doc.Say(f"and by {more} more (--format json names them)", "dim")
    if (more := len(report.used) - USED_SHOWN) > 0:
        yield doc.Say(f"{more} more datasets are used (--format json names by whom)", "dim")


# -- in brief --------------------------------------------------------------------------------------------------------------


def _brief(report: Report) -> Iterator[tuple[doc.Run | str, doc.Line]]:
    severe = phrases.worst_first(report)
    for finding in severe[:FAILURES_SHOWN]:
        said = f"  {phrases.subjects_of(finding)}: {phrases.shortly(finding)}"
        least = _aside(phrases.at_least(finding), " ")
        yield _severity(finding), (doc.Run(finding.rule.id, "strong"), said, *least)
        yield f"  {phrases.verb(finding)}", (*_first_step(finding), *_then(finding))
    if rest := severe[FAILURES_SHOWN:]:
        yield doc.Run("MORE", "low"), _more(rest)
    if low := [each for each in report.fresh if each.failed and each.severity == "low"]:
        yield doc.Run("LOW", "low"), ", ".join(_of_rules(low, named=False))
    if line := _undecided_line(report):
        yield doc.Run("UNKNOWN", "undecided"), line


def _severity(finding: Finding) -> doc.Run:
    return doc.Run(phrases.severity(finding), finding.severity)


def _more(rest: list[Finding]) -> str:
    """How many there are of what does not fit on the page, how severe they are and where: one of them may be the worst."""
    grades = dict.fromkeys(each.severity for each in rest)
    return "; ".join(
        f"{grade}: {', '.join(_of_rules([each for each in rest if each.severity == grade], named=True))}"
        for grade in grades
    )


def _of_rules(findings: list[Finding], *, named: bool) -> Iterator[str]:
    """``sync=disabled (sync-disabled, 56 datasets: tank04/db and 55 more)``. named: with places, or bugs."""
    for id in dict.fromkeys(each.rule.id for each in findings):
        found = [verdict.subject for each in findings if each.rule.id == id for verdict in each.verdicts]
        subjects = list(dict.fromkeys(found))
        kind = subjects[0].kind
        places = [f"{len(subjects):,} {SEVERAL.get(kind, f'{kind}s')}"] if len(subjects) > 1 else []
        bugs = [bug.id for each in findings if each.rule.id == id for bug in each.bugs]
        if named or bugs:
            names = bugs or [str(each) for each in subjects]
            places.append(few(names, PLACES_SHOWN))
        title = lower_headline(next(each.rule.title for each in findings if each.rule.id == id))
        yield f"{title} ({id}{', ' if places else ''}{': '.join(places)})"


def _first_step(finding: Finding) -> tuple[str | doc.Run, ...]:
    """The command, or what to do where no command does it, and what that costs; of what is unknown, why."""
    fix, commands = finding.fix, phrases.commands(finding)
    if not finding.failed and not commands and (fix.command or not phrases.looks(finding)):
        reason = finding.reasons[0]
        remedy = f" ({harmless(reason.remedy)})" if reason.remedy else ""
        return (f"{phrases.question(finding)}, because {harmless(reason.text)}{remedy}",)
    step = doc.command(commands[0]) if commands else phrases.first_sentences(fix.text)
    apart = ", one after another" if phrases.needs_hardware(finding) else ""
    more = doc.Run(f"  and {len(commands) - 1} more like it{apart}" if len(commands) > 1 else "", "dim")
    return phrases.condition(finding), step, more, _cost(finding, "  ")


def _then(finding: Finding) -> tuple[str, ...]:
    """What to do with what a look shows."""
    commands, text = phrases.commands(finding), finding.fix.text
    looked = commands and not finding.fix.needs and phrases.looks(finding)
    return (f"  {phrases.first_sentences(text, 2)}",) if looked else ()


def _cost(finding: Finding, before: str = "") -> doc.Run:
    """What a fix costs, in its colour. What is safe on a condition is not green: nobody has checked that it holds."""
    fix = finding.fix
    if fix.needs and fix.cost == "safe":
        when = "together" if fix.needs.startswith(TOGETHER) else "if that holds"
        return doc.Run(f"{before}[safe {when}]", "needs restart")
    of = RESTARTS.get(finding.rule.subject, "") if fix.cost == "needs restart" else ""
    return doc.Run(f"{before}[{fix.cost}{of}]", COSTS[fix.cost])


def _undecided_line(report: Report) -> str:
    """How many rules are unknown, what would decide them, and the most severe of them."""
    covered = report.coverage
    undecided = [each for each in report.fresh if not each.failed]
    if not undecided:
        return ""
    needs = "".join(f"; {_needs(count, remedy)}" for remedy, count in covered.remedies[:NEEDS_SHOWN])
    gravest = undecided[0].severity
    titles = list(dict.fromkeys(lower_headline(each.rule.title) for each in undecided if each.severity == gravest))
    shown = "; ".join([*titles[:1], *([f"{more} more"] if (more := len(titles) - 1) > 0 else [])])
    counted = f"{covered.undecided} of {covered.rules} rules have no answer{needs}"
    return f"{counted}. The worst, {gravest} if it fails: {shown}. -v says why"


def _needs(count: int, remedy: str, what: str = "") -> str:
    """ "1 rule needs root", "12 need root"."""
    subject = f"{count} {what}{'s' if count > 1 else ''}" if what else str(count)
    if remedy == AGAIN:
        return f"{subject} {'is' if count == 1 else 'are'} newer than this recording (run zaudit record again)"
    return f"{subject} need{'s' if count == 1 else ''} {phrases.need(remedy)}"


# -- what somebody chose ---------------------------------------------------------------------------------------------------


def _silenced(report: Report, *, waived: bool = True) -> Iterator[doc.Block]:
    """What somebody turned off, skipped, made milder or answers for: counted, with the most severe. waived: that, too."""
    if words := phrases.hidden(report):
        yield doc.Say(words)
    yield from (doc.labelled([(doc.Run(word, "known"), text)]) for word, text in phrases.known(report))
    if waived and report.waived:
        names = few([f"{each.rule.id} ({each.severity})" for each in report.waived], 1)
        yield doc.labelled([(doc.Run("WAIVED", "waived"), f"{names}, {_waiver(report.waived[0])}")])
    for rule, each in report.coverage.thresholds:
        values = f"{each.spell(each.value)}, default {each.spell(each.default)}"
        yield doc.Say(f"Site policy: {rule}.{each.name} {values} ({each.text}).")
    for what, rules in phrases.left_out(report):
        yield doc.Say(f"{what}: {rules}.")
    brought = (f"Also audited: {dataset} ({why})." for dataset, why in report.brought.items())
    yield from map(doc.Say, shortened(brought, BROUGHT_SHOWN, "And {} more (--format json names all)."))
    if report.edited:
        yield doc.Say(f"Edited recording, not a real host: {report.edited}.", "word")
    if report.seen_from:
        yield doc.Say(report.seen_from, "word")


def _waiver(finding: Finding) -> str:
    waiver = finding.waiver
    assert waiver is not None
    return f"until {waiver.expires} by {waiver.owner}: {waiver.reason}"


# -- findings --------------------------------------------------------------------------------------------------------------


def findings(report: Report) -> Iterator[doc.Block]:
    """The findings, worst first; what is unknown for the same reasons together, where the worst of it is."""
    for group in _grouped(report.fresh):
        yield failed(group[0]) if group[0].failed else _undecided(group, report)


def failed(finding: Finding) -> doc.Finding:
    """A failure alone: what it puts at risk, what was seen, what fixes it."""
    rule = finding.rule
    seen = finding.verdicts[:1] if finding.bugs else finding.verdicts
    lesser = (text for text, _ in phrases.lesser_bugs(finding))
    rows = [
        *_rows("Risk", [rule.impact] if finding.severity != "low" else []),
        *_rows("Seen", _evidence(seen)),
        *_rows("Bugs", phrases.bugs(finding)),
        *_rows("Lesser", shortened(lesser, EVIDENCE_SHOWN, "and {} more (--format json has all)")),
        *_rows("Fix", _fix(finding)),
        *_rows("More", [doc.Run(f"zaudit explain {rule.id}", "command", rule.url)] if rule.page else []),
    ]
    where: doc.Line = phrases.subjects_of(finding), *_aside(phrases.at_least(finding))
    says = phrases.statement(finding)
    return doc.Finding(_severity(finding), rule.id, where, says, tuple(rows))


def _aside(text: str, before: str = "   ") -> tuple[str | doc.Run, ...]:
    return (doc.Run(f"{before}{text}", "dim"),) if text else ()


def _rows(label: str, lines: Iterable[doc.Line] | Iterable[str]) -> Iterator[doc.Entry]:
    """A label with the first of them."""
    return (doc.Entry(doc.Run("" if i else label, "dim"), line) for i, line in enumerate(lines))


def _grouped(found: Sequence[Finding]) -> list[list[Finding]]:
    """Each failure alone; what is unknown for the same reasons together."""
    groups: dict[object, list[Finding]] = {}
    for finding in found:
        key: object = id(finding) if finding.failed else phrases.unasked(finding) or finding.reasons
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def _unknown(report: Report) -> Iterator[doc.Block]:
    if line := _undecided_line(report):
        yield doc.Say(line)
        groups = _grouped([each for each in report.fresh if not each.failed])
        yield doc.Details("Each of them, and why", tuple(_undecided(group, report) for group in groups))


def _undecided(group: Sequence[Finding], report: Report) -> doc.Finding:
    worst, word = group[0], doc.Run("UNKNOWN", "undecided")
    rules = list(dict.fromkeys(finding.rule.id for finding in group))
    if phrases.unasked(worst):  # what an older zaudit did not ask, once for all rules that want it
        many = len(rules) > 1
        grade = f"at most {worst.severity} if they fail" if many else f"{worst.severity} if it fails"
        where: doc.Line = f"{len(rules)} rule{'s' * many}", *_aside(grade)
        rows = [*_rows("Rules", [", ".join(rules)]), *_rows("Lacks", [", ".join(report.unasked)])]
        says = phrases.recorded_by(report)
        return doc.Finding(word, "not in the recording", where, says, tuple(rows), "open")
    others = [each for each in rules if each != worst.rule.id]
    reasons: list[doc.Line] = [
        (each.text, doc.Run(f"   {each.remedy}" if each.remedy else "", "strong"))
        for each in worst.reasons[:EVIDENCE_SHOWN]
    ]
    if len(worst.reasons) > EVIDENCE_SHOWN:
        reasons.append(doc.Run(f"and {len(worst.reasons) - EVIDENCE_SHOWN} more reasons", "dim"))
    rows = [
        *_rows("Bugs", phrases.bugs(worst)),
        *_rows("Also", [", ".join(others)] if others else []),
        *_rows("Because", reasons),
    ]
    where = phrases.subjects_of(*group), *_aside(f"{worst.severity} if it fails")
    return doc.Finding(word, worst.rule.id, where, phrases.question(worst), tuple(rows), "open")


def _evidence(verdicts: Sequence[Judged]) -> Iterator[doc.Line]:
    """What was seen of the first subject, each with what repeats the observation, and how many others it was seen of."""
    first, others = verdicts[0], verdicts[1:]
    names = list(dict.fromkeys(str(each.subject) for each in others if each.subject != first.subject))
    seen = phrases.evidence(first)
    for text, repeat in seen[:EVIDENCE_SHOWN]:
        yield text, *((("   "), doc.Run(repeat, "repeat")) if repeat else ())
    hidden = len(seen) - EVIDENCE_SHOWN
    more = [f"{hidden} more observation{'s' if hidden > 1 else ''} (--format json has all)"] if hidden > 0 else []
    more += [f"the same on {len(names)} more: {phrases.listed(names)}"] if names else []
    if more:
        yield doc.Run(f"and {' and '.join(more)}", "dim")


def _fix(finding: Finding) -> Iterator[doc.Line]:
    """The commands, what they cost, and what no command can say."""
    fix, commands = finding.fix, phrases.commands(finding)
    for i, each in enumerate(commands[:COMMANDS_SHOWN]):
        yield "" if i else phrases.condition(finding), doc.command(each)
    if len(commands) > COMMANDS_SHOWN:
        yield doc.Run(f"and {len(commands) - COMMANDS_SHOWN} more like it (--format json has all)", "dim")
    yield _cost(finding), f" {fix.text}"


def _waived(finding: Finding) -> doc.Finding:
    """What somebody answers for: as short as it can be said, with who and until when."""
    aside = _aside(f"{finding.severity}{'' if finding.failed else ' if it fails'}")
    rows = (*_rows("Risk", [finding.rule.impact]), *_rows("Waived", [_waiver(finding)]))
    says = phrases.statement(finding) if finding.failed else phrases.question(finding)
    return doc.Finding(
        doc.Run("WAIVED", "waived"), finding.rule.id, (phrases.subjects_of(finding), *aside), says, rows, "open"
    )


def _passed(report: Report) -> Iterator[doc.Block]:
    by_rule: dict[str, list[Judged]] = {}
    found = {finding.rule.id for finding in (*report.findings, *report.waived) if finding.bugs}
    for verdict in report.verdicts:
        if verdict.outcome == "pass" and verdict.rule.names[-1] not in found:
            by_rule.setdefault(verdict.rule.names[-1], []).append(verdict)
    if by_rule:
        yield doc.Details(f"{len(by_rule)} rules", tuple(_pass(*each) for each in by_rule.items()))


def _pass(rule: str, verdicts: Sequence[Judged]) -> doc.Finding:
    where = phrases.listed(list(dict.fromkeys(str(each.subject) for each in verdicts)))
    return doc.Finding(doc.Run("passed", "passed"), rule, where, "", tuple(_rows("Seen", _evidence(verdicts))), "good")


# -- the end ---------------------------------------------------------------------------------------------------------------


def _next(report: Report, *more: str) -> doc.Say:
    """With what a measurement does to the pool."""
    writes = report.next_step.startswith("zaudit verify")
    load = "   (writes a test load to the pool: pick a quiet hour)" if writes else ""
    return doc.Say(("Next: ", doc.command(report.next_step), load, *more))


def _last(report: Report) -> Iterator[doc.Block]:
    covered = report.coverage
    counts = f"{covered.passed} rules passed, {covered.not_applicable} do not apply"
    yield doc.Say(f"{counts}. Checked {utc(report.taken)}, exit code {report.exit_code}. -v shows the evidence", "dim")
    yield _next(report)


def _end(report: Report) -> Iterator[doc.Block]:
    covered = report.coverage
    line = f"{covered.decided} of {covered.rules} rules decided"
    if covered.undecided:
        needs = ", ".join(_needs(count, remedy, "rule") for remedy, count in covered.remedies)
        line += f"; {covered.undecided} unknown{f': {needs}' if needs else ''}"
    yield doc.Say(f"{line}. Passed: {covered.passed}, not applicable here: {covered.not_applicable}.")
    yield doc.Say(f"{NEVER}; only a power cut can.", "dim")
    yield _next(report, f"   (checked {utc(report.taken)}, exit code {report.exit_code})")


def left_out(report: Report) -> doc.Section:
    """The rules that somebody left out, where an audit is a part of another page."""
    return doc.section("", (doc.Say(f"{what}: {rules}.", "dim") for what, rules in phrases.left_out(report)))
