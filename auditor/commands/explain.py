"""``zaudit explain``: one rule or one event as a page, and what speaks of a word."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from auditor.commands import _options
from auditor.commands._options import folders
from auditor.judge.event import EVENTS
from auditor.screen import say, width

SHOWN = 10  # rules that speak of a word


@click.command(short_help="Show a rule, an event, or what speaks of a setting or symptom.")
@click.argument("words", metavar="[ID | WORD]...", nargs=-1, shell_complete=_options.rule_ids)
@click.option("--event", type=click.Choice(EVENTS), help="How zaudit judges what this event would cost.")
@click.option("--questions", is_flag=True, help="The questions that people ask most, each with its answer.")
@folders
def explain(words: tuple[str, ...], event: str | None, questions: bool, folders: tuple[Path, ...]) -> None:
    """Show what rule ID checks, why it matters, how to fix it, its sources and its examples.

    WORD is what you know it by: a setting (full_page_writes), a property (logbias), a parameter (zfs_nocacheflush), a command,
    a symptom (torn page) or jargon (slog, plp). The rules and questions that speak of it are listed, best first.

    With --event: what an event costs, and the rules that decide it.
    """
    from auditor import rulebook
    from auditor.report import rule_page

    if (bool(words), event is not None, questions).count(True) != 1:
        raise click.UsageError("give the ID of a rule (zaudit rules lists them), a WORD, --event or --questions")
    if questions:
        say(rule_page.text(width()))
    elif event:
        say(rule_page.event_page(next(each for each in EVENTS if each == event), rulebook.load(folders), width()))
    else:
        say(_of_words(words, folders))


def _of_words(words: Sequence[str], folders: Sequence[Path]) -> str:
    """The page of the rule that is called so, or what to use in place of a retired one; else the questions and rules that speak
    of the words, best first, or the page of a rule that alone does."""
    from auditor import rulebook
    from auditor.judge import policy, search
    from auditor.report import rule_page

    name, rules = " ".join(words), rulebook.load(folders, examples=False)
    ids = [rule.id for rule in rules]
    if retired := policy.retired_by(name, ids):
        return "\n".join(retired)
    if name in ids:
        return _page(name, folders)
    found, asked = search.find(rules, words), search.questions(words)
    if not found and not asked:
        raise policy.PolicyError(
            f"no rule {name!r}, and none speaks of it{search.similar(rules, words)} (zaudit rules lists them)"
        )
    if len(found) == 1 and not asked:
        return _page(found[0].id, folders)
    parts = [rule_page.short(each, width()) for each in asked]
    if name in EVENTS:
        parts.append(f"zaudit explain --event {name}: what this event costs\n")
    if found:
        more = f"{len(found) - SHOWN} more: zaudit rules {name}\n" if len(found) > SHOWN else ""
        parts.append(rule_page.as_table(found[:SHOWN], width(), ranked=True) + more)
    return "\n".join(parts)


def _page(id: str, folders: Sequence[Path]) -> str:
    from auditor import rulebook
    from auditor.report import rule_page

    entries = [each for each in rulebook.advisories() if each.head and each.head.id == id]
    return rule_page.page(rulebook.find(folders, id), width(), entries)


COMMAND = explain
