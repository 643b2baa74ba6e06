"""What servers say of themselves, of which the truth is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from auditor.databases.paths import PATHS_FACTS as PATHS
from auditor.diagnose.conclusion import diagnose
from auditor.diagnose.diagnosis import Diagnosis
from auditor.diagnose.observation import DatabaseAnswer, Process
from auditor.facts import HOST, Fact, Facts, Subject, known
from tests.diagnose import worlds

SERVER = Subject("database", "postgres 90")
RESET = "2026-01-01 00:00:00+00"


# columns of the views at each release (src/backend/catalog/system_views.sql at REL_14_STABLE to REL_18_STABLE)
def _named(*lines: str) -> list[str]:
    return " ".join(lines).split()


_WAL_14 = _named(
    "wal_records wal_fpi wal_bytes wal_buffers_full wal_write wal_sync wal_write_time wal_sync_time stats_reset"
)
_BGWRITER_14 = _named(
    "checkpoints_timed checkpoints_req checkpoint_write_time checkpoint_sync_time buffers_checkpoint buffers_clean",
    "maxwritten_clean buffers_backend buffers_backend_fsync buffers_alloc stats_reset",
)
_IO_16 = _named(
    "backend_type object context reads read_time writes write_time writebacks writeback_time extends extend_time op_bytes",
    "hits evictions reuses fsyncs fsync_time stats_reset",
)
_CHECKPOINTER_17 = _named(
    "num_timed num_requested restartpoints_timed restartpoints_req restartpoints_done write_time sync_time buffers_written",
    "stats_reset",
)
_BGWRITER_17 = ["buffers_clean", "maxwritten_clean", "buffers_alloc", "stats_reset"]
COLUMNS: dict[int, dict[str, list[str]]] = {
    14: {"pg_stat_wal": _WAL_14, "pg_stat_bgwriter": _BGWRITER_14},
    15: {"pg_stat_wal": _WAL_14, "pg_stat_bgwriter": _BGWRITER_14},
    16: {"pg_stat_wal": _WAL_14, "pg_stat_bgwriter": _BGWRITER_14, "pg_stat_io": _IO_16},
    17: {
        "pg_stat_wal": _WAL_14,
        "pg_stat_bgwriter": _BGWRITER_17,
        "pg_stat_checkpointer": _CHECKPOINTER_17,
        "pg_stat_io": _IO_16,
    },
    18: {
        "pg_stat_wal": ["wal_records", "wal_fpi", "wal_bytes", "wal_buffers_full", "stats_reset"],
        "pg_stat_bgwriter": _BGWRITER_17,
        "pg_stat_checkpointer": [*_CHECKPOINTER_17, "num_done", "slru_written"],
        "pg_stat_io": [*(each for each in _IO_16 if each != "op_bytes"), "read_bytes", "write_bytes", "extend_bytes"],
    },
}
SETTINGS = {
    "fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "wal_sync_method": "fdatasync",
    "track_wal_io_timing": "on", "track_io_timing": "off", "max_wal_size": "1024", "checkpoint_timeout": "300",
    "checkpoint_completion_target": "0.9", "wal_segment_size": "16777216", "server_version_num": "150018",
}  # fmt: skip


def counters(
    release: int, syncs: int, ms: float, requested: int = 0, inserted: int = 0
) -> dict[str, dict[str, str | None]]:
    """The tables of one reading, as :mod:`auditor.host.sql_watch` prints them of this release."""
    there = COLUMNS[release]
    found: dict[str, dict[str, str | None]] = {"wal": {"inserted": str(inserted)}}
    values = {
        "wal_bytes": "0", "wal_buffers_full": "0", "wal_write": str(2 * syncs), "wal_write_time": "1.5",
        "wal_sync": str(syncs), "wal_sync_time": str(ms), "stats_reset": RESET,
        "checkpoints_timed": "0", "checkpoints_req": str(requested), "checkpoint_sync_time": "0",
        "num_timed": "0", "num_requested": str(requested), "num_done": str(requested), "sync_time": "0",
    }  # fmt: skip
    for view in ("pg_stat_wal", "pg_stat_bgwriter", "pg_stat_checkpointer"):
        own = {name: values[name] for name in there.get(view, ()) if name in values}
        if own.keys() - {"stats_reset"}:
            found[view] = dict(own)
    if "pg_stat_io" in there:
        empty: dict[str, str | None] = {"fsyncs": "0", "fsync_time": "0", "writes": "0", "write_time": "0"}
        found["pg_stat_io relation normal"] = {**empty, "fsyncs": str(syncs // 4), "stats_reset": RESET}
        found["pg_stat_io relation vacuum"] = {**empty, "fsyncs": None, "stats_reset": RESET}
        if release >= 18:
            wal = {"fsyncs": str(syncs), "fsync_time": str(ms), "writes": str(2 * syncs), "write_time": "1.5"}
            found["pg_stat_io wal normal"] = {**wal, "stats_reset": RESET}
            found["pg_stat_io wal init"] = {**empty, "stats_reset": RESET}
    return found


def answer(
    release: int = 15,
    *,
    syncs: int = 400,
    each_ms: float = 5.2,
    requested: int = 0,
    inserted: int = 0,
    waits: Mapping[str, list[int]] = {},
    settings: Mapping[str, str] = {},
    more: Mapping[str, Any] = {},
) -> str:
    """What a PostgreSQL said of SECONDS, in which it synced its WAL so often."""
    found = {
        "from": 1000.0, "to": 1000 + worlds.SECONDS,
        "before": counters(release, 10**6, 5e6, 7, 10**9),
        "after": counters(release, 10**6 + syncs, 5e6 + syncs * each_ms, 7 + requested, 10**9 + inserted),
        "waits": dict(waits), "moments": 10, "threads": [90, 100], "process": 90, "name": "postgres",
        "settings": {**SETTINGS, **settings}, "sees": True, "ended": "", **more,
    }  # fmt: skip
    return json.dumps(found)


def mariadb(*, timed: bool = False, log_waits: int = 0, uptime: int = 60) -> str:
    """What a MariaDB of Debian 12 said; timed: with performance_schema, which there knows the binary log alone."""

    def reading(number: int) -> dict[str, dict[str, str]]:
        status = {
            "Innodb_data_fsyncs": 5000 + 400 * number, "Innodb_log_waits": log_waits * number, "Binlog_commits": 900 * number,
            "Binlog_group_commits": 300 * number, "Innodb_row_lock_waits": 0, "Uptime": 50 + (uptime - 50) * number,
        }  # fmt: skip
        found = {"status": {name: str(value) for name, value in status.items()}}
        if timed:
            event = {"COUNT_WRITE": 300, "SUM_TIMER_WRITE": 10**9, "COUNT_MISC": 300, "SUM_TIMER_MISC": 300 * 5 * 10**9}
            found["wait/io/file/sql/binlog"] = {name: str(value * number) for name, value in event.items()}
        return found

    settings = {
        "version": "10.11.19-MariaDB", "performance_schema": "ON" if timed else "OFF", "log_bin": "ON", "sync_binlog": "1",
        "innodb_flush_log_at_trx_commit": "1", "innodb_flush_method": "O_DIRECT", "innodb_log_buffer_size": "16777216",
    }  # fmt: skip
    found = {
        "from": 1000.0, "to": 1000 + worlds.SECONDS, "before": reading(0), "after": reading(1),
        "waits": {"commit": [65, 8], "": [5, 1]}, "moments": 10, "threads": [90, 100], "process": 90, "name": "mariadbd",
        "settings": settings, "timed": ["wait/io/file/sql/binlog"] if timed else [], "faults": {}, "ended": "",
    }  # fmt: skip
    return json.dumps(found)


def facts(server: Subject = SERVER, log: str = "tank/db", data: str = "tank/db", **given: object) -> Facts:
    """Those of worlds, and a server that was connected to."""
    found = worlds.facts(**given)
    found.put(Fact(HOST, "connected_database", known(server, "")))
    for name, place in (("datasets", log), ("log_datasets", log), ("data_datasets", data)):
        assert f"database.{name}" in {*PATHS, *_provided()}
        places = {"datasets": tuple(dict.fromkeys((Subject("dataset", log), Subject("dataset", data))))}
        found.put(Fact(server, name, known(places.get(name, (Subject("dataset", place),)), "")))
    return found


def _provided() -> set[str]:
    from auditor.databases.paths import PROVIDES

    return set(PROVIDES)


ROWS = {(100, "postgres", 1): (400, 400 * 5300)}
WHO = (Process(100, "postgres", "", "", 40_000_000),)


def observed(said: str, engine: str = "postgres", rows: Any = None, fault: str = "") -> Any:
    """An observation of a healthy load, with what the database said of it."""
    trace = worlds.traced(ROWS if rows is None else rows)
    return worlds.observation(worlds.load(), trace, WHO)._replace(database=DatabaseAnswer(engine, said, fault))


def canonical() -> Diagnosis:
    """PostgreSQL 18 whose backends wait their turn behind a slow disk, with checkpoints that its WAL brings about."""
    waits = {"LWLock WALWrite": [120, 14], "IO WalSync": [10, 1], "": [3, 1]}
    return diagnose(observed(answer(18, requested=3, inserted=1200 << 20, waits=waits)), facts())
