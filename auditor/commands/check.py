"""``zaudit check``: audit a host, or a recording of one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from auditor import __version__
from auditor.commands import _baseline, _check_verify, _complete
from auditor.commands._baseline import baseline_options
from auditor.commands._done import Done
from auditor.commands._formats import FormatChoice, code, emit, promised, report_formats, settled
from auditor.commands._options import SEVERITIES, Local, fail_on, folders, looking, policy, with_database
from auditor.commands._options import database as database_option
from auditor.commands._terminal import look as looking_at
from auditor.commands._terminal import note, write
from auditor.commands._terminal import wanted as looks
from auditor.report import formats
from auditor.streams import progress


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
@click.option(
    "--rule",
    "only",
    multiple=True,
    metavar="ID",
    shell_complete=_complete.rule_ids,
    help="Run only this rule (repeat for more).",
)
@click.option(
    "--skip",
    multiple=True,
    metavar="ID",
    shell_complete=_complete.rule_ids,
    help="Do not run this rule (repeat for more).",
)
@folders
@policy
@baseline_options
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
@click.option("--verify", "verifying", is_flag=True, help="Also run zaudit verify --quick (it writes); one report.")
@click.option(
    "--min-severity",
    type=click.Choice(SEVERITIES),
    default="low",
    help="Do not show findings below this on a terminal or page; they still count.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Show the evidence of what failed, of what is undecided and of what passed."
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
    baseline: Path | None,
    write_baseline: bool,
    accept_undecided: bool,
    update: bool,
    database: str | None,
    supposed: tuple[str, ...],
    verifying: bool,
    verbose: bool,
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
    from auditor import audit, rulebook
    from auditor.commands._policy import read
    from auditor.host.live import Host, LiveHost
    from auditor.judge import supposition
    from auditor.judge.policy import retired_names
    from auditor.recording import recording, replacing

    changes = [supposition.parse(each) for each in supposed]
    if changes and (verifying or record or baseline or any(each.name not in ("json", "terminal") for each in wanted)):
        others = "--verify, --record, --baseline or a format but terminal and json"
        raise click.UsageError(f"--suppose cannot be combined with {others}: what is supposed is no state of this host")
    looks(color, quiet)
    wanted = settled(wanted, output, "terminal")
    known = _baseline.wish(baseline, write_baseline, accept_undecided, update)
    with promised(wanted):
        past = recording.load(replay) if replay and not verifying else None
        options = audit.Options.from_words(past.options) if past else audit.Options(consistent)
        options = with_database(options, database)
        if policy_file or not past:
            options = options._replace(policy=read(policy_file))
        rules, left_out = chosen = rulebook.choose(folders, only, skip, options.policy, runs=verifying)
        ids = [rule.id for rule in rules] + [each.rule for each in left_out]
        for line in () if quiet else retired_names(ids, skip, options.policy):
            note(line)
        if verifying:
            if known.path:
                raise click.UsageError("--verify: a verification has no baseline")
            _check_verify.run(targets, replay, chosen, options, record, wanted, fail_on, failed_only, timeout, deadline)
        if past and record:
            raise click.UsageError("--record needs a live check; here is a recording already")
        if record:
            replacing.possible(record)
        live: Host = recording.ReplayHost(past) if past else LiveHost(timeout, deadline)
        host = recording.RecordingHost(live) if record else live
        asked = past.targets if past else targets
        try:
            seen = audit.look(host, asked, options, None if replay or quiet else progress(deadline))
        except audit.NothingToAudit as nothing:
            from auditor.commands import _host_alone

            raise _host_alone.told(nothing, rules, quiet=quiet) from None
        focus = targets if past and targets and targets != asked else ()
        then = audit.suppose(seen, changes) if changes else seen
        narrowed = audit.focus(seen, host, focus) if focus else seen
        names = focus or asked
        if changes:
            from auditor.report import supposed as comparison

            before, after = (
                comparison.Side(
                    audit.judge(each, rules, names, fail_on, left_out=left_out, failed_only=failed_only), each.facts
                )
                for each in (narrowed, audit.focus(then, host, focus) if focus else then)
            )
            for choice in wanted:
                words = [each.text for each in changes]
                form: Callable[..., str] = comparison.document
                if choice.name != "json":
                    form = partial(comparison.page, **looking_at(choice.file))
                write(form(before, after, words), choice.file, f"supposed: {after.report.headline}")
            sys.exit(after.report.exit_code)
        report = audit.judge(
            narrowed,
            rules,
            names,
            fail_on,
            left_out=left_out,
            failed_only=failed_only,
            known=_baseline.read(known, narrowed.facts, names, trusted=not past),
        )
    for line in () if quiet else _baseline.retired_names(known, report):
        note(line)
    done = Done(report, verbose, min_severity)
    try:
        if record and isinstance(host, recording.RecordingHost):
            for unkept in recording.write(host.recording(targets, options.words(), __version__, report.rules), record):
                note(unkept)
        _baseline.write(known, report, narrowed.facts)
    finally:  # a disk that is full costs the recording, and not the report
        emit(wanted, done.text, f"{report.headline} (exit code {report.exit_code})")
    sys.exit(code(wanted, report.exit_code, done.data))


COMMAND = check
