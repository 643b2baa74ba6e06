"""``zaudit verify`` and ``zaudit clean``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from auditor import __version__, audit, rulebook
from auditor.commands._terminal import note, say
from auditor.errors import Stop
from auditor.facts import Known, Subject
from auditor.host import given
from auditor.host.live import Host, LiveHost
from auditor.judge.policy import NONE, Policy
from auditor.judge.rule import digest
from auditor.recording import recording, replacing
from auditor.text import harmless
from auditor.units import size
from auditor.verify import (
    conduct,
    document,
    ledger,
    place,
    plan,
    preflight,
    profile,
    run,
    sweeping,
    tools,
    trial,
    verification,
)
from auditor.verify.actor import UNSEEN, Actor
from auditor.verify.compare import compare
from auditor.verify.model import Verification
from auditor.verify.profile import Profile
from auditor.verify.result import JOB_FILE
from auditor.verify.units import size_bytes
from auditor.verify.verification import Found

ASK_FROM = 10 << 30


class Wanted(NamedTuple):
    """The arguments of ``zaudit verify``, as they were given."""

    target: str
    profile: str
    length: plan.Length
    slo: str
    size: str
    limit: str
    despite: tuple[str, ...]
    dry_run: bool
    keep: bool
    yes: bool
    record: Path | None
    timeout: float
    fail_on: Any
    sweep: bool = False
    sweep_size: str = ""
    ab: str | None = None
    compare: Path | None = None
    chosen: rulebook.Chosen | None = None
    policy: Policy = NONE
    deadline: float = 0.0
    failed_only: bool = False


class Refused(Stop):
    """A run that would harm or say nothing."""


def live(wanted: Wanted, progress: Callable[..., None] | None, steps: run.Progress | None) -> Found | None:
    """Verify on this host; None after a dry run. Raises what the parts raise."""
    asked = profile.load(wanted.profile)
    if wanted.slo:
        profile.objectives(wanted.slo)
    options = audit.Options(policy=wanted.policy)
    chosen = wanted.chosen or rules(wanted.policy)
    before = earlier(wanted.compare) if wanted.compare else None
    if wanted.record:
        replacing.possible(wanted.record)
    for left, wrong in place.clean(tools.call):
        note(f"zaudit: {harmless(left.path)}, left by an earlier run, {wrong or 'was removed'}")
    machine = LiveHost(wanted.timeout)  # while fio runs no deadline ends what is read: it would spoil the run
    looked_at = LiveHost(wanted.timeout, wanted.deadline)
    host: Host = recording.RecordingHost(looked_at) if wanted.record else looked_at
    seen = audit.look(host, (wanted.target,), options, progress)
    planned = _planned(wanted, asked, seen)
    refused = list(preflight.refusals(planned, seen.facts))
    actor, stands = _actor(machine, planned)
    refused += stands
    if wanted.dry_run:
        say(described(planned, actor, seen, refused, wanted.despite))
        return None
    if standing := [each for each in refused if each.override not in wanted.despite or not each.override]:
        raise Refused("not run: " + "; ".join(map(_refused, standing)))
    conduct.ready(asked)
    if planned.most_bytes > ASK_FROM and not wanted.yes:
        _ask(planned)
    done = _trial(wanted, machine, planned, seen, steps)
    unkept: Exception | None = None
    if isinstance(host, recording.RecordingHost) and wanted.record:
        taken = host.recording((wanted.target,), options.words(), __version__, digest(chosen.rules))
        try:
            taken = replace(taken, trial=trial.to_text(done).encode("utf-8", "surrogateescape"))
            for left_out in recording.write(taken, wanted.record):
                note(left_out)
        except (OSError, Stop) as error:
            unkept = error
    for each in done.notes:
        note(f"zaudit: {harmless(each)}")
    found = verification.judge(
        seen,
        done,
        chosen.rules,
        (wanted.target,),
        wanted.fail_on,
        left_out=chosen.left_out,
        failed_only=wanted.failed_only,
    )._replace(unkept=unkept)
    return found if before is None else found._replace(comparison=compare(before, found.verification))


def _actor(machine: Host, planned: plan.Plan) -> tuple[Actor, list[preflight.Refusal]]:
    """Who fio is to run as, or why it cannot be run."""
    try:
        return conduct.actor(machine, planned), []
    except Stop as error:
        return UNSEEN, [preflight.Refusal(str(error))]


def _planned(wanted: Wanted, asked: Profile, seen: audit.Look) -> plan.Plan:
    if len(seen.roots) != 1:
        raise Refused("one target at a time: each is written to")
    limit = size_bytes(wanted.limit) if wanted.limit else plan.LIMIT
    planned = plan.make(seen.roots[0], seen.facts, asked, wanted.length, wanted.size, limit)
    if wanted.sweep:
        if planned.kind != "directory":
            raise Refused("--sweep writes files: it needs a file system")
        amount = size_bytes(wanted.sweep_size) if wanted.sweep_size else sweeping.AMOUNT
        planned = planned._replace(
            sweep=amount,
            steps=(*planned.steps, *sweeping.steps(amount, limit)),
            bytes_on_disk=planned.bytes_on_disk + amount,
        )
    elif wanted.sweep_size:
        raise Refused("--sweep-size says how much --sweep writes: it needs --sweep")
    if wanted.ab:
        if planned.kind != "directory" or not has_slog(seen):
            raise Refused("--ab slog needs a file system on a pool with a SLOG")
        planned = planned._replace(kind="dataset", properties=(("logbias", "latency"),))
    return planned


def has_slog(seen: audit.Look) -> bool:
    """Whether commits of the target go to log vdevs."""
    class_ = seen.facts.get(Subject("pool", seen.roots[0].name.partition("/")[0]), "zil_class")
    return isinstance(class_, Known) and class_.value == "log"


def _trial(
    wanted: Wanted, machine: Host, planned: plan.Plan, seen: audit.Look, steps: run.Progress | None
) -> trial.Trial:
    """With --ab slog the same twice: OpenZFS has no property that keeps a dataset off the SLOG (zio_alloc_zil() asks the log
    class first, always); logbias=throughput is what comes nearest, it leaves pointers there and puts the data elsewhere."""
    done = conduct.trial(machine, planned, seen.facts, wanted.slo, steps, keep=wanted.keep)
    if wanted.ab:
        other = planned._replace(properties=(("logbias", "throughput"),))
        done = done._replace(without=conduct.trial(machine, other, seen.facts, wanted.slo, steps, keep=wanted.keep))
    return done


def replayed(
    path: Path, fail_on: Any, compared: Path | None, policy: Policy | None = None, *, failed_only: bool = False
) -> Found:
    """A recorded verification, judged anew. policy: instead of its own."""
    past = recording.load(path)
    if not past.trial:
        raise recording.RecordingError(f"{path}: no verification is recorded there (zaudit check --replay audits it)")
    done = trial.from_text(past.trial.decode("utf-8", "surrogateescape"))
    options = audit.Options.from_words(past.options)
    if policy is not None:
        options = options._replace(policy=policy)
    seen = audit.look(recording.ReplayHost(past), past.targets, options)
    chosen = rules(options.policy)
    found = verification.judge(
        seen, done, chosen.rules, past.targets, fail_on, left_out=chosen.left_out, failed_only=failed_only
    )
    return found._replace(comparison=compare(earlier(compared), found.verification)) if compared else found


def earlier(path: Path) -> Verification:
    """The result that a new one is compared with: a JSON report, or a recording of a verification."""
    if path.is_file() and not path.name.endswith((".tar.gz", ".tgz")):
        return document.load(given.content(path, document.LARGEST * 4).decode("utf-8", "surrogateescape"))
    return replayed(path, "low", None).verification


def _refused(each: preflight.Refusal) -> str:
    return each.text + (f" (--despite {each.override} overrides it)" if each.override else "")


def rules(policy: Policy = NONE) -> rulebook.Chosen:
    """All rules, those about runs of fio among them, but what the policy turns off."""
    return rulebook.choose((), (), (), policy, runs=True)


def _ask(planned: plan.Plan) -> None:
    text = f"up to {size(planned.most_bytes)} will be written to {harmless(planned.dataset)}"
    if not sys.stdin.isatty():
        raise Refused(f"not run: {text}; --yes says that this is meant")
    click.confirm(f"zaudit: {text}. Go on?", abort=True, err=True)


def described(
    planned: plan.Plan,
    actor: Actor,
    seen: audit.Look,
    refused: Sequence[preflight.Refusal],
    despite: Sequence[str],
) -> str:
    """What would be done, exactly; for ``--dry-run``."""
    where = (
        "a new directory .zaudit-ID at its mount point" if planned.kind == "directory" else "a scratch zvol beside it"
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
        job = sweeping.JOB_FILE if step.purpose == "sweep" else JOB_FILE
        lines += [
            f"# {step.name}: {step.seconds} s",
            f"cd PLACE && {shlex.join(plan.command(planned, step, actor, run.preloads()))} <{job}",
        ]
    for each in refused:
        overridden = each.override in despite and each.override
        lines.append(f"{'Despite' if overridden else 'Would be refused'}: {each.text}")
    return "\n".join(lines) + "\n"


def _wear(planned: plan.Plan, seen: audit.Look) -> list[str]:
    """The share of one full write of each drive that the run can take: endurance is rated in drive writes a day."""
    pool = Subject("pool", planned.dataset.partition("/")[0])
    disks = dict.fromkeys(
        disk for leaf in seen.facts.linked(pool, "leaves") for disk in seen.facts.linked(leaf, "disks")
    )
    shares = []
    for disk in disks:
        known = seen.facts.get(disk, "size_bytes")
        if isinstance(known, Known) and isinstance(known.value, int) and known.value:
            shares.append(f"{harmless(disk.name)} {planned.most_bytes / known.value:.1%}")
    return [f"Wear: at most this share of one full write of the drive: {', '.join(shares)}"] if shares else []


def rendered(found: Found, format_: str, terminal: Mapping[str, Any]) -> str:
    """The report in a format."""
    parts: dict[str, Any] = {"comparison": found.comparison, "sweep": found.sweep, "zaudit": __version__}
    if format_ == "json":
        from auditor.report.verify import json as verify_json

        return verify_json.render(found.verification, found.report, **parts)
    if format_ == "html":
        from auditor.report.verify import html as verify_html

        return verify_html.render(found.verification, found.report, **parts)
    from auditor.report.verify import terminal as verify_terminal

    return verify_terminal.render(found.verification, found.report, **parts, **terminal)


def summary(found: Found) -> str:
    """One line for whoever wrote the report to a file."""
    return f"{found.verification.chain.outcome} (exit code {found.report.exit_code})"


def clean() -> int:
    """Remove what dead runs left; the number of places that could not be removed."""
    failed = 0
    for left, wrong in place.clean(tools.call):
        say(f"{harmless(left.path)}: {wrong or 'removed'}")
        failed += bool(wrong)
    for each in ledger.places():
        if ledger.in_use(each):
            say(f"{harmless(each.path)}: in use by process {each.pid}, left alone")
    return failed
