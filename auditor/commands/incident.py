"""When something is wrong: ``zaudit diagnose``, recordings and their comparison, and what killed runs left."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from auditor import EXIT_BROKE, __version__
from auditor.commands import _options
from auditor.commands._auditing import Request, gathered, read_report
from auditor.commands._options import Local, Seconds
from auditor.host import user_files
from auditor.interrupt import progress
from auditor.screen import ascii_only, look, note, say, steps, width, write
from auditor.text import harmless

if TYPE_CHECKING:
    from auditor.report.changes import Comparison
    from auditor.report.sides import Sides

SECONDS, LONGEST = 30, 3600


@click.command(short_help="Show who commits now, how long it takes, and why.")
@click.argument("target", required=False, shell_complete=_options.target_names)
@click.option("--seconds", type=Seconds(1, LONGEST), metavar="SECONDS",
              help=f"Look for this long.  [default: {SECONDS}; with --watch until Ctrl-C, at most {LONGEST}]")  # fmt: skip
@click.option("--watch", is_flag=True, help="Print a line each second; Ctrl-C ends it, and the report follows.")
@click.option("--no-trace", is_flag=True, help="No events in tracefs: counters alone; nothing on the host is changed.")
@_options.database
@_options.replay("Judge a recorded diagnosis again.")
@_options.record
@_options.formats_of("terminal", "json", "html")
@_options.output("Write the report to a file.")
@_options.policy
@click.option("-v", "--verbose", is_flag=True, help="Show every thread and dataset.")
@_options.timeout()
@_options.deadline("Stop the questions of the audit after this time; give up on a recording.")
@gathered
def diagnose(
    asked: Request,
    target: str | None,
    seconds: float | None,
    watch: bool,
    no_trace: bool,
    format_: str,
    output: Path | None,
    verbose: bool,
) -> NoReturn:
    """Watch the sync writes of TARGET (a pool, dataset, zvol or mounted path) under the current load. Say who makes
    them, how long each takes, and what it waits for. Nothing is written to the pool. A bare number is a process ID:
    then it watches the pool that the process and its children write to, and marks their commits.

    As root it adds its own events to the kernel's tracefs while it runs (probes of zil_commit and zil_lwb_write_issue,
    histograms in a separate instance). It removes them one by one; zaudit clean does so after a kill -9.
    Otherwise, with --no-trace and without root it only reads counters, which do not show how long a commit takes.

    With --watch and another format than terminal the lines go to standard error.

    With --db NAME=DSN the database's own counters of the same time stand next to the kernel's (PostgreSQL, MySQL, MariaDB):
    its syncs, checkpoints, and once a second what its backends wait for, in a read-only session with short time-outs. No
    query, user or address is asked for, and the DSN is neither recorded nor reported.

    Exit codes: 0 nothing stands out, 10 inconclusive, 12 something stands out, 14 syncs that write nothing.
    """
    from auditor.diagnose import watch as command

    if bool(target) == bool(asked.replay):
        raise click.UsageError("name a TARGET, or --replay a recording")
    if asked.replay and asked.database:
        raise click.UsageError("--db does not go with --replay: a recording has what the database said")
    if watch and asked.replay:
        raise click.UsageError("--watch looks at this host, and a recording has been looked at")
    if asked.replay:
        found = command.replayed(asked.replay, asked.named_policy())
    else:
        wanted = command.DiagnoseOptions(
            target=str(target),
            seconds=seconds or (LONGEST if watch else SECONDS),
            traced=not no_trace,
            watch=watch,
            beside=format_ != "terminal",
            record=asked.record,
            options=asked.options(),
            timeout=asked.timeout,
            deadline=asked.deadline,
        )
        found = command.live(wanted, progress(asked.deadline), None if watch else steps())
    if watch and format_ == "terminal" and not output:
        say("")
    from auditor.diagnose import diagnose_page

    shown = found.diagnosis, found.report
    text = diagnose_page.write(format_, *shown, zaudit=__version__, verbose=verbose, **look(output))
    code = command.EXITS[found.diagnosis.outcome]
    write(text, output, f"{found.diagnosis.outcome} (exit code {code})", encoded=format_ == "html")
    if found.unkept:
        raise found.unkept
    sys.exit(code)


# ``zaudit record``: ask everything, judge nothing, keep the answers.


KEY_LEAST, KEY_LONGEST = 32, 4096  # bytes of a key


@click.command(short_help="Record a host, to audit it elsewhere.")
@_options.targets
@click.option("-o", "--output", "path", required=True, type=Local(), metavar="REC",
              help="Folder, .tar.gz or .zaudit to write.")  # fmt: skip
@_options.replay("Convert this recording, instead of making one.")
@click.option("--redact", is_flag=True, help="Replace serials, GUIDs, WWNs and host names with stable stand-ins.")
@click.option("--redact-key", type=Local(dir_okay=False), metavar="FILE",
              help="Redact with this secret: all recordings made with it share their stand-ins.")  # fmt: skip
@_options.database
@_options.policy
@_options.asking
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
    judges = rule.digest(rulebook.choose((), (), (), policy).rules)
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
    with user_files.open_input(path) as file:
        data = b"" if isinstance(file, int) else file.read(KEY_LONGEST + 1)
        open_to_others = isinstance(file, int) or not user_files.private(file)
    if not KEY_LEAST <= len(data) <= KEY_LONGEST or open_to_others:
        raise click.UsageError(
            f"{path}: a key is a file of {KEY_LEAST} to {KEY_LONGEST} random bytes, which its owner alone can read "
            f"(umask 077; head -c {KEY_LEAST} /dev/urandom > {path.name})"
        )
    return data


# ``zaudit diff``: what changed between two recordings or reports; an exit code for a ratchet.


KIND = Local()


@click.command(short_help="Compare two recordings or JSON reports.")
@click.argument("old", type=KIND, metavar="OLD")
@click.argument("new", type=KIND, metavar="NEW")
@click.option("--side-by-side", is_flag=True,
              help="OLD is a primary, NEW its standby: where it is worse, and what a failover would change.")  # fmt: skip
@_options.formats
@_options.fail_on
@_options.folders
@_options.deadline("Give up on OLD and NEW after this time.", ("old", "new"))
def diff(
    old: Path,
    new: Path,
    side_by_side: bool,
    format_: str,
    fail_on: Any,
    failed_only: bool,
    folders: tuple[Path, ...],
    **_: Any,
) -> NoReturn:
    """What is new, worse, changed, better and gone from OLD to NEW: recordings (folder, .tar.gz or .zaudit), which are
    judged by today's rules, or reports of zaudit check --format json; one of each is fine.

    Exit code: 0 when nothing at or above --fail-on is new or worse, else 11 to 14 for the worst; with
    --failed-only for the worst new failure, and 10 when some could not be decided. With --side-by-side: for what is or may be
    worse on the standby.
    """
    from auditor.report import changes, sides, terminal
    from auditor.report.document import Block

    before, after = (_document(path, folders) for path in (old, new))
    found: Comparison | Sides
    try:
        found = sides.compare(before, after) if side_by_side else changes.compare(before, after)
    except changes.CompareError as error:
        raise click.UsageError(f"not a report of zaudit: {error}") from None
    code = found.exit_code(fail_on, failed_only=failed_only)
    document: dict[str, Any]
    blocks: Iterator[Block]
    if isinstance(found, sides.Sides):
        document, blocks = sides.as_json(found, code), sides.page(found, code)
    else:
        document, blocks = changes.as_json(found, before, after, code), changes.page(found, before, after, code)
    if format_ == "json":
        say(json.dumps(document, indent=1))
    else:
        say(terminal.fragment(blocks, width=min(width(), 120), ascii_only=ascii_only()))
    sys.exit(code)


def _document(path: Path, folders: tuple[Path, ...]) -> dict[str, Any]:
    """The report of a recording, or one that was written to a file."""
    from auditor.recording import archive

    if path.is_file() and not archive.is_archive(path):
        return read_report(path)
    from auditor import audit, rulebook
    from auditor.recording import recording
    from auditor.report import report_json as report

    past = recording.load(path)
    seen = audit.replay(past)
    rules = rulebook.choose(folders, (), (), seen.policy).rules
    return report.document(audit.judge(seen, rules, past.targets, "low"))


# ``zaudit clean``: remove what killed verifications and diagnoses left.


@click.command(short_help="Remove what interrupted verifications and diagnoses left.")
@click.option(
    "--powercut",
    is_flag=True,
    help="Also remove the files of zaudit powercut, and forget a session that waits for its check.",
)
def clean(powercut: bool) -> NoReturn:
    """Remove the directories and scratch zvols of verifications that were killed, and the events in tracefs of diagnoses;
    nothing else."""
    from auditor.diagnose import tracing
    from auditor.powercut import campaign
    from auditor.verify import ledger, place

    failed = 0
    for left, wrong in place.clean(ledger.call, runs=powercut):
        say(f"{harmless(left.path)}: {wrong or 'removed'}")
        failed += bool(wrong)
    if powercut:
        campaign.forget()
    for each in ledger.places() if not powercut else ():
        if each.run:
            say(f"{harmless(each.path)}: left for zaudit powercut check; --powercut removes it")
    for name, wrong in tracing.clean():
        say(f"{tracing.ROOT}: {name}: {wrong or 'removed'}")
        failed += bool(wrong)
    for each in ledger.places():
        if ledger.in_use(each):
            say(f"{harmless(each.path)}: in use by process {each.pid}, left alone")
    sys.exit(EXIT_BROKE if failed else 0)
