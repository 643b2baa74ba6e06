"""What single event takes a commit from every copy of a cluster, judged from one recording of each member."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import combinations, product
from pathlib import Path

import jsonschema
import pytest

from auditor import audit, rulebook
from auditor.commands._schemas import SCHEMAS
from auditor.databases.engine import Confirms, InForce
from auditor.databases.etcd import ENGINE as ETCD
from auditor.databases.mongodb import ENGINE as MONGODB
from auditor.databases.mysql import MARIADB
from auditor.databases.postgres import ENGINE as POSTGRES
from auditor.durability.answers import SAFE, Rank, lost
from auditor.durability.host import Dataset, Host, Leg, Pool, Program, Store, Use, Vdev
from auditor.facts import Subject
from auditor.fleet import cluster as clusters
from auditor.fleet.cluster import Cluster, ClusterError, Member
from auditor.judge.policy import NONE
from auditor.recording import recording
from tests import shared
from tests.fake import CommandLine
from tests.fleet import fleets

HEALTHY, UNSAFE = "2.3-db-postgres-healthy", "2.3-db-postgres-fsync-off"


def recorded(hosts: Mapping[str, str]) -> list[tuple[Path, recording.Recording]]:
    """hosts: name -> recorded host, each with a pool of its own."""
    return [
        (Path(f"/srv/{host}.tar.gz"), fleets.respelt(fleets.named(case, host), {guid(case): f"1{number:018}"}))
        for number, (host, case) in enumerate(hosts.items())
    ]


def guid(case: str) -> str:
    """Of its pool."""
    return audit.replay(shared.host(case)).facts.get(Subject("pool", "tank"), "guid").word()


def judged(copies: int, **hosts: str) -> Cluster:
    return clusters.cluster(recorded(hosts), "postgres", copies, rulebook.choose((), (), (), NONE))


def answers(found: Cluster, scope: str) -> dict[tuple[str, tuple[str, ...]], str]:
    return {(row.event, row.hosts): row.answer.rank.name for row in found.rows if row.scope == scope}


def member(name: str, *drives: str, vdevs: int = 1) -> Member:
    """A pool that is one mirror, or so many with a drive each, and a database that asks for durability."""
    legs = [Leg(f"{name} {each}", (each,)) for each in drives]
    each = len(legs) // vdevs
    program = Program("db", Use("tank/db"))
    host = Host(
        {"tank": Pool("tank", tuple(Vdev(f"mirror-{n}", tuple(legs[n * each :][:each])) for n in range(vdevs)))},
        {"tank/db": Dataset("tank/db", "tank")},
        {"db": program},
        {each: Store(each) for each in drives},
    )
    return Member(
        name,
        f"/srv/{name}",
        shared.report_of(shared.HOSTS / HEALTHY),
        host,
        program,
        drives=dict(zip(drives, drives, strict=True)),
    )


def test_one_copy_is_lost_with_its_host_and_a_second_one_is_not() -> None:
    alone, two = judged(1, a=UNSAFE, b=UNSAFE), judged(2, a=UNSAFE, b=UNSAFE)
    assert answers(alone, "one host")["power", ("a",)] == "LOST"
    assert answers(alone, "one host")["power", ("b",)] == "SAFE"  # nobody waits for it
    assert answers(alone, "one host")["gone", ("a",)] == "LOST"
    assert {*answers(two, "one host").values()} == {"SAFE"}
    assert answers(two, "all hosts")["power", ("a", "b")] == "LOST"
    assert (alone.exit_code, two.exit_code) == (14, 14)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("many", [2, 3, 4])
def test_a_commit_survives_where_each_set_that_may_have_confirmed_keeps_a_copy(many: int, first: bool) -> None:
    """All states of so many members, against all sets."""
    members = tuple(member(str(each), f"d{each}") for each in range(many))
    states = 0
    for flushed in range(1, many + 1):
        found = Cluster("postgres", members, Confirms(flushed, first=first))
        sets = [each for each in combinations(range(many), flushed) if not first or 0 in each]
        for kept in product((True, False), repeat=many):
            here = [SAFE if each else lost("event", "x") for each in kept]
            expected = all(any(kept[each] for each in one) for one in sets)
            assert (found.survives(here, memory=True).rank is Rank.SAFE) == expected, (flushed, kept)
            states += 1
    assert states == many * 2**many


def test_what_is_only_received_goes_with_the_memory() -> None:
    found = judged(1, a=UNSAFE, b=UNSAFE)._replace(confirms=Confirms(1, received=1, first=True))
    assert answers(found, "one host")["power", ("a", "b")] == "SAFE"
    assert answers(found, "all hosts")["power", ("a", "b")] == "LOST"


def test_a_drive_below_two_members_is_one_event() -> None:
    apart = Cluster("postgres", (member("a", "s1"), member("b", "s2")), Confirms(2))
    assert not answers(apart, "shared drive")
    together = Cluster("postgres", (member("a", "s1"), member("b", "s1")), Confirms(2))
    assert answers(together, "shared drive") == {("drive", ("a", "b")): "LOST"}
    mirrored = Cluster("postgres", (member("a", "s1", "s2"), member("b", "s1", "s2")), Confirms(2))
    assert {*answers(mirrored, "shared drive").values()} == {"SAFE"}
    alike = [member(name, *(f"{name}{n}" for n in range(4)), "shared", vdevs=5) for name in "ab"]
    assert answers(Cluster("postgres", tuple(alike), Confirms(2)), "shared drive") == {("drive", ("a", "b")): "LOST"}


def test_the_next_step_is_at_a_host_that_decides() -> None:
    """Where nobody waits for b, its settings change nothing."""
    page = clusters.write("terminal", judged(1, a=HEALTHY, b=UNSAFE))
    assert "Next: zaudit check --replay /srv/a.tar.gz" in page


def test_two_recordings_of_one_pool_are_one_copy() -> None:
    same = [(Path(f"/srv/{host}.tar.gz"), fleets.named(HEALTHY, host)) for host in "ab"]
    with pytest.raises(ClusterError, match="a and b have the same pool"):
        clusters.cluster(same, "postgres", 2, rulebook.choose((), (), (), NONE))


def test_a_majority_of_mongodb_relies_on_what_its_clients_ask_for() -> None:
    found = Cluster(
        "mongodb", (member("a", "s1"), member("b", "s2")), MONGODB.confirms(_Settings(), 2, asynchronous=False)
    )
    assert {row.answer.rank for row in found.rows} == {Rank.RELIES}
    assert "clients writing with w: majority" in clusters.sentence(found.rows[0].answer)


def test_a_member_whose_pool_does_not_work_keeps_nothing() -> None:
    found = Cluster("postgres", (member("a", "s1"), member("b", "s2")._replace(works=False)), Confirms(2))
    assert answers(found, "one host")["gone", ("a",)] == "LOST"
    assert answers(found, "one host")["power", ("a", "b")] == "SAFE"  # a keeps it


def test_the_page_says_damage_of_a_member_first() -> None:
    damaged = shared.report_of(shared.HOSTS / "2.3-permanent-errors")
    assert damaged.standing == "damaged"
    found = Cluster("postgres", (member("a", "s1"), member("b", "s2")._replace(report=damaged)), Confirms(2))
    assert clusters.headline(found).startswith(f"b: {damaged.headline}. ")
    assert found.exit_code == damaged.exit_code


class _Settings:
    """In force."""

    def __init__(self, **values: str | int) -> None:
        self._values = values

    def flag(self, name: str) -> bool | None:
        return None

    def word(self, name: str) -> str | None:
        found = self._values.get(name)
        return found if isinstance(found, str) else None

    def number(self, name: str) -> int | None:
        found = self._values.get(name)
        return found if isinstance(found, int) else None


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (_Settings(synchronous_commit="on", synchronous_standby_names="ANY 2 (b, c, d)"), Confirms(3, first=True, named=4)),
        (_Settings(synchronous_commit="remote_apply", synchronous_standby_names="b, c"), Confirms(2, first=True, named=3)),
        (_Settings(synchronous_commit="remote_write", synchronous_standby_names="b, c"), Confirms(1, 1, first=True, named=3)),
        (_Settings(synchronous_commit="local", synchronous_standby_names="ANY 2 (b, c, d)"), Confirms(1, first=True)),
        (_Settings(synchronous_commit="on", synchronous_standby_names=""), Confirms(1, first=True)),
        (_Settings(synchronous_commit="on"), None),
        (_Settings(synchronous_standby_names="b, c"), None),
    ],
)  # fmt: skip
def test_how_a_primary_waits_for_its_standbys(settings: InForce, expected: Confirms | None) -> None:
    assert POSTGRES.confirms(settings, 3, asynchronous=False) == expected
    if expected:
        assert POSTGRES.confirms(settings, 3, asynchronous=True) == Confirms(1, first=True)


def test_what_other_engines_wait_for() -> None:
    nothing = _Settings()
    assert ETCD.confirms(nothing, 3, asynchronous=False) == Confirms(2)
    assert ETCD.confirms(nothing, 4, asynchronous=False) == Confirms(3)
    assert MONGODB.confirms(nothing, 5, asynchronous=False).flushed == 3
    assert MARIADB.confirms(nothing, 3, asynchronous=False) is None


@pytest.mark.parametrize(
    ("value", "many", "named"),
    [
        ("", 1, 0), ("a", 2, 2), ("*", 2, 0), ("a, b", 2, 3), ("FIRST 2 (a, b, c)", 3, 4), ("any 1 (a, b)", 2, 3),
        ("2 (a, b, *)", 3, 0), ('ANY 3 ("a b", b, c)', 4, 4),
    ],
)  # fmt: skip
def test_the_standbys_that_must_confirm(value: str, many: int, named: int) -> None:
    (standbys,) = [each for each in POSTGRES.settings if each.fact == "synchronous_standby_names"]
    assert standbys.shape(value)
    settings = _Settings(synchronous_commit="on", synchronous_standby_names=value)
    assert POSTGRES.confirms(settings, 3, asynchronous=False) == Confirms(many, first=True, named=named)


def test_a_member_of_a_majority_waits_for_its_journal() -> None:
    """A mongod alone acknowledges before that."""
    asked = clusters.waiting(Program("db", Use("tank/db", "later"), leaves=False))
    assert (asked.leaves, asked.log.asks) == (True, "before")
    never = clusters.waiting(Program("db", Use("tank/db", "never"), leaves=False))
    assert never.log.asks == "never"


def write(folder: Path, **hosts: str) -> list[str]:
    paths = []
    for path, past in recorded(hosts):
        recording.write(past, folder / path.name)
        paths.append(str(folder / path.name))
    return paths


def test_the_command(tmp_path: Path, zaudit: CommandLine) -> None:
    paths = write(tmp_path, db1=HEALTHY, db2=HEALTHY)
    words = ("fleet", "check", "--cluster", "postgres", "--copies", "2")
    found = zaudit(*words, "--format", "json", *paths)
    document = json.loads(found.out)
    assert (document["schema"], document["exit_code"]) == (clusters.SCHEMA, found.code)
    jsonschema.Draft202012Validator(SCHEMAS["cluster"]()).validate(document)
    assert [each["host"] for each in document["members"]] == ["db1", "db2"]
    power = {each["scope"]: each["answer"] for each in document["events"] if each["event"] == "power"}
    assert power == {"one host": "no loss", "all hosts": "relies"}
    page = zaudit(*words, *paths).out.splitlines()
    assert page[2].startswith("NO LOSS FOUND, BUT SURVIVING A POWER CUT ON ALL HOSTS AT ONCE RELIES ON")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("postgres",), "--copies N says it"),  # an older recording did not ask for the standbys
        (("etcd",), "db1: no etcd was recorded"),
        (("oracle",), "no engine that zaudit knows"),
        (("postgres /srv/other",), "there is postgres /"),
        (("postgres", "--copies", "3"), "there are 2 members"),
    ],
)
def test_what_is_no_cluster(tmp_path: Path, zaudit: CommandLine, words: tuple[str, ...], expected: str) -> None:
    found = zaudit("fleet", "check", *write(tmp_path, db1=HEALTHY, db2=HEALTHY), "--cluster", *words)
    assert (found.code, found.out) == (2, "")
    assert expected in found.err


def test_one_host_is_no_cluster() -> None:
    with pytest.raises(ClusterError, match="two members at least"):
        judged(1, a=HEALTHY)


def test_two_hosts_with_one_name_are_called_as_their_recordings() -> None:
    same = [
        (Path(f"/srv/{name}.tar.gz"), fleets.respelt(fleets.named(HEALTHY, "db"), {guid(HEALTHY): f"1{number:018}"}))
        for number, name in enumerate("ab", 1)
    ]
    rules = rulebook.choose((), (), (), NONE)
    assert [each.name for each in clusters.cluster(same, "postgres", 2, rules).members] == ["a", "b"]
