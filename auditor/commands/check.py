"""``zaudit check``: audit a host, or a recording of one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from auditor import __version__
from auditor.commands import _options
from auditor.commands._auditing import Audit, Inspected, Request, gathered
from auditor.commands._formats import Done, FormatChoice, code, emit, promised, report_formats, settled
from auditor.commands._options import SEVERITIES, fail_on, looking, policy, rules_of
from auditor.commands._options import database as database_option
from auditor.report import formats
from auditor.screen import look, note, steps, write
from auditor.screen import wanted as looks
from auditor.streams import progress

if TYPE_CHECKING:
    from auditor.judge.event import Severity
    from auditor.judge.supposition import Change

VERIFIED = ("terminal", "json", "html")  # of what a verification is part


@click.command(short_help="Audit pools, datasets, zvols or paths.")
@_options.targets
@_options.replay("Audit a recording (folder, .tar.gz or .zaudit) instead of this host.")
@_options.record
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
    shell_complete=_options.changes,
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
@gathered
def check(
    asked: Request,
    wanted: tuple[FormatChoice, ...],
    output: Path | None,
    supposed: tuple[str, ...],
    name: str | None,
    verifying: bool,
    verbose: int,
    min_severity: Severity,
    color: str,
) -> NoReturn:
    """Audit TARGETs: pools, datasets, zvols, block devices, or mounted paths, those of another file system on a zvol included;
    all imported pools when none is named.

    It audits the target and its children, the pool, every leaf, the physical disks behind them and the host, and whatever the
    databases on the target use elsewhere.
    """
    from auditor.recording import archive, recording

    changes: list[Change] = []
    if supposed:
        from auditor.judge import supposition

        changes = [supposition.parse(each) for each in supposed]
    record = asked.record
    if changes and (verifying or record or any(each.name not in ("json", "terminal") for each in wanted)):
        others = "--verify, --record or a format but terminal and json"
        raise click.UsageError(f"--suppose cannot be combined with {others}: what is supposed is no state of this host")
    looks(color, asked.quiet)
    wanted = settled(wanted, output, "terminal")
    with promised(wanted):
        chosen = asked.choose(verifying=verifying)
        if verifying:
            _verify(asked, chosen, wanted)
        if chosen.past and record:
            raise click.UsageError("--record needs a live check; here is a recording already")
        if record:
            archive.possible(record)
        looked = chosen.look()
        if changes:
            _compare(looked, changes, wanted)
        report = looked.judge()
        report = report._replace(hostname=name or report.hostname)
    done = Done(report, verbose, min_severity)
    try:
        if record and isinstance(looked.host, recording.RecordingHost):
            made = looked.host.recording(asked.targets, chosen.options.words(), __version__, report.rules)
            for unkept in recording.write(made, record):
                note(unkept)
    finally:  # a disk that is full costs the recording, and not the report
        emit(wanted, done.text, f"{report.headline} (exit code {report.exit_code})")
    sys.exit(code(wanted, report.exit_code, done.data))


def _compare(looked: Inspected, changes: Sequence[Change], wanted: Sequence[FormatChoice]) -> NoReturn:
    from auditor.report import supposed

    before, after = (supposed.Side(each.judge(), each.seen.facts) for each in (looked, looked.suppose(changes)))
    for choice in wanted:
        words = [each.text for each in changes]
        if choice.name == "json":
            text = supposed.document(before, after, words)
        else:
            text = supposed.page(before, after, words, **look(choice.file))
        write(text, choice.file, f"supposed: {after.report.headline}")
    sys.exit(after.report.exit_code)


def _verify(asked: Request, chosen: Audit, wanted: Sequence[FormatChoice]) -> NoReturn:
    """The audit and a quick verification of one target as one report; the profile is that of the database, if it was told."""
    from auditor.databases import ENGINES
    from auditor.verify import session

    engine = chosen.options.wanted.database
    if chosen.options.wanted.connection:
        raise click.UsageError("--verify does not ask a database: --db NAME alone chooses what is written")
    if asked.replay or len(asked.targets) != 1:
        raise click.UsageError(
            "--verify goes with one TARGET of this host (zaudit verify --replay judges a recorded one)"
        )
    if not (profile := ENGINES[engine or "postgres"].profile):
        raise click.UsageError(f"--verify: there is no profile of {engine} yet")
    format_, output = wanted[0]
    if len(wanted) > 1 or format_ not in VERIFIED:
        raise click.UsageError(f"--verify: one format, of {', '.join(VERIFIED)}")
    request = session.VerifyRequest(
        asked.targets[0],
        profile,
        record=asked.record,
        timeout=asked.timeout,
        deadline=asked.deadline,
        fail_on=asked.fail_on,
        failed_only=asked.failed_only,
        chosen=chosen.rules,
        policy=chosen.options.policy,
    )
    found = session.live(request, progress(asked.deadline), steps())
    assert found is not None  # only a dry run finds nothing
    write(session.rendered(found, format_, look(output)), output, session.summary(found))
    if found.unkept:
        raise found.unkept
    sys.exit(found.report.exit_code)


COMMAND = check
