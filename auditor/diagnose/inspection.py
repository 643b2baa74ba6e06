"""``zaudit diagnose``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from auditor import audit
from auditor.diagnose import commits, conclusion, database_counters, observation, process_share, tracing
from auditor.diagnose import watch as diagnose_watch
from auditor.diagnose.diagnosis import Diagnosis, Outcome, Second
from auditor.diagnose.watch import WatchOptions
from auditor.errors import Stop
from auditor.facts import Facts, Subject
from auditor.host import sql
from auditor.host.live import HidingHost, Host, LiveHost
from auditor.host.sql_watch import Connection
from auditor.judge.policy import Policy
from auditor.recording import archive, recording
from auditor.report.model import Report
from auditor.screen import note, say, width
from auditor.text import duration, harmless, size
from auditor.verify import session
from auditor.verify.execution import Progress

EXITS: dict[Outcome, int] = {
    "NOTHING STANDS OUT": 0,
    "NOBODY COMMITS": 0,
    "INCONCLUSIVE": 10,
    "CAUSE": 12,
    "NOT DURABLE": 14,
}


class DiagnoseOptions(NamedTuple):
    """What the command line says."""

    target: str
    seconds: float
    traced: bool
    watch: bool
    beside: bool  # the lines of --watch go to standard error
    record: Path | None
    options: audit.Options
    timeout: float
    deadline: float


class DiagnosisResult(NamedTuple):
    """unkept: why its recording could not be written, to be raised once the report is out."""

    diagnosis: Diagnosis
    report: Report
    unkept: Exception | None = None


class CannotDiagnose(Stop):
    """What was seen cannot be read; the text says why."""


def live(wanted: DiagnoseOptions, progress: Callable[..., None] | None, steps: Progress | None) -> DiagnosisResult:
    """Diagnose on this host. Raises what the parts raise."""
    if wanted.record:
        archive.possible(wanted.record)
    options, asked = wanted.options, None
    if (
        database := options.wanted.database
    ):  # the DSN is told to nobody else: neither the recording nor the report has it
        asked = Connection(database, options.wanted.connection)
        hidden = options.wanted._replace(connection=sql.REDACTED if asked.dsn else "")
        options = options._replace(wanted=hidden)
    policy = options.policy
    looked_at = HidingHost(LiveHost(wanted.timeout, wanted.deadline), asked.dsn if asked else "")
    machine = LiveHost(wanted.timeout)
    host: Host = recording.RecordingHost(looked_at) if wanted.record else looked_at
    named = process_share.find(machine, wanted.target) if process_share.meant(wanted.target) else None
    targets = named.targets if named else (wanted.target,)
    seen = audit.look(host, targets, options, progress)
    root = _one_pool(seen, named)
    if named:  # of a volume its dataset
        named = named._replace(targets=tuple(each.name for each in seen.roots))
    pool = Subject("pool", root.partition("/")[0])
    if looked_at.error:
        note(f"zaudit: --db {options.wanted.database}: {harmless(looked_at.error)[:300]}")
    if why := database_counters.elsewhere(seen.facts, pool.name):
        raise CannotDiagnose(f"--db: {why}")
    watch = _watching(wanted, root, pool, named, seen.facts) if wanted.watch else None
    seconds, traced = wanted.seconds, wanted.traced
    made = diagnose_watch.observe(
        machine, root, pool, seen.facts, seconds, steps, traced=traced, process=named, watch=watch, database=asked
    )
    if tracing.own_name() in tracing.left():
        note(f"zaudit: {tracing.own_name()} could not be removed from {tracing.ROOT}; zaudit clean tries again")
    chosen = session.rules(policy)
    unkept = session.keep(host, wanted.record, targets, options, chosen.rules, observation.to_text(made))
    return _judged(seen, made, targets, policy)._replace(unkept=unkept)


def _watching(
    wanted: DiagnoseOptions, root: str, pool: Subject, named: process_share.ProcessLoad | None, facts: Facts
) -> WatchOptions:
    """A process that writes to one volume is narrowed to that: threads of the kernel commit for it."""
    volume = commits.volumes((root,), facts)
    dataset = root if root != pool.name and (named is None or volume) else ""
    narrowed = dataset
    if named:
        those = f"process {named.pid} ({named.name}) and those that it started"
        narrowed = f"{root}, to which {those} write" if dataset else f"the threads of {those}"
    lines = Lines(narrowed, beside=wanted.beside)
    return WatchOptions(lines.begin, lines.line, lambda: LiveHost(wanted.timeout), dataset)


def _one_pool(seen: audit.Look, named: process_share.ProcessLoad | None) -> str:
    """The dataset that is diagnosed; of several of one process their pool. Raises NoSuchLoad."""
    names = [root.name for root in seen.roots]
    pools = sorted({name.partition("/")[0] for name in names})
    if named and len(pools) > 1:
        raise process_share.NoSuchLoad(
            process_share.several(f"process {named.pid} ({harmless(named.name)})", pools, names)
        )
    return names[0] if len(names) == 1 else pools[0]


def replayed(path: Path, policy: Policy | None = None) -> DiagnosisResult:
    """A recorded diagnosis, judged again. policy: instead of its own."""
    past, text = session.load(path, "diagnosis")
    seen = audit.replay(past, policy)
    return _judged(seen, observation.from_text(text), past.targets, seen.policy)


def _judged(
    seen: audit.Look, made: observation.Observation, targets: tuple[str, ...], policy: Policy
) -> DiagnosisResult:
    chosen = session.rules(policy)
    report = audit.judge(seen, chosen.rules, targets, "low", left_out=chosen.left_out)
    try:
        return DiagnosisResult(conclusion.diagnose(made, seen.facts), report)
    except ValueError as error:
        raise CannotDiagnose(str(error)) from None


# ``zaudit diagnose --watch``: its lines, with columns of a fixed width, so that they are below each other and a program can cut
# them; and where they go.

HEADER_EVERY = 20  # lines, after which the names of the columns come again
WIDTHS = {
    "time": 8, "commits/s": 9, "own/s": 7, "own mean": 8, "mean": 7, "p99": 7, "slowest": 7, "log write": 9, "flush": 7,
    "held": 5, "dirty": 8, "TXG": 4, "synced in": 9,
}  # fmt: skip
NARROWED = ("own/s", "own mean")
LAST = ("synced in", "slowest", "dirty", "TXG", "p99", "held")  # of which a narrow terminal lacks the first ones
GAP, NONE = "  ", "-"


def columns(*, narrowed: bool, width: int | None) -> list[str]:
    """Their names. narrowed: with those of the process or dataset that was named; width: of the terminal, None for a file."""
    told = [each for each in WIDTHS if narrowed or each not in NARROWED]
    for each in LAST:
        if width is not None and sum(WIDTHS[name] + len(GAP) for name in told) - len(GAP) > width:
            told.remove(each)
    return told


def header(told: Sequence[str]) -> str:
    """The names."""
    return GAP.join(each.rjust(WIDTHS[each]) for each in told)


def row(second: Second, told: Sequence[str]) -> str:
    """One second; a dash for what was not seen."""

    def rate(count: int | None) -> str:
        return NONE if count is None or second.seconds <= 0 else f"{count / second.seconds:,.0f}"

    cells = {
        "time": time.strftime("%H:%M:%S", time.localtime(second.at)),
        "commits/s": rate(second.commits),
        "own/s": rate(second.own),
        "own mean": _took(second.own_mean_ns),
        "mean": _took(second.mean_ns),
        "p99": _took(second.p99_ns),
        "slowest": _took(second.most_ns),
        "log write": _took(second.write_ns),
        "flush": _took(second.flush_ns),
        "held": NONE if second.held is None else f"{second.held:,}",
        "dirty": NONE if second.dirty is None else size(second.dirty),
        "TXG": harmless(second.states) or NONE,
        "synced in": NONE if second.sync_s is None else duration(second.sync_s * 1e9),
    }
    return GAP.join(cells[each].rjust(WIDTHS[each]) for each in told)


def legend(narrowed: str, untraced: str) -> list[str]:
    """What is said once, before the first line. narrowed: to what, or empty; untraced: why there is no trace, or empty."""
    told = []
    if untraced:
        told.append(f"How long commits take is not seen ({NONE}): {harmless(untraced)}.")
    if narrowed:
        told.append(f"own: of {harmless(narrowed)}; everything else is of the whole pool.")
    return [
        *told,
        "p99 and slowest: at most so long; log write, flush: mean of the slowest leg; held: writes held back;",
        "dirty: of the newest TXG that syncs or was synced; TXG: under way (O open, Q quiescing, W waiting, S syncing).",
    ]


def _took(ns: float | None) -> str:
    return NONE if ns is None else duration(ns)


class Lines:
    """One line a second, each written at once. beside: to standard error, so that a report for programs stands alone on
    standard output."""

    def __init__(self, narrowed: str, *, beside: bool) -> None:
        self._narrowed = narrowed
        self._say: Callable[[str], None] = note if beside else say
        self._again = (sys.stderr if beside else sys.stdout).isatty()  # a file has names at its beginning alone
        self._columns = columns(narrowed=bool(narrowed), width=width() if self._again else None)
        self._count = 0

    def begin(self, untraced: str) -> None:
        """untraced: why there is no trace, or empty."""
        for each in legend(self._narrowed, untraced):
            self._say(each)

    def line(self, second: Second) -> None:
        if self._count == 0 or (self._again and self._count % HEADER_EVERY == 0):
            self._say(header(self._columns))
        self._count += 1
        self._say(row(second, self._columns))
