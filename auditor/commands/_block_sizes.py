"""Which block sizes suit a pool: what a block of each size takes of a raidz or dRAID vdev, and which sizes no rule objects to.

A raidz adds parity to each row of a block and rounds up to a multiple of parity + 1 sectors; dRAID fills up to whole stripes of
a fixed width. A mirror writes a block as it is. Compression makes blocks smaller, so that they fall among the smaller sizes.
(OpenZFS module/zfs/vdev_raidz.c vdev_raidz_psize_to_asize, in 2.1 and 2.2 vdev_raidz_asize; vdev_draid.c
vdev_draid_psize_to_asize, before 2.4 vdev_draid_asize; zpoolconcepts.7)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from auditor.facts import HOST, Facts, Judged, Known, Subject, Unknown, unknown, value_of

SIZES = tuple(each << 10 for each in (16, 32, 64, 128))  # without the feature large_blocks there are no larger ones
SMALL = 16 << 10  # rule raidz-small-blocks: up to here
ENOUGH = 0.8  # of the data that large blocks hold in the same space
_DRAID = re.compile(r"draid([123]):(\d{1,3})d:\d+c")


class Layout(NamedTuple):
    """A vdev that spreads its blocks. data: disks of a row or stripe that hold data; width: its disks; sector: bytes."""

    name: str
    draid: bool
    width: int
    data: int
    parity: int
    sector: int

    def takes(self, block: int) -> int:
        """Bytes on all its disks together of one block of so many bytes."""
        sectors = -(-block // self.sector)
        rows = -(-sectors // self.data)
        if self.draid:
            return rows * (self.data + self.parity) * self.sector
        both = sectors + self.parity * rows
        return -(-both // (self.parity + 1)) * (self.parity + 1) * self.sector

    def share(self, block: int) -> float:
        """How much of what it takes is data."""
        return block / self.takes(block)

    @property
    def best(self) -> float:
        """The share that large blocks come close to."""
        return self.data / (self.data + self.parity)

    def __str__(self) -> str:
        what = f"{self.data} data disks a stripe" if self.draid else f"{self.width} disks"
        return f"{self.name}, {what}, sectors of {spoken(self.sector)}"


class Pool(NamedTuple):
    """What of a pool decides which sizes fit. spread: its raidz and dRAID vdevs, of each kind one; sector: the largest of its
    data vdevs; captured: blocks up to this size go to its special vdevs, 0 where none do."""

    spread: tuple[Layout, ...]
    sector: int
    captured: int

    def suits(self, block: int) -> bool:
        """Blocks of this size are larger than a sector, no rule objects to them here (raidz-small-blocks,
        special-small-blocks-captures-data), and they waste little."""
        return self.passes(block) and all(each.share(block) >= ENOUGH * each.best for each in self.spread)

    @property
    def kind(self) -> str:
        """What spreads the blocks."""
        return "dRAID" if all(each.draid for each in self.spread) else "raidz"

    def passes(self, block: int) -> bool:
        """No rule objects to it."""
        return block > max(self.sector, self.captured, SMALL if self.spread else 0)


def of(dataset: Subject, facts: Facts) -> Pool | Unknown:
    """The pool of a dataset, or why it is not known what it is made of."""
    pool = Subject("pool", dataset.name.partition("/")[0])
    vdevs = facts.get(pool, "data_vdevs")
    if isinstance(vdevs, Unknown):
        return vdevs
    spread = dict[tuple[bool, int, int, int], Layout]()
    sectors = list[int]()
    for vdev in facts.linked(pool, "data_vdevs"):
        found = _layout(vdev, facts)
        if isinstance(found, Unknown):
            return found
        if isinstance(found, Layout):
            spread.setdefault((found.draid, found.data, found.parity, found.sector), found)
        sectors.append(found if isinstance(found, int) else found.sector)
    captured = _captured(dataset, pool, facts)
    if not isinstance(captured, int):
        return captured
    return Pool(tuple(spread.values()), max(sectors, default=0), captured)


def _layout(vdev: Subject, facts: Facts) -> Layout | int | Unknown:
    """Of a mirror or disk the size of its sectors."""
    kind, ashift = facts.get(vdev, "type"), facts.get(vdev, "ashift")
    for each in (kind, ashift):
        if isinstance(each, Unknown):
            return each
    sector = 1 << _number(ashift)
    word = str(kind.value) if isinstance(kind, Known) else ""
    if word == "draid":
        told = _DRAID.match(vdev.name)
        if not told or not int(told[2]):
            return unknown(f"{vdev}: its name does not say how many data disks a stripe has")
        parity, data = int(told[1]), int(told[2])
        return Layout(vdev.name, True, data + parity, data, parity, sector)
    if not word.startswith("raidz"):
        return sector
    parity, width = int(word[-1]), facts.get(vdev, "width")
    if isinstance(width, Unknown):
        return width
    disks = _number(width)
    if disks <= parity:
        return unknown(f"{vdev}: {disks} disks are too few for {word}")
    return Layout(vdev.name, False, disks, disks - parity, parity, sector)


def _captured(dataset: Subject, pool: Subject, facts: Facts) -> int | Unknown:
    """Up to which size blocks go to special vdevs. Blocks of volumes do so from 2.4 on."""
    special, version = facts.get(pool, "special_vdevs"), facts.get(HOST, "zfs_version")
    if isinstance(special, Unknown):
        return special
    volume = value_of(facts.get(dataset, "type")) == "volume"
    numbers = version.value if isinstance(version, Known) and isinstance(version.value, tuple) else ()
    old = bool(numbers) and tuple(each for each in numbers if isinstance(each, int)) < (2, 4)
    if not special.value or (volume and old):
        return 0
    small = facts.get(dataset, "special_small_blocks")
    return small if isinstance(small, Unknown) else _number(small)


def _number(found: Judged) -> int:
    return found.value if isinstance(found, Known) and isinstance(found.value, int) else 0


def chosen(wanted: int, also: Iterable[int], page: int, pool: Pool) -> tuple[int, tuple[int, ...]]:
    """The size to take here, 0 where none fits, and those that do as well: the one that is wanted, else the next larger one
    that suits, else the one of those that pass which wastes least."""
    listed = [each for each in (wanted, *also) if each >= page and pool.suits(each)]
    if wanted in listed:
        return wanted, tuple(listed)
    larger = [each for each in SIZES if each >= max(wanted, page) and pool.passes(each)]
    suiting = [each for each in larger if pool.suits(each)]
    if suiting:
        return suiting[0], tuple({suiting[0], *listed})
    if larger:
        found = max(larger, key=lambda size: (min((each.share(size) for each in pool.spread), default=1.0), -size))
        return found, (found,)
    return 0, ()


def spoken(size: int) -> str:
    """As ``zfs set`` takes it: 512, 16K, 1M."""
    if size and size % (1 << 20) == 0:
        return f"{size >> 20}M"
    return f"{size >> 10}K" if size and size % 1024 == 0 else str(size)
