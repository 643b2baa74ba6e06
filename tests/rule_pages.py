"""The index of the rules and a page for each, for the site: ``python -m tests.rule_pages FOLDER`` writes them below it. And
docs/questions.md."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from auditor.judge.finding import RANK
from auditor.judge.rule import HARMS, Rule
from auditor.report.rule_page import fields, load_questions
from tests import shared
from tests.lab import provoked

INDEX = "rules/README.md"


@cache
def pages() -> dict[str, str]:
    """Path on the site -> text, in Markdown."""
    shown = provoked.shown(shared.rules())
    return {
        INDEX: index_of(shared.rules()),
        **{rule.page: page_of(rule, shown[rule.id]) for rule in shared.rules()},
    }


def write(folder: Path) -> None:
    for path, text in pages().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


HARM_TITLES = {
    "commits": "Acknowledged commits are lost",
    "corruption": "Data is corrupted",
    "availability": "The pool or the database is not available",
    "latency": "Commits are slow",
    "measurement": "A measurement is void",
    "hygiene": "Headroom and hygiene",
}
INTRODUCTION = """\
# What zaudit checks

{count} rules of `zaudit check`, grouped by the harm that they prevent, the worst first, and {verify} of `zaudit verify`, which
judge its runs; each has a page, which `zaudit explain ID` prints, too.
They are made of `rules/ID.toml`. Rule `known-bugs` also judges the entries of `auditor/data/advisories.toml`, listed last.

A rule passes, fails, is not applicable (its *When* does not hold), or is *unknown*: what could not be seen never passes.
"""


def index_of(rules: Sequence[Rule]) -> str:
    return "\n".join(_index(rules)) + "\n"


def _index(rules: Sequence[Rule]) -> Iterator[str]:
    alone = [rule for rule in rules if rule.head is None]
    verify = [rule for rule in alone if rule.of_verify]
    yield INTRODUCTION.format(count=len(alone) - len(verify), verify=len(verify))
    groups = [
        (HARM_TITLES[harm], [each for each in alone if each.harm == harm and not each.of_verify]) for harm in HARMS
    ]
    groups += [
        ("Rules of zaudit verify", verify),
        ("Known bugs of releases, one finding", [each for each in rules if each.head]),
    ]
    for title, group in groups:
        if members := sorted(group, key=lambda rule: (-RANK[rule.gravest], rule.id)):
            yield f"## {title}\n"
            yield from (f"- [{rule.id}](../{rule.page}) ({rule.gravest}): {_plain(rule.title)}" for rule in members)
            yield ""


def page_of(rule: Rule, lab: str) -> str:
    """The page of one rule. lab: how the lab shows it, in Markdown."""
    return "\n".join(_markdown_page(rule, lab)) + "\n"


def _markdown_page(rule: Rule, lab: str) -> Iterator[str]:
    """A list, one item a field; more of the same below it."""
    yield f"# {rule.id}\n\n**{_plain(rule.title)}**\n"
    for label, text, code in fields(rule):
        shown = f"`{text}`" if code else _plain(" ".join(text.split()))
        yield f"- *{label}:* {shown}" if label else f"    - {shown}"  # four: Python-Markdown nests none with fewer
    yield f"- *Lab:* {lab}"
    yield f"\n[All rules](../../rules/README.md). Made of `{_source(rule)}`."


def _source(rule: Rule) -> str:
    return "auditor/data/advisories.toml" if rule.head else f"rules/{rule.id}.toml"


def _plain(text: str) -> str:
    """Text that Markdown leaves alone."""
    for char in "\\`*_<|[]":
        text = text.replace(char, f"\\{char}")
    return text


HEAD = """\
# Questions

Common questions about databases on ZFS, each with a short answer and the command that decides it on your host.
`zaudit explain WORD` finds them by their words, `zaudit explain --questions` prints them all.
"""


def questions() -> str:
    """All questions with their sources, as docs/questions.md has them."""
    return "\n".join(_questions())


def _questions() -> Iterator[str]:
    yield HEAD
    for number, each in enumerate(load_questions(), 1):
        yield f"## {number}. {each.ask}\n"
        yield f"{textwrap.fill(each.answer, 120, break_on_hyphens=False)}\n"
        yield f"    {each.command}\n"
        yield f"{textwrap.fill('Sources: ' + '; '.join(each.sources) + '.', 120, break_on_hyphens=False)}\n"


if __name__ == "__main__":
    write(Path(sys.argv[1]))
