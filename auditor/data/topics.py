"""synonyms.toml and questions.toml: the words and the questions that people come with. Their heads say what their keys mean."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from auditor import data

SYNONYMS, QUESTIONS = "synonyms.toml", "questions.toml"
WORDS = ("words", "means")


class Question(NamedTuple):
    """One question. answer: two lines or so. command: what decides it on the reader's host. words: that it is found by."""

    ask: str
    answer: str
    command: str
    words: tuple[str, ...]
    sources: tuple[str, ...]


@cache
def synonyms() -> dict[str, tuple[str, ...]]:
    """What is typed, in lower case -> the phrases to search for."""
    return {word: means for words, means in _lists(SYNONYMS, data.table(SYNONYMS)) for word in words}


def _lists(file: str, document: data.Document) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    found = []
    for where, entry in data.entries(file, document, "synonym", frozenset(WORDS)):
        words, means = (_texts(entry[key], f"{where}: {key}") for key in WORDS)
        found.append((words, means))
    return found


@cache
def questions() -> tuple[Question, ...]:
    """All questions, in the order of the page."""
    return tuple(
        Question(
            _text(entry["ask"], where),
            _text(entry["answer"], where),
            _text(entry["command"], where),
            _texts(entry["words"], where),
            _texts(entry["sources"], where),
        )
        for where, entry in data.entries(QUESTIONS, data.table(QUESTIONS), "question", frozenset(Question._fields))
    )


def _text(value: object, where: str) -> str:
    (text,) = _texts([value], where)
    return text


def _texts(value: object, where: str) -> tuple[str, ...]:
    """One at least, each on one line."""
    return tuple(" ".join(each.split()) for each in data.texts(where, value or None))
