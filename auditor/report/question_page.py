"""The questions that people ask most, for ``zaudit explain`` and docs/questions.md."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from auditor.judge.search import Question, all_questions

HEAD = """\
# Questions

What people ask most about databases on ZFS, each with a short answer and the command that decides it on your host.
`zaudit explain WORD` finds them by their words, `zaudit explain --questions` prints them all.
"""


def short(question: Question, width: int) -> str:
    """A question, its answer and the command that decides it."""
    answer = textwrap.fill(question.answer, min(width, 100) - 2, break_on_hyphens=False, break_long_words=False)
    title = textwrap.fill(question.ask, min(width, 100), break_on_hyphens=False)
    return f"{title}\n{textwrap.indent(answer, '  ')}\n  $ {question.command}\n"


def text(width: int) -> str:
    """All questions."""
    return "\n".join(short(each, width) for each in all_questions())


def markdown() -> str:
    """All questions with their sources, as docs/questions.md has them."""
    return "\n".join(_markdown())


def _markdown() -> Iterator[str]:
    yield HEAD
    for number, each in enumerate(all_questions(), 1):
        yield f"## {number}. {each.ask}\n"
        yield f"{textwrap.fill(each.answer, 120, break_on_hyphens=False)}\n"
        yield f"    {each.command}\n"
        yield f"{textwrap.fill('Sources: ' + '; '.join(each.sources) + '.', 120, break_on_hyphens=False)}\n"
