"""Before go-live: ``zaudit check`` of a host or a recording, the plan, advice, checklists, and the verification."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from auditor import __version__
from auditor.commands import _auditing, _options
from auditor.commands._auditing import Audit, Done, FormatChoice, Inspected, Request, gathered, report_formats
from auditor.commands._options import SEVERITIES, Local
from auditor.databases import ENGINES
from auditor.interrupt import progress
from auditor.report import formats
from auditor.screen import ascii_only, look, note, say, steps, width, write
from auditor.screen import wanted as looks
from auditor.text import harmless

if TYPE_CHECKING:
    from auditor.audit import Look
    from auditor.judge.event import Severity
    from auditor.judge.supposition import Change
    from auditor.report.document import Block

VERIFIED = ("terminal", "json", "html")  # of what a verification is part


@click.command(short_help="Audit pools, datasets, zvols or paths.")
@_options.targets
@_options.replay("Audit a recording (folder, .tar.gz or .zaudit) instead of this host.")
@_options.record
@report_formats(formats.names(), "terminal")
@_options.fail_on
@_options.rules_of
@_options.policy
@_options.database
@click.option("--suppose", "supposed", multiple=True, metavar="CHANGE", shell_complete=_options.changes,
              help="Show the table before and after a change (repeatable): 'tank/db sync=standard', 'zfs zil_nocacheflush=0', "
                   "'postgres fsync=on', 'nvme0n1 gone' or 'host release=2.4.4'.")  # fmt: skip
@click.option("--name", metavar="NAME", help="What to call the host in the report: a file in a repository, say.")
@click.option("--verify", "verifying", is_flag=True, help="Also run zaudit verify --quick (it writes); one report.")
@click.option("--min-severity", type=click.Choice(SEVERITIES), default="low",
              help="Do not show findings below this on a terminal or page; they still count.")  # fmt: skip
@click.option(
    "-v", "--verbose", count=True, help="Show the evidence of what failed and is unknown; -vv: also of what passed."
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but the reports, unless something goes wrong.")
@click.option("--color", type=click.Choice(("auto", "always", "never")), default="auto",
              help="auto: on a terminal, or as NO_COLOR or FORCE_COLOR say.")  # fmt: skip
@_options.looking
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

    It audits the target and its children, the pool, every leaf, the physical disks and the host. It adds whatever the
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
    wanted = _auditing.settled(wanted, output, "terminal")
    with _auditing.promised(wanted):
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
        _auditing.emit(wanted, done.text, f"{report.headline} (exit code {report.exit_code})")
    sys.exit(_auditing.code(wanted, report.exit_code, done.data))


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
    from auditor.verify import verification

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
    request = verification.VerifyRequest(
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
    found = verification.live(request, progress(asked.deadline), steps())
    assert found is not None  # only a dry run finds nothing
    write(verification.rendered(found, format_, look(output)), output, verification.summary(found))
    if found.unkept:
        raise found.unkept
    sys.exit(found.report.exit_code)


# ``zaudit plan``: the steps that make a host better, in order. It runs none of them.


SCRIPT = "sh: a script that makes the safe steps and checks before each; the others are comments in it."


@click.command(short_help="List the steps that fix it, in order; run nothing.")
@_options.targets
@_options.replay("Plan for a recorded host instead of this one.")
@_options.formats_of("markdown", "json", "sh", words=SCRIPT)
@_options.output("Write the plan to a file.")
@_options.database
@_options.folders
@_options.policy
@_options.looking
@gathered
def plan(asked: Request, format_: str, output: Path | None) -> None:
    """Order the fixes of what zaudit check finds on TARGETs, and show the table after each step.

    A fix that sets something is simulated as --suppose does. First comes what gains most at the worst row of the table; no
    step makes anything worse without the step before it. Steps that rebuild, destroy or restart something, or that need a
    decision, are marked as made by hand. zaudit runs none of them.
    """
    from auditor import audit
    from auditor.advice import plan_page, steps

    looked = asked._replace(quiet=bool(asked.replay)).choose().look()
    rules, left_out = looked.audit.rules
    names = asked.targets or looked.targets
    found = steps.make(looked.narrowed(), lambda look: audit.judge(look, rules, names, "low", left_out=left_out))
    page = {"markdown": plan_page.markdown, "json": plan_page.document, "sh": plan_page.script}[format_](found)
    write(page, output, f"{len(found.steps)} steps", encoded=format_ == "sh")


# ``zaudit advise``: what a dataset for a database should be set to, why, and what differs here; and whether a log device
# would help a pool. It changes nothing.


PARTS = ("both", "data", "log")


@click.group(short_help="Recommend settings for a database, or a log device.")
def advise() -> None:
    """Recommend settings or a log device, with reasons. Nothing is changed."""


@advise.command(short_help="Recommend dataset properties for a database.")
@click.argument("engine", type=click.Choice(list(ENGINES)))
@click.argument("dataset", shell_complete=_options.target_names)
@click.option(
    "--part", type=click.Choice(PARTS), default="both", show_default=True, help="Which part of the database lies there."
)
@_options.replay()
@_options.looking
@gathered
def db(asked: Request, engine: str, dataset: str, part: str) -> None:
    """Compare what DATASET is set to with what is recommended for ENGINE on the vdevs of its pool: the reason, what it costs,
    the source, who disputes it, and the commands that would change it."""
    from auditor.advice import properties
    from auditor.facts import Subject

    seen = _look(asked, dataset)
    found = [each for each in seen.roots if each.kind == "dataset"]
    subject = found[0] if found else Subject("dataset", dataset)
    _print(properties.page(engine, subject, part, seen.facts))


@advise.command(short_help="Say whether a log device would help, which kind and size.")
@click.argument("pool", shell_complete=_options.target_names)
@click.option("--since", type=Local(), metavar="REC", help="An earlier recording: only what was counted since then.")
@_options.replay()
@_options.looking
@gathered
def log(asked: Request, pool: str, since: Path | None) -> None:
    """Tell from the counters of POOL whether a log device would help it, which kind, and how large: commits and bytes of its
    log since its datasets were mounted, and the times of its transaction groups. Without these counters nothing is said, and
    the exit code is 10.

    A mean since the mount hides bursts. Record the host before a load (zaudit record), and give that recording with --since
    after it: then only what was counted in between counts."""
    from auditor.advice import log_device
    from auditor.facts import Subject
    from auditor.judge.finding import EXIT_UNDECIDED

    before = _look(asked._replace(replay=since), pool).facts if since else None
    seen = _look(asked, pool)
    try:
        _print(log_device.page(Subject("pool", pool.partition("/")[0]), seen.facts, before))
    except log_device.NotMeasured as why:
        say(f"Nothing can be said of a log device for {harmless(pool)}: {harmless(str(why))}")
        raise SystemExit(EXIT_UNDECIDED) from None


def _print(blocks: Iterator[Block]) -> None:
    from auditor.report import terminal

    say(terminal.fragment(blocks, width=min(width(), 110), ascii_only=ascii_only()))


def _look(asked: Request, name: str) -> Look:
    return asked._replace(targets=(name,)).choose().look().narrowed()


# ``zaudit checklist``: what people tick off before they trust a log device, a figure or a benchmark, answered.


@click.command(short_help="Fill in readiness checklists for a SLOG or a benchmark.")
@click.argument("target", required=False, shell_complete=_options.target_names)
@click.option("--replay", "replays", type=Local(), multiple=True, metavar="REC",
              help="A recording of check, verify or diagnose; one of each at most (repeat for more).")  # fmt: skip
@_options.formats_of("terminal", "markdown", "html", "json")
@_options.output("Write the list to a file.")
@_options.database
@_options.policy
@click.option("-v", "--verbose", is_flag=True, help="Show everything that each line rests on.")
@_options.looking
@gathered
def checklist(
    asked: Request, target: str | None, replays: tuple[Path, ...], format_: str, output: Path | None, verbose: bool
) -> NoReturn:
    """Answer three checklists for TARGET (a pool, dataset, zvol or mounted path): is its log device fit for a database,
    are its figures misleading, does its benchmark stand up in a postmortem.

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


# ``zaudit verify``: follow every fsync down to the flush on the device.


@click.command(short_help="Follow every fsync down to the device, with a short fio run.")
@click.argument("target", required=False, shell_complete=_options.target_names)
@click.option("--profile", default="postgres", show_default=True, metavar="NAME|FILE.fio",
              help="postgres, mysql-innodb, sqlite, mongodb, etcd, or an fio job file.")  # fmt: skip
@click.option("--quick", "length", flag_value="quick", default=True, help="The log path alone, 36 s (the default).")
@click.option("--standard", "length", flag_value="standard", help="Every part of the profile, 2 min each.")
@click.option("--long", "length", flag_value="long", help="Every part of the profile, 10 min each: enough for p99.9.")
@click.option(
    "--slo", default="", metavar="p99=5ms,...", help="How long a commit may take; default: that of the profile."
)
@click.option("--size", default="", metavar="SIZE", help="Size of each data file; default: twice zfs_dirty_data_max.")
@click.option("--limit", default="", metavar="SIZE", help="Write at most this much.  [default: 10g]")
@click.option("--despite", multiple=True, type=click.Choice(["degraded", "scrub", "full", "space"]),
              help="Run even if the pool is in this state (repeat for more).")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print what would be run and written; do nothing.")
@click.option("--sweep", is_flag=True,
              help="Also measure what group commit is worth here (a fixed amount, synced more and more often).")  # fmt: skip
@click.option(
    "--sweep-size", default="", metavar="SIZE", help="Amount written in each trial of a sweep.  [default: 128m]"
)
@click.option("--compare", type=Local(), metavar="RESULT",
              help="Compare with an earlier result (JSON report or recording).")  # fmt: skip
@_options.replay("Judge a recorded verification again.")
@_options.record
@_options.formats_of("terminal", "json", "html")
@_options.output("Write the report to a file.")
@_options.policy
@_options.fail_on
@_options.timeout("Give up on a command (not on fio) after this time.")
@_options.deadline("Stop the questions of the audit after this time, not fio; give up on a recording.")
def verify(
    target: str | None,
    replay: Path | None,
    compare: Path | None,
    format_: str,
    output: Path | None,
    fail_on: Any,
    failed_only: bool,
    policy_file: Path | None,
    **given: Any,
) -> NoReturn:
    """Write to TARGET (a dataset, zvol or mounted path) as a database does. Follow each sync through system calls, fio,
    the ZIL and the devices.

    TRACED: every sync was followed to a flush that completed. CONTRADICTED: the link that is named lost some. INCONCLUSIVE: it
    could not be seen, and why. Writes only into a new directory, which it removes.
    """
    from auditor.verify import verification as command
    from auditor.verify.verification import VerifyRequest

    if bool(target) == bool(replay):
        raise click.UsageError("name a TARGET, or --replay a recording")
    if replay:
        followed = _auditing.read_policy(policy_file) if policy_file else None
        found = command.replayed(replay, fail_on, compare, followed, failed_only=failed_only)
    else:
        request = VerifyRequest(
            target=str(target),
            fail_on=fail_on,
            failed_only=failed_only,
            compare=compare,
            policy=_auditing.read_policy(policy_file),
            **given,
        )
        done = command.live(request, progress(request.deadline), steps())
        if done is None:
            sys.exit(0)
        found = done
    text = command.rendered(found, format_, look(output))
    write(text, output, command.summary(found), encoded=format_ == "html")
    if found.unkept:
        raise found.unkept
    sys.exit(found.report.exit_code)
