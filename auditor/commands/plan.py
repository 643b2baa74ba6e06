"""``zaudit plan``: the steps that make a host better, in order. It runs none of them."""

from __future__ import annotations

from pathlib import Path

import click

from auditor.commands import _options
from auditor.commands._auditing import Request, gathered
from auditor.commands._options import database as database_option
from auditor.commands._options import folders, looking, policy
from auditor.screen import write

SCRIPT = "sh: a script that makes the safe steps and checks before each; the others are comments in it."


@click.command(short_help="The steps that make it better, in order; nothing is run.")
@_options.targets
@_options.replay("Plan for a recorded host instead of this one.")
@_options.formats_of("markdown", "json", "sh", words=SCRIPT)
@_options.output("Write the plan to a file.")
@database_option
@folders
@policy
@looking
@gathered
def plan(asked: Request, format_: str, output: Path | None) -> None:
    """Order the fixes of what zaudit check finds on TARGETs, and show the table after each step.

    A fix that sets something is simulated as --suppose does. First comes what gains most at the worst row of the table; no
    step makes anything worse without the step before it. Steps that rebuild, destroy or restart something, or that need a
    decision, are marked as made by hand. zaudit runs none of them.
    """
    from auditor import audit
    from auditor.plan import plan_page, steps

    looked = asked._replace(quiet=bool(asked.replay)).choose().look()
    rules, left_out = looked.audit.rules
    names = asked.targets or looked.targets
    found = steps.make(looked.narrowed(), lambda look: audit.judge(look, rules, names, "low", left_out=left_out))
    page = {"markdown": plan_page.markdown, "json": plan_page.document, "sh": plan_page.script}[format_](found)
    write(page, output, f"{len(found.steps)} steps", encoded=format_ == "sh")


COMMAND = plan
