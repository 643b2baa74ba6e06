"""Database engines: one module each, and the questions about their servers, settings, paths and services.

A new engine is a subclass of :class:`.engine.Engine` and its line here. Nothing here touches the machine.
"""

from __future__ import annotations

from auditor.databases import etcd, mongodb, mysql, postgres, redis, sqlite
from auditor.databases.engine import Engine

ENGINES: dict[str, Engine] = {
    each.name: each
    for each in (
        postgres.ENGINE,
        mysql.ENGINE,
        mysql.MARIADB,
        sqlite.ENGINE,
        mongodb.ENGINE,
        etcd.ENGINE,
        redis.ENGINE,
        redis.VALKEY,
    )
}
"""By the word that --db takes, in the order in which they are listed to people."""

SERVERS = {process: each for each in ENGINES.values() for process in each.processes}
"""By the name of the process, as the kernel shows it."""
