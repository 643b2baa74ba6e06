"""The rules themselves: for ``zaudit rules`` and ``zaudit explain``, and in Markdown for the site."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from auditor.judge.event import EVENTS, GOES, MEANS, Event, milder
from auditor.judge.finding import RANK
from auditor.judge.rule import SEVERITIES, Fix, Rule, events_of
from auditor.judge.search import Question, load_questions


def as_table(rules: Sequence[Rule], width: int | None, of_verify: int = 0, *, ranked: bool = False) -> str:
    """One line a rule, worst first: severity, id, subject, title; two lines where that leaves little room for the title.
    width: columns; None: of a pipe, where each title is whole. of_verify: how many more judge runs of zaudit verify.
    ranked: the rules are in their order already.

    No rich here: this must start fast.
    """
    ordered = rules if ranked else sorted(rules, key=lambda rule: (-RANK[rule.gravest], rule.id))
    ids = max((len(rule.id) for rule in ordered), default=0)
    lines = []
    for rule in ordered:
        head = f"{rule.gravest:<9}{rule.id:<{ids + 2}}{rule.subject:<9}"
        if width is None:
            lines.append(head + rule.title)
            continue
        narrow = width - len(head) < 30
        room = width - (9 if narrow else len(head))
        title = rule.title if len(rule.title) <= room else rule.title[: room - 3] + "..."
        lines += [head.rstrip(), f"{'':9}{title}"] if narrow else [head + title]
    if of_verify:
        lines.append(f"{of_verify} more judge runs of zaudit verify: --subject run")
    entries = sum(rule.head is not None for rule in ordered)
    counts = [f"{len(ordered) - entries} rules"] * (len(ordered) > entries or not entries)
    counts += [f"{entries} known bugs"] * bool(entries)
    lines += textwrap.wrap(f"{' and '.join(counts)}; zaudit explain ID shows one of them", width or 100)
    return "\n".join(lines) + "\n"


def as_json(rules: Sequence[Rule]) -> str:
    return json.dumps([document(rule) for rule in rules], indent=1) + "\n"


def document(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "title": rule.title,
        "severity": rule.gravest,
        **({"elements": list(rule.elements)} if rule.elements else {}),
        **({"answer": rule.answer} if rule.answer else {}),
        "cases": [
            {
                "when": case.when.source,
                **({"severity": case.severity} if case.severity else {}),
                **({"message": case.message.source} if case.message else {}),
            }
            for case in rule.cases
        ],
        **({"outside": rule.outside} if rule.outside else {}),
        "subject": rule.subject,
        "harm": rule.harm,
        "when": rule.when.source if rule.when else None,
        "expect": rule.expect.source,
        "thresholds": [
            {key: value for key, value in each._asdict().items() if key != "decided"} for each in rule.thresholds
        ],
        "impact": rule.impact,
        "why": rule.why,
        "fix": {
            **_fix(rule.fix),
            "cases": [{"when": condition.source, **_fix(each)} for each, condition in rule.fix.cases],
        },
        "references": list(rule.references),
        "conflicts": list(rule.conflicts),
        "examples": [{"name": each.name, "given": each.given, "verdict": each.verdict} for each in rule.examples],
    }


def _fix(fix: Fix) -> dict[str, str | None]:
    return {"command": fix.command.source if fix.command else None, "text": fix.text, "cost": fix.cost}


JUDGED = (
    "By the durability model: for each dataset, from the facts, where an acknowledged commit is and which copy survives. Rules"
    " explain a cell: they name the element of that path which their failure breaks. More knowledge never overturns no loss or"
    " LOST. A waiver, or an answer of the site in its policy, does not change a cell: it says who answers, and until when."
)


class Field(NamedTuple):
    """One thing that a page says. label: empty for more of the same; code: an expression or a command."""

    label: str
    text: str
    code: bool = False


def fields(rule: Rule) -> Iterator[Field]:
    """Everything that a page says of a rule, below its title; the same for the terminal and for rules/README.md."""
    if rule.elements:
        yield Field("Breaks", ", ".join(rule.elements))
    if rule.by_model:
        yield Field("Severity", f"that of the worst event at which this costs something here, {rule.gravest} at most")
    else:
        yield Field("Severity", rule.severity)
    for case in rule.cases:
        if case.severity:
            yield Field("", f"{case.severity} if {case.when.source}", code=True)
    if rule.outside:
        yield Field("", rule.outside)
    for party in rule.elements if rule.answer else ():
        yield Field("Answer", f'[[answer]] {party} = "{rule.answer}" in a policy, with owner, reason and last day')
    yield Field("About", rule.subject)
    if rule.when:
        yield Field("When", rule.when.source, code=True)
    yield Field("Must hold", rule.expect.source, code=True)
    for i, each in enumerate(rule.thresholds):
        bounds = f"{each.spell(each.least)} to {each.spell(each.most)}"
        yield Field(
            "" if i else "Thresholds",
            f"{each.name} = {each.spell(each.default)}: {each.text}. A policy may say {bounds}.",
        )
    yield Field("Impact", rule.impact)
    yield Field("Why", rule.why)
    for fix, when in ((rule.fix, ""), *((each, f"if {condition.source}: ") for each, condition in rule.fix.cases)):
        yield Field("" if when else "Fix", f"{when}{fix.text} [{fix.cost}]")
        if fix.command:
            yield Field("", fix.command.source, code=True)
    for i, conflict in enumerate(rule.conflicts):
        yield Field("" if i else "Disputed", conflict)
    for i, reference in enumerate(rule.references):
        yield Field("" if i else "Sources", reference)
    for i, example in enumerate(rule.examples):
        given = ", ".join(f"{name} = {_spell(value)}" for name, value in example.given.items()) or "nothing known"
        yield Field("" if i else "Examples", f"{example.verdict}: {example.name} ({given})")


def event_page(event: Event, rules: Sequence[Rule], width: int) -> str:
    """What an event is, and which rules decide what it would cost."""
    return "\n".join(_event_page(event, rules, min(width, 100))) + "\n"


def _event_page(event: Event, rules: Sequence[Rule], width: int) -> Iterator[str]:
    yield from textwrap.wrap(f"{event}: {MEANS[event]}", width)
    yield from _field("Takes", GOES[event], width)
    included = [each for each in EVENTS if each in milder(event)]
    if included:
        yield from _field("Includes", f"{', '.join(included)}: what loses at one of these loses here too", width)
    yield ""
    yield from _field("Judged", JUDGED, width)
    found = [rule for rule in rules if any(event in events_of(element) for element in rule.elements)]
    yield ""
    yield f"{len(found)} rules name an element of the path that costs something at this event:"
    for rule in found:
        yield from textwrap.wrap(f"{rule.id}: {rule.title}", width, initial_indent="  ", subsequent_indent="    ")


def page(rule: Rule, width: int, entries: Sequence[Rule] = ()) -> str:
    """What one rule is, for a reader. entries: of the table whose findings are its own."""
    return "\n".join(_page(rule, min(width, 100), entries)) + "\n"


def _page(rule: Rule, width: int, entries: Sequence[Rule]) -> Iterator[str]:
    yield from textwrap.wrap(f"{rule.id}: {rule.title}", width, subsequent_indent="  ", break_on_hyphens=False)
    table = (Field("" if i else "Table", f"{each.id} ({each.gravest}): {each.title}") for i, each in enumerate(entries))
    for label, text, code in (*fields(rule), *table):
        if label not in ("", "About", "When", "Must hold"):
            yield ""
        if code and not label and not text.startswith(SEVERITIES):
            yield f"{'':12}{text}"  # a command is for pasting
        else:
            yield from _field(label, text, width)


def _field(label: str, text: str, width: int) -> Iterator[str]:
    """Paragraphs of text after a label of 12 columns; long words and commands are never broken."""
    first = True
    for paragraph in text.split("\n\n"):
        if not first:
            yield ""
        for line in textwrap.wrap(
            " ".join(paragraph.split()), width - 12, break_long_words=False, break_on_hyphens=False
        ):
            yield f"{label if first else '':<12}{line}"
            first = False


def _spell(value: Any) -> str:
    if isinstance(value, dict) and set(value) == {"unknown"}:
        return f"unknown ({value['unknown']})"
    return json.dumps(value)


# The questions that people ask most, for ``zaudit explain``.


def short(question: Question, width: int) -> str:
    """A question, its answer and the command that decides it."""
    answer = textwrap.fill(question.answer, min(width, 100) - 2, break_on_hyphens=False, break_long_words=False)
    title = textwrap.fill(question.ask, min(width, 100), break_on_hyphens=False)
    return f"{title}\n{textwrap.indent(answer, '  ')}\n  $ {question.command}\n"


def text(width: int) -> str:
    return "\n".join(short(each, width) for each in load_questions())
