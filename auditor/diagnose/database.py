"""The database's view of the same time, beside the kernel's: what it counted, what its backends waited for, and whether the two
agree. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from auditor.databases import ENGINES
from auditor.diagnose import of_mysql, of_postgres
from auditor.diagnose.commits import FEW, Trace
from auditor.diagnose.observation import Observation
from auditor.diagnose.said import Said, said
from auditor.diagnose.view import Row, View, Wait
from auditor.facts import HOST, Facts, Known, Subject, Unknown
from auditor.units import duration

FAR = 3.0  # times as many, or as long, from which on two witnesses do not agree
LATE_S, LEAST_S = 2.0, 5.0  # by which its counters and the first reading may be late; too much of a shorter time
WAITS = 12  # that are told
KERNEL = "commits by its processes"
APART = ("checkpointer",)  # roles whose syncs are not those of commits


class _Engine(NamedTuple):
    """How the counters of one kind of server are read. hidden: what its user may not be shown; words: of what is waited for."""

    hidden: str
    words: Mapping[str, str]
    rows: Callable[[Said], tuple[Row, ...]]
    settings: Callable[[Said], tuple[str, ...]]
    commands: Callable[[Said], tuple[str, ...]]


_POSTGRES = _Engine(
    of_postgres.HIDDEN, of_postgres.WORDS, of_postgres.rows, of_postgres.settings, of_postgres.commands
)
_MYSQL = _Engine(of_mysql.HIDDEN, of_mysql.WORDS, of_mysql.rows, of_mysql.settings, of_mysql.commands)


class Seen(NamedTuple):
    """What the reports tell, and what it was made from; said: None where there is no answer. differs: where the two do
    not agree, or empty. here: it runs on this host, and its log is not known to lie elsewhere."""

    view: View
    said: Said | None = None
    differs: str = ""
    here: bool = False


def seen(observed: Observation, facts: Facts, trace: Trace) -> Seen | None:
    """None where no database was named."""
    asked = observed.database
    if asked is None:
        return None
    engine = ENGINES.get(asked.engine)
    title = engine.title if engine else "the database"
    place = _place(facts, observed.pool)
    nothing = View(title, place.server, "", (), None, (), 0.0, (), (), ())
    if asked.fault:
        return Seen(nothing._replace(unseen=(asked.fault,)))
    try:
        found = said(asked.said)
    except ValueError as error:
        return Seen(nothing._replace(unseen=(f"what it answered could not be used: {error}",)))
    postgres = asked.engine == "postgres"
    of = _POSTGRES if postgres else _MYSQL
    rows = of.rows(found)
    kernel = _kernel(found, trace, observed, postgres) if not place.why and observed.traced else None
    unseen = [place.why] if place.why else []
    if observed.traced is None:
        unseen.append(f"the kernel's side was not traced: {observed.untraced}")
    if not found.sees:
        unseen.append(of.hidden)
    elif "PROCESSLIST" in found.faults:
        unseen.append(f"what sessions wait for: PROCESSLIST may not be read ({found.faults['PROCESSLIST']})")
    seconds = observed.after.at - observed.before.at
    together = abs(found.seconds - seconds) <= max(LATE_S, 0.1 * seconds)
    if not together:
        unseen.append(f"all of the time: it was asked for {found.seconds:.0f} s of {seconds:.0f} s")
    if found.ended:
        unseen.append(f"the look ended early: {found.ended}")
    view = View(
        engine=title,
        server=place.server,
        first=_first(title, rows[0], kernel),
        rows=rows,
        kernel=kernel,
        waits=_waits(found, of.words) if found.sees else (),
        active=found.active / found.moments if found.moments else 0.0,
        settings=of.settings(found),
        unseen=tuple(unseen),
        commands=of.commands(found),
    )
    compared = together and seconds >= LEAST_S
    differs = _differs(title, rows[0], kernel, postgres) if compared else ""
    return Seen(view, found, differs, found.process > 0 and not place.elsewhere)


def elsewhere(facts: Facts, pool: str) -> str:
    """Why the database is not one of this pool, or an empty string where it is, or may be."""
    for database in facts.linked(HOST, "connected_database"):
        found = facts.get(database, "datasets")
        if isinstance(found, Known) and not _inside(facts, database, "datasets", pool):
            names = ", ".join(each.name for each in facts.linked(database, "datasets")) or "no dataset at all"
            return f"{database.name} keeps its files on {names}, and none on {pool}"
    return ""


class _Place(NamedTuple):
    """server: which it is, or empty. why: its log is not known to lie on the pool, or empty; elsewhere: it is known not to."""

    server: str
    why: str = ""
    elsewhere: bool = False


def _place(facts: Facts, pool: str) -> _Place:
    linked = facts.get(HOST, "connected_database")
    databases = facts.linked(HOST, "connected_database")
    if not databases:
        why = linked.reasons[0].text if isinstance(linked, Unknown) else "the audit did not find it"
        return _Place("", f"whether it lies on {pool} is not known: {why}")
    database = databases[0]
    found = facts.get(database, "log_datasets")
    if isinstance(found, Unknown):
        return _Place(database.name, f"whether its log lies on {pool} is not known: {found.reasons[0].text}")
    if not _inside(facts, database, "log_datasets", pool):
        names = ", ".join(each.name for each in facts.linked(database, "log_datasets")) or "no dataset"
        why = f"its log lies on {names}, not on {pool}: its syncs are not those of this pool"
        return _Place(database.name, why, elsewhere=True)
    return _Place(database.name)


def _inside(facts: Facts, database: Subject, link: str, pool: str) -> bool:
    return any(each.name.partition("/")[0] == pool for each in facts.linked(database, link))


def _kernel(found: Said, trace: Trace, observed: Observation, postgres: bool) -> Row:
    """Commits of its threads. Whoever came and went between two looks at its processes is not known to be one of them."""
    if not found.threads:
        return Row(KERNEL, None, None, found.unseen or "which processes are its own was not seen")
    if not trace.whole:
        return Row(KERNEL, None, None, "the kernel's histograms are not whole")
    apart = {each.pid for each in observed.processes if each.role in APART}
    own = [each for each in trace.threads if each.pid in found.threads and each.pid not in apart]
    commits, us = sum(each.commits for each in own), sum(each.us for each in own)
    gone = sum(each.commits for each in trace.threads if each.name == "postgres" and each.pid not in found.threads)
    why = f"and {gone:,} by processes called postgres that came and went, or are of another server" if gone else ""
    return Row(KERNEL, commits, us * 1000 / commits if commits else None, why if postgres else "")


def _first(title: str, row: Row, kernel: Row | None) -> str:
    """PostgreSQL: 1,204 WAL syncs, 26.9 ms each (kernel: 1,201 commits by its processes, 27.1 ms)."""
    if row.counted is None:
        return f"{title}: {row.what} are not known: {row.why}"
    each = f", {duration(row.mean_ns)} each" if row.mean_ns is not None else ""
    beside = ""
    if kernel and kernel.counted is not None:
        took = f", {duration(kernel.mean_ns)}" if kernel.mean_ns is not None else ""
        beside = f" (kernel: {kernel.counted:,} {kernel.what}{took})"
    return f"{title}: {row.counted:,} {row.what}{each}{beside}"


def _waits(found: Said, words: dict[str, str]) -> tuple[Wait, ...]:
    told = [
        Wait(words.get(what.lower(), what), each.together / found.moments, each.most)
        for what, each in found.waits.items()
        if found.moments
    ]
    return tuple(sorted(told, key=lambda each: (-each.mean, each.what))[:WAITS])


def _differs(title: str, row: Row, kernel: Row | None, postgres: bool) -> str:
    """Commits are syncs of other files, too, which MySQL and MariaDB do not count."""
    if row.counted is None or kernel is None or kernel.counted is None or kernel.why:
        return ""
    many, few = max(row.counted, kernel.counted), min(row.counted, kernel.counted)
    if many >= FEW and many >= FAR * few and (postgres or row.counted == many):
        return f"{title} counted {row.counted:,} {row.what}, and the kernel {kernel.counted:,} {kernel.what}"
    means = row.mean_ns or 0.0, kernel.mean_ns or 0.0
    if few >= FEW and min(means) > 0 and max(means) >= FAR * min(means):
        one, other = map(duration, means)
        return f"{title} says that its {row.what} take {one} each, and the kernel that {kernel.what} take {other}"
    return ""
