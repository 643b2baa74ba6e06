"""An audit of this host or of a recording, as check and baseline make one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from auditor.commands._options import with_database
from auditor.commands._terminal import note
from auditor.streams import progress

if TYPE_CHECKING:
    from auditor.audit import Look, Options
    from auditor.host.live import Host
    from auditor.judge.baseline import Baseline
    from auditor.judge.supposition import Change
    from auditor.recording.recording import Recording
    from auditor.report.model import Report
    from auditor.rulebook import Chosen


class Choice(NamedTuple):
    """By what to judge. past: the recording in place of this host."""

    past: Recording | None
    options: Options
    rules: Chosen


class Looked(NamedTuple):
    """What was seen of the host. targets: that are meant; focus: of a recording, those that narrow it."""

    host: Host
    seen: Look
    targets: tuple[str, ...]
    focus: tuple[str, ...]

    def suppose(self, changes: Sequence[Change]) -> Looked:
        """The same with these changes."""
        from auditor import audit

        return self._replace(seen=audit.suppose(self.seen, changes))


def choose(
    replay: Path | None,
    folders: tuple[Path, ...],
    only: tuple[str, ...],
    skip: tuple[str, ...],
    policy_file: Path | None,
    database: str | None,
    consistent: bool,
    quiet: bool,
    verifying: bool = False,
) -> Choice:
    """Raises Stop or OSError."""
    from auditor import audit, rulebook
    from auditor.commands._policy import read
    from auditor.judge.policy import retired_names
    from auditor.recording import recording

    past = recording.load(replay) if replay and not verifying else None
    options = audit.Options.from_words(past.options) if past else audit.Options(consistent)
    options = with_database(options, database)
    if policy_file or not past:
        options = options._replace(policy=read(policy_file))
    rules, left_out = chosen = rulebook.choose(folders, only, skip, options.policy, runs=verifying)
    ids = [rule.id for rule in rules] + [each.rule for each in left_out]
    for line in () if quiet else retired_names(ids, skip, options.policy):
        note(line)
    return Choice(past, options, chosen)


def look(
    choice: Choice, targets: tuple[str, ...], timeout: float, deadline: float, quiet: bool, *, record: bool = False
) -> Looked:
    """Raises Stop or OSError."""
    from auditor import audit
    from auditor.host.live import LiveHost
    from auditor.recording import recording

    past = choice.past
    live: Host = recording.ReplayHost(past) if past else LiveHost(timeout, deadline)
    host = recording.RecordingHost(live) if record else live
    asked = past.targets if past else targets
    try:
        seen = audit.look(host, asked, choice.options, None if past or quiet else progress(deadline))
    except audit.NothingToAudit as nothing:
        from auditor.commands import _host_alone

        raise _host_alone.told(nothing, choice.rules.rules, quiet=quiet) from None
    focus = targets if past and targets and targets != asked else ()
    return Looked(host, seen, focus or asked, focus)


def judge(
    choice: Choice, looked: Looked, fail_on: Any, failed_only: bool = False, known: Baseline | None = None
) -> Report:
    """known: what does not count. Raises NothingToAudit."""
    from auditor import audit

    seen = audit.focus(looked.seen, looked.host, looked.focus) if looked.focus else looked.seen
    rules, left_out = choice.rules
    return audit.judge(seen, rules, looked.targets, fail_on, left_out=left_out, failed_only=failed_only, known=known)
