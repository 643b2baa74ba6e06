"""``zaudit diagnose``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from auditor import __version__, audit
from auditor.commands import _recorded, _verifying
from auditor.commands._options import with_database
from auditor.commands._terminal import note
from auditor.commands._watching import Lines
from auditor.diagnose import commits, conclusion, database_counters, observation, process_share, tracing
from auditor.diagnose import watch as diagnose_watch
from auditor.diagnose.diagnosis import Diagnosis, Outcome
from auditor.diagnose.watch import Watching
from auditor.errors import Stop
from auditor.facts import Facts, Subject
from auditor.host import sql
from auditor.host.live import HidingHost, Host, LiveHost
from auditor.host.sql_watch import Connection
from auditor.judge.policy import Policy
from auditor.recording import archive, recording
from auditor.report.model import Report
from auditor.text import harmless
from auditor.verify.run import Progress

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
    policy: Policy
    timeout: float
    deadline: float
    database: str | None = None


class Found(NamedTuple):
    """unkept: why its recording could not be written, to be raised once the report is out."""

    diagnosis: Diagnosis
    report: Report
    unkept: Exception | None = None


class CannotDiagnose(Stop):
    """What was seen cannot be read; the text says why."""


def live(wanted: DiagnoseOptions, progress: Callable[..., None] | None, steps: Progress | None) -> Found:
    """Diagnose on this host. Raises what the parts raise."""
    if wanted.record:
        archive.possible(wanted.record)
    options, asked = _database(audit.Options(policy=wanted.policy), wanted.database)
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
        note(f"zaudit: --db {options.database}: {harmless(looked_at.error)[:300]}")
    if why := database_counters.elsewhere(seen.facts, pool.name):
        raise CannotDiagnose(f"--db: {why}")
    watch = _watching(wanted, root, pool, named, seen.facts) if wanted.watch else None
    seconds, traced = wanted.seconds, wanted.traced
    made = diagnose_watch.observe(
        machine, root, pool, seen.facts, seconds, steps, traced=traced, process=named, watch=watch, database=asked
    )
    if tracing.own_name() in tracing.left():
        note(f"zaudit: {tracing.own_name()} could not be removed from {tracing.ROOT}; zaudit clean tries again")
    chosen = _verifying.rules(wanted.policy)
    unkept = _recorded.keep(host, wanted.record, targets, options, chosen.rules, observation.to_text(made))
    return _judged(seen, made, targets, wanted.policy)._replace(unkept=unkept)


def _watching(
    wanted: DiagnoseOptions, root: str, pool: Subject, named: process_share.Found | None, facts: Facts
) -> Watching:
    """A process that writes to one volume is narrowed to that: threads of the kernel commit for it."""
    volume = commits.volumes((root,), facts)
    dataset = root if root != pool.name and (named is None or volume) else ""
    narrowed = dataset
    if named:
        those = f"process {named.pid} ({named.name}) and those that it started"
        narrowed = f"{root}, to which {those} write" if dataset else f"the threads of {those}"
    lines = Lines(narrowed, beside=wanted.beside)
    return Watching(lines.begin, lines.line, lambda: LiveHost(wanted.timeout), dataset)


def _one_pool(seen: audit.Look, named: process_share.Found | None) -> str:
    """The dataset that is diagnosed; of several of one process their pool. Raises NoSuchLoad."""
    names = [root.name for root in seen.roots]
    pools = sorted({name.partition("/")[0] for name in names})
    if named and len(pools) > 1:
        raise process_share.NoSuchLoad(
            process_share.several(f"process {named.pid} ({harmless(named.name)})", pools, names)
        )
    return names[0] if len(names) == 1 else pools[0]


def _database(options: audit.Options, said: str | None) -> tuple[audit.Options, Connection | None]:
    """The options with what --db says, and what is to be asked. The DSN is told to nobody else: neither the recording nor the
    report has it."""
    options = with_database(options, said)
    if said is None:
        return options, None
    asked = Connection(options.database, options.connection)
    return options._replace(connection=sql.REDACTED if asked.dsn else ""), asked


def replayed(path: Path, policy: Policy | None = None) -> Found:
    """A recorded diagnosis, judged anew. policy: instead of its own."""
    past = _recorded.load(path, "diagnosis", policy)
    return _judged(past.seen, observation.from_text(past.text), past.targets, past.policy)


def _judged(seen: audit.Look, made: observation.Observation, targets: tuple[str, ...], policy: Policy) -> Found:
    chosen = _verifying.rules(policy)
    report = audit.judge(seen, chosen.rules, targets, "low", left_out=chosen.left_out)
    try:
        return Found(conclusion.diagnose(made, seen.facts), report)
    except ValueError as error:
        raise CannotDiagnose(str(error)) from None


def rendered(found: Found, format_: str, terminal: Mapping[str, Any], *, verbose: bool) -> str:
    """The report in a format."""
    from auditor.diagnose import page

    if format_ == "json":
        return page.write_json(found.diagnosis, found.report, zaudit=__version__)
    if format_ == "html":
        return page.write_html(found.diagnosis, found.report, zaudit=__version__)
    return page.write_text(found.diagnosis, found.report, zaudit=__version__, verbose=verbose, **terminal)


def summary(found: Found) -> str:
    """One line for whoever wrote the report to a file."""
    return f"{found.diagnosis.outcome} (exit code {EXITS[found.diagnosis.outcome]})"
