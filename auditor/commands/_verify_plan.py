"""What ``zaudit verify`` will do: its arguments, the plan that follows from them, and the plan in words."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from auditor import audit, rulebook
from auditor.errors import Stop
from auditor.facts import Known, Subject
from auditor.judge.policy import NONE, Policy
from auditor.text import harmless, size
from auditor.verify import fio, run
from auditor.verify.ledger import Actor
from auditor.verify.profile import Profile, size_bytes
from auditor.verify.result import JOB_FILE

ASK_FROM = 10 << 30


class VerifyRequest(NamedTuple):
    """The arguments of ``zaudit verify``, as they were given."""

    target: str
    profile: str
    length: fio.Length
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
    if request.ab:
        if planned.kind != "directory" or not has_slog(seen):
            raise Refused("--ab slog needs a file system on a pool with a SLOG")
        planned = planned._replace(kind="dataset", properties=(("logbias", "latency"),))
    return planned


def has_slog(seen: audit.Look) -> bool:
    """Whether commits of the target go to log vdevs."""
    class_ = seen.facts.get(Subject("pool", seen.roots[0].name.partition("/")[0]), "zil_class")
    return isinstance(class_, Known) and class_.value == "log"


def reason(each: fio.Refusal) -> str:
    return each.text + (f" (--despite {each.override} overrides it)" if each.override else "")


def confirm(planned: fio.Plan) -> None:
    text = f"up to {size(planned.most_bytes)} will be written to {harmless(planned.dataset)}"
    if not sys.stdin.isatty():
        raise Refused(f"not run: {text}; --yes says that this is meant")
    click.confirm(f"zaudit: {text}. Go on?", abort=True, err=True)


def described(
    planned: fio.Plan,
    actor: Actor,
    seen: audit.Look,
    refused: Sequence[fio.Refusal],
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
        job = fio.JOB_FILE if step.purpose == "sweep" else JOB_FILE
        lines += [
            f"# {step.name}: {step.seconds} s",
            f"cd PLACE && {shlex.join(fio.command(planned, step, actor, run.preloads()))} <{job}",
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
    shares = []
    for disk in disks:
        known = seen.facts.get(disk, "size_bytes")
        if isinstance(known, Known) and isinstance(known.value, int) and known.value:
            shares.append(f"{harmless(disk.name)} {planned.most_bytes / known.value:.1%}")
    return [f"Wear: at most this share of one full write of the drive: {', '.join(shares)}"] if shares else []
