"""``zaudit record``: ask everything, judge nothing, keep the answers."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from auditor import __version__
from auditor.commands import _options
from auditor.commands._auditing import Request, gathered
from auditor.commands._options import Local, asking, policy
from auditor.commands._options import database as database_option
from auditor.screen import note
from auditor.streams import progress

LEAST, LONGEST = 32, 4096  # bytes of a key


@click.command(short_help="Record a host, to audit it elsewhere.")
@_options.targets
@click.option("-o", "--output", "path", required=True, type=Local(), metavar="REC",
              help="Folder, .tar.gz or .zaudit to write.")  # fmt: skip
@_options.replay("Convert this recording, instead of making one.")
@click.option("--redact", is_flag=True, help="Replace serials, GUIDs, WWNs and host names with stable stand-ins.")
@click.option("--redact-key", type=Local(dir_okay=False), metavar="FILE",
              help="Redact with this secret: all recordings made with it share their stand-ins.")  # fmt: skip
@database_option
@policy
@asking
@gathered
def record(asked: Request, path: Path, redact: bool, redact_key: Path | None) -> None:
    """Ask everything that `zaudit check` asks and write the answers to REC; `zaudit check --replay REC` audits them.

    The name of REC decides what it is: a .tar.gz, a .zaudit (one text file, for git and diff) or a folder.
    """
    from auditor import audit, rulebook
    from auditor.host.live import LiveHost
    from auditor.judge import policy_file as files
    from auditor.judge import rule
    from auditor.recording import archive, recording, redaction

    archive.possible(path)
    if asked.replay:
        _alone_with_replay(click.get_current_context())
        recording.write(recording.load(asked.replay), path)
        return
    key = _secret(redact_key) if redact_key else b""
    redact = redact or bool(key)
    host = recording.RecordingHost(LiveHost(asked.timeout, asked.deadline))
    options = asked.options()
    policy = options.policy
    if redact and policy.path:  # owners and reasons are names of people and places
        policy = files.parse(files.bare(policy), files.PATH)
    options = options._replace(policy=policy)
    audit.look(host, asked.targets, options, progress(asked.deadline))
    judges = rule.digest(rulebook.select((), (), (), policy))
    taken = host.recording(asked.targets, options.words(), __version__, judges)
    for left_out in recording.write(redaction.redact(taken, key) if redact else taken, path):
        note(left_out)
    note(f"{path}: {len(taken.commands)} commands, {sum(len(files.text) for files in taken.files.values())} files")


def _alone_with_replay(ctx: click.Context) -> None:
    """Raises UsageError where more is said than a place to write to: a recording is converted as it is."""
    for param in ctx.command.params:
        given = ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if given and param.name not in ("replay", "path", "deadline"):
            name = param.opts[0] if isinstance(param, click.Option) else "TARGET"
            raise click.UsageError(f"{name} does not go with --replay, which converts a recording as it is")


def _secret(path: Path) -> bytes:
    """The key of a fleet. Raises UsageError for one that is too short, or that others than its owner can read; OSError."""
    from auditor.host import user_files

    with user_files.open_input(path) as file:
        data = b"" if isinstance(file, int) else file.read(LONGEST + 1)
        open_to_others = isinstance(file, int) or not user_files.private(file)
    if not LEAST <= len(data) <= LONGEST or open_to_others:
        raise click.UsageError(
            f"{path}: a key is a file of {LEAST} to {LONGEST} random bytes, which its owner alone can read "
            f"(umask 077; head -c {LEAST} /dev/urandom > {path.name})"
        )
    return data


COMMAND = record
