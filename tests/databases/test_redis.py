"""What a Redis was given on its command line, which it writes a title over: seen in its unit, or not at all."""

from __future__ import annotations

import pytest

from auditor.databases import redis, servers, settings
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.host.allowed import allowed_part
from auditor.host.request import Files, Output, Read, Run, Skip

REDIS = Subject("database", "redis 7")
UNIT = (
    "MainPID=7\nExecStart={{ path=/usr/bin/redis-server ; argv[]=/usr/bin/redis-server {} ; ignore_errors=no ; "
    "start_time=[n/a] ; stop_time=[n/a] ; pid=7 ; code=(null) ; status=0/0 }}\n"
)
DEBIAN = "/etc/redis/redis.conf --supervised systemd --daemonize no"
CONF = "dir /var/lib/redis\nappendonly yes\nappendfsync always\n"
FACTS = ("appendonly", "appendfsync")


def shown(arguments: str, title: str = "127.0.0.1:6379") -> str:
    """/proc/PID/cmdline once the title is set, as redis-server 7.0.15 leaves it: measured."""
    size = len(f"/usr/bin/redis-server {arguments} ")
    text = f"/usr/bin/redis-server {title}" if title else "/usr/bin/redis-server\0" + arguments.replace(" ", "\0")
    return text.ljust(size, "\0")


def seen(cmdline: str, unit: str, conf: str = CONF, place: str = "/etc/redis/redis.conf") -> Facts:
    """All that is found of one server, question by question as they are put."""
    facts = Facts(0.0)
    facts.put(Fact(HOST, "pools", known((), "")))
    kept = allowed_part("/proc/7/cmdline", cmdline)
    assert kept is not None
    links = {"/proc/7/cwd": "/var/lib/redis", "/proc/7/exe": "/usr/bin/redis-check-rdb"}
    facts.put_all(servers.database_process.parse(Files({"/proc/7/cmdline": kept}, links), REDIS))
    try:
        facts.put_all(redis.redis_unit.parse(Output(unit, "systemctl show"), REDIS))
    except ValueError as error:
        facts.put_all(Fact(REDIS, name, unknown(str(error))) for name in redis.redis_unit.facts)
    request = settings.database_settings.request(REDIS, facts)
    assert isinstance(request, Read)
    assert f"/proc/7/root{place}" in request.patterns
    files = {"/proc/7/cmdline": kept, f"/proc/7/root{place}": conf}
    facts.put_all(settings.database_settings.parse(Files(files, links), REDIS))
    redis.compare(facts)
    return facts


def test_a_server_of_debian_is_decided() -> None:
    facts = seen(shown(DEBIAN), UNIT.format(DEBIAN))
    assert [found.value for name in FACTS if isinstance(found := facts.get(REDIS, name), Known)] == [True, "always"]


def test_another_file_that_its_unit_names_is_read() -> None:
    given = DEBIAN.replace("redis.conf", "redis-a.conf")
    facts = seen(shown(given), UNIT.format(given), place="/etc/redis/redis-a.conf")
    assert isinstance(facts.get(REDIS, "appendonly"), Known)


@pytest.mark.parametrize(
    ("cmdline", "unit", "why"),
    [
        (shown(f"{DEBIAN} --appendfsync no"), UNIT.format(DEBIAN), "not as long as that of its unit"),
        (shown("/etc/redis/redis.conf --appendfsync no"), "", "no unit says"),
        (shown(DEBIAN), UNIT.format(f"{DEBIAN} --appendfsync no"), "no unit says"),
        (shown(DEBIAN), UNIT.format(DEBIAN).replace("=7\n", "=8\n"), "no unit says"),
        (shown(DEBIAN), UNIT.format("$OPTIONS"), "no unit says"),
        ("/usr/bin/redis-server\0", UNIT.format(DEBIAN), "not as long as that of its unit"),
    ],
)
def test_what_a_title_may_hide_is_not_believed(cmdline: str, unit: str, why: str) -> None:
    facts = seen(cmdline, unit)
    for name in FACTS:
        found = facts.get(REDIS, name)
        assert isinstance(found, Unknown)
        assert "its title hides what it was given" in found.reasons[0].text
        assert why in found.reasons[0].text
        assert "CONFIG GET" in found.reasons[0].remedy
    assert isinstance(facts.get(REDIS, "directories"), Known)  # where it works is seen


def test_arguments_that_no_title_hides_count() -> None:
    facts = seen(shown("/etc/redis/redis.conf --appendfsync no", title=""), "")
    assert [found.value for name in FACTS if isinstance(found := facts.get(REDIS, name), Known)] == [True, "no"]


def test_only_a_running_redis_is_asked_about() -> None:
    assert isinstance(redis.redis_unit.request(Subject("database", "postgres 7"), Facts(0.0)), Skip)
    assert isinstance(redis.redis_unit.request(Subject("database", "redis /srv/redis"), Facts(0.0)), Skip)
    assert isinstance(redis.redis_unit.request(REDIS, Facts(0.0)), Run)
