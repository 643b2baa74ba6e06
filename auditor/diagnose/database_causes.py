"""What stands out in the database's own view: each only where its counters say so with certainty. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.diagnose import of_mysql, of_postgres
from auditor.diagnose.commits import FEW
from auditor.diagnose.database import Seen
from auditor.diagnose.model import Cause, Evidence
from auditor.diagnose.said import Said, number
from auditor.units import size

MOSTLY = 0.5  # of the backends at work
BEHIND = 5.0  # that wait for one lock at a mean moment
TWO = 2
REPLICA = "ipc syncrep"
TURNS = ("lwlock walwrite", "lwlock walinsert")
ROWS = ("lock transactionid", "lock tuple")


def not_durable(seen: Seen | None) -> Iterator[Cause]:
    """A server that syncs nothing."""
    if seen and seen.said and seen.here and seen.said.settings.get("fsync") == "off":
        evidence = (Evidence("the server says fsync = off", "psql -c 'SHOW fsync'"),)
        text = f"{seen.view.engine} runs with fsync = off: its commits wait for nothing to be written"
        fix = (
            "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf(); no -F on its command line. Then sync the file systems "
            "once (sync): what was written before is not flushed by it."
        )
        yield Cause("database-fsync-off", text, evidence, fix, "pg-fsync-off", True)


def causes(seen: Seen | None) -> tuple[Cause, ...]:
    """All that stand out, the gravest first; none of a server elsewhere, whatever it does."""
    if seen is None or seen.said is None or not seen.here:
        return ()
    said, title = seen.said, seen.view.engine
    return (*_checkpoints(said, title), *_waiting(said, title), *_log_buffer(said, title))


def _checkpoints(said: Said, title: str) -> Iterator[Cause]:
    """Requested ones may be somebody's CHECKPOINT; of so much WAL that each but the first had to be, they are not."""
    counts, each, wal = of_postgres.checkpoints(said), of_postgres.trigger(said), said.grown("wal", "inserted")
    if counts is None or each is None or wal is None:
        return
    requested, by_time = counts
    if requested < TWO or requested <= by_time or wal < (requested - 1) * each:
        return
    words = ("max_wal_size", "checkpoint_timeout", "checkpoint_completion_target")
    most, timeout, target = (number(said.settings.get(name)) or 0.0 for name in words)
    whole, table = said.settings.get("full_page_writes") == "on", of_postgres.requested(said)[0]
    now = size(most * (1 << 20))
    text = (
        f"{title} made {requested} checkpoints in {said.seconds:.0f} s because its WAL reached max_wal_size ({now}): "
        f"{size(wal)} of it were written{', and pages whole again after each of them' if whole else ''}"
    )
    evidence = (
        Evidence(f"{requested} requested, {by_time} by time", f"psql -xc 'TABLE {table}'"),
        Evidence(f"{size(each)} of WAL bring about the next one", "psql -c 'SHOW max_wal_size'"),
    )
    enough = size(wal / said.seconds * timeout * (1 + target))
    fix = f"Raise max_wal_size: at this load {enough} last for checkpoint_timeout ({timeout:.0f} s)."
    yield Cause("checkpoint-storm", text, evidence, fix, "", False)


def _waiting(said: Said, title: str) -> Iterator[Cause]:
    """One kind of wait in which most backends at work were seen."""
    for id, events, text, fix in (
        (
            "standby", (REPLICA,), "wait for a synchronous standby, not for a disk here",
            "Look at the standby and the way to it; pg_stat_replication shows flush_lag.",
        ),
        (
            "row-locks", ROWS, "wait for a row that another transaction holds until its commit is on disk: such commits "
            "go one after another, however many could share a sync",
            "Change fewer hot rows, or change them last in a transaction.",
        ),
        (
            "commits-in-turn", TURNS, "wait for the lock that one holds while it waits for the disk: commits go behind one "
            "another", "A faster log device shortens each turn; commit_delay lets more share one.",
        ),
    ):  # fmt: skip
        own = [each for words, each in said.waits.items() if words.lower() in events]
        together = sum(each.together for each in own)
        if together < FEW or together < MOSTLY * said.active or not said.moments or not said.sees:
            continue
        mean, active = together / said.moments, said.active / said.moments
        if mean < (BEHIND if events == TURNS else TWO):
            continue
        seen = f"{mean:.1f} of {active:.1f} backends at work, in {said.moments} looks"
        yield Cause(
            id,
            f"{mean:.0f} of {active:.0f} backends of {title} {text}",
            (Evidence(seen, of_postgres.ACTIVITY),),
            fix,
            "",
            False,
        )


def _log_buffer(said: Said, title: str) -> Iterator[Cause]:
    waits = said.grown("status", "Innodb_log_waits")
    if waits is not None and waits >= FEW:
        text = f"{title} waited {waits:.0f} times for room in its log buffer (innodb_log_buffer_size)"
        evidence = (Evidence(f"Innodb_log_waits grew by {waits:.0f}", of_mysql.STATUS),)
        yield Cause("log-buffer", text, evidence, "Raise innodb_log_buffer_size.", "", False)
