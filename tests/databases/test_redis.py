"""What a Redis or a Valkey was given on its command line, which it writes a title over: seen in its unit, or not at all."""

from __future__ import annotations

import pytest

from auditor.databases import redis, servers, settings
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.host.live import allowed_part, permitted
from auditor.host.request import Files, Output, Read, Run, Skip

REDIS, VALKEY = redis.ENGINE, redis.VALKEY
FAMILY = pytest.mark.parametrize("engine", redis.FAMILY, ids=lambda each: each.name)
# of Debian, and of Fedora
ENDS = ("--supervised systemd --daemonize no", "--daemonize no --supervised systemd")


def subject(engine: redis.Redis) -> Subject:
    return Subject("database", f"{engine.name} 7")


def unit(engine: redis.Redis, arguments: str) -> str:
    server = f"/usr/bin/{engine.processes[0]}"
    return (
        f"MainPID=7\nExecStart={{ path={server} ; argv[]={server} {arguments} ; ignore_errors=no ; "
        "start_time=[n/a] ; stop_time=[n/a] ; pid=7 ; code=(null) ; status=0/0 }\n"
    )


def debian(engine: redis.Redis) -> str:
    return f"/etc/{engine.name}/{engine.name}.conf {ENDS[0]}"


CONF = "dir /var/lib/{}\nappendonly yes\nappendfsync always\n"
FACTS = ("appendonly", "appendfsync")


def shown(engine: redis.Redis, arguments: str, title: str = "127.0.0.1:6379") -> str:
    """/proc/PID/cmdline once the title is set, as redis-server 7.0.15 leaves it: measured. Valkey has the same code."""
    server = f"/usr/bin/{engine.processes[0]}"
    size = len(f"{server} {arguments} ")
    text = f"{server} {title}" if title else f"{server}\0" + arguments.replace(" ", "\0")
    return text.ljust(size, "\0")


def seen(engine: redis.Redis, cmdline: str, unit_text: str, place: str = "") -> Facts:
    """All that is found of one server, question by question as they are put."""
    database, name = subject(engine), engine.name
    place = place or f"/etc/{name}/{name}.conf"
    facts = Facts(0.0)
    facts.put(Fact(HOST, "pools", known((), "")))
    kept = allowed_part("/proc/7/cmdline", cmdline)
    assert kept is not None
    links = {"/proc/7/cwd": f"/var/lib/{name}", "/proc/7/exe": f"/usr/bin/{name}-check-rdb"}
    facts.put_all(servers.database_process.parse(Files({"/proc/7/cmdline": kept}, links), database))
    try:
        facts.put_all(redis.redis_unit.parse(Output(unit_text, "systemctl show"), database))
    except ValueError as error:
        facts.put_all(Fact(database, each, unknown(str(error))) for each in redis.redis_unit.facts)
    request = settings.database_settings.request(database, facts)
    assert isinstance(request, Read)
    assert f"/proc/7/root{place}" in request.patterns
    files = {"/proc/7/cmdline": kept, f"/proc/7/root{place}": CONF.format(name)}
    facts.put_all(settings.database_settings.parse(Files(files, links), database))
    redis.compare(facts)
    return facts


def values(engine: redis.Redis, facts: Facts) -> list[object]:
    return [found.value for name in FACTS if isinstance(found := facts.get(subject(engine), name), Known)]


@FAMILY
@pytest.mark.parametrize("end", ENDS)
def test_a_server_of_a_package_is_decided(engine: redis.Redis, end: str) -> None:
    given = f"/etc/{engine.name}/{engine.name}.conf {end}"
    assert values(engine, seen(engine, shown(engine, given), unit(engine, given))) == [True, "always"]


@FAMILY
def test_another_file_that_its_unit_names_is_read(engine: redis.Redis) -> None:
    given = debian(engine).replace(".conf", "-a.conf")
    place = given.partition(" ")[0]
    facts = seen(engine, shown(engine, given), unit(engine, given), place=place)
    assert isinstance(facts.get(subject(engine), "appendonly"), Known)


def test_a_valkey_may_keep_its_settings_in_a_file_of_redis() -> None:
    given = f"/etc/redis/redis.conf {ENDS[0]}"
    facts = seen(VALKEY, shown(VALKEY, given), unit(VALKEY, given), place="/etc/redis/redis.conf")
    assert values(VALKEY, facts) == [True, "always"]


@FAMILY
@pytest.mark.parametrize(
    ("more", "unit_more", "of", "why"),
    [
        ("--appendfsync no", "", 7, "not as long as that of its unit"),
        ("", "--appendfsync no", 7, "no unit says"),
        ("", "", 8, "no unit says"),
        ("", "$OPTIONS", 7, "no unit says"),
    ],
)
def test_what_a_title_may_hide_is_not_believed(
    engine: redis.Redis, more: str, unit_more: str, of: int, why: str
) -> None:
    cmdline = shown(engine, f"{debian(engine)} {more}".strip())
    text = unit(engine, f"{debian(engine)} {unit_more}".strip()).replace("MainPID=7", f"MainPID={of}")
    doubted(engine, seen(engine, cmdline, text), why)


@FAMILY
def test_a_server_without_a_unit_or_without_arguments_is_not_believed(engine: redis.Redis) -> None:
    doubted(engine, seen(engine, shown(engine, f"{debian(engine)} --appendfsync no"), ""), "no unit says")
    bare = f"/usr/bin/{engine.processes[0]}\0"
    doubted(engine, seen(engine, bare, unit(engine, debian(engine))), "not as long as that of its unit")


def doubted(engine: redis.Redis, facts: Facts, why: str) -> None:
    for name in FACTS:
        found = facts.get(subject(engine), name)
        assert isinstance(found, Unknown)
        assert "its title hides what it was given" in found.reasons[0].text
        assert why in found.reasons[0].text
        assert found.reasons[0].remedy.startswith(f"{engine.client} CONFIG GET")
    assert isinstance(facts.get(subject(engine), "directories"), Known)  # where it works is seen


@FAMILY
def test_arguments_that_no_title_hides_count(engine: redis.Redis) -> None:
    facts = seen(engine, shown(engine, f"{debian(engine).partition(' ')[0]} --appendfsync no", title=""), "")
    assert values(engine, facts) == [True, "no"]


@FAMILY
def test_only_a_running_server_of_the_family_is_asked_about(engine: redis.Redis) -> None:
    assert isinstance(redis.redis_unit.request(Subject("database", "postgres 7"), Facts(0.0)), Skip)
    assert isinstance(redis.redis_unit.request(Subject("database", f"{engine.name} /srv/x"), Facts(0.0)), Skip)
    asked = redis.redis_unit.request(subject(engine), Facts(0.0))
    assert isinstance(asked, Run)
    assert asked.argv[-1] == engine.units
    assert permitted(asked.argv)
