"""A verification or a diagnosis in a recording: kept there, and taken from there with a new look at the same answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from auditor import __version__, audit
from auditor.commands._terminal import note
from auditor.errors import Stop
from auditor.host.live import Host
from auditor.judge.policy import Policy
from auditor.judge.rule import Rule, digest
from auditor.recording import recording


class Run(NamedTuple):
    """text: what was recorded beside the answers; seen: the audit's look at these."""

    text: str
    targets: tuple[str, ...]
    policy: Policy
    seen: audit.Look


def keep(
    host: Host, path: Path | None, targets: tuple[str, ...], options: audit.Options, rules: Iterable[Rule], text: str
) -> Exception | None:
    """Write what a host that records was asked, and the text; why it could not be written, to be raised once the report is
    out. Nothing where nothing is to be recorded."""
    if not isinstance(host, recording.RecordingHost) or not path:
        return None
    taken = host.recording(targets, options.words(), __version__, digest(rules))
    try:
        for left_out in recording.write(replace(taken, trial=text.encode("utf-8", "surrogateescape")), path):
            note(left_out)
    except (OSError, Stop) as error:
        return error
    return None


def load(path: Path, what: str, policy: Policy | None) -> Run:
    """what: "diagnosis"; policy: instead of its own. Raises RecordingError, also where none is recorded."""
    past = recording.load(path)
    if not past.trial:
        raise recording.RecordingError(f"{path}: no {what} is recorded there (zaudit check --replay audits it)")
    return again(past, policy)


def again(past: recording.Recording, policy: Policy | None) -> Run:
    """A new look at a recording; its text is empty where neither a verification nor a diagnosis is recorded."""
    options = audit.Options.from_words(past.options)
    if policy is not None:
        options = options._replace(policy=policy)
    seen = audit.look(recording.ReplayHost(past), past.targets, options)
    return Run(past.trial.decode("utf-8", "surrogateescape"), past.targets, options.policy, seen)
