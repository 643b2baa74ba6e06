"""Counters as OpenZFS and the kernel make them: a healthy pool is never CONTRADICTED, a broken one never TRACED.

Each log block goes to all legs of one top-level vdev, and to one disk of each leg. Its flush goes to all disks of the legs;
several syncs at once may share it. Transaction groups write to everything and flush it. A flush counts as a write.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from auditor.facts import Fact, Subject, known
from auditor.verify import chain
from auditor.verify.result import Zil
from tests.verify.worlds import SYNCS, TXGS, Disk, World, world

CLASSES = st.sampled_from(["log", "normal", "special", "full special"])
LAYERS = {"lvm": False, "md-linear": False, "bcache-writeback": True, "": None}


class Pool(NamedTuple):
    """What a pool is made of. disks: below each leg; share: of log blocks that have a flush for themselves; layer: below
    each leg; lost: the share of flushes that one disk with log blocks never gets."""

    class_: str
    tops: int
    legs: int
    disks: int
    volatile: bool
    jobs: int
    share: float
    layer: str
    txg_writes: int
    neighbour: int
    parameters: dict[str, int]
    lost: float

    @property
    def takes(self) -> str:
        """The class that takes the log blocks."""
        return "normal" if self.class_ == "full special" else self.class_


POOLS = st.builds(
    Pool,
    class_=CLASSES,
    tops=st.integers(1, 3),
    legs=st.integers(1, 3),
    disks=st.integers(1, 3),
    volatile=st.booleans(),
    jobs=st.sampled_from([1, 4]),
    share=st.floats(0.5, 1.0),
    layer=st.sampled_from(sorted(LAYERS)),
    txg_writes=st.integers(100, 900),
    neighbour=st.sampled_from([0, 0, 0, 3000]),
    parameters=st.sampled_from([{}, {}, {}, {"zil_nocacheflush": 1}, {"zfs_nocacheflush": 1}]),
    lost=st.sampled_from([0.0, 0.0, 0.5, 1.0]),
)


def made(pool: Pool, split: list[int]) -> World:
    """The world of a pool. split: how the blocks of a leg are spread over its disks, in thirds."""
    off = set(pool.parameters)
    found: list[Disk] = []
    for class_, tops in {pool.takes: pool.tops, **dict.fromkeys(_others(pool), 1)}.items():
        blocks = SYNCS // tops if class_ == pool.takes else 0
        flushes = round(blocks * (pool.share if pool.jobs > 1 else 1.0)) if not off else 0
        flushes += 2 * TXGS if "zfs_nocacheflush" not in off else 0
        for top in range(tops):
            for leg in range(pool.legs):
                name, vdev = f"{class_}-{top}-{leg}", f"mirror-{class_}-{top}"
                for disk in range(pool.disks):
                    data = blocks * split[disk] // sum(split[: pool.disks]) + pool.txg_writes
                    broken = (class_, top, leg, disk) == (pool.takes, 0, 0, 0)
                    got = round(flushes * (1 - pool.lost)) if broken else flushes
                    got = (got if pool.volatile else 0) + pool.neighbour
                    found.append(
                        Disk(
                            f"{name}{'xyz'[disk]}",
                            vdev,
                            class_,
                            data + got,
                            got,
                            pool.volatile,
                            ((name, vdev, class_),),
                        )
                    )
    slog = SYNCS if pool.takes == "log" else 0
    what = world(
        found,
        options={"rw": "write", "fdatasync": "1", "numjobs": str(pool.jobs)},
        zil_class="special" if "special" in pool.class_ else pool.class_,
        zil=Zil(SYNCS, SYNCS, slog, 1, 1, SYNCS - slog, 1, 1, 0, 0, 0, 0),
        parameters=pool.parameters,
    )
    for leaf in what.facts.linked(Subject("pool", "tank"), "leaves"):
        if (rearranges := LAYERS[pool.layer]) is not None:
            what.facts.put(Fact(leaf, "layers", known((pool.layer,), "")))
            what.facts.put(Fact(leaf, "stack_rearranges", known(rearranges, "")))
    idle = {disk.name: pool.neighbour // 10 for disk in found}
    return what.changed(idle_writes=idle)


def _others(pool: Pool) -> list[str]:
    return [each for each in ("normal", *(["special"] if "special" in pool.class_ else [])) if each != pool.takes]


@given(POOLS, st.lists(st.integers(1, 3), min_size=3, max_size=3))
def test_healthy_is_never_contradicted_and_broken_never_traced(pool: Pool, split: list[int]) -> None:
    what = made(pool, split)
    outcome = chain.follow(what.trial, what.runs, what.section, what.facts).outcome
    broken = pool.volatile and bool(pool.lost or pool.parameters)
    if broken:
        assert outcome != "TRACED"
    else:
        assert outcome != "CONTRADICTED"
    if not broken and not pool.neighbour and (pool.jobs == 1 or pool.share >= 0.99 or not pool.volatile):
        assert outcome == "TRACED"
