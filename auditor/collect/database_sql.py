"""The settings in force of the server that ``--db NAME=DSN`` connects to. See :mod:`.sql`.

What the server says itself counts before its files. Whether it runs on this host, and is which of the processes here, is
decided by the other end of the connection; of one that was not seen here nothing on this host is looked at.
(PostgreSQL manual, pg_settings; MySQL and MariaDB manuals, SHOW VARIABLES; MySQL manual, Disabling Redo Logging)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from auditor.collect import _mysql, _postgres, database_process, database_processes, database_settings
from auditor.collect._database_files import ELSEWHERE, Settings, in_words
from auditor.databases import ENGINES, SERVERS
from auditor.databases.mysql import SKIPPED
from auditor.facts import HOST, Fact, Facts, Known, Subject, flag, known, link, word, words
from auditor.host import sql
from auditor.host.request import Output, Run, Skip
from auditor.sources.replies import document, rows, text_of, texts

PER = "host"
AFTER = ("database_processes",)  # the kernel says who runs here
SUBJECT = "database"
FORM = "json"
NOT_SAID = (
    "standalone",
    "commit_interval_ms",
    "journal",
    "no_fsync",
    "appendonly",
    "appendfsync",
    "configured",
    "decided",
    "loaded",
)
FACTS = {
    **{name: spec for name, spec in database_settings.FACTS.items() if name not in NOT_SAID},
    "engine": database_processes.FACTS["database.engine"],
    "process": database_processes.FACTS["database.process"],
    "data_directory": database_process.FACTS["data_directory"],
    "in_force": words("NAME = VALUE of the settings that the server itself says are in force"),
    "asynchronous_roles": words("PostgreSQL: roles and databases that set synchronous_commit off for themselves"),
    "redo_log": flag("MySQL: InnoDB writes its redo log, which ALTER INSTANCE can turn off"),
    "host.connected_database": link("database", "the one that --db connects to"),
    "host.connection_unseen": word("why it was not seen here, or empty"),
}
REDO_SWITCH = (8, 0, 21)  # the first MySQL with ALTER INSTANCE DISABLE INNODB REDO_LOG
OWN = {each.fact: each.name for engine in ENGINES.values() for each in engine.settings if each.fact}
# a session has these from its own role, database or client: what others have is another matter (pg_settings.source)
OF_THE_SESSION = ("database", "user", "database user", "client", "override", "interactive", "session", "test")


def request(host: Subject, facts: Facts) -> Run | Skip:
    """Asked only where the user named a connection."""
    named, dsn = (facts.get(HOST, name) for name in ("connected_engine", "database_connection"))
    if not (isinstance(named, Known) and isinstance(dsn, Known) and dsn.value):
        return Skip("no connection was named", "--db NAME=DSN", applies=False)
    extra, package = sql.EXTRAS[sql.DRIVERS[str(named.value)]]
    return Run((sql.NAME, str(named.value), str(dsn.value)), package=package, extra=extra)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where another server answers than the one that was named."""
    engine, found = reply.command.removeprefix("--db ").partition("=")[0], document(reply.text)
    process = found.get("process")
    if process is not None and not (isinstance(process, int) and 0 < process < 1 << 32):
        raise ValueError(f"{str(process)[:40]} is no process")
    of = SERVERS.get(str(found.get("name")), ENGINES[engine]).name  # MariaDB may be called mysqld
    subject = Subject("database", f"{of} {process or ELSEWHERE}")
    yield Fact(HOST, "connected_database", known(subject, f"{reply.command} leads to {subject.name}"))
    yield Fact(HOST, "connection_unseen", known("" if process else text_of(found, "unseen"), reply.command))
    yield Fact(subject, "engine", known(of, reply.command))
    if process:
        yield Fact(subject, "process", known(str(process), f"process {process} has the other end", f"ps {process}"))
    facts = list(_postgres_says(found) if engine == "postgres" else _mysql_says(found, engine))
    yield from (Fact(subject, name, value) for name, value in facts)
    yield Fact(subject, "in_force", in_words(facts))


def _postgres_says(found: Any) -> Iterator[tuple[str, Known]]:
    settings: Settings = {}
    hidden = []
    for name, value, source, file, line, pending in rows(found, "settings", 6):
        if source in OF_THE_SESSION and name not in ("data_directory", "block_size", "server_version"):
            hidden.append(name)
            continue
        where = f"{file}:{line}" if file else "command line" if source == "command line" else source
        settings[str(name)] = str(value), f"server, {where}{', another value waits for a restart' if pending else ''}"
    if missing := {"fsync", "full_page_writes"} - settings.keys():
        raise ValueError(f"pg_settings does not show {sorted(missing)[0]}")
    home = settings.get("data_directory", ("", ""))[0]
    of = {"torn_page_guard": "full_page_writes", "page_bytes": "block_size"}
    for name, value in _postgres.facts_of(settings, home):
        # of a setting that an older script did not ask for, no default is taken
        if of.get(name, name) not in hidden and OWN.get(name, name) not in ENGINES["postgres"].known.keys() - settings:
            yield name, _from_server(value, f"psql -c 'SHOW {of.get(name, name)}'")
    if home:
        yield "data_directory", known(home, f"data_directory = {home} (server)", "psql -c 'SHOW data_directory'")
    off = [
        " in ".join(filter(None, (f"role {role}" if role else "", f"database {database}" if database else "")))
        for database, role, entry in texts(found, "roles", 3)
        if entry.partition("=")[2].lower() in ("off", "false", "no", "0")
    ]
    command = "psql -c 'TABLE pg_db_role_setting'"
    text = (
        f"synchronous_commit = off for {', '.join(off)}" if off else "no role or database sets synchronous_commit off"
    )
    yield "asynchronous_roles", known(tuple(off), text, command)


def _mysql_says(found: Any, engine: str) -> Iterator[tuple[str, Known]]:
    said = {str(name): str(value) for name, value in texts(found, "settings", 2)}
    if missing := {"version", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "log_bin"} - said.keys():
        raise ValueError(f"SHOW GLOBAL VARIABLES does not show {sorted(missing)[0]}")
    if ("mariadb" in said["version"].lower()) != (engine == "mariadb"):
        raise ValueError(f"the server is {said['version']}, not {engine}")
    base = said.pop("log_bin_basename", "")
    said["log_bin"] = SKIPPED if said["log_bin"].upper() in ("OFF", "0") else base or "ON"
    settings = {name: (value, "server") for name, value in said.items()}
    for name, value in _mysql.facts_of(settings, engine):
        if OWN.get(name, name) not in ENGINES[engine].known.keys() - settings:
            yield name, _from_server(value, f"{engine} -e 'SHOW GLOBAL VARIABLES'")
    if (written := _redo_log(found, said["version"], engine)) is not None:
        yield "redo_log", written
    if home := said.get("datadir", "").rstrip("/"):
        yield "data_directory", known(home, f"datadir = {home} (server)", f"{engine} -e 'SHOW GLOBAL VARIABLES'")


def _redo_log(found: Any, version: str, engine: str) -> Known | None:
    """Whether it is written; None where a server that could turn it off was not asked, or does not say."""
    release = re.match(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})", version)
    if engine == "mariadb" or (release and tuple(map(int, release.groups())) < REDO_SWITCH):
        return known(True, f"{version} has no switch for it", f"{engine} -e 'SELECT VERSION()'")
    said = {name.lower(): value for name, value in (texts(found, "status", 2) if "status" in found else ())}
    value = said.get("innodb_redo_log_enabled", "").upper()
    if value not in ("ON", "OFF"):
        return None
    return known(value == "ON", f"Innodb_redo_log_enabled = {value} (server)", f"{engine} -e 'SHOW GLOBAL STATUS'")


def _from_server(value: Known, command: str) -> Known:
    return Known(value.value, tuple(each._replace(command=command) for each in value.evidence))
