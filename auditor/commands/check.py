"""``zaudit check``: audit a host, or a recording of one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from auditor import __version__
from auditor.commands import _auditing, _check_verify, _complete
from auditor.commands._done import Done
from auditor.commands._formats import FormatChoice, code, emit, promised, report_formats, settled
from auditor.commands._options import SEVERITIES, Local, fail_on, looking, policy, rules_of
from auditor.commands._options import database as database_option
from auditor.commands._terminal import look as looking_at
from auditor.commands._terminal import note, write
from auditor.commands._terminal import wanted as looks
from auditor.report import formats


@click.command(short_help="Audit pools, datasets, zvols or paths.")
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=_complete.targets)
@click.option(
    "--replay",
    type=Local(),
    metavar="REC",
    help="Audit a recording (folder, .tar.gz or .zaudit) instead of this host.",
)
@click.option("--record", type=Local(), metavar="REC", help="Also write a recording of this run.")
@report_formats(formats.names(), "terminal")
@fail_on
@rules_of
@policy
@database_option
@click.option(
    "--suppose",
    "supposed",
    multiple=True,
    metavar="CHANGE",
    shell_complete=_complete.changes,
    help="Show the table before and after a change, such as 'tank/db sync=standard', 'zfs zil_nocacheflush=0', 'postgres "
    "fsync=on', 'nvme0n1 gone' or 'host release=2.4.4' (repeat for more).",
)
@click.option("--name", metavar="NAME", help="What to call the host in the report: a file in a repository, say.")
@click.option("--verify", "verifying", is_flag=True, help="Also run zaudit verify --quick (it writes); one report.")
@click.option(
    "--min-severity",
    type=click.Choice(SEVERITIES),
    default="low",
    help="Do not show findings below this on a terminal or page; they still count.",
)
@click.option(
    "-v", "--verbose", count=True, help="Show the evidence of what failed and is unknown; -vv: also of what passed."
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but the reports, unless something goes wrong.")
@click.option(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    help="auto: on a terminal, or as NO_COLOR or FORCE_COLOR say.",
)
@looking
def check(
    targets: tuple[str, ...],
    replay: Path | None,
    record: Path | None,
    wanted: tuple[FormatChoice, ...],
    output: Path | None,
    fail_on: Any,
    failed_only: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    folders: tuple[Path, ...],
    policy_file: Path | None,
    database: str | None,
    supposed: tuple[str, ...],
    name: str | None,
    verifying: bool,
    verbose: int,
    min_severity: Any,
    quiet: bool,
    color: str,
    timeout: float,
    deadline: float,
    consistent: bool,
) -> NoReturn:
    """Audit TARGETs: pools, datasets, zvols, block devices, or mounted paths, those of another file system on a zvol included;
    all imported pools when none is named.

    It audits the target and its children, the pool, every leaf, the physical disks behind them and the host, and whatever the
    databases on the target use elsewhere.
    """
    from auditor.judge import supposition
    from auditor.recording import recording, replacing

    changes = [supposition.parse(each) for each in supposed]
    if changes and (verifying or record or any(each.name not in ("json", "terminal") for each in wanted)):
        others = "--verify, --record or a format but terminal and json"
        raise click.UsageError(f"--suppose cannot be combined with {others}: what is supposed is no state of this host")
    looks(color, quiet)
    wanted = settled(wanted, output, "terminal")
    with promised(wanted):
        chosen = _auditing.choose(replay, folders, only, skip, policy_file, database, consistent, quiet, verifying)
        if verifying:
            _check_verify.run(
                targets, replay, chosen.rules, chosen.options, record, wanted, fail_on, failed_only, timeout, deadline
            )
        if chosen.past and record:
            raise click.UsageError("--record needs a live check; here is a recording already")
        if record:
            replacing.possible(record)
        looked = _auditing.look(chosen, targets, timeout, deadline, quiet, record=bool(record))
        if changes:
            from auditor.report import supposed as comparison

            before, after = (
                comparison.Side(_auditing.judge(chosen, each, fail_on, failed_only), each.seen.facts)
                for each in (looked, looked.suppose(changes))
            )
            for choice in wanted:
                words = [each.text for each in changes]
                form: Callable[..., str] = comparison.document
                if choice.name != "json":
                    form = partial(comparison.page, **looking_at(choice.file))
                write(form(before, after, words), choice.file, f"supposed: {after.report.headline}")
            sys.exit(after.report.exit_code)
        report = _auditing.judge(chosen, looked, fail_on, failed_only)
        report = report._replace(hostname=name or report.hostname)
    done = Done(report, verbose, min_severity)
    try:
        if record and isinstance(looked.host, recording.RecordingHost):
            made = looked.host.recording(targets, chosen.options.words(), __version__, report.rules)
            for unkept in recording.write(made, record):
                note(unkept)
    finally:  # a disk that is full costs the recording, and not the report
        emit(wanted, done.text, f"{report.headline} (exit code {report.exit_code})")
    sys.exit(code(wanted, report.exit_code, done.data))


COMMAND = check
