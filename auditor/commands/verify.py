"""``zaudit verify``: follow every fsync down to the flush on the device."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from auditor.commands import _options
from auditor.commands._options import Local, deadline, policy
from auditor.commands._options import fail_on as fail_on_option
from auditor.screen import look, steps, write
from auditor.streams import progress


@click.command(short_help="Follow every fsync down to the device, with a short fio run.")
@click.argument("target", required=False, shell_complete=_options.target_names)
@click.option("--profile", default="postgres", show_default=True, metavar="NAME|FILE.fio",
              help="postgres, mysql-innodb, sqlite, mongodb, etcd, or an fio job file.")  # fmt: skip
@click.option("--quick", "length", flag_value="quick", default=True, help="The log path alone, 36 s (the default).")
@click.option("--standard", "length", flag_value="standard", help="Every part of the profile, 2 min each.")
@click.option("--long", "length", flag_value="long", help="Every part of the profile, 10 min each: enough for p99.9.")
@click.option(
    "--slo", default="", metavar="p99=5ms,...", help="How long a commit may take; default: that of the profile."
)
@click.option("--size", default="", metavar="SIZE", help="Size of each data file; default: twice zfs_dirty_data_max.")
@click.option("--limit", default="", metavar="SIZE", help="Write at most this much.  [default: 10g]")
@click.option("--despite", multiple=True, type=click.Choice(["degraded", "scrub", "full", "space"]),
              help="Run even if the pool is in this state (repeat for more).")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print what would be run and written; do nothing.")
@click.option("--keep", is_flag=True, help="Keep the files; zaudit clean removes them.")
@click.option("--yes", is_flag=True, help="Do not ask before writing more than 10 GiB.")
@click.option(
    "--sweep",
    is_flag=True,
    help="Also measure what group commit is worth here (a fixed amount, synced more and more often).",
)
@click.option(
    "--sweep-size", default="", metavar="SIZE", help="Amount written in each trial of a sweep.  [default: 128m]"
)
@click.option(
    "--ab",
    type=click.Choice(["slog"]),
    help="Measure the log path with and, as far as OpenZFS allows, without the SLOG.",
)
@click.option("--compare", type=Local(), metavar="RESULT",
              help="Compare with an earlier result (JSON report or recording).")  # fmt: skip
@_options.replay("Judge a recorded verification again.")
@_options.record
@_options.formats_of("terminal", "json", "html")
@_options.output("Write the report to a file.")
@policy
@fail_on_option
@_options.timeout("Give up on a command (not on fio) after this time.")
@deadline("Stop the questions of the audit after this time, not fio; give up on a recording.")
def verify(
    target: str | None,
    replay: Path | None,
    compare: Path | None,
    format_: str,
    output: Path | None,
    fail_on: Any,
    failed_only: bool,
    policy_file: Path | None,
    **given: Any,
) -> NoReturn:
    """Write as a database does to TARGET (a dataset, zvol or mounted path), and follow each sync through system calls, fio, the
    ZIL and the devices.

    TRACED: every sync was followed to a flush that completed. CONTRADICTED: the link that is named lost some. INCONCLUSIVE: it
    could not be seen, and why. Writes only into a new directory, which it removes.
    """
    from auditor.commands import _auditing
    from auditor.verify import session as command
    from auditor.verify.session import VerifyRequest

    if bool(target) == bool(replay):
        raise click.UsageError("name a TARGET, or --replay a recording")
    if replay:
        followed = _auditing.read_policy(policy_file) if policy_file else None
        found = command.replayed(replay, fail_on, compare, followed, failed_only=failed_only)
    else:
        request = VerifyRequest(
            target=str(target),
            fail_on=fail_on,
            failed_only=failed_only,
            compare=compare,
            policy=_auditing.read_policy(policy_file),
            **given,
        )
        done = command.live(request, progress(request.deadline), steps())
        if done is None:
            sys.exit(0)
        found = done
    text = command.rendered(found, format_, look(output))
    write(text, output, command.summary(found), encoded=format_ == "html")
    if found.unkept:
        raise found.unkept
    sys.exit(found.report.exit_code)


COMMAND = verify
