"""``zaudit rules``: what is checked."""

from __future__ import annotations

from pathlib import Path

import click

from auditor.commands._options import SEVERITIES, folders, formats
from auditor.facts import KINDS
from auditor.screen import on_a_terminal, say, width


@click.command(short_help="List the rules.")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option(
    "--severity", type=click.Choice(SEVERITIES), multiple=True, help="Only those of this severity (repeat for more)."
)
@click.option(
    "--subject",
    type=click.Choice(KINDS),
    multiple=True,
    help="Only those that judge this kind of thing (repeat for more).",
)
@formats
@folders
def rules(
    words: tuple[str, ...], severity: tuple[str, ...], subject: tuple[str, ...], format_: str, folders: tuple[Path, ...]
) -> None:
    """List the rules of a check with severity, subject and title: all of them, worst first, or those that speak of every WORD,
    best first: a setting, a property, a parameter, a command, a symptom.
    Known bugs of releases are one rule; a WORD lists them, too. --subject run lists the rules of zaudit verify."""
    from auditor import rulebook
    from auditor.report import rule_page

    everything = rulebook.load(folders, examples=format_ == "json")
    if words:
        from auditor.judge import search

        everything = search.find(everything, words)
    found = [
        rule
        for rule in everything
        if (rule.head is None or words)  # the entries of a table are one rule; each can be found by its words
        and (not severity or rule.gravest in severity)
        and (not subject or rule.subject in subject)
    ]
    shown = [rule for rule in found if subject or not rule.of_verify]
    say(
        rule_page.as_json(shown)
        if format_ == "json"
        else rule_page.as_table(
            shown, width() if on_a_terminal() else None, len(found) - len(shown), ranked=bool(words)
        )
    )


COMMAND = rules
