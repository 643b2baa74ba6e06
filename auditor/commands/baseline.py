"""``zaudit baseline``: what is accepted on a host, and the audit of every night that counts what is new."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from auditor.commands import _options
from auditor.commands._auditing import Request, gathered
from auditor.commands._formats import Done, FormatChoice, code, emit, promised, report_formats, settled
from auditor.commands._options import Local, fail_on, looking, policy, rules_of
from auditor.commands._options import database as database_option
from auditor.report import formats
from auditor.screen import note, say, written
from auditor.screen import wanted as looks

if TYPE_CHECKING:
    from auditor.facts import Facts
    from auditor.judge.baseline import Baseline
    from auditor.report.model import Report

FILE = click.argument("file", type=Local(dir_okay=False), metavar="FILE")
SHOWN = 5  # causes of what cannot be accepted


@click.group(short_help="Accept what a host has today, and count what is new.")
def baseline() -> None:
    """A baseline lists what is accepted on a host: it stays in the report and does not count, until it becomes worse."""


# the arguments and options of an audit that is held against a baseline
_audit = _options.together(
    FILE,
    _options.targets,
    _options.replay("Audit a recording (folder, .tar.gz or .zaudit) instead of this host."),
    report_formats(formats.names(), "summary"),
    fail_on,
    rules_of,
    policy,
    database_option,
    click.option("-q", "--quiet", is_flag=True, help="Print the reports alone, unless something goes wrong."),
    looking,
)


@baseline.command(short_help="Accept what fails today.")
@_audit
@click.option("--was", default="", metavar="NAME", help="The name that this host had when FILE was made.")
@gathered
def accept(asked: Request, was: str, **options: Any) -> NoReturn:
    """Audit TARGETs (all imported pools when none is named) and write all that fails into FILE, with what is unknown for a
    reason that lasts: a virtual disk, a build of a distribution. What timed out or was refused may have an answer tomorrow and
    is not accepted. With --rule, of these rules alone.

    The report and the exit code are those of the next night, if nothing happens: 0 when all of it is accepted.
    """
    _run(asked, accept=True, was=was, **options)


@baseline.command(short_help="Audit, and count what FILE does not know.")
@_audit
@gathered
def update(asked: Request, **options: Any) -> NoReturn:
    """The job of every night: audit TARGETs (all imported pools when none is named), count what is new or worse than FILE
    knows, and note in FILE what was seen and what is gone. Nothing is accepted.

    Exit code: that of zaudit check, of what counts.
    """
    _run(asked, accept=False, was="", **options)


@baseline.command(short_help="What FILE knows.")
@FILE
def show(file: Path) -> None:
    """List what FILE knows: since when, when it was seen last, and as what it was accepted."""
    found = _read(file, trusted=False)
    for entry in sorted(found.entries.values(), key=lambda each: (each.rule, each.subject)):
        state = entry.severity if entry.outcome == "fail" else f"unknown, {entry.severity} if it fails"
        named = f" [{entry.identity}]" if entry.identity not in ("", str(entry.subject)) else ""
        say(f"{entry.first} to {entry.last}  {entry.rule}  {entry.subject.kind} {entry.subject}{named}  {state}")
    targets = " ".join(found.targets) or "all pools"
    say(f"{file}: {len(found.entries)} known on {found.host} ({targets}), made {found.made}")


@baseline.command(short_help="Let something count again.")
@FILE
@click.argument("rule", metavar="RULE", shell_complete=_options.rule_ids)
@click.argument("subject", required=False, metavar="[SUBJECT]")
def remove(file: Path, rule: str, subject: str | None) -> None:
    """Remove RULE from what FILE knows, of SUBJECT alone where one is named: a dataset, pool, drive or server as zaudit
    baseline show prints it. It counts again from the next audit on."""
    from auditor.host import user_files
    from auditor.judge import baseline as judging

    found = _read(file, trusted=False)
    gone = [
        key
        for key, each in found.entries.items()
        if each.rule == rule and (subject is None or subject in (str(each.subject), each.subject.name, each.identity))
    ]
    if not gone:
        of = f" of {subject}" if subject else ""
        raise click.UsageError(f"{file}: {rule}{of} is not known (zaudit baseline show {file} lists what is)")
    left = {key: each for key, each in found.entries.items() if key not in gone}
    user_files.replace(file, judging.text(found._replace(entries=left)).encode())
    written(file, f"{len(gone)} removed, {len(left)} known")


def _run(
    asked: Request, *, accept: bool, was: str, file: Path, wanted: tuple[FormatChoice, ...], output: Path | None
) -> NoReturn:
    from auditor.host import user_files
    from auditor.judge import baseline as judging

    looks("auto", asked.quiet)
    wanted = settled(wanted, output, "summary")
    with promised(wanted):
        choice = asked.choose()
        user_files.possible(file)
        before = _read(file, trusted=not asked.replay, missing=accept)
        looked = choice.look()
        facts = looked.seen.facts
        if before and was == before.host:
            before = before._replace(host=judging.host(facts))
        if before:
            judging.must_fit(before, judging.host(facts), looked.targets, str(file))
        known = before or judging.empty(facts, looked.targets)
        report = looked.judge(known)
        assert report.night
        tomorrow = judging.updated(report.night, report.verdicts, facts, accept=accept)
        lines = [*_mind(file, before, report, facts)]
        if accept:
            lines += _not_accepted(report, facts)
            report = looked.judge(tomorrow)
    done = Done(report, 0, "low")
    try:
        user_files.replace(file, judging.text(tomorrow).encode())
        failed = sum(each.outcome == "fail" for each in tomorrow.entries.values())
        written(file, f"{failed} failures and {len(tomorrow.entries) - failed} unknowns are known")
    finally:  # a disk that is full costs the baseline, and not the report
        for line in () if asked.quiet else lines:
            note(line)
        emit(wanted, done.text, f"{report.headline} (exit code {report.exit_code})")
    sys.exit(code(wanted, report.exit_code, done.data))


def _read(file: Path, *, trusted: bool, missing: bool = False) -> Any:
    """The baseline; missing: None where there is none yet. Raises BaselineError and OSError.

    trusted: refuse one that another user could have written. A baseline silences findings, and the nightly job of root must not
    be silenced by whoever may write its folder.
    """
    from auditor.host import user_files
    from auditor.judge import baseline as judging

    try:
        return judging.parse(user_files.read(file, judging.LIMIT, trusted=trusted), str(file))
    except FileNotFoundError:
        if missing:
            return None
        raise click.UsageError(f"{file}: there is no baseline yet; zaudit baseline accept {file} makes one") from None


def _mind(file: Path, before: Baseline | None, report: Report, facts: Facts) -> Iterator[str]:
    """What a reader should know of the file before the report."""
    from auditor import data
    from auditor.judge import baseline as judging

    night = report.night
    assert night
    rules = {entry.rule for entry in night.kept}
    yield from (f"{file}: no effect, {sentence}" for id, sentence in data.retired().items() if id in rules)
    if night.nameless:
        names = Counter(f"{each.rule} of {each.subject}" for each in night.nameless)
        yield (
            f"{file}: written by zaudit 0.2, which knew drives and servers by names that do not last. These count again until "
            f"they are accepted again: {', '.join(names)}"
        )
    if before and before.newest > judging.day(facts):
        yield (
            f"{file}: it was written on {before.newest}, and the clock of this host says {judging.day(facts)}: its dates "
            "are kept; is the clock wrong? Waivers end by this clock."
        )


def _not_accepted(report: Report, facts: Facts) -> Iterator[str]:
    from auditor.judge import baseline as judging

    causes: dict[str, set[str]] = {}
    for verdict in report.verdicts:
        if verdict.outcome == "unknown" and (why := judging.refusal(verdict)):
            causes.setdefault(f"{why.text}{f' ({why.remedy})' if why.remedy else ''}", set()).add(verdict.rule.id)
    if causes:
        rules = set[str]().union(*causes.values())
        yield f"{len(rules)} unknown rules are not accepted: they may have an answer tomorrow, and count"
        ordered = sorted(causes.items(), key=lambda each: (-len(each[1]), each[0]))
        yield from (f"  {len(ids)} {why}" for why, ids in ordered[:SHOWN])
        if len(ordered) > SHOWN:
            yield f"  and {len(ordered) - SHOWN} more causes"
    for subject in judging.nameless(report.verdicts, facts):
        which = f"{subject.kind} {subject}"
        yield f"{which} is not accepted: the host does not tell which one it is, so another could take its place"


COMMAND = baseline
