"""``zaudit explain``: one rule, as a page."""

from __future__ import annotations

from pathlib import Path

import click

from auditor.commands._options import folders
from auditor.commands._terminal import say, width


@click.command(short_help="Show one rule: what, why, impact, fix, references, examples.")
@click.argument("rule_id", metavar="ID")
@folders
def explain(rule_id: str, folders: tuple[Path, ...]) -> None:
    """Show what rule ID checks, why it matters, how to mend it, where that is written, and its examples."""
    from auditor import rulebook
    from auditor.report import rule_page

    say(rule_page.page(rulebook.find(folders, rule_id), width()))


COMMAND = explain
