"""``zaudit check --verify``: the audit and a quick verification of one target as one report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from auditor.commands._formats import FormatChoice
from auditor.commands._terminal import look, steps, write
from auditor.databases import ENGINES
from auditor.streams import progress

if TYPE_CHECKING:
    from auditor.audit import Options
    from auditor.rulebook import Chosen

VERIFIED = ("terminal", "json", "html")  # of what a verification is part


def run(
    targets: tuple[str, ...],
    replay: Path | None,
    chosen: Chosen,
    options: Options,
    record: Path | None,
    wanted: tuple[FormatChoice, ...],
    fail_on: Any,
    failed_only: bool,
    timeout: float,
    deadline: float,
) -> NoReturn:
    """Judge with the rules that were chosen, write the report and end; the profile is that of the database, if it was told."""
    if options.connection:
        raise click.UsageError("--verify does not ask a database: --db NAME alone chooses what is written")
    if replay or len(targets) != 1:
        raise click.UsageError(
            "--verify goes with one TARGET of this host (zaudit verify --replay judges a recorded one)"
        )
    profile = ENGINES[options.database or "postgres"].profile
    if not profile:
        raise click.UsageError(f"--verify: there is no profile of {options.database} yet")
    format_, output = wanted[0]
    if len(wanted) > 1 or format_ not in VERIFIED:
        raise click.UsageError(f"--verify: one format, of {', '.join(VERIFIED)}")
    from auditor.commands import _verify_plan, _verifying

    request = _verify_plan.VerifyRequest(
        target=targets[0],
        profile=profile,
        length="quick",
        slo="",
        size="",
        limit="",
        despite=(),
        dry_run=False,
        keep=False,
        yes=False,
        record=record,
        timeout=timeout,
        deadline=deadline,
        fail_on=fail_on,
        failed_only=failed_only,
        chosen=chosen,
        policy=options.policy,
    )
    found = _verifying.live(request, progress(deadline), steps())
    assert found is not None  # only a dry run finds nothing
    write(_verifying.rendered(found, format_, look(output)), output, _verifying.summary(found))
    if found.unkept:
        raise found.unkept
    sys.exit(found.report.exit_code)
