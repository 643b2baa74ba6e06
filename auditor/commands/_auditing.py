"""An audit of this host or of a recording, as several commands make one; the policy that it follows, and reports that were
kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from auditor import interrupt
from auditor.commands._options import with_database
from auditor.screen import ascii_only, note, width
from auditor.streams import progress
from auditor.text import few

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
    from auditor.rulebook import Chosen

NAMED = 8  # of the most severe findings, in the sentence that monitors get
REPORT = 256 << 20  # bytes of a report
FILES = 100  # of a policy


class Request(NamedTuple):
    """What the command line of an audit says; an option that a command does not have is as by default. record: the answers are
    kept."""

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
    """A JSON report that was kept. Raises UsageError for what is none, OSError for what cannot be read.

    trusted: nobody but root and this user can have put it there.
    """
    from auditor.host import user_files
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
    from auditor.host import user_files
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
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _policy_text(path: Path, *, trusted: bool, hint: str = "") -> str:
    from auditor.host import user_files
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
