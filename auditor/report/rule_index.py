"""All rules as one Markdown document, ``rules/README.md``: grouped by harm, worst first, one anchor a rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.judge.finding import RANK
from auditor.judge.rule import HARMS, Rule
from auditor.report.rule_page import fields

HARM_TITLES = {
    "commits": "Acknowledged commits are lost",
    "corruption": "Data is corrupted",
    "availability": "The pool or the database is not available",
    "latency": "Commits are slow",
    "measurement": "A measurement is void (rules on runs of fio, for zaudit verify)",
    "hygiene": "Headroom and hygiene",
}
INTRODUCTION = """\
# What zaudit checks

{count} rules, grouped by the harm that they prevent, the worst first. `zaudit explain ID` prints the same page. This file is
generated (`python -m tests.golden`): change the rule, which is `rules/ID.toml`, or for known bugs of releases
(`advisory-...`) an entry of `auditor/data/advisories.toml`.

A rule passes, fails, is not applicable (its *When* does not hold), or is *unknown*: what could not be seen never passes.
"""


def markdown(rules: Sequence[Rule]) -> str:
    """The whole document."""
    return "\n".join(_document(rules)) + "\n"


def _document(rules: Sequence[Rule]) -> Iterator[str]:
    groups = {
        harm: sorted(
            (rule for rule in rules if rule.harm == harm),
            key=lambda rule: (-RANK[rule.gravest], rule.id),
        )
        for harm in HARMS
    }
    yield INTRODUCTION.format(count=len(rules))
    for harm, members in groups.items():
        if members:
            yield f"**{HARM_TITLES[harm]}**\n"
            yield from (f"- [{rule.id}](#{rule.id}) ({rule.severity}): {_plain(rule.title)}" for rule in members)
            yield ""
    for harm, members in groups.items():
        if members:
            yield f"## {HARM_TITLES[harm]}\n"
        for rule in members:
            yield f"### {rule.id}\n\n**{_plain(rule.title)}**\n"
            yield from _page(rule)
            yield ""


def _page(rule: Rule) -> Iterator[str]:
    """A list, one item a field; more of the same below it."""
    for label, text, code in fields(rule):
        shown = f"`{text}`" if code else _plain(" ".join(text.split()))
        yield f"- *{label}:* {shown}" if label else f"  - {shown}"


def _plain(text: str) -> str:
    """Text that Markdown leaves alone."""
    for char in "\\`*_<|[]":
        text = text.replace(char, f"\\{char}")
    return text
