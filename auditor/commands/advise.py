"""``zaudit advise``: what a dataset for a database should be set to, why, and what differs here; and whether a log device
would help a pool. It changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from auditor.commands import _complete
from auditor.commands._options import Local, looking
from auditor.commands._terminal import say, width
from auditor.databases import ENGINES
from auditor.streams import progress
from auditor.text import harmless

if TYPE_CHECKING:
    from auditor.audit import Look

PARTS = ("both", "data", "log")


@click.group(short_help="Recommended properties for a database; whether a log device would help.")
def advise() -> None:
    """Recommend, and say why; nothing is ever changed."""


@advise.command(short_help="The properties of a dataset for one database.")
@click.argument("engine", type=click.Choice(list(ENGINES)))
@click.argument("dataset", shell_complete=_complete.targets)
@click.option(
    "--part", type=click.Choice(PARTS), default="both", show_default=True, help="Which part of the database lies there."
)
@click.option("--short", is_flag=True, help="Only what is set, what is advised and why.")
@click.option("--replay", type=Local(), metavar="REC", help="A recording instead of this host.")
@looking
def db(
    engine: str,
    dataset: str,
    part: str,
    short: bool,
    replay: Path | None,
    timeout: float,
    deadline: float,
    consistent: bool,
) -> None:
    """Compare what DATASET is set to with what is recommended for ENGINE on the vdevs of its pool: the reason, what it costs,
    the source, who disputes it, and the commands that would change it."""
    from auditor.commands import _db_advice
    from auditor.facts import Subject

    seen = _look(dataset, replay, timeout, deadline, consistent)
    found = [each for each in seen.roots if each.kind == "dataset"]
    subject = found[0] if found else Subject("dataset", dataset)
    say("\n".join(_db_advice.page(engine, subject, part, seen.facts, min(width(), 110), short)))


@advise.command(short_help="Whether a log device would help, which kind, and how large.")
@click.argument("pool")
@click.option("--since", type=Local(), metavar="REC", help="An earlier recording: only what was counted since then.")
@click.option("--replay", type=Local(), metavar="REC", help="A recording instead of this host.")
@looking
def log(pool: str, since: Path | None, replay: Path | None, timeout: float, deadline: float, consistent: bool) -> None:
    """Tell from the counters of POOL whether a log device would help it, which kind, and how large: commits and bytes of its
    log since its datasets were mounted, and the times of its transaction groups. Without these counters nothing is said, and
    the exit code is 10.

    A mean since the mount hides bursts. Record the host before a load (zaudit record), and give that recording with --since
    after it: then only what was counted in between counts."""
    from auditor.commands import _log_advice
    from auditor.facts import Subject
    from auditor.judge.finding import EXIT_UNDECIDED

    before = _look(pool, since, timeout, deadline, consistent).facts if since else None
    seen = _look(pool, replay, timeout, deadline, consistent)
    try:
        lines = _log_advice.page(Subject("pool", pool.partition("/")[0]), seen.facts, before, min(width(), 110))
        say("\n".join(lines))
    except _log_advice.NotMeasured as why:
        say(f"Nothing can be said of a log device for {harmless(pool)}: {harmless(str(why))}")
        raise SystemExit(EXIT_UNDECIDED) from None


def _look(name: str, replay: Path | None, timeout: float, deadline: float, consistent: bool) -> Look:
    """One pool or dataset, here or in a recording. Raises NothingToAudit."""
    from auditor import audit, interrupt
    from auditor.host.live import LiveHost
    from auditor.recording import recording

    if replay is None:
        with interrupt.waiting():
            return audit.look(LiveHost(timeout, deadline), (name,), audit.Options(consistent), progress(deadline))
    past = recording.load(replay)
    host = recording.ReplayHost(past)
    return audit.focus(audit.look(host, past.targets, audit.Options.from_words(past.options)), host, (name,))


COMMAND = advise
