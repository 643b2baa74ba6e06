"""Rules by the words that people ask with: a setting, a property, a parameter, a command, a symptom.

The index is computed from the rules: their ids and titles, what their fixes set and run, the facts that they read, the
settings of databases that these facts come from, and their texts. What people call by another name is in ``synonyms.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from auditor import data
from auditor.judge.rule import Rule
from auditor.text import near

NAME = re.compile(r"[a-z]\w*")
SHORTEST = 4  # letters of a word that is looked for inside of others, too
ALL, WORD, START, INSIDE = 12, 4, 2, 1  # how well a text has a phrase
STRONG = 2  # the weight of a field that says what a rule is about; others mention it
NAMES = (5, 6)  # those of fields that are names: settings, commands, facts


class Field(NamedTuple):
    """A text of a rule. weight: how much it counts that a phrase is in it."""

    weight: int
    text: str


def find(rules: Iterable[Rule], words: Sequence[str]) -> list[Rule]:
    """The rules that speak of all words, or of them as one phrase, best first. What rules merely mention counts only where no
    rule is about it."""
    scored = [(rule, fields(rule)) for rule in rules]
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
    names = " ".join(each.text for rule in rules for each in fields(rule) if each.weight in NAMES)
    people = (*load_synonyms(), *(word for each in load_questions() for word in each.words))
    return near(" ".join(words).lower(), (*(rule.id for rule in rules), *people, *NAME.findall(names)))


def fields(rule: Rule) -> list[Field]:
    return [Field(weight, _plain(text)) for weight, text in _fields(rule)]


def _fields(rule: Rule) -> Iterator[tuple[int, str]]:
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


def _phrases(asked: str) -> tuple[str, ...]:
    plain = _plain(asked)
    means = {_plain(word): means for word, means in load_synonyms().items()}
    return tuple(dict.fromkeys((plain, *map(_plain, means.get(plain, ())))))


_ENDS = re.compile(r"(?:e?s)?(?![a-z0-9_])")


def _score(texts: Sequence[Field], words: Sequence[str]) -> int:
    """0: not all words are in them."""
    whole = _sum(texts, _phrases(" ".join(words)))
    if len(words) == 1:
        return whole
    each = [_sum(texts, _phrases(word)) for word in words]
    return whole + sum(each) if all(each) else whole


def _sum(texts: Sequence[Field], phrases: Iterable[str]) -> int:
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
    """All questions, in the order of the page."""
    found = data.entries("questions.toml", "question", Question)
    return tuple(each._replace(answer=" ".join(each.answer.split())) for each in found)
