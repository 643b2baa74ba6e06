"""One module a database engine: what zaudit knows of it, read by all that ask for it, keep it or judge it.

A new engine is a module here with ``ENGINE``; a new setting is a line of its module. Nothing here touches the machine.
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
    )
}
"""By the word that --db takes, in the order in which they are listed to people."""

SERVERS = {process: each for each in ENGINES.values() for process in each.processes}
"""By the name of the process, as the kernel shows it."""
