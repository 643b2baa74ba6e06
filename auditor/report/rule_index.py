"""The rules in Markdown, for the site: an index, ``rules/README.md``, grouped by harm, the worst first, and one page a rule,
``docs/rules/ID.md``."""

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


def markdown(rules: Sequence[Rule]) -> str:
    """The index."""
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


def page(rule: Rule, lab: str) -> str:
    """The page of one rule. lab: how the lab shows it, in Markdown."""
    return "\n".join(_page(rule, lab)) + "\n"


def _page(rule: Rule, lab: str) -> Iterator[str]:
    """A list, one item a field; more of the same below it."""
    yield f"# {rule.id}\n\n**{_plain(rule.title)}**\n"
    for label, text, code in fields(rule):
        shown = f"`{text}`" if code else _plain(" ".join(text.split()))
        yield f"- *{label}:* {shown}" if label else f"  - {shown}"
    yield f"- *Lab:* {lab}"
    yield f"\n[All rules](../../rules/README.md). Made of `{_source(rule)}`."


def _source(rule: Rule) -> str:
    return "auditor/data/advisories.toml" if rule.head else f"rules/{rule.id}.toml"


def _plain(text: str) -> str:
    """Text that Markdown leaves alone."""
    for char in "\\`*_<|[]":
        text = text.replace(char, f"\\{char}")
    return text
