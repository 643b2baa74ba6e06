"""Every night: ``zaudit baseline`` (what is accepted on a host, and what is new), alerts, kept reports, policies."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from auditor import EXIT_BROKE, EXIT_NOTHING, Stop, interrupt
from auditor.commands import _auditing, _options
from auditor.commands._auditing import Done, FormatChoice, Request, gathered, read_policy, read_report, report_formats
from auditor.commands._options import SEVERITIES, Local, is_old
from auditor.host import user_files
from auditor.report import formats
from auditor.screen import note, say, write, written
from auditor.screen import wanted as looks
from auditor.text import counted, shortened

if TYPE_CHECKING:
    from auditor.facts import Facts
    from auditor.judge.baseline import Baseline
    from auditor.report.model import Report

FILE = click.argument("file", type=Local(dir_okay=False), metavar="FILE")
SHOWN = 5  # causes of what cannot be accepted


@click.group(short_help="Accept a host's findings of today, and report new ones.")
def baseline() -> None:
    """A baseline lists what is accepted on a host: it stays in the report and does not count, until it becomes worse."""


# the arguments and options of an audit that is held against a baseline
_audit = _options.together(
    FILE,
    _options.targets,
    _options.replay("Audit a recording (folder, .tar.gz or .zaudit) instead of this host."),
    report_formats(formats.names(), "summary"),
    _options.fail_on,
    _options.rules_of,
    _options.policy,
    _options.database,
    click.option("-q", "--quiet", is_flag=True, help="Print the reports alone, unless something goes wrong."),
    _options.looking,
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


@baseline.command(short_help="Audit, and report findings that are not in FILE.")
@_audit
@gathered
def update(asked: Request, **options: Any) -> NoReturn:
    """The job of every night: audit TARGETs (default: all imported pools), report what is new or worse than in FILE,
    and update FILE. Nothing is accepted.

    Exit code: that of zaudit check, of what counts.
    """
    _run(asked, accept=False, was="", **options)


@baseline.command("show", short_help="Show the findings in FILE.")
@FILE
def show_baseline(file: Path) -> None:
    """List what FILE knows: since when, when it was seen last, and as what it was accepted."""
    found = _read(file, trusted=False)
    for entry in sorted(found.entries.values(), key=lambda each: (each.rule, each.subject)):
        state = entry.severity if entry.outcome == "fail" else f"unknown, {entry.severity} if it fails"
        named = f" [{entry.identity}]" if entry.identity not in ("", str(entry.subject)) else ""
        say(f"{entry.first} to {entry.last}  {entry.rule}  {entry.subject.kind} {entry.subject}{named}  {state}")
    targets = " ".join(found.targets) or "all pools"
    say(f"{file}: {len(found.entries)} known on {found.host} ({targets}), made {found.made}")


@baseline.command(short_help="Remove a finding from FILE, so that it counts again.")
@FILE
@click.argument("rule", metavar="RULE", shell_complete=_options.rule_ids)
@click.argument("subject", required=False, metavar="[SUBJECT]")
def remove(file: Path, rule: str, subject: str | None) -> None:
    """Remove RULE from what FILE knows, of SUBJECT alone where one is named: a dataset, pool, drive or server as zaudit
    baseline show prints it. It counts again from the next audit on."""
    from auditor.judge import baseline as judging

    found = _read(file, trusted=False)
    gone = [
        key for key, each in found.entries.items() if each.rule == rule and (subject is None or subject in each.called)
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
    from auditor.judge import baseline as judging

    looks("auto", asked.quiet)
    wanted = _auditing.settled(wanted, output, "summary")
    with _auditing.promised(wanted):
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
        unknown = len(tomorrow.entries) - failed
        written(file, f"{counted(failed, 'failure')} and {counted(unknown, 'unknown')} are known")
    finally:  # a disk that is full costs the baseline, and not the report
        for line in () if asked.quiet else lines:
            note(line)
        _auditing.emit(wanted, done.text, f"{report.headline} (exit code {report.exit_code})")
    sys.exit(_auditing.code(wanted, report.exit_code, done.data))


def _read(file: Path, *, trusted: bool, missing: bool = False) -> Any:
    """missing: None where there is no file yet. trusted: refuse one that another user could have written: it could
    silence findings of root's job. Raises BaselineError or OSError."""
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
        yield from shortened((f"  {len(ids)} {why}" for why, ids in ordered), SHOWN, "  and {} more causes")
    for subject in judging.nameless(report.verdicts, facts):
        which = f"{subject.kind} {subject}"
        yield f"{which} is not accepted: the host does not tell which one it is, so another could take its place"


# ``zaudit alert`` passes what is new in the latest report to a program of the site, once. It runs with the rights of
# the caller, so only root or the caller may have written it (:mod:`auditor.host.trust`), the report, and what was
# reported last. It gets no shell, one argument, nothing of the caller's environment, and a time-out.


HOOK = Path("/etc/zaudit/alert")


class NotTold(Stop):
    """Why nobody was told; it is tried again with the next report."""

    exit_code = EXIT_BROKE


@click.command(short_help="Run a hook when a report has new findings.")
@click.argument("report", type=Local(), metavar="REPORT")
@click.option("--hook", type=Local(), default=HOOK, show_default=True, metavar="FILE",
              help="The program; it gets the name of a JSON file. If it does not exist, nothing is done.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(SEVERITIES), default="low", show_default=True,
              help="Do not report what is new below this.")  # fmt: skip
@_options.max_age("Treat an older report as missing, which is reported, too.")
@_options.timeout("Give up on the program after this time.", 60.0)
@_options.deadline("Give up on REPORT after this time.", ("report",))
def alert(report: Path, hook: Path, fail_on: Any, max_age: float | None, timeout: float, **_: Any) -> None:
    """Compare REPORT (zaudit check --format json) with the last one reported. Run FILE when something is new or worse,
    or when there is no report. Next to REPORT it keeps told.json, what was reported, and alert.json, which FILE is
    given: the answer in one line ("summary") and what changed ("difference", as in zaudit diff; null the first time).

    Exit code: 0 when there was nothing to report, or it was reported; 1 when FILE cannot be run or failed; 2 when REPORT could
    not be read within --deadline.
    """
    from auditor.host import process, trust

    program = hook.absolute()
    try:
        program.lstat()
    except (FileNotFoundError, NotADirectoryError):
        note(f"zaudit alert: there is no {hook}")
        return
    if why := process.refusal(str(program)):
        raise NotTold(f"{hook}: not run: {why}")
    try:
        folder = Path(trust.locate_folder(str(report.parent)))
    except OSError as error:
        raise NotTold(f"{report.parent}: nothing is reported from there: {error.strerror}") from None
    told = folder / "told.json"
    document, trouble = _document(report, max_age)
    news = _news(document, told, fail_on) if document else {"summary": f"no report: {trouble}", "difference": None}
    if news:
        _tell(str(program), folder / "alert.json", {"schema": "zaudit-alert/1", "report": str(report), **news}, timeout)
        say(f"told: {news['summary']}")
    if document:
        user_files.replace(told, json.dumps(document).encode())


def _document(report: Path, max_age: float | None) -> tuple[dict[str, Any] | None, str]:
    """(the report, why there is none)."""
    from auditor.report.report_reader import parse_report

    try:
        document = read_report(report, trusted=True)
        age = time.time() - parse_report(document).taken
    except click.ClickException as error:
        return None, error.format_message()
    except OSError as error:
        return None, f"{report}: {error.strerror or error}"
    except Stop as error:
        return None, str(error)
    if is_old(age, max_age):
        return None, f"{report} is {age / 3600:.1f} hours old"
    return document, ""


def _news(document: dict[str, Any], told: Path, fail_on: Any) -> dict[str, Any]:
    """What there is to tell; empty when nothing is."""
    from auditor.report import changes
    from auditor.report.formats.exchange import summary as summarize
    from auditor.report.report_reader import parse_report

    summary = summarize(parse_report(document)).strip()
    try:
        before = read_report(told, trusted=True)
        found = changes.compare(before, document)
    except (OSError, click.UsageError, changes.CompareError):
        return {"summary": summary, "difference": None} if document["exit_code"] else {}
    code = found.exit_code(fail_on)
    return {"summary": summary, "difference": changes.as_json(found, before, document, code)} if code else {}


def _tell(program: str, file: Path, news: dict[str, Any], timeout: float) -> None:
    """Raises NotTold."""
    from auditor.host import process
    from auditor.host.live import ENVIRONMENT
    from auditor.host.process import Time

    user_files.replace(file, json.dumps(news, indent=1).encode())
    with interrupt.waiting():  # it has a time-out of its own
        done = process.run((program, str(file)), Time.of(timeout), ENVIRONMENT)
    if done.fault or done.exit:
        said = done.stderr.decode(errors="replace").strip()[-300:]
        raise NotTold(f"{program}: {done.fault or f'exit code {done.exit}'}{f': {said}' if said else ''}")


# ``zaudit show``: a JSON report that was kept, in another format. It looks at nothing, judges nothing and needs no rights.


DEFAULT = "markdown"


class TooOld(Stop):
    """A report from which nothing of today can be said."""

    exit_code = EXIT_NOTHING


@click.command(short_help="Show a JSON report in another format.")
@click.argument("report", type=Local(), metavar="REPORT")
@report_formats(formats.of_data(), DEFAULT)
@_options.max_age("Treat an older report as missing: exit code 3 (monitors: UNKNOWN).")
@_options.deadline("Give up on REPORT after this time.", ("report",))
def show(
    report: Path, wanted: tuple[FormatChoice, ...], output: Path | None, max_age: float | None, **_: Any
) -> NoReturn:
    """Convert REPORT, written by zaudit check --format json, to other formats, as it was judged then; reports of older
    releases, too. A monitor needs no rights on the host for it.

    Exit code: that of the report; with --format nagios on standard output 0 to 3.
    """
    from auditor.report.report_reader import parse_report

    wanted = _auditing.settled(wanted, output, DEFAULT)
    with _auditing.promised(wanted):
        kept = parse_report(read_report(report))
        age = time.time() - kept.taken
        if max_age is not None and is_old(age, max_age):
            raise TooOld(f"{report}: {_age(age)}; --max-age allows {max_age / 3600:g} h")
    _auditing.emit(
        wanted, lambda each: formats.named(each.name).render(kept), f"{kept.headline} (exit code {kept.exit_code})"
    )
    sys.exit(_auditing.code(wanted, kept.exit_code, lambda: kept))


def _age(seconds: float) -> str:
    return f"it is {seconds / 3600:.1f} hours old" if seconds >= 0 else "it is of the future"


# ``zaudit policy``: one to begin with, and whether one can be followed.


@click.group(short_help="Write a first policy, or check one.")
def policy() -> None:
    """A policy says what datasets are for, which rules run, and who waives what until when."""


@policy.command(short_help="Write a commented policy for this host.")
@_options.targets
@_options.replay("Look at a recording, not at this host.")
@_options.output("Write it to a file, which must not exist yet.")
@_options.looking
@gathered
def init(asked: Request, output: Path | None) -> None:
    """Look at TARGETs (all imported pools when none is named) and write a policy that decides nothing yet: in comments, the
    datasets with what they seem to be for, and a waiver or an answer for each finding."""
    from auditor.judge.policy import NONE, PolicyError
    from auditor.judge.policy_file import sketch

    if output and (output.exists() or output.is_symlink()):
        raise PolicyError(f"{output} exists already; zaudit does not overwrite it")
    looked = asked.choose(policy=NONE).look()
    report = looked.judge()
    write(
        sketch(looked.narrowed().facts, report.findings, looked.audit.rules.rules),
        output,
        f"a policy for {', '.join(report.targets)}; it decides nothing yet",
    )


@policy.command("check", short_help="Check a policy file.")
@click.argument("file", type=Local(dir_okay=False), metavar="FILE")
@_options.folders
def check_file(file: Path, folders: tuple[Path, ...]) -> None:
    """Read FILE as zaudit check --policy does, without a host: exit code 0, or 2 with the line and the cause, also where a
    waiver can never cover anything. What has expired is named, and what names a rule that zaudit no longer has."""
    from datetime import UTC, datetime

    from auditor import rulebook
    from auditor.judge.policy import PolicyError, left_out, retired_names, vain

    found = read_policy(file)
    everything = rulebook.load(folders, examples=False, decided=found.thresholds)
    chosen = rulebook.choose(folders, (), (), found, runs=True).rules
    if lines := list(vain(found, everything)):
        raise PolicyError("\n".join(lines))
    out = left_out([each for each in everything if each.subject != "waiver"], chosen, (), (), found)
    for each in out:
        say(f"{each.rule} ({each.severity}): {f'counts as {each.counts_as}' if each.counts_as else 'off'}")
    for waiver in found.waivers:
        over = ", which is over" if datetime.now(UTC).date() > waiver.expires else ""
        say(f"{waiver.title}: waived until {waiver.expires}{over}, by {waiver.owner}")
    for line in retired_names([each.id for each in everything], (), found):
        say(line)
    counts = (len(found.waivers), "waiver"), (len(found.datasets), "dataset")
    say(f"{file}: {counted(len(out), 'rule')} off or less severe, {', '.join(counted(*each) for each in counts)}")
