"""An audit of this host or of a recording, as several commands make one; the policy that it follows, and reports that were
kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from auditor import EXIT_NOTHING, interrupt
from auditor.commands._options import Output, with_database
from auditor.host import user_files
from auditor.interrupt import TooLate, progress, waiting
from auditor.report import formats
from auditor.screen import ascii_only, look, note, width, write
from auditor.text import few, harmless

if TYPE_CHECKING:
    from auditor.audit import Look, NothingToAudit, Options
    from auditor.host.live import Host
    from auditor.judge.baseline import Baseline
    from auditor.judge.event import Severity
    from auditor.judge.policy import Policy
    from auditor.judge.rule import Rule
    from auditor.judge.supposition import Change
    from auditor.recording.recording import Recording
    from auditor.report.model import Report
    from auditor.report.report_reader import ReportDocument
    from auditor.rulebook import Chosen


NAMED = 8  # of the most severe findings, in the sentence that monitors get
REPORT = 256 << 20  # bytes of a report
FILES = 100  # of a policy


class Request(NamedTuple):
    """The command line of an audit, with defaults for options that a command lacks. record: keep the answers."""

    targets: tuple[str, ...] = ()
    replay: Path | None = None
    record: Path | None = None
    timeout: float = 30.0
    deadline: float = 0.0
    consistent: bool = False
    database: str | None = None
    policy_file: Path | None = None
    folders: tuple[Path, ...] = ()
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    fail_on: Severity = "low"
    failed_only: bool = False
    quiet: bool = False

    def options(self, past: Recording | None = None, policy: Policy | None = None) -> Options:
        """How to look, and what the user decided. policy: instead of that. Raises UsageError or PolicyError."""
        from auditor import audit
        from auditor.gather.walk import LookOptions

        options = audit.Options.from_words(past.options) if past else audit.Options(LookOptions(self.consistent))
        options = with_database(options, self.database)
        if policy is None and (self.policy_file or not past):
            policy = read_policy(self.policy_file)
        return options if policy is None else options._replace(policy=policy)

    def named_policy(self) -> Policy | None:
        """That of --policy; without it a recording has its own. Raises PolicyError."""
        return read_policy(self.policy_file) if self.policy_file else None

    def choose(self, *, verifying: bool = False, policy: Policy | None = None) -> Audit:
        """verifying: with the rules about runs of fio, on this host. policy: in place of any. Raises Stop or OSError."""
        from auditor import rulebook
        from auditor.judge.policy import retired_names
        from auditor.recording import recording

        past = recording.load(self.replay) if self.replay and not verifying else None
        options = self.options(past, policy)
        rules, left_out = chosen = rulebook.choose(self.folders, self.only, self.skip, options.policy, runs=verifying)
        ids = [rule.id for rule in rules] + [each.rule for each in left_out]
        for line in () if self.quiet else retired_names(ids, self.skip, options.policy):
            note(line)
        return Audit(self, past, options, chosen)


def gathered(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of an audit as one :class:`Request`, the first argument of a command."""

    @wraps(command)
    def called(**words: Any) -> Any:
        mine = {name: words.pop(name) for name in Request._fields if name in words}
        return command(Request(**mine), **words)

    return called


class Audit(NamedTuple):
    """By what to judge. past: the recording in place of this host."""

    asked: Request
    past: Recording | None
    options: Options
    rules: Chosen

    def look(self) -> Inspected:
        """Raises Stop or OSError."""
        from auditor import audit
        from auditor.host.live import LiveHost
        from auditor.recording import recording

        past, asked = self.past, self.asked
        host: Host = recording.ReplayHost(past) if past else LiveHost(asked.timeout, asked.deadline)
        host = recording.RecordingHost(host) if asked.record else host
        named = past.targets if past else asked.targets
        try:
            if past:
                seen = audit.look(host, named, self.options)
            else:
                with interrupt.waiting():
                    seen = audit.look(host, named, self.options, None if asked.quiet else progress(asked.deadline))
        except audit.NothingToAudit as nothing:
            raise _with_host_findings(nothing, self.rules.rules, quiet=asked.quiet) from None
        focus = asked.targets if past and asked.targets and asked.targets != named else ()
        return Inspected(self, host, seen, focus or named, focus)


class Inspected(NamedTuple):
    """What was seen of the host. targets: that are meant; focus: of a recording, those that narrow it."""

    audit: Audit
    host: Host
    seen: Look
    targets: tuple[str, ...]
    focus: tuple[str, ...]

    def suppose(self, changes: Sequence[Change]) -> Inspected:
        from auditor import audit

        return self._replace(seen=audit.suppose(self.seen, changes))

    def narrowed(self) -> Look:
        """Raises NothingToAudit."""
        from auditor import audit

        return audit.focus(self.seen, self.host, self.focus) if self.focus else self.seen

    def judge(self, known: Baseline | None = None, seen: Look | None = None) -> Report:
        """known: what does not count; seen: in place of this look. Raises NothingToAudit."""
        from auditor import audit

        (rules, left_out), asked = self.audit.rules, self.audit.asked
        return audit.judge(
            seen or self.narrowed(), rules, self.targets, asked.fail_on,
            left_out=left_out, failed_only=asked.failed_only, known=known,
        )  # fmt: skip


def _with_host_findings(nothing: NothingToAudit, rules: Sequence[Rule], *, quiet: bool) -> NothingToAudit:
    """Of a host on which no pool is imported: the same end, with the names of what fails of the host, which may tell why; each
    whole on standard error, unless quiet."""
    from auditor import audit
    from auditor.report import terminal
    from auditor.report.audit_page import failed

    found = audit.alone(nothing.facts, rules) if nothing.facts else ()
    if not found:
        return nothing
    if not quiet:
        note(terminal.fragment(map(failed, found), width=width(), ascii_only=ascii_only()))
    names = [f"{each.severity} {each.rule.id}" for each in found]
    return audit.NothingToAudit(f"{nothing}; of the host: {few(names, NAMED)}")


def read_report(path: Path, *, trusted: bool = False) -> dict[str, Any]:
    """A JSON report that was kept. trusted: only root or this user may have written it. Raises UsageError or OSError."""
    from auditor.recording import archive
    from auditor.text import crowded

    try:
        text = user_files.read(path, REPORT, trusted=trusted).decode("utf-8", "surrogatepass")
        if crowded(text):
            raise ValueError("more values than a report has")
        document = json.loads(text)
    except (ValueError, RecursionError):
        what = "a recording (zaudit check --replay)" if archive.is_archive(path) else "not a report of zaudit"
        raise click.UsageError(f"{path}: {what}") from None
    if not isinstance(document, dict):
        raise click.UsageError(f"{path}: not a report of zaudit")
    return document


# A policy can silence rules. One that was named is followed, whoever owns it; what is read without being named, zaudit.toml and
# conf.d in /etc/zaudit, must be such that only root (or the caller) can have written it.


def read_policy(path: Path | None) -> Policy:
    """The policy of a file, or of /etc/zaudit where there is one. Raises PolicyError."""
    from auditor.judge import policy_file
    from auditor.judge.policy import NONE, PolicyError

    if path:
        return policy_file.parse(_policy_text(path, trusted=False), str(path))
    main, folder = Path(policy_file.PATH), Path(policy_file.FOLDER)
    hint = f" (--policy {main} follows that file alone, --policy /dev/null goes without one)"
    try:
        beside = user_files.list_trusted(folder, ".toml", FILES)
    except OSError as error:
        raise PolicyError(f"{folder}: {error.strerror or error}{hint}") from None
    there = [*([main] if _is_there(main) else []), *beside]
    if not there:
        return NONE
    texts = [(str(each), _policy_text(each, trusted=True, hint=hint)) for each in there]
    if sum(len(text) for _, text in texts) > policy_file.LIMIT:
        raise PolicyError(f"{folder}: more than {policy_file.LIMIT >> 10} KiB in all files together")
    if not beside:
        return policy_file.parse(texts[0][1], str(main))
    return policy_file.parse(policy_file.joined(texts), policy_file.HOME)


def _is_there(path: Path) -> bool:
    """What cannot be looked at is taken to be there: reading it says why it cannot be read."""
    try:
        path.lstat()
    except OSError as error:
        return not isinstance(error, (FileNotFoundError, NotADirectoryError))
    return True


def _policy_text(path: Path, *, trusted: bool, hint: str = "") -> str:
    from auditor.judge.policy import PolicyError
    from auditor.judge.policy_file import LIMIT

    try:
        data = user_files.read(path, LIMIT, trusted=trusted)
    except (OSError, ValueError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise PolicyError(f"{path}: {said}{hint}") from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PolicyError(f"{path}, line {line}: not UTF-8") from None


# ``--format NAME[=FILE]``: which formats go where, several at once; and what monitors are told when there is no report.


class FormatChoice(NamedTuple):
    """A format, and the file that it goes to; None: standard output."""

    name: str
    file: Path | None


def report_formats(names: Sequence[str], default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--format`` and ``--output``."""

    def parsed(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[FormatChoice, ...]:
        return tuple(_wanted(value, names, ctx, param) for value in values)

    def offered(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if "=" in incomplete:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    def options(command: Callable[..., Any]) -> Callable[..., Any]:
        words = "Write the report to a file: the one format that names none."
        command = click.option("-o", "--output", type=Output(), metavar="FILE", help=words)(command)
        words = f"{', '.join(names)}; several, of which all but one name a FILE.  [default: {default}]"
        name = "NAME[=FILE]"
        return click.option(
            "--format", "wanted", multiple=True, callback=parsed, metavar=name, help=words, shell_complete=offered
        )(command)

    return options


def _wanted(value: str, names: Sequence[str], ctx: click.Context, param: click.Parameter) -> FormatChoice:
    name, equals, file = value.partition("=")
    name = click.Choice(names).convert(name, param, ctx)
    if equals and not file:
        raise click.BadParameter(f"{name}=: the name of a file is missing.", ctx, param)
    return FormatChoice(name, Output().convert(file, param, ctx) if equals else None)


def settled(wanted: Sequence[FormatChoice], output: Path | None, default: str) -> tuple[FormatChoice, ...]:
    """All that is to be written. Raises UsageError where two would go to the same place, and for a file without a format."""
    chosen = tuple(wanted) or (FormatChoice(default, None),)
    if output:
        if all(each.file for each in chosen):
            raise click.UsageError("--output: every --format names a file already")
        chosen = tuple(each if each.file else each._replace(file=output) for each in chosen)
    places = [each.file for each in chosen]
    if twice := [place for place in places if places.count(place) > 1]:
        where = twice[0] or "standard output: let all but one name a file (--format json=FILE)"
        raise click.UsageError(f"two formats go to {where}")
    return chosen


def emit(wanted: Sequence[FormatChoice], text_of: Callable[[FormatChoice], str], summary: str) -> None:
    """Write all, standard output last, even where one cannot be written. summary: of a file. Raises the first error."""
    trouble: list[Exception] = []
    for each in sorted(wanted, key=lambda one: one.file is None):
        format_ = formats.named(each.name)
        try:
            encoded = format_.page is None
            write(text_of(each), each.file, summary, encoded=encoded, mode=format_.mode)
        except BrokenPipeError:
            raise
        except Exception as error:
            trouble.append(error)
    for more in trouble[1:]:
        note(f"zaudit: {more}")
    if trouble:
        raise trouble[0]


def code(wanted: Sequence[FormatChoice], own: int, data: Callable[[], ReportDocument]) -> int:
    """The exit code: that of the report, or what the protocol of a format on standard output wants."""
    for each in wanted:
        if each.file is None and (status := formats.named(each.name).status):
            return status(data())
    return own


@contextmanager
def promised(wanted: Sequence[FormatChoice]) -> Iterator[None]:
    """Where the block ends without a report, files that others poll say so. Standard output: auditor/cli.py."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (Exception, TooLate) as error:
        for each in wanted:
            format_ = formats.named(each.name)
            if each.file and format_.failed:
                with suppress(Exception), waiting():  # the first error is the one to tell
                    text = format_.failed(harmless(str(error)), time.time())
                    user_files.replace(each.file, text.encode(), format_.mode)
        raise


def polled(words: Sequence[str]) -> str:
    """The format on standard output that a monitor reads, or empty. words: of a command line that may not be understood."""
    values = [word.removeprefix("--format=") for word in words if word.startswith("--format=")]
    values += [after for word, after in pairwise(words) if word == "--format"]
    names = (value.removesuffix("=-") for value in values)
    return next((name for name in names if name in formats.names() and formats.named(name).failed), "")


def unanswered(words: Sequence[str], text: str, own: int) -> tuple[str, int]:
    """(what such a monitor is told in place of a report, or empty; the exit code: its own, or UNKNOWN to a plugin)."""
    name = polled(words)
    if not name or not (failed := formats.named(name).failed):
        return "", own
    return failed(harmless(text), time.time()), EXIT_NOTHING if formats.named(name).status else own


# A report that is made, and what it looks like in each format that is wanted of it.


class Done:
    """A report, and what it looks like in each format. The data of it is made once, and only where a format wants it."""

    def __init__(self, report: Report, verbose: int, least: Severity) -> None:
        self._report, self._verbose, self._shown = report, verbose, report.above(least)
        self._data: ReportDocument | None = None

    def text(self, wanted: FormatChoice) -> str:
        """In one format; a file is no terminal."""
        format_ = formats.named(wanted.name)
        if format_.page:
            report = self._report if wanted.name == "json" else self._shown
            return format_.page(report, self._verbose, look(wanted.file))
        return format_.render(self.data())

    def data(self) -> ReportDocument:
        from auditor.report import report_json
        from auditor.report.report_reader import parse_report

        self._data = self._data or parse_report(report_json.document(self._report))
        return self._data
