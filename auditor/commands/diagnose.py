"""``zaudit diagnose``: who commits under the current load, how long it takes, and where the time goes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import click

from auditor import __version__
from auditor.commands import _options
from auditor.commands._auditing import Request, gathered
from auditor.commands._options import Seconds, database, deadline, formats_of, policy
from auditor.screen import look, say, steps, write
from auditor.streams import progress

SECONDS, LONGEST = 30, 3600


@click.command(short_help="Who commits now, how long it takes, where the time goes.")
@click.argument("target", required=False)
@click.option("--seconds", type=Seconds(1, LONGEST), metavar="SECONDS",
              help=f"Look for this long.  [default: {SECONDS}; with --watch until Ctrl-C, at most {LONGEST}]")  # fmt: skip
@click.option("--watch", is_flag=True, help="Print a line each second; Ctrl-C ends it, and the report follows.")
@click.option(
    "--no-trace",
    is_flag=True,
    help="No events in tracefs: counters alone; nothing on the host is changed.",
)
@database
@_options.replay("Judge a recorded diagnosis again.")
@_options.record
@formats_of("terminal", "json", "html")
@_options.output("Write the report to a file.")
@policy
@click.option("-v", "--verbose", is_flag=True, help="Show every thread and dataset.")
@_options.timeout()
@deadline("Stop the questions of the audit after this time; give up on a recording.")
@gathered
def diagnose(
    asked: Request,
    target: str | None,
    seconds: float | None,
    watch: bool,
    no_trace: bool,
    format_: str,
    output: Path | None,
    verbose: bool,
) -> NoReturn:
    """Watch the sync writes of TARGET (a pool, dataset, zvol or mounted path) under the current load, and say who makes them,
    how long each takes, and what it waits for. Nothing is written to the pool. Digits alone are the number of a process: then
    of the pool that it and the processes that it started write to, and which commits are theirs.

    As root it adds its own events to the kernel's tracefs while it looks (probes of zil_commit, zil_lwb_write_issue and
    zpl_fsync, histograms in an instance of its own), and removes them one by one; zaudit clean does so after a kill -9. Where
    it must not, with --no-trace and without root only counters are read, which do not show how long a commit takes.

    With --watch and another format than terminal the lines go to standard error.

    With --db NAME=DSN the database's own counters of the same time stand next to the kernel's (PostgreSQL, MySQL, MariaDB):
    its syncs, checkpoints, and once a second what its backends wait for, in a read-only session with short time-outs. No
    query, user or address is asked for, and the DSN is neither recorded nor reported.

    Exit codes: 0 nothing stands out, 10 inconclusive, 12 something stands out, 14 syncs that write nothing.
    """
    from auditor.diagnose import watch as command

    if bool(target) == bool(asked.replay):
        raise click.UsageError("name a TARGET, or --replay a recording")
    if asked.replay and asked.database:
        raise click.UsageError("--db does not go with --replay: a recording has what the database said")
    if watch and asked.replay:
        raise click.UsageError("--watch looks at this host, and a recording has been looked at")
    if asked.replay:
        found = command.replayed(asked.replay, asked.named_policy())
    else:
        wanted = command.DiagnoseOptions(
            target=str(target),
            seconds=seconds or (LONGEST if watch else SECONDS),
            traced=not no_trace,
            watch=watch,
            beside=format_ != "terminal",
            record=asked.record,
            options=asked.options(),
            timeout=asked.timeout,
            deadline=asked.deadline,
        )
        found = command.live(wanted, progress(asked.deadline), None if watch else steps())
    if watch and format_ == "terminal" and not output:
        say("")
    from auditor.diagnose import diagnose_page

    shown = found.diagnosis, found.report
    text = diagnose_page.write(format_, *shown, zaudit=__version__, verbose=verbose, **look(output))
    code = command.EXITS[found.diagnosis.outcome]
    write(text, output, f"{found.diagnosis.outcome} (exit code {code})", encoded=format_ == "html")
    if found.unkept:
        raise found.unkept
    sys.exit(code)


COMMAND = diagnose
