"""``zaudit advise db`` and ``zaudit check`` agree: what the one advises, the other does not object to."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from auditor import audit, registry
from auditor.advice import properties
from auditor.advice.properties import SIZES
from auditor.commands.golive import PARTS
from auditor.databases import ENGINES
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Unknown, Value, unknown
from auditor.judge import verdict
from auditor.judge.rule import Rule
from auditor.model.database import named_database
from auditor.recording import recording
from auditor.text import quoted
from tests.shared import FEW, HOSTS, audited, briefly, host, rules

TANK, DB = Subject("pool", "tank"), Subject("dataset", "tank/db")
ABOUT = (
    *("raidz-small-blocks", "recordsize-vs-page", "volblocksize-small", "torn-page-guard-off", "primarycache"),
    *("special-small-blocks-captures-data", "compression-off"),
    *("redundant-metadata", "checksum-off", "dedup-on-db", "atime-on", "sync-mixed-log-data", "sync-disabled"),
    *("logbias-throughput-log", "logbias-throughput-compression", "sync-always"),
)
LAYOUTS = {
    "mirror-0": "mirror", "sda": "disk", "raidz1-0": "raidz1", "raidz2-0": "raidz2", "raidz3-0": "raidz3",
    "draid1:2d:4c:1s-0": "draid", "draid1:4d:6c:1s-0": "draid", "draid2:8d:12c:2s-0": "draid", "draid2:12d:15c:1s-0": "draid",
    "draid2:16d:20c:2s-0": "draid", "draid3:32d:40c:2s-0": "draid",
}  # fmt: skip
WIDTHS = {"raidz1": (3, 4, 5, 9), "raidz2": (4, 6, 8, 12), "raidz3": (5, 8, 11)}
GRID = [
    (name, width, ashift)
    for ashift in (12, 9, 13)
    for name, kind in LAYOUTS.items()
    for width in WIDTHS.get(kind, (0,))
]
BAD: Mapping[str, Value] = {
    "recordsize": 8 << 10, "volblocksize": 8 << 10, "compression": "off", "primarycache": "none", "logbias": "throughput",
    "sync": "disabled", "checksum": "off", "dedup": "on", "redundant_metadata": "none", "atime": "on",
}  # fmt: skip


def put(facts: Facts, subject: Subject, **values: Value) -> None:
    for name, value in values.items():
        facts.replace(Fact(subject, name, Known(value, (Evidence(f"{name}={value} (local)"),))))


@cache
def chosen() -> tuple[Rule, ...]:
    return tuple(rule for rule in rules() if rule.id in ABOUT)


def failing(facts: Facts, rules: tuple[Rule, ...]) -> set[tuple[str, Subject]]:
    return {(each.rule.id, each.subject) for each in verdict.judge(rules, facts) if each.outcome == "fail"}


def apply(engine: str, dataset: Subject, part: str, facts: Facts) -> None:
    """What is advised is done: the guard first, then each command; what is below inherits it. A volume is made anew."""
    found = properties.compare(engine, dataset, part, facts)
    lines = properties.commands(found, dataset, facts)
    assert not any("disabled" in line for line in lines)
    for database, _ in properties.unguarded(found, dataset, facts) if lines else ():
        put(facts, database, torn_page_guard=True)
    volume = [each for each in found if each.advice.property == "volblocksize" and each.stand == "differs"]
    for line in (
        *lines,
        *(f"zfs set volblocksize={each.wanted} {quoted(dataset.name)}" for each in volume if each.wanted),
    ):
        words = shlex.split(line)
        (name, _, value), place = words[2].partition("="), Subject("dataset", words[3])
        typed = parsed(value) if name in SIZES else value
        for each in facts.subjects("dataset"):
            if each == place or (name != "volblocksize" and inherits(each, place, name, facts)):
                put(facts, each, **{name: typed})
    for derivation in registry.derivations():
        if derivation.subject == "database":  # of a dataset nothing follows from these properties
            for subject in [*facts.subjects("database")]:
                for fact in [*derivation.derive(subject, facts)]:
                    if fact.name != "torn_page_guard":
                        facts.replace(fact)


def parsed(size: str) -> int:
    return int(size[:-1]) << {"K": 10, "M": 20}[size[-1]]


def inherits(below: Subject, place: Subject, name: str, facts: Facts) -> bool:
    now = facts.get(below, name)
    if not below.name.startswith(f"{place.name}/") or not isinstance(now, Known):
        return False
    seen = now.evidence[0]
    return "(local)" not in seen.text and not seen.origin.startswith(f"{place.name}/")


def copied(facts: Facts) -> Facts:
    made = Facts(facts.now)
    made.put_all(facts)
    return made


@cache
def seen(name: str) -> Facts:
    past = host(name)
    return audit.look(recording.ReplayHost(past), past.targets, audit.Options.from_words(past.options)).facts


@cache
def failed(name: str) -> set[tuple[str, Subject]]:
    return failing(seen(name), audited())


def newly(engine: str, dataset: Subject, part: str, facts: Facts, rules: tuple[Rule, ...]) -> set[tuple[str, Subject]]:
    before = failing(facts, rules)
    apply(engine, dataset, part, facts)
    return failing(facts, rules) - before


def laid(name: str, width: int, ashift: int, **settings: Value) -> Facts:
    """A pool of one vdev of that name with one dataset for a database."""
    facts, vdev = Facts(), Subject("vdev", name, "tank")
    kind = LAYOUTS[name]
    put(facts, HOST, zfs_version=(2, 4, 4), pools=(TANK,), databases=(), database="")
    put(
        facts,
        TANK,
        vdevs=(vdev,),
        data_vdevs=(vdev,),
        special_vdevs=(),
        datasets=(DB,),
        log_leaves=(),
        zil_class="normal",
    )
    put(facts, vdev, type=kind, allocation_class="normal", ashift=ashift, pool=TANK)
    if width:
        put(facts, vdev, width=width)
    common: dict[str, Value] = {
        "pool": TANK,
        "database": "",
        "readonly": "off",
        "special_small_blocks": 0,
        "relatime": "off",
    }
    put(facts, DB, **(common | {"type": "filesystem", "direct": "standard", "db_temporary": False} | settings))
    return facts


def starts() -> Iterator[dict[str, Value]]:
    yield dict(BAD)
    for size in (4 << 10, 16 << 10, 32 << 10, 128 << 10):
        yield {**BAD, "recordsize": size, "volblocksize": size, "compression": "lz4", "primarycache": "all"}


KINDS = [("filesystem", engine, part) for engine in ENGINES for part in PARTS] + [("volume", "postgres", "both")]


@pytest.mark.parametrize(("name", "width", "ashift"), briefly(GRID, 5))
def test_on_no_layout_is_advised_what_check_objects_to(name: str, width: int, ashift: int) -> None:
    """For each engine and part, from bad settings and from sizes that somebody likes: once it is done no rule objects, and
    nothing is left to advise."""
    for kind, engine, part in KINDS:
        for start in starts():
            facts = laid(name, width, ashift, type=kind, **start)
            put(facts, HOST, database=engine)
            for fact in named_database.derive(DB, facts):
                facts.replace(fact)
            case = (kind, engine, part, start["recordsize"])
            apply(engine, DB, part, facts)
            assert {rule for rule, _ in failing(facts, chosen())} == set(), case
            assert {each.stand for each in properties.compare(engine, DB, part, facts)} == {"as advised"}, case


CASES = [(name, engine) for name in HOSTS.names() for engine in ENGINES]


@pytest.mark.parametrize(
    ("name", "engine"), briefly(sorted(CASES, key=lambda case: case[0] not in FEW), 2 * len(ENGINES))
)
def test_on_no_recorded_host_does_advice_make_a_rule_fail(name: str, engine: str) -> None:
    """All rules, on each dataset."""
    for pool in seen(name).linked(HOST, "pools"):
        for dataset in seen(name).linked(pool, "datasets"):
            apply(engine, dataset, "both", facts := copied(seen(name)))
            assert failing(facts, audited()) <= failed(name), dataset


def test_with_the_guard_off_and_a_log_that_holds_pointers() -> None:
    """The page is whole as long as logbias=throughput. The advice turns it off, and the guard on before that."""
    facts = copied(seen("2.3-db-mariadb-doublewrite-off"))
    put(facts, DB, recordsize=16 << 10, logbias="throughput", compression="off")
    for database in facts.subjects("database"):
        put(facts, database, page_within_block=True, log_splits_page=False)
    found = properties.compare("mariadb", DB, "both", facts)
    assert [(each.name, setting) for each, setting in properties.unguarded(found, DB, facts)] == [
        ("mariadb 388", "innodb_doublewrite = ON")
    ]
    assert ("torn-page-guard-off", Subject("database", "mariadb 388")) not in failing(facts, chosen())
    assert newly("mariadb", DB, "both", facts, chosen()) == set()


def test_a_log_apart_is_set_with_its_data() -> None:
    facts, data = copied(seen("2.3-db-postgres-healthy")), Subject("dataset", "tank/pg")
    for name in ("tank/pg", "tank/pg/wal"):
        put(facts, Subject("dataset", name), sync="disabled")
    found = properties.compare("postgres", data, "data", facts)
    assert "zfs set sync=standard tank/pg/wal" in properties.commands(found, data, facts)
    assert newly("postgres", data, "data", facts, audited()) == set()


@pytest.mark.parametrize(
    ("name", "width", "least"), [("mirror-0", 0, 16), ("raidz2-0", 6, 32), ("draid2:8d:12c:2s-0", 0, 32)]
)
def test_what_check_would_set_is_what_it_lets_pass(name: str, width: int, least: int) -> None:
    """The command of recordsize-vs-page. Of vdevs that are not known it has none."""
    facts = laid(name, width, 12, recordsize=1 << 20, compression="off", primarycache="all")
    put(facts, HOST, database="mysql")
    derived = {fact.name: fact.value for fact in named_database.derive(DB, facts)}
    assert derived["db_recordsize"].or_none() == least << 10
    facts.replace(Fact(TANK, "data_vdevs", unknown("zpool status: killed")))
    derived = {fact.name: fact.value for fact in named_database.derive(DB, facts)}
    assert isinstance(derived["db_recordsize"], Unknown)
    assert derived["db_page_bytes"].or_none() == 16384
