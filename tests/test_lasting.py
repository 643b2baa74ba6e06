"""A recording outlives the release that made it: a later zaudit, which asks for more, decides what could be decided."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from auditor import audit, rulebook
from auditor.facts import Subject
from auditor.host import lzc
from auditor.judge import verdict
from auditor.judge.rule import Rule
from auditor.recording import questions, recording
from auditor.recording.recording import Recording, ReplayHost
from tests.golden import cases

CASES = cases()
TANK = Subject("pool", "tank")


class Later(ReplayHost):
    """The same recording, asked by a zaudit that wants another property, column, argument and file from every collector."""

    def __init__(self, past: Recording) -> None:
        super().__init__(past)
        answers = questions.Answers(past.commands, past.files, past.kept)
        self.run = lambda request: answers.run(request._replace(argv=more(request.argv)))
        self.read = lambda request: answers.read(
            request._replace(patterns=(*request.patterns, "/sys/later/*", "/proc/later"))
        )


def more(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command with another word in each list, in the middle of it where it has one, and another argument."""
    if argv[0] == "sql":  # what it asks a server for is not in its words
        return argv
    if argv[0] == lzc.NAME:
        return (*argv, "later")
    longer = list(argv)
    if "-o" in argv and argv[0] != "nvme":
        at = argv.index("-o")
        lists = (at + 1, at + 2) if argv[1] == "get" else (at + 1,)
        for each in lists:
            first, comma, others = argv[each].partition(",")
            longer[each] = f"{first},later{comma}{others}"
    longer = [f"{word},later" if word.startswith("--property=") else word for word in longer]
    return (*longer, "--later")


@cache
def rules() -> tuple[Rule, ...]:
    return tuple(rulebook.select((), (), ()))


def outcomes(past: Recording, host: Any) -> dict[tuple[str, Subject], str]:
    facts = audit.look(host, past.targets, audit.Options.from_words(past.options)).facts
    return {(each.rule.id, each.subject): each.outcome for each in verdict.judge(rules(), facts)}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_later_zaudit_decides_what_could_be_decided(case: Path) -> None:
    past = recording.load(case)
    assert outcomes(past, Later(past)) == outcomes(past, ReplayHost(past))
