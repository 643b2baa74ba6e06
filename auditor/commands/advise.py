"""``zaudit advise``: what a dataset for a database should be set to, why, and what differs here; and whether a log device
would help a pool. It changes nothing."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
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
    from auditor.data.advice import Advice
    from auditor.facts import Facts, Subject

PARTS = ("both", "data", "log")
BLOCKS = (8, 16, 32, 64, 128)  # KiB, for which the share of a raidz is shown
SAME, UNSEEN, OTHER = "as advised", "not known", "differs"


@click.group(short_help="Recommended properties for a database; whether a log device would help.")
def advise() -> None:
    """Recommend, and say why; nothing is ever changed."""


@advise.command(short_help="The properties of a dataset for one database.")
@click.argument("engine", type=click.Choice(list(ENGINES)))
@click.argument("dataset", shell_complete=_complete.targets)
@click.option(
    "--part", type=click.Choice(PARTS), default="both", show_default=True, help="Which part of the database lies there."
)
@click.option("--replay", type=Local(), metavar="REC", help="A recording instead of this host.")
@looking
def db(
    engine: str, dataset: str, part: str, replay: Path | None, timeout: float, deadline: float, consistent: bool
) -> None:
    """Compare what DATASET is set to with what is recommended for ENGINE: the reason, the source, what it costs, who disputes
    it, and the command that would change it."""
    from auditor.facts import Subject

    seen = _look(dataset, replay, timeout, deadline, consistent)
    found = [each for each in seen.roots if each.kind == "dataset"]
    subject = found[0] if found else Subject("dataset", dataset)
    say("\n".join(_page(engine, subject, part, seen.facts, min(width(), 110))))


@advise.command(short_help="Whether a log device would help, which kind, and how large.")
@click.argument("pool")
@click.option("--replay", type=Local(), metavar="REC", help="A recording instead of this host.")
@looking
def log(pool: str, replay: Path | None, timeout: float, deadline: float, consistent: bool) -> None:
    """Tell from the counters of POOL whether a log device would help it, which kind, and how large: commits and bytes of its
    log since its datasets were mounted, and the times of its transaction groups. Without these counters nothing is said, and
    the exit code is 10."""
    from auditor.commands import _log_advice
    from auditor.facts import Subject
    from auditor.judge.finding import EXIT_UNDECIDED

    seen = _look(pool, replay, timeout, deadline, consistent)
    try:
        say("\n".join(_log_advice.page(Subject("pool", pool.partition("/")[0]), seen.facts)))
    except _log_advice.NotMeasured as why:
        say(f"Nothing can be said of a log device for {harmless(pool)}: {harmless(str(why))}")
        raise SystemExit(EXIT_UNDECIDED) from None


def _look(name: str, replay: Path | None, timeout: float, deadline: float, consistent: bool) -> Look:
    """One pool or dataset, here or in a recording. Raises NothingToAudit."""
    from auditor import audit
    from auditor.host.live import Host, LiveHost
    from auditor.recording import recording

    past = recording.load(replay) if replay else None
    host: Host = recording.ReplayHost(past) if past else LiveHost(timeout, deadline)
    asked = past.targets if past else (name,)
    options = audit.Options.from_words(past.options) if past else audit.Options(consistent)
    seen = audit.look(host, asked, options, None if past else progress(deadline))
    return audit.focus(seen, host, (name,)) if past else seen


def _page(engine: str, dataset: Subject, part: str, facts: Facts, wide: int) -> Iterator[str]:
    from auditor.data import advice
    from auditor.facts import Known

    kind = facts.get(dataset, "type")
    word = str(kind.value) if isinstance(kind, Known) else "filesystem"
    what = {"both": "its data and its log", "data": "its data", "log": "its log"}[part]
    yield f"{ENGINES[engine].title} on {dataset.name}: {what}. Nothing is changed by this."
    for each in advice.of(engine, part, word):
        yield ""
        yield from _one(each, dataset, facts, wide)
    yield from _raidz(dataset, facts)


def _one(each: Advice, dataset: Subject, facts: Facts, wide: int) -> Iterator[str]:
    verdict, text = _compared(each, dataset, facts)
    yield f"{each.property}: {text}"
    if verdict == OTHER:
        made = each.property == "volblocksize"
        setting = f"{each.property}={each.shown} {shlex.quote(dataset.name)}"
        yield f"  do       {'only a new volume can have it' if made else f'zfs set {setting}'}"
    lines = [("why", each.reason), ("cost", each.cost), ("source", each.source), ("dispute", each.dispute)]
    for name, said in lines if verdict != SAME else lines[2:]:
        if said:
            yield from textwrap.wrap(
                said, wide, initial_indent=f"  {name:8} ", subsequent_indent=" " * 11, break_on_hyphens=False
            )


def _compared(each: Advice, dataset: Subject, facts: Facts) -> tuple[str, str]:
    """How what is set compares, and in words."""
    from auditor.facts import Unknown

    now = facts.get(dataset, each.property)
    if isinstance(now, Unknown):
        return UNSEEN, f"{UNSEEN} ({harmless(now.reasons[0].text)}); advised: {each.shown}"
    seen = harmless(now.evidence[0].text) if now.evidence else harmless(str(now.value))
    if now.value == each.value or now.value in each.also:
        return SAME, f"{seen}: {SAME}" if now.value == each.value else f"{seen}: does as well as {each.shown}"
    return OTHER, f"{seen}; advised: {each.shown}"


def _raidz(dataset: Subject, facts: Facts) -> Iterator[str]:
    """How much of the raw space blocks of each size leave for data, where the pool is of raidz."""
    from auditor.facts import Known, Subject

    pool = Subject("pool", dataset.name.partition("/")[0])
    for vdev in facts.linked(pool, "data_vdevs"):
        kind, ashift = facts.get(vdev, "type"), facts.get(vdev, "ashift")
        disks = len(facts.linked(vdev, "leaves"))
        if not (isinstance(kind, Known) and isinstance(ashift, Known) and str(kind.value).startswith("raidz")):
            continue
        parity, shift = int(str(kind.value)[-1:]), int(str(ashift.value))
        if disks <= parity:
            continue
        shares = (f"{each}K {share(each << 10, disks, parity, shift):.0%}" for each in BLOCKS)
        best = (disks - parity) / disks
        yield ""
        text = f"{vdev.name} of {disks} disks, ashift={shift}: of the raw space blocks hold"
        yield f"{text} {', '.join(shares)} (at best {best:.0%})"


def share(block: int, disks: int, parity: int, ashift: int) -> float:
    """Data of the sectors that a block takes on a raidz. (OpenZFS module/zfs/vdev_raidz.c vdev_raidz_asize)"""
    data = -(-block // (1 << ashift))
    sectors = data + parity * -(-data // (disks - parity))
    return data / (-(-sectors // (parity + 1)) * (parity + 1))


COMMAND = advise
