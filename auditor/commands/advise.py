"""``zaudit advise``: what a dataset for a database should be set to, why, and what differs here; and whether a log device
would help a pool. It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from auditor.commands import _options
from auditor.commands._auditing import Request, gathered
from auditor.commands._options import Local, looking
from auditor.databases import ENGINES
from auditor.screen import ascii_only, say, width
from auditor.text import harmless

if TYPE_CHECKING:
    from auditor.audit import Look
    from auditor.report.document import Block

PARTS = ("both", "data", "log")


@click.group(short_help="Properties for a database; whether a log device would help.")
def advise() -> None:
    """Recommend, and say why; nothing is ever changed."""


@advise.command(short_help="The properties of a dataset for one database.")
@click.argument("engine", type=click.Choice(list(ENGINES)))
@click.argument("dataset", shell_complete=_options.target_names)
@click.option(
    "--part", type=click.Choice(PARTS), default="both", show_default=True, help="Which part of the database lies there."
)
@click.option("--short", is_flag=True, help="Only what is set, what is advised and why.")
@_options.replay()
@looking
@gathered
def db(asked: Request, engine: str, dataset: str, part: str, short: bool) -> None:
    """Compare what DATASET is set to with what is recommended for ENGINE on the vdevs of its pool: the reason, what it costs,
    the source, who disputes it, and the commands that would change it."""
    from auditor.advice import properties
    from auditor.facts import Subject

    seen = _look(asked, dataset)
    found = [each for each in seen.roots if each.kind == "dataset"]
    subject = found[0] if found else Subject("dataset", dataset)
    _print(properties.page(engine, subject, part, seen.facts, short))


@advise.command(short_help="Whether a log device would help, which kind, and how large.")
@click.argument("pool")
@click.option("--since", type=Local(), metavar="REC", help="An earlier recording: only what was counted since then.")
@_options.replay()
@looking
@gathered
def log(asked: Request, pool: str, since: Path | None) -> None:
    """Tell from the counters of POOL whether a log device would help it, which kind, and how large: commits and bytes of its
    log since its datasets were mounted, and the times of its transaction groups. Without these counters nothing is said, and
    the exit code is 10.

    A mean since the mount hides bursts. Record the host before a load (zaudit record), and give that recording with --since
    after it: then only what was counted in between counts."""
    from auditor.advice import log_device
    from auditor.facts import Subject
    from auditor.judge.finding import EXIT_UNDECIDED

    before = _look(asked._replace(replay=since), pool).facts if since else None
    seen = _look(asked, pool)
    try:
        _print(log_device.page(Subject("pool", pool.partition("/")[0]), seen.facts, before))
    except log_device.NotMeasured as why:
        say(f"Nothing can be said of a log device for {harmless(pool)}: {harmless(str(why))}")
        raise SystemExit(EXIT_UNDECIDED) from None


def _print(blocks: Iterator[Block]) -> None:
    from auditor.report import terminal

    say(terminal.fragment(blocks, width=min(width(), 110), ascii_only=ascii_only()))


def _look(asked: Request, name: str) -> Look:
    """One pool or dataset, here or in a recording. Raises NothingToAudit."""
    return asked._replace(targets=(name,)).choose().look().narrowed()


COMMAND = advise
