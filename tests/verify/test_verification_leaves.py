"""What a run shows of each leaf: flushes that arrived, flushes that were lost, and nothing where nothing was seen."""

from __future__ import annotations

from auditor.facts import Fact, Facts, Judged, Known, Subject, known, unknown
from auditor.verify import chain, verification
from tests.verify.worlds import DATA, LEG_A, LEG_B, POOL, World, world

NAME = "flushes_reach_disk"


def leaf(number: int) -> Subject:
    return Subject("leaf", f"nvme{number}n1", "tank")


def of(what: World, before: Judged | None = None) -> Facts:
    """The facts of a world after its run; before: what every leaf had."""
    for each in range(4):
        what.facts.put(Fact(leaf(each), NAME, before or unknown("too few to tell")))
    seen = chain.follow(what.trial, what.runs, what.section, what.facts)
    for fact in verification.leaf_facts(what.log, seen, POOL, what.facts):
        what.facts.replace(fact)
    return what.facts


def values(facts: Facts) -> list[object]:
    return [found.value if isinstance(found := facts.get(leaf(each), NAME), Known) else "?" for each in range(4)]


def test_flushes_that_arrived() -> None:
    found = of(world())
    assert values(found) == [True] * 4
    judged = found.get(leaf(2), NAME)
    assert isinstance(judged, Known)
    assert judged.evidence[0].text == "nvme2n1: 3,001 flushes for 6,000 writes while sync writes were followed"


def test_flushes_that_were_lost_whatever_the_counters_said_before() -> None:
    latched = (*(disk._replace(flushes=0) for disk in DATA), LEG_A._replace(flushes=0), LEG_B)
    for before in (None, known(True, "since boot")):
        assert values(of(world(latched), before)) == [False, False, False, True]


def test_what_was_known_before_keeps_its_evidence() -> None:
    assert values(of(world(), known(False, "since boot"))) == [False] * 4


def test_nothing_is_said_of_a_disk_that_was_not_seen() -> None:
    assert values(of(world((*DATA, LEG_A._replace(flushes=None), LEG_B)))) == [True, True, "?", True]
    assert values(of(world((*DATA, LEG_A._replace(flushes=0, volatile=None), LEG_B)))) == [True, True, "?", True]
    assert values(of(world().changed(devices=world().log.devices[:3]))) == [True, True, True, "?"]
    assert values(of(world().changed(jobs=(), faults=("fio: it printed no JSON",)))) == ["?"] * 4


def test_no_write_and_no_volatile_cache_say_nothing_of_flushes() -> None:
    unwritten = world((*DATA, LEG_A._replace(writes=0, flushes=0), LEG_B._replace(flushes=0, volatile=False)))
    assert values(of(unwritten)) == [True, True, "?", "?"]


def test_flushes_that_may_be_those_of_others_say_nothing() -> None:
    alone = tuple(disk._replace(writes=6000, flushes=3020) for disk in DATA)
    quiet = world(alone, zil_class="normal")
    assert values(of(quiet)) == [True, True, "?", "?"]
    shared = world(alone, zil_class="normal").changed(idle_writes={"nvme0n1": 300, "nvme1n1": 2})
    assert values(of(shared)) == ["?", True, "?", "?"]
    assert values(of(world(alone, zil_class="normal", parameters={"zil_nocacheflush": 1}))) == ["?"] * 4


def test_multipath_whose_flushes_were_not_counted_is_not_latched_off() -> None:
    what = world((*DATA, LEG_A._replace(flushes=0), LEG_B))
    path = "/devices/virtual/nvme-subsystem/nvme-subsys2/nvme2n1"
    what.facts.put(Fact(Subject("disk", "nvme2n1"), "sysfs_path", known(path, "")))
    assert values(of(what)) == [True, True, "?", True]


def test_a_leaf_on_two_disks_needs_both() -> None:
    what = world()
    both = (Subject("disk", "nvme2n1"), Subject("disk", "nvme9n1"))
    what.facts.replace(Fact(leaf(2), "disks", known(both, "")))
    assert values(of(what)) == [True, True, "?", True]
