"""``zaudit explain``: one rule or one event, as a page."""

from __future__ import annotations

from pathlib import Path

import click

from auditor.commands import _complete
from auditor.commands._options import folders
from auditor.commands._terminal import say, width
from auditor.judge.event import EVENTS


@click.command(short_help="Show one rule or event: what, why, impact, fix, references, examples.")
@click.argument("rule_id", metavar="[ID]", required=False, shell_complete=_complete.rule_ids)
@click.option("--event", type=click.Choice(EVENTS), help="How zaudit judges what this event would cost.")
@folders
def explain(rule_id: str | None, event: str | None, folders: tuple[Path, ...]) -> None:
    """Show what rule ID checks, why it matters, how to fix it, its sources and its examples.

    With --event: what an event takes, and the rules that decide what it would cost.
    """
    from auditor import rulebook
    from auditor.judge.policy import retired_by
    from auditor.report import rule_page

    if (rule_id is None) == (event is None):
        raise click.UsageError("give the ID of a rule (zaudit rules lists them) or --event")
    if event:
        say(rule_page.event_page(next(each for each in EVENTS if each == event), rulebook.load(folders), width()))
    elif rule_id and (retired := retired_by(rule_id, [each.id for each in rulebook.load(folders, examples=False)])):
        say("\n".join(retired))
    elif rule_id:
        rule = rulebook.find(folders, rule_id)
        say(
            rule_page.page(
                rule, width(), [each for each in rulebook.advisories() if each.head and each.head.id == rule.id]
            )
        )


COMMAND = explain
