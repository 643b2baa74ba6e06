"""How facts are derived: when they are asked for, each once, and unknown where something is missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from auditor.facts import HOST, Fact, Facts, Judged, Known, Reason, Spec, Subject, Unknown, known, unknown
from auditor.model.derivation import Derivation, Missing, catch_missing, derivation, every, run

POOL, SDA, SDB = Subject("pool", "tank"), Subject("disk", "sda"), Subject("disk", "sdb")
CALLS = list[str]()


@derivation("pool", big=Spec.flag("it is larger than its disks"))
def big(pool: Subject, facts: Facts) -> Judged:
    size = facts.get(pool, "size").need()
    return Known(size.value == 2, size.evidence)


@derivation("pool", size=Spec.number("of its disks"), first=Spec.number("of the first one"))
def size(pool: Subject, facts: Facts) -> Iterator[Fact]:
    CALLS.append(pool.name)
    yield Fact(pool, "first", facts.get(SDA, "bytes"))
    sizes = every(facts.get(disk, "bytes") for disk in facts.need_linked(pool, "disks"))
    yield Fact(pool, "size", Known(len(sizes), ()))


@derivation("host", **{"disk.alone": Spec.flag("it is the only one")})
def alone(host: Subject, facts: Facts) -> Iterator[Fact]:
    yield Fact(SDA, "alone", known(False, "two"))
    facts.get(HOST, "disks").need()


def two_disks(**of_second: int) -> Facts:
    facts = Facts()
    facts.put(Fact(POOL, "disks", Known((SDA, SDB), ())))
    facts.put(Fact(SDA, "bytes", known(1, "1")))
    facts.add(SDB)
    facts.put_all(Fact(SDB, name, known(value, "")) for name, value in of_second.items())
    return facts


@pytest.mark.parametrize("order", [(big, size), (size, big)])
def test_what_is_needed_is_derived_first_and_once(order: tuple[Derivation, ...]) -> None:
    CALLS.clear()
    facts = two_disks(bytes=1)
    run(order, facts)
    assert facts.get(POOL, "big") == Known(True, ())
    assert CALLS == ["tank"]
    assert facts.derive is None


def test_what_is_missing_makes_unknown_what_was_not_yielded_before() -> None:
    facts = two_disks()
    run((big, size), facts)
    why = unknown("disk sdb: bytes was not looked at")
    assert facts.get(POOL, "first") == known(1, "1")
    assert facts.get(POOL, "size") == facts.get(POOL, "big") == why


def test_what_is_missing_counts_for_all_subjects_that_a_derivation_is_about() -> None:
    facts = two_disks()
    run((alone,), facts)
    assert facts.get(SDA, "alone") == known(False, "two")
    assert isinstance(facts.get(SDB, "alone"), Unknown)


def test_a_fact_that_follows_from_itself_is_unknown() -> None:
    @derivation("pool", egg=Spec.flag(""))
    def egg(pool: Subject, facts: Facts) -> Judged:
        return facts.get(pool, "hen").need()

    @derivation("pool", hen=Spec.flag(""))
    def hen(pool: Subject, facts: Facts) -> Judged:
        return facts.get(pool, "egg").need()

    facts = two_disks()
    run((egg, hen), facts)
    assert facts.get(POOL, "egg") == facts.get(POOL, "hen") == unknown("pool tank: egg follows from itself")


def test_the_reasons_of_all_that_is_missing_are_told() -> None:
    with pytest.raises(Missing) as missing:
        every((unknown("a"), known(1, ""), unknown("b")))
    assert missing.value.why == Unknown((Reason("a"), Reason("b")))
    assert catch_missing(lambda: unknown("c").need())() == unknown("c")
