"""Asks the database of ``--db`` while the kernel is watched."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from auditor.diagnose.observation import Asked
from auditor.host import sql, sql_watch
from auditor.host.sql_watch import Connection, Said


@contextlib.contextmanager
def asking(wanted: Connection | None, seconds: float) -> Iterator[Callable[[], Asked | None]]:
    """What gives its answers once the time is over; None where no database was named."""
    if wanted is None:
        yield lambda: None
    elif not wanted.dsn:
        can = wanted.engine in sql.DRIVERS
        why = f"--db {wanted.engine}=DSN names a connection to it" if can else "zaudit can ask no such server"
        yield lambda: Asked(wanted.engine, "", f"it was not asked: {why}")
    else:
        with sql_watch.watching(wanted, seconds) as end:
            yield lambda: _asked(wanted.engine, end())


def _asked(engine: str, said: Said) -> Asked:
    return Asked(engine, said.text, f"it did not answer: {said.fault}" if said.fault else "")
