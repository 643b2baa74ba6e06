"""The rules themselves: for ``zaudit rules`` and ``zaudit explain``, and in Markdown for the site."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from auditor import data
from auditor.judge.event import EVENTS, GOES, MEANS, Event, milder
from auditor.judge.finding import RANK
from auditor.judge.rule import Fix, Rule, events_of
from auditor.text import counted, near


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
    counts += [counted(entries, "known bug")] * bool(entries)
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
                "means": case.means,
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
            "cases": [
                {"when": condition.source, "means": each.means, **_fix(each)} for each, condition in rule.fix.cases
            ],
        },
        "references": list(rule.references),
        "conflicts": list(rule.conflicts),
        "examples": [{"name": each.name, "given": each.given, "verdict": each.verdict} for each in rule.examples],
    }


def _fix(fix: Fix) -> dict[str, str | None]:
    command = fix.command.source if fix.command else None
    return {"command": command, "text": fix.text, "cost": fix.cost, **({"needs": fix.needs} if fix.needs else {})}


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
            yield Field("", f"{case.severity} if {case.means}")
    if rule.outside:
        yield Field("", rule.outside)
    for party in rule.elements if rule.answer else ():
        yield Field("Answer", f'[[answer]] {party} = "{rule.answer}" in a policy, with owner, reason and last day')
    for i, each in enumerate(rule.thresholds):
        bounds = f"{each.spell(each.least)} to {each.spell(each.most)}"
        yield Field(
            "" if i else "Thresholds",
            f"{each.name} = {each.spell(each.default)}: {each.text}. A policy may say {bounds}.",
        )
    yield Field("Impact", rule.impact)
    yield Field("Why", rule.why)
    for i, fix in enumerate((*(each for each, _ in rule.fix.cases), rule.fix)):
        where = f"If {fix.means}: " if fix.means else "Else, or if that is not known: " if i else ""
        yield Field("" if i else "Fix", f"{where}{fix.text} [{fix.cost}]")
        if fix.command:
            if fix.needs:
                yield Field("", f"{fix.needs}:")
            yield Field("", fix.command.source, code=True)
    for i, conflict in enumerate(rule.conflicts):
        yield Field("" if i else "Disputed", conflict)
    for i, reference in enumerate(rule.references):
        yield Field("" if i else "Sources", reference)
    yield Field("About", rule.subject)
    if rule.when:
        yield Field("When", rule.when.source, code=True)
    yield Field("Must hold", rule.expect.source, code=True)
    for i, example in enumerate(rule.examples):
        given = ", ".join(f"{name} = {_spell(value)}" for name, value in example.given.items()) or "nothing known"
        yield Field("" if i else "Examples", f"{example.verdict}: {example.name} ({given})")


def event_page(event: Event, rules: Sequence[Rule], width: int) -> str:
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
        if code and not label:
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


# Rules by the words that people ask with: a setting, a property, a parameter, a command, a symptom.
#
# The index is computed from the rules: their ids and titles, what their fixes set and run, the facts that they read, the
# settings of databases that these facts come from, and their texts. What people call by another name is in ``synonyms.toml``.


NAME = re.compile(r"[a-z]\w*")
SHORTEST = 4  # letters of a word that is looked for inside of others, too
ALL, WORD, START, INSIDE = 12, 4, 2, 1  # how well a text has a phrase
STRONG = 2  # the weight of a field that says what a rule is about; others mention it
NAMED = (5, 6)  # those of texts that are names: settings, commands, facts


class Weighed(NamedTuple):
    """A text of a rule. weight: how much it counts that a phrase is in it."""

    weight: int
    text: str


def find(rules: Iterable[Rule], words: Sequence[str]) -> list[Rule]:
    """The rules that speak of the words, best first. Mere mentions count only where no rule is about them."""
    scored = [(rule, texts_of(rule)) for rule in rules]
    for least in (STRONG, 1):
        found = [
            (-score, index, rule)
            for index, (rule, texts) in enumerate(scored)
            if (score := _score([each for each in texts if each.weight >= least], words))
        ]
        if found:
            return [rule for _, _, rule in sorted(found, key=lambda each: each[:2])]
    return []


def questions(words: Sequence[str]) -> list[Question]:
    """The questions that are about the words, as one phrase."""
    asked = set(_phrases(" ".join(words)))
    return [each for each in load_questions() if asked & set(map(_plain, each.words))]


def similar(rules: Iterable[Rule], words: Sequence[str]) -> str:
    """ "; similar: logbias" for what nothing speaks of: ids, settings and words that people use."""
    names = " ".join(each.text for rule in rules for each in texts_of(rule) if each.weight in NAMED)
    people = (*load_synonyms(), *(word for each in load_questions() for word in each.words))
    return near(" ".join(words).lower(), (*(rule.id for rule in rules), *people, *NAME.findall(names)))


def texts_of(rule: Rule) -> list[Weighed]:
    return [Weighed(weight, _plain(text)) for weight, text in _texts_of(rule)]


def _texts_of(rule: Rule) -> Iterator[tuple[int, str]]:
    fixes = (rule.fix, *(fix for fix, _ in rule.fix.cases))
    conditions = (rule.expect, *filter(None, (rule.when,)), *(case.when for case in rule.cases))
    messages = filter(None, (rule.message, *(case.message for case in rule.cases)))
    settings = (each.source for fix in fixes for each in (*filter(None, (fix.command,)), *fix.sets))
    read = set(NAME.findall(" ".join(each.source for each in conditions)))
    yield 8, rule.id
    yield 7, rule.title
    yield 6, " ".join(settings)
    facts = sorted(read - {"host", "all", "any", "for", "in", "not", "and", "or", "len"})
    yield 5, " ; ".join([*facts, *(name for fact in facts for name in _names().get(fact, ()))])
    yield 3, " ".join([*(each.source for each in messages), *(each.needs for each in fixes)])
    yield STRONG, " ".join((rule.impact, *(each.text for each in fixes)))
    yield 1, " ".join((rule.why, *rule.references, *rule.conflicts))


@cache
def _names() -> Mapping[str, tuple[str, ...]]:
    """Fact -> the settings that it comes from, as the engines' own files name them."""
    from auditor.databases import ENGINES

    pairs = [(each.fact, each.name) for engine in ENGINES.values() for each in engine.settings if each.fact]
    return {fact: tuple(dict.fromkeys(name for other, name in pairs if other == fact)) for fact, _ in pairs}


# -- how well a text has a phrase ------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    return " ".join(re.sub("[-=]", " ", text.lower()).split())


@cache
def _phrases(asked: str) -> tuple[str, ...]:
    plain = _plain(asked)
    means = {_plain(word): means for word, means in load_synonyms().items()}
    return tuple(dict.fromkeys((plain, *map(_plain, means.get(plain, ())))))


_ENDS = re.compile(r"(?:e?s)?(?![a-z0-9_])")


def _score(texts: Sequence[Weighed], words: Sequence[str]) -> int:
    """0: not all words are in them."""
    whole = _sum(texts, _phrases(" ".join(words)))
    if len(words) == 1:
        return whole
    each = [_sum(texts, _phrases(word)) for word in words]
    return whole + sum(each) if all(each) else whole


def _sum(texts: Sequence[Weighed], phrases: Iterable[str]) -> int:
    return sum(each.weight * max(_quality(phrase, each.text) for phrase in phrases) for each in texts)


def _quality(phrase: str, text: str) -> int:
    if len(phrase) < 2 or phrase not in text:
        return 0
    if phrase == text:
        return ALL
    before, *after = text.split(phrase)
    starts = [each[-1:] for each in (before, *after[:-1])]
    return max(map(_place, starts, after), default=0) or (INSIDE if len(phrase) >= SHORTEST else 0)


def _place(before: str, after: str) -> int:
    """Of one place in a text, by the character before it and what follows: a whole word or its plural, or how a word begins."""
    if not before.isalnum() and before != "_" and _ENDS.match(after):
        return WORD
    return 0 if before.isalnum() else START


# synonyms.toml and questions.toml: the words and the questions that people come with. Their heads say what their keys mean.


class Question(NamedTuple):
    """One question. answer: two lines or so. command: what decides it on the reader's host. words: that it is found by."""

    ask: str
    answer: str
    command: str
    words: tuple[str, ...]
    sources: tuple[str, ...]


@cache
def load_synonyms() -> dict[str, tuple[str, ...]]:
    """What is typed, in lower case -> the phrases to search for."""
    return {word: tuple(each["means"]) for each in data.table("synonyms.toml")["synonym"] for word in each["words"]}


@cache
def load_questions() -> tuple[Question, ...]:
    found = data.entries("questions.toml", "question", Question)
    return tuple(each._replace(answer=" ".join(each.answer.split())) for each in found)
