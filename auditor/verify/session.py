"""``zaudit verify``: from a command line to a verification, live or recorded."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from auditor import __version__, audit, rulebook
from auditor.errors import Stop
from auditor.facts import Subject
from auditor.host import user_files
from auditor.host.live import Host, LiveHost
from auditor.judge.event import Severity
from auditor.judge.policy import NONE, Policy
from auditor.judge.rule import Rule, digest
from auditor.recording import archive, recording
from auditor.screen import note, say
from auditor.text import harmless, size
from auditor.verify import comparison, execution, fio, ledger, place, profile, trial, verification
from auditor.verify.comparison import compare
from auditor.verify.ledger import UNSEEN, Actor
from auditor.verify.profile import Profile, size_bytes
from auditor.verify.result import JOB_FILE, Verification


def live(
    request: VerifyRequest, progress: Callable[..., None] | None, steps: execution.Progress | None
) -> verification.VerifyResult | None:
    """Verify on this host; None after a dry run. Raises what the parts raise."""
    asked = profile.load(request.profile)
    if request.slo:
        profile.objectives(request.slo)
    options = audit.Options(policy=request.policy)
    chosen = request.chosen or rules(request.policy)
    before = earlier(request.compare) if request.compare else None
    if request.record:
        archive.possible(request.record)
    for left, wrong in place.clean(ledger.call):
        note(f"zaudit: {harmless(left.path)}, left by an earlier run, {wrong or 'was removed'}")
    machine = LiveHost(request.timeout)  # while fio runs no deadline ends what is read: it would spoil the run
    looked_at = LiveHost(request.timeout, request.deadline)
    host: Host = recording.RecordingHost(looked_at) if request.record else looked_at
    seen = audit.look(host, (request.target,), options, progress)
    planned = make_plan(request, asked, seen)
    refused = list(fio.refusals(planned, seen.facts))
    actor = UNSEEN
    try:
        actor = execution.actor_for(machine, planned)
    except Stop as error:
        refused.append(fio.Refusal(str(error)))
    if request.dry_run:
        say(described(planned, actor, seen, refused, request.despite))
        return None
    if standing := [each for each in refused if each.override not in request.despite or not each.override]:
        override = " (--despite {} overrides it)"
        whys = (each.text + (override.format(each.override) if each.override else "") for each in standing)
        raise Refused(f"not run: {'; '.join(whys)}")
    execution.ready(asked, seen.facts)
    if planned.most_bytes > ASK_FROM and not request.yes:
        confirm(planned)
    done = execution.run_trial(machine, planned, seen.facts, request.slo, steps, keep=request.keep)
    unkept = keep(host, request.record, (request.target,), options, chosen.rules, trial.to_text(done))
    for each in done.notes:
        note(f"zaudit: {harmless(each)}")
    given = (request.target,), request.fail_on
    found = verification.judge(seen, done, chosen, *given, failed_only=request.failed_only)._replace(unkept=unkept)
    return found if before is None else found._replace(comparison=compare(before, found.verification))


def replayed(
    path: Path, fail_on: Any, compared: Path | None, policy: Policy | None = None, *, failed_only: bool = False
) -> verification.VerifyResult:
    """A recorded verification, judged again. policy: instead of its own."""
    past, text = load(path, "verification")
    seen = audit.replay(past, policy)
    done = trial.from_text(text)
    found = verification.judge(seen, done, rules(seen.policy), past.targets, fail_on, failed_only=failed_only)
    return found._replace(comparison=compare(earlier(compared), found.verification)) if compared else found


def earlier(path: Path) -> Verification:
    """The result that a new one is compared with: a JSON report, or a recording of a verification."""
    if path.is_file() and not archive.is_archive(path):
        return comparison.load(user_files.read(path, comparison.LARGEST * 4).decode("utf-8", "surrogateescape"))
    return replayed(path, "low", None).verification


def rules(policy: Policy = NONE) -> rulebook.Chosen:
    """All rules, those about runs of fio among them, but what the policy turns off."""
    return rulebook.choose((), (), (), policy, runs=True)


def rendered(found: verification.VerifyResult, format_: str, screen: Mapping[str, Any]) -> str:
    """The report in a format."""
    from auditor.verify import verify_page

    parts: dict[str, Any] = {"comparison": found.comparison, "sweep": found.sweep, "zaudit": __version__}
    return verify_page.write(format_, found.verification, found.report, **parts, **screen)


def summary(found: verification.VerifyResult) -> str:
    """One line for whoever wrote the report to a file."""
    return f"{found.verification.chain.outcome} (exit code {found.report.exit_code})"


# What ``zaudit verify`` will do: its arguments, the plan that follows from them, and the plan in words.

ASK_FROM = 10 << 30


class VerifyRequest(NamedTuple):
    """The arguments of ``zaudit verify``, as they were given."""

    target: str
    profile: str
    length: fio.Length = "quick"
    slo: str = ""
    size: str = ""
    limit: str = ""
    despite: tuple[str, ...] = ()
    dry_run: bool = False
    keep: bool = False
    yes: bool = False
    record: Path | None = None
    timeout: float = 30.0
    fail_on: Severity = "low"
    sweep: bool = False
    sweep_size: str = ""
    compare: Path | None = None
    chosen: rulebook.Chosen | None = None
    policy: Policy = NONE
    deadline: float = 0.0
    failed_only: bool = False


class Refused(Stop):
    """A run that would harm or say nothing."""


def make_plan(request: VerifyRequest, asked: Profile, seen: audit.Look) -> fio.Plan:
    if len(seen.roots) != 1:
        raise Refused("one target at a time: each is written to")
    limit = size_bytes(request.limit) if request.limit else fio.LIMIT
    planned = fio.make(seen.roots[0], seen.facts, asked, request.length, request.size, limit)
    if request.sweep:
        if planned.kind != "directory":
            raise Refused("--sweep writes files: it needs a file system")
        amount = size_bytes(request.sweep_size) if request.sweep_size else fio.AMOUNT
        planned = planned._replace(
            sweep=amount,
            steps=(*planned.steps, *fio.sweep_steps(amount, limit)),
            bytes_on_disk=planned.bytes_on_disk + amount,
        )
    elif request.sweep_size:
        raise Refused("--sweep-size says how much --sweep writes: it needs --sweep")
    return planned


def confirm(planned: fio.Plan) -> None:
    text = f"up to {size(planned.most_bytes)} will be written to {harmless(planned.dataset)}"
    if not sys.stdin.isatty():
        raise Refused(f"not run: {text}; --yes says that this is meant")
    click.confirm(f"zaudit: {text}. Go on?", abort=True, err=True)


def described(
    planned: fio.Plan, actor: Actor, seen: audit.Look, refused: Sequence[fio.Refusal], despite: Sequence[str]
) -> str:
    """What would be done, exactly; for ``--dry-run``."""
    where = (
        "a new directory .zaudit-ID at its mount point" if planned.kind == "directory" else "a scratch zvol next to it"
    )
    takes = f"about {planned.seconds // 60} min {planned.seconds % 60} s"
    lines = [
        f"{harmless(planned.dataset)}: {planned.profile.name}, {planned.length}, {takes}",
        f"Proves: {planned.profile.proves}",
        f"Does not: {planned.profile.does_not}",
        f"Writes into {where}, removed afterwards; {size(planned.bytes_on_disk)} of files, "
        f"at most {size(planned.most_bytes)} written.",
        *_wear(planned, seen),
        "",
    ]
    for step in planned.steps:
        job = fio.JOB_FILE if step.purpose == "sweep" else JOB_FILE
        lines += [
            f"# {step.name}: {step.seconds} s",
            f"cd PLACE && {shlex.join(fio.command(planned, step, actor, execution.preloads()))} <{job}",
        ]
    for each in refused:
        overridden = each.override in despite and each.override
        lines.append(f"{'Despite' if overridden else 'Would be refused'}: {each.text}")
    return "\n".join(lines) + "\n"


def _wear(planned: fio.Plan, seen: audit.Look) -> list[str]:
    """The share of one full write of each drive that the run can take: endurance is rated in drive writes a day."""
    pool = Subject("pool", planned.dataset.partition("/")[0])
    disks = dict.fromkeys(
        disk for leaf in seen.facts.linked(pool, "leaves") for disk in seen.facts.linked(leaf, "disks")
    )
    sizes = {disk.name: seen.facts.get(disk, "size_bytes").or_none() for disk in disks}
    shares = [
        f"{harmless(name)} {planned.most_bytes / bytes_:.1%}"
        for name, bytes_ in sizes.items()
        if isinstance(bytes_, int) and bytes_
    ]
    return [f"Wear: at most this share of one full write of the drive: {', '.join(shares)}"] if shares else []


# A verification or a diagnosis in a recording: kept there, and taken from there with a new look at the same answers.


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


def load(path: Path, what: str) -> tuple[recording.Recording, str]:
    """A recording, and what was recorded beside its answers. what: "diagnosis". Raises RecordingError, also where none is."""
    past = recording.load(path)
    if not past.trial:
        raise recording.RecordingError(f"{path}: no {what} is recorded there (zaudit check --replay audits it)")
    return past, past.trial.decode("utf-8", "surrogateescape")
