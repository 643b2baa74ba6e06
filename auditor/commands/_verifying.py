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
from auditor.collect import recording
from auditor.collect.host import Host, LiveHost
from auditor.errors import Stop
from auditor.facts import Known, Subject
from auditor.report.model import Report
from auditor.text import harmless
from auditor.units import size
from auditor.verify import conduct, place, plan, preflight, profile, run, trial, verification
from auditor.verify.model import Verification
from auditor.verify.units import size_bytes

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


class Refused(Stop):
    """A run that would harm or say nothing."""


def live(
    wanted: Wanted, progress: Callable[..., None] | None, steps: run.Progress | None
) -> tuple[Verification, Report] | None:
    """Verify on this host; None after a dry run. Raises what the parts raise."""
    asked = profile.load(wanted.profile)
    if wanted.slo:
        profile.objectives(wanted.slo)
    for left, wrong in place.clean(run.zfs):
        click.echo(f"zaudit: {harmless(left.path)}, left by an earlier run, {wrong or 'was removed'}", err=True)
    machine = LiveHost(wanted.timeout)
    host: Host = recording.RecordingHost(machine) if wanted.record else machine
    seen = audit.look(host, (wanted.target,), audit.Options(), progress)
    dataset = seen.roots[0]
    limit = size_bytes(wanted.limit) if wanted.limit else plan.LIMIT
    planned = plan.make(dataset, seen.facts, asked, wanted.length, wanted.size, limit)
    refused = list(preflight.refusals(planned, seen.facts))
    if wanted.dry_run:
        click.echo(described(planned, seen, refused, wanted.despite), nl=False)
        return None
    if standing := [each for each in refused if each.override not in wanted.despite or not each.override]:
        raise Refused("not run: " + "; ".join(map(_refused, standing)))
    conduct.ready(asked)
    if planned.most_bytes > ASK_FROM and not wanted.yes:
        _ask(planned)
    done = conduct.trial(machine, planned, seen.facts, wanted.slo, steps, keep=wanted.keep)
    if isinstance(host, recording.RecordingHost) and wanted.record:
        taken = host.recording((wanted.target,), audit.Options().words(), __version__)
        recording.write(replace(taken, trial=trial.to_text(done).encode("utf-8", "surrogateescape")), wanted.record)
    return verification.judge(seen, done, rules(), (wanted.target,), wanted.fail_on)


def replayed(path: Path, fail_on: Any) -> tuple[Verification, Report]:
    """A recorded verification, judged anew."""
    past = recording.load(path)
    if not past.trial:
        raise recording.RecordingError(f"{path}: no verification is recorded there (zaudit check --replay audits it)")
    done = trial.from_text(past.trial.decode("utf-8", "surrogateescape"))
    seen = audit.look(recording.ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    return verification.judge(seen, done, rules(), past.targets, fail_on)


def _refused(each: preflight.Refusal) -> str:
    return each.text + (f" (--despite {each.override} overrides it)" if each.override else "")


def rules() -> list[Any]:
    """All rules, those about runs of fio among them."""
    return rulebook.select((), (), (), runs=True)


def _ask(planned: plan.Plan) -> None:
    text = f"up to {size(planned.most_bytes)} will be written to {harmless(planned.dataset)}"
    if not sys.stdin.isatty():
        raise Refused(f"not run: {text}; --yes says that this is meant")
    click.confirm(f"zaudit: {text}. Go on?", abort=True, err=True)


def described(
    planned: plan.Plan, seen: audit.Look, refused: Sequence[preflight.Refusal], despite: Sequence[str]
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
        variables = " ".join(f"{name}={value}" for name, value in plan.environment(planned, step).items())
        lines += [
            f"# {step.name}: {step.seconds} s",
            f"cd PLACE && env {variables} {shlex.join(plan.command(planned, step))}",
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


def rendered(found: Verification, report: Report, format_: str, terminal: Mapping[str, Any]) -> str:
    """The report in a format."""
    if format_ == "json":
        from auditor.report import verify_json

        return verify_json.render(found, report)
    if format_ == "html":
        from auditor.report import verify_html

        return verify_html.render(found, report)
    from auditor.report import verify_terminal

    return verify_terminal.render(found, report, **terminal)


def summary(found: Verification, report: Report) -> str:
    """One line for whoever wrote the report to a file."""
    return f"{found.chain.outcome} (exit code {report.exit_code})"


def clean() -> int:
    """Remove what dead runs left; the number of places that could not be removed."""
    failed = 0
    for left, wrong in place.clean(run.zfs):
        click.echo(f"{harmless(left.path)}: {wrong or 'removed'}")
        failed += bool(wrong)
    for each in place.places():
        if place.in_use(each):
            click.echo(f"{harmless(each.path)}: in use by process {each.pid}, left alone")
    return failed
