"""``zaudit rules``: what is checked."""

from __future__ import annotations

from pathlib import Path

import click

from auditor.commands._options import folders, formats
from auditor.commands._terminal import say, width


@click.command(short_help="List the rules.")
@formats
@folders
def rules(format_: str, folders: tuple[Path, ...]) -> None:
    """List all rules with severity, subject and title."""
    from auditor import rulebook
    from auditor.report import rule_page

    everything = rulebook.load(folders, examples=format_ == "json")
    say(rule_page.as_json(everything) if format_ == "json" else rule_page.as_table(everything, width()))


COMMAND = rules
