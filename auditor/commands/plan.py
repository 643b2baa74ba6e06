"""``zaudit plan``: the steps that make a host better, in order. It runs none of them."""

from __future__ import annotations

from pathlib import Path

import click

from auditor.commands import _complete
from auditor.commands._options import Local, Output, folders, looking, policy, with_database
from auditor.commands._options import database as database_option
from auditor.commands._terminal import write
from auditor.streams import progress


@click.command(short_help="The steps that make it better, in order; nothing is run.")
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=_complete.targets)
@click.option("--replay", type=Local(), metavar="REC", help="Plan for a recorded host instead of this one.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(("markdown", "json", "sh")),
    default="markdown",
    show_default=True,
    help="sh: a script that makes the safe steps and checks before each; the others are comments in it.",
)
@click.option("-o", "--output", type=Output(), metavar="FILE", help="Write the plan to a file.")
@database_option
@folders
@policy
@looking
def plan(
    targets: tuple[str, ...],
    replay: Path | None,
    format_: str,
    output: Path | None,
    database: str | None,
    folders: tuple[Path, ...],
    policy_file: Path | None,
    timeout: float,
    deadline: float,
    consistent: bool,
) -> None:
    """Order the fixes of what zaudit check finds on TARGETs, and show the table after each step.

    A fix that sets something is simulated as --suppose does. First comes what gains most at the worst row of the table; no
    step makes anything worse without the step before it. Steps that rebuild, destroy or restart something, or that need a
    decision, are marked as made by hand. zaudit runs none of them.
    """
    from auditor import audit, rulebook
    from auditor.commands._policy import read
    from auditor.host.live import Host, LiveHost
    from auditor.plan import pages, steps
    from auditor.recording import recording

    past = recording.load(replay) if replay else None
    options = audit.Options.from_words(past.options) if past else audit.Options(consistent)
    options = with_database(options, database)
    if policy_file or not past:
        options = options._replace(policy=read(policy_file))
    rules, left_out = rulebook.choose(folders, (), (), options.policy, runs=False)
    host: Host = recording.ReplayHost(past) if past else LiveHost(timeout, deadline)
    asked = past.targets if past else targets
    seen = audit.look(host, asked, options, None if past else progress(deadline))
    if past and targets and targets != asked:
        seen = audit.focus(seen, host, targets)
    names = targets or asked
    found = steps.make(seen, lambda look: audit.judge(look, rules, names, "low", left_out=left_out))
    page = {"markdown": pages.markdown, "json": pages.document, "sh": pages.script}[format_](found)
    write(page, output, f"{len(found.steps)} steps", encoded=format_ == "sh")


COMMAND = plan
