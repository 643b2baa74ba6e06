"""``zaudit checklist``: what people tick off before they trust a log device, a figure or a benchmark, answered."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NoReturn

import click

from auditor import __version__
from auditor.commands import _options
from auditor.commands._auditing import Request, gathered
from auditor.commands._options import Local, formats_of, looking, policy
from auditor.commands._options import database as database_option
from auditor.screen import look, write
from auditor.streams import progress


@click.command(short_help="Fill in readiness checklists for a SLOG or a benchmark.")
@click.argument("target", required=False, shell_complete=_options.target_names)
@click.option("--replay", "replays", type=Local(), multiple=True, metavar="REC",
              help="A recording of check, verify or diagnose; one of each at most (repeat for more).")  # fmt: skip
@formats_of("terminal", "markdown", "html", "json")
@_options.output("Write the list to a file.")
@database_option
@policy
@click.option("-v", "--verbose", is_flag=True, help="Show everything that each line rests on.")
@looking
@gathered
def checklist(
    asked: Request, target: str | None, replays: tuple[Path, ...], format_: str, output: Path | None, verbose: bool
) -> NoReturn:
    """Answer three checklists for TARGET (a pool, dataset, zvol or mounted path): is its log device fit for a database, do its
    figures fool anybody, does its benchmark stand up in a postmortem.

    TARGET is audited here, as zaudit check does, or taken from a recording of check; recordings of zaudit verify and zaudit
    diagnose, of the same host and target, answer what only they can. Without TARGET and such a recording, the audit is the one
    that the last of them began with. It measures nothing itself.

    A line is yes only where everything that it asks for was seen and passed; no, where something failed; else it is open, with
    the command that would answer it, or the question that only a person can. What was recorded before a setting or a log
    device changed answers nothing any more.

    Exit codes: 11 to 14 the worst of what a no rests on (low, medium, high, critical); else 10 while a command would answer
    what is open; else 0, also where only a person can.
    """
    from auditor.checklist import checklist_page, responses

    if not target and not replays:
        raise click.UsageError("name a TARGET, or --replay recordings")
    options = asked.options()
    wanted = responses.ChecklistOptions(
        target, replays, options, asked.named_policy(), asked.timeout, asked.deadline, time.time()
    )
    found = responses.draw(wanted, progress(asked.deadline))
    text = checklist_page.write(format_, found, zaudit=__version__, verbose=verbose, **look(output))
    summary = f"{checklist_page.counts(found)} (exit code {found.exit_code})"
    write(text, output, summary, encoded=format_ == "html")
    sys.exit(found.exit_code)


COMMAND = checklist
