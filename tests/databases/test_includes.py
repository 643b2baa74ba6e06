"""Files of PostgreSQL that its configuration includes from its own folder: asked for where they are missing."""

from __future__ import annotations

from auditor.collect import database_settings, postgres_includes
from auditor.facts import Fact, Facts, Known, Subject, known, unknown
from auditor.host.request import Files, Read, Skip

POSTGRES = Subject("database", "postgres 9")
OF_PATRONI = {
    "/proc/9/cmdline": "postgres\0-D\0/srv\0",
    "/proc/9/root/srv/postgresql.conf": "include 'postgresql.base.conf'\n",
    "/proc/9/root/srv/postgresql.auto.conf": "",
}


def looked(said: str = "") -> Facts:
    """After the first question. said: why its files are not known."""
    facts = Facts(0.0)
    facts.put(Fact(POSTGRES, "data_directory", known("/srv", "")))
    facts.put(Fact(POSTGRES, "arguments", known(("-D", "/srv"), "")))
    facts.put(Fact(POSTGRES, "directories", unknown(said) if said else known(("data:/srv",), "")))
    return facts


def test_a_configuration_of_patroni_is_decided() -> None:
    why = ""
    try:
        list(database_settings.parse(Files(OF_PATRONI), POSTGRES))
    except ValueError as error:
        why = str(error)
    assert why == "/srv/postgresql.base.conf: was not read"
    facts = looked(why)
    request = postgres_includes.request(POSTGRES, facts)
    assert isinstance(request, Read)
    assert request.patterns[-1] == "/proc/9/root/srv/*.conf"
    more = {**OF_PATRONI, "/proc/9/root/srv/postgresql.base.conf": "fsync = off\n"}
    facts.put_all(postgres_includes.parse(Files(more), POSTGRES))
    found = facts.get(POSTGRES, "fsync")
    assert isinstance(found, Known)
    assert found.value is False
    assert isinstance(facts.get(POSTGRES, "directories"), Known)


def test_nothing_more_is_asked_where_nothing_is_missing() -> None:
    assert isinstance(postgres_includes.request(POSTGRES, looked()), Skip)
    assert isinstance(postgres_includes.request(POSTGRES, looked("/srv/postgresql.conf: permission denied")), Skip)
    assert isinstance(postgres_includes.request(Subject("database", "redis 9"), looked("x: was not read")), Skip)
