"""``zaudit record``: ask everything, judge nothing, keep the answers."""

from __future__ import annotations

from pathlib import Path

import click

from auditor import __version__
from auditor.commands import _complete
from auditor.commands._options import database as database_option
from auditor.commands._options import looking, policy, with_database
from auditor.commands._terminal import note, progress


@click.command(short_help="Record a host, to audit it elsewhere.")
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=_complete.targets)
@click.option(
    "-o",
    "--output",
    "path",
    required=True,
    type=click.Path(path_type=Path),
    metavar="REC",
    help="Folder or .tar.gz to write.",
)
@click.option("--redact", is_flag=True, help="Replace serials, GUIDs, WWNs and host names by stable stand-ins.")
@database_option
@policy
@looking
def record(
    targets: tuple[str, ...],
    path: Path,
    redact: bool,
    database: str | None,
    policy_file: Path | None,
    timeout: float,
    deadline: float,
    consistent: bool,
) -> None:
    """Ask everything that `zaudit check` asks and write the answers to REC; `zaudit check --replay REC` audits them."""
    from auditor import audit, rulebook
    from auditor.commands._policy import read
    from auditor.host.live import LiveHost
    from auditor.judge import policy_file as files
    from auditor.judge import rule
    from auditor.recording import recording, redaction, replacing

    replacing.possible(path)
    wanted = with_database(audit.Options(consistent), database)
    host = recording.RecordingHost(LiveHost(timeout, deadline))
    policy = read(policy_file)
    if redact and policy.path:  # owners and reasons are names of people and places
        policy = files.parse(files.bare(policy), files.PATH)
    options = wanted._replace(policy=policy)
    audit.look(host, targets, options, progress())
    judges = rule.digest(rulebook.select((), (), (), policy))
    taken = host.recording(targets, options.words(), __version__, judges)
    for left_out in recording.write(redaction.redact(taken) if redact else taken, path):
        note(left_out)
    note(f"{path}: {len(taken.commands)} commands, {sum(len(files.text) for files in taken.files.values())} files")


COMMAND = record
