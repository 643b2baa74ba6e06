"""A plan as Markdown for a person or a ticket, as JSON, and as a script for bash that checks before each step that it makes.

What comes from hosts is one word to the shell or stands in a comment, spelt so that no line of it ends early.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from auditor import codec
from auditor.advice.steps import Plan, Setting, Step
from auditor.judge.event import Severity
from auditor.judge.finding import Finding
from auditor.report import phrases, report_json
from auditor.report.formats.pages import code, text
from auditor.report.model import Report
from auditor.text import harmless, quoted, shortened, utc, valid_unicode

SCHEMA = "zaudit-plan/1"
COLUMNS_SHOWN = 3
COMMANDS_SHOWN = 6
WIDTH = 110
NOTHING = "zaudit ran none of it. Take the steps in this order, and check after each."
HEAD = """\
set -euo pipefail
export LC_ALL=C

stop() {
    printf 'stopped: %s\\n' "$1" >&2
    exit 1
}

# is WHAT EXPECTED FOUND
is() {
    [[ $3 == "$2" ]] || stop "$1 is '$3', not '$2' as this plan expects: make a new plan"
}
"""


def _action(step: Step) -> tuple[str, ...]:
    """What to run: the commands of the findings, else those that make the settings."""
    return step.commands or tuple(each.run for each in step.settings if each.read)


def _texts(step: Step) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.fix.text for each in step.findings))


def _needs(step: Step) -> tuple[str, ...]:
    fixes = (verdict.fix for each in step.findings for verdict in each.verdicts)
    return tuple(dict.fromkeys(fix.needs for fix in fixes if fix.needs))


def _person(step: Step) -> str:
    """Why a person has to make it, where what it needs does not say so."""
    return "" if step.person.lower() in map(str.lower, _needs(step)) else step.person


def _title(finding: Finding) -> str:
    return f"{finding.rule.title} ({finding.severity})"


def _check(plan: Plan) -> str:
    return " ".join(("zaudit check", *map(quoted, plan.now.targets)))


# -- Markdown ----------------------------------------------------------------------------------------------------------


def markdown(plan: Plan) -> str:
    """Each step with what comes before it, what to watch, how to take it back, and the table after it."""
    return "\n".join(_markdown(plan)) + "\n"


def _markdown(plan: Plan) -> Iterator[str]:
    now = plan.now
    targets = ", ".join(code(harmless(each)) for each in now.targets)
    yield f"# Plan for {targets} on {code(harmless(now.hostname))}\n"
    yield f"OpenZFS {code(harmless(now.release))}, seen {utc(now.taken)}. {NOTHING}\n"
    yield f"Now: {text(harmless(now.headline))}\n"
    yield from _table(now)
    if not plan.steps:
        yield "No step to take."
    for number, step in enumerate(plan.steps, 1):
        yield f"\n## Step {number}: {'; '.join(text(_title(each)) for each in step.findings)}\n"
        yield from _step(plan, step)
        if step.report is None:
            yield "- Not simulated: zaudit cannot predict its effect."
        elif step.better:
            yield f"- Then: {text(harmless(step.report.headline))}\n"
            yield from _table(step.report)
        else:
            yield f"- Then: the table stays as it is. {text(harmless(step.report.headline))}"
    if plan.left:
        yield "\n## No step\n"
        yield from (
            f"- {code(each.finding.rule.id)} at {code(harmless(each.finding.place))}: {text(harmless(each.reason))}"
            for each in plan.left
        )
    if plan.steps:
        codes = f"exit code {plan.after.exit_code} (now {now.exit_code})"
        yield f"\nAfter all steps that are simulated: {text(harmless(plan.after.headline))}; {codes}."


def _step(plan: Plan, step: Step) -> Iterator[str]:
    for each in step.findings:
        yield f"- {code(each.rule.id)} at {code(phrases.subjects_of(each))}: {text(phrases.shortly(each))}"
    yield from (f"- {text(each)}:" for each in _needs(step))
    if person := _person(step):
        yield f"- By hand: {text(harmless(person))}"
    actions = (f"- Do: {code(harmless(each))}" for each in _action(step))
    yield from shortened(actions, COMMANDS_SHOWN, "- And {} more such commands (--format json has all).")
    yield from (f"- {text(harmless(each))}" for each in _texts(step))
    yield from (f"- Watch: {text(each)}" for each in step.watch or (_check(plan),))
    for setting in [each for each in step.settings if each.undo][:COMMANDS_SHOWN]:
        yield f"- Undo: {(code if setting.read else text)(harmless(setting.undo))}"


def _table(report: Report) -> Iterator[str]:
    for column in report.columns[:COLUMNS_SHOWN]:
        for line in phrases.lines(column, report.events):
            yield f"- {text(phrases.where(column))}: {phrases.happening(line.events, report.events)}: {text(line.text)}"
    if len(report.columns) > COLUMNS_SHOWN:
        yield f"- and {len(report.columns) - COLUMNS_SHOWN} more groups of datasets"


# -- JSON --------------------------------------------------------------------------------------------------------------


HEAD_OF_REPORT = ("zaudit", "rules", "host", "openzfs", "taken", "targets")
STATE = ("headline", "standing", "exit_code", "events")


class PoolDocument(NamedTuple):
    """A pool that a script must find; guid is empty where it is not known."""

    name: str
    guid: str


class FindingDocument(NamedTuple):
    """As a report has it."""

    id: str
    rule: str
    place: str
    severity: Severity
    title: str


class LeftDocument(NamedTuple):
    """A finding for which there is no step, and why."""

    id: str
    rule: str
    place: str
    severity: Severity
    title: str
    reason: str


class StepDocument(NamedTuple):
    """by_hand: why a person has to make it, or empty. needs: what comes first. sets: as check --suppose takes it. watch:
    commands that show how it goes; undo: how it is taken back."""

    step: int
    findings: tuple[FindingDocument, ...]
    by_hand: str
    needs: tuple[str, ...]
    commands: tuple[str, ...]
    text: tuple[str, ...]
    sets: tuple[str, ...]
    watch: tuple[str, ...]
    undo: tuple[str, ...]


def document(plan: Plan) -> str:
    """For a program. It is no report: no command takes it for one."""
    now = report_json.document(plan.now)
    whole: dict[str, Any] = {
        "schema": SCHEMA,
        **{name: now[name] for name in HEAD_OF_REPORT},
        "pools": codec.plain(tuple(PoolDocument(*each) for each in plan.pools), valid_unicode),
        "now": _state(plan.now),
        "steps": [_document(number, step) for number, step in enumerate(plan.steps, 1)],
        "left": [codec.plain(LeftDocument(*_finding(each.finding), each.reason), valid_unicode) for each in plan.left],
        "after": _state(plan.after),
    }
    return json.dumps(whole, indent=1) + "\n"


def _state(report: Report) -> dict[str, Any]:
    whole = report_json.document(report)
    return {name: whole[name] for name in STATE}


def _finding(finding: Finding) -> FindingDocument:
    return FindingDocument(finding.id, finding.rule.id, finding.place, finding.severity, finding.rule.title)


def _document(number: int, step: Step) -> dict[str, Any]:
    found = StepDocument(
        number,
        tuple(map(_finding, step.findings)),
        by_hand=step.person,
        needs=_needs(step),
        commands=_action(step),
        text=_texts(step),
        sets=tuple(each.change.text for each in step.settings),
        watch=step.watch,
        undo=tuple(each.undo for each in step.settings if each.undo),
    )
    return {**codec.plain(found, valid_unicode), **({"then": _state(step.report)} if step.report else {})}


# -- a script ----------------------------------------------------------------------------------------------------------


def script(plan: Plan) -> str:
    """For bash. It acts on the host that was seen and on nothing that has changed since; steps for a person are comments."""
    return "\n".join(_script(plan)) + "\n"


def _script(plan: Plan) -> Iterator[str]:
    now = plan.now
    yield "#!/usr/bin/env bash"
    targets = ", ".join(now.targets)
    yield from _comment(
        f"Plan of zaudit {now.zaudit} for {targets} on {now.hostname}, OpenZFS {now.release}, seen {utc(now.taken)}."
    )
    yield from _comment(f"{NOTHING} Read it before you run it. It stops at the first error.")
    yield from (HEAD, *_guards(plan))
    for number, step in enumerate(plan.steps, 1):
        yield ""
        yield from _comment(f"Step {number}: {'; '.join(map(_title, step.findings))}")
        for each in step.findings:
            yield from _comment(f"{phrases.subjects_of(each)}: {phrases.shortly(each)}")
        if step.person:
            yield from _by_hand(step)
        else:
            yield from _lines(number, step)
    yield ""
    by_hand = sum(bool(step.person) for step in plan.steps)
    done = "Nothing was changed" if by_hand == len(plan.steps) else "Done"
    left = f"; {by_hand} manual steps are comments above" if by_hand else ""
    yield f"printf '%s\\n' {quoted(f'{done}{left}. Now run: {_check(plan)}')}"


def _guards(plan: Plan) -> Iterator[str]:
    """Before anything is changed: the host, the pools, and all values that will be."""
    if unknown := [name for name, guid in plan.pools if not guid]:
        yield f"stop {quoted(f'the GUID of pool {unknown[0]} was not seen, so this may be another pool')}"
    yield _is("the name of this host", plan.now.hostname, "uname -n")
    for name, guid in plan.pools:
        if guid:
            yield _is(f"the GUID of pool {name}", guid, f"zpool get -Hp -o value guid {quoted(name)}")
    for each in (setting for step in plan.steps if not step.person for setting in step.settings):
        yield _is(_what(each), each.first, each.read)


def _what(setting: Setting) -> str:
    return f"{setting.change.name} of {setting.change.subject}"


def _is(what: str, expected: str, command: str) -> str:
    return f'is {quoted(what)} {quoted(expected)} "$({command})"'


def _lines(number: int, step: Step) -> Iterator[str]:
    for each in step.settings:
        yield _is(_what(each), each.found, each.read)
        yield each.run
        yield _is(_what(each), each.wanted, each.read)
        yield from _comment(f"Undo: {each.undo}")
    for words in (*_texts(step), *(f"Watch: {watch}" for watch in step.watch)):
        yield from _comment(words)
    done = f"step {number}: {', '.join(each.change.text for each in step.settings)}"
    yield f"printf '%s\\n' {quoted(done)}"


def _by_hand(step: Step) -> Iterator[str]:
    yield from _comment(f"BY HAND: {_person(step)}".rstrip(": "))
    for each in (*_needs(step), *_action(step), *_texts(step)):
        yield from _comment(f"  {each}")


def _comment(words: str) -> Iterator[str]:
    lines = textwrap.wrap(harmless(words), WIDTH, break_long_words=False, break_on_hyphens=False)
    return (f"# {line}" for line in lines)
