"""What ``zaudit advise db`` says: the properties of a dataset for one database, beside what is set, and the commands that would
set them. Pure. The sizes of records and blocks are those that suit the vdevs of the pool (:mod:`._block_sizes`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

from auditor import data
from auditor.databases import ENGINES
from auditor.facts import HOST, Facts, Judged, Known, Missing, Subject, Unknown, unknown
from auditor.model.derivation import catch_missing, numbers
from auditor.report import document as doc
from auditor.text import quoted

SIZES = frozenset({"recordsize", "volblocksize"})


class Advice(NamedTuple):
    """One entry of advice.toml. value and also: of a size in bytes, else as the property spells it."""

    engines: tuple[str, ...]
    parts: tuple[str, ...]
    type: str
    fact: str
    property: str
    shown: str
    value: int | str
    also: tuple[int | str, ...]
    reason: str
    cost: str
    source: str
    dispute: str


@cache
def load() -> tuple[Advice, ...]:
    return tuple(map(_advice, data.table("advice.toml")["advice"]))


def _advice(entry: data.Document) -> Advice:
    """Raises ValueError for a rule that sets nothing of the kind, and for what is no size."""
    name, shown = entry["property"], _of_rule(entry["property"], entry["value"])
    value, *also = (_bytes(each) if name in SIZES else each for each in (shown, *entry["also"]))
    return data.record(Advice, {"fact": "", **entry, "shown": shown, "value": value, "also": also})


def _of_rule(name: str, value: str) -> str:
    """The value that a rule would set (``rule:ID``), or the one that is given. Raises ValueError."""
    said, _, id = value.partition("rule:")
    if said or not id:
        return value
    fix = data.rules().get(id, {}).get("fix", {})
    sets = (each for one in (fix, *fix.get("cases", ())) for each in one.get("sets", ()))
    texts = (fix.get("command", ""), *(f"zfs set {each.rpartition(' ')[2]}" for each in sets))
    words = (each.removeprefix(f"zfs set {name}=").split(" ")[0] for each in texts)
    found = next((each for each in words if each not in ("zfs", "") and "{" not in each), "")
    if not found:
        raise ValueError(f"rule {id} sets no {name}")
    return found


def _bytes(text: str) -> int:
    """As ``zfs set`` takes it: 32K, 1M. Raises ValueError."""
    return int(text[:-1]) << {"K": 10, "M": 20}.get(text[-1:], 0) if text[-1:] in ("K", "M") else int(text)


def of(engine: str, part: str, kind: str) -> list[Advice]:
    """What is advised for a dataset of this kind, each property once."""
    found: dict[str, Advice] = {}
    for each in load():
        if (not each.engines or engine in each.engines) and part in each.parts and each.type in (kind, "any"):
            found.setdefault(each.property, each)
    return list(found.values())


Stand = Literal["as advised", "differs", "not known"]
SHOWN = (8, 16, 32, 64, 128)  # KiB, of which it is told what they take
MIRRORS = Advice(
    (), (), "any", "", "layout", "mirrors", "mirrors", (),
    "Each block is spread over the disks: a vdev does the I/O of one disk.",
    "Half of the raw space, and a new pool to which the data is sent (zfs send, zfs receive).",
    "OpenZFS documentation, Workload Tuning, Pool Geometry; zpoolconcepts.7 draid; Proxmox VE Administration Guide, ZFS RAID "
    "Level Considerations",
    "OpenZFS documentation, Workload Tuning, RAID-Z stripe width: exact numbers hardly ever matter. Holds for large records, "
    "as of archives; blocks of a few sectors are rounded up.",
)  # fmt: skip


class Comparison(NamedTuple):
    """now: in words; wanted: as zfs set takes it, empty where none fits; beside: more to say, (heading, text)."""

    advice: Advice
    stand: Stand
    now: str
    wanted: str
    said: str
    beside: tuple[tuple[str, str], ...] = ()


def compare(engine: str, dataset: Subject, part: str, facts: Facts) -> list[Comparison]:
    """Each property that is advised, and how what is set compares."""
    kind = facts.get(dataset, "type").or_none()
    found = of(engine, part, str(kind or "filesystem"))
    servers = [
        each
        for each in _databases([dataset], "datasets", facts)
        if {engine, facts.get(each, "engine").word()} in ({engine}, {"mysql", "mariadb"})
    ]
    return [
        _setting(each, servers[0], facts)
        if each.fact
        else _size(each, engine, dataset, facts)
        if each.property in SIZES
        else _word(each, dataset, facts)
        for each in found
        if servers or not each.fact
    ]


def commands(found: Sequence[Comparison], dataset: Subject, facts: Facts) -> list[str]:
    """What would set what differs, in an order in which each is right after the ones before. A volume keeps its blocks."""
    lines = []
    for each in found:
        if each.stand == "differs" and each.wanted and each.advice.property != "volblocksize" and not each.advice.fact:
            places = _places(found, dataset, facts) if each.advice.property == "sync" else [dataset]
            lines += [f"zfs set {each.advice.property}={each.wanted} {quoted(place.name)}" for place in places]
    return lines


def page(engine: str, dataset: Subject, part: str, facts: Facts) -> Iterator[doc.Block]:
    found = compare(engine, dataset, part, facts)
    what = {"both": "its data and its log", "data": "its data", "log": "its log"}[part]
    yield doc.Say(f"{ENGINES[engine].title} on {dataset.name}: {what}. Nothing is changed.")
    pool = pool_of(dataset, facts)
    spread = pool.spread if isinstance(pool, Pool) else ()
    if spread and part != "log" and ENGINES[engine].page_bytes:
        layout = f"layout: {spread[0]}; for small pages a pool of mirrors is the better answer"
        yield doc.section("", [doc.Say(layout), _reasons(MIRRORS)])
    for each in found:
        yield doc.section("", [doc.Say(f"{each.advice.property}: {each.said}"), _reasons(each.advice, each.beside)])
    yield doc.section("", _to_do(found, dataset, facts))


def _reasons(each: Advice, more: Sequence[tuple[str, str]] = ()) -> doc.Entries:
    dispute = ("dispute", each.dispute or "None is known.")
    rows = (("why", each.reason), ("cost", each.cost), ("source", each.source), dispute, *more)
    return doc.labelled(((f"  {name}", text) for name, text in rows), at=11)


def _to_do(found: Sequence[Comparison], dataset: Subject, facts: Facts) -> Iterator[doc.Block]:
    by = {stand: [each for each in found if each.stand == stand] for stand in ("as advised", "differs", "not known")}
    some = "differ" if len(by["differs"]) > 1 else "differs"
    counts = [f"{len(each)} {some if stand == 'differs' else stand}" for stand, each in by.items() if each]
    yield doc.Say(f"Of {len(found)} properties: {', '.join(counts)}.")
    lines = commands(found, dataset, facts)
    guards = unguarded(found, dataset, facts) if lines else []
    for database, setting in guards:
        text = f"First {setting} in {database.name}: the log may split pages that nothing else keeps whole"
        yield doc.Say(f"{text} (zaudit explain torn-page-guard-off).")
    if lines:
        yield doc.Say("Then what would set them:" if guards else "What would set them:")
        yield doc.Code(tuple(lines))
    if len(_places(found, dataset, facts)) > 1:
        yield doc.Say("sync is off in more places than this one: whatever is below them then honours fsync.")
    volume = next((each for each in by["differs"] if each.advice.property == "volblocksize" and each.wanted), None)
    if volume:
        made = f"zfs create -V SIZE -o volblocksize={volume.wanted} NAME"
        yield doc.Say(f"A volume keeps its blocks: {made}, and copy in the guest.")
    if any(line.startswith("zfs set recordsize=") for line in lines):
        yield doc.Say("recordsize acts on files that are made from now on: dump and restore, or copy.")


def _seen(found: Known, name: str) -> str:
    """The value and where it is set, as the evidence has it; sizes as people write them."""
    text = found.evidence[0].text if found.evidence else str(found.value)
    text = text.removeprefix(f"{name}=").removeprefix(f"{name} = ")
    if name in SIZES and isinstance(found.value, int):
        text = text.replace(str(found.value), spoken(found.value), 1)
    return text


def _word(each: Advice, dataset: Subject, facts: Facts) -> Comparison:
    return _compared(each, facts.get(dataset, each.property), each.shown, each.value, each.also)


def _setting(each: Advice, server: Subject, facts: Facts) -> Comparison:
    """A flag is on or off, as the server spells it."""
    now = facts.get(server, each.fact)
    if isinstance(now, Known) and isinstance(now.value, bool):
        now = now._replace(value="on" if now.value else "off")
    elif isinstance(now, Known):
        now = now._replace(value=str(now.value))
    return _compared(each, now, each.shown, str(each.value).lower(), each.also)


def _compared(
    each: Advice, now: Judged, wanted: str, best: int | str, also: Sequence[int | str], advised: str = ""
) -> Comparison:
    """wanted: the value to set; best: the same as a fact; also: those that do as well; advised: in words, if there are more."""
    advised = advised or wanted
    if isinstance(now, Unknown):
        return Comparison(each, "not known", "", wanted, f"not known ({now.reasons[0].text}); advised: {advised}")
    seen = _seen(now, each.property)
    if now.value == best:
        return Comparison(each, "as advised", seen, wanted, f"{seen}: as advised")
    if now.value in also:
        return Comparison(each, "as advised", seen, wanted, f"{seen}: as good as {wanted}")
    return Comparison(each, "differs", seen, wanted, f"{seen}; advised: {advised}")


def _size(each: Advice, engine: str, dataset: Subject, facts: Facts) -> Comparison:
    """recordsize or volblocksize: by the vdevs of the pool, and no smaller than the page of the database."""
    now, pool = facts.get(dataset, each.property), pool_of(dataset, facts)
    if isinstance(pool, Unknown):
        seen = "not known" if isinstance(now, Unknown) else _seen(now, each.property)
        why = pool.reasons[0].text
        said = (
            f"{seen}; not compared, for what the pool is made of is not known ({why}); advised on mirrors: {each.shown}"
        )
        return Comparison(each, "not known", seen, "", said)
    value = each.value
    assert isinstance(value, int)
    also = [size for size in each.also if isinstance(size, int)]
    best, suiting = chosen(value, also, _page(each, engine, dataset, facts), pool)
    beside = tuple(_beside(pool, each, best))
    if best and best != each.value:
        cost = f"What changes in a block costs the write of {spoken(best)}. {each.cost}"
        each = each._replace(reason=_why_here(each, best, pool), cost=cost)
    if not best:
        text = f"no size of {spoken(BLOCK_SIZES[0])} to {spoken(BLOCK_SIZES[-1])} fits"
        seen = "not known" if isinstance(now, Unknown) else _seen(now, each.property)
        return Comparison(each, "differs", seen, "", f"{seen}; {text}", beside)
    advised = spoken(best) + (f" here, {each.shown} on mirrors" if pool.spread and best != value else "")
    return _compared(each, now, spoken(best), best, suiting, advised)._replace(beside=beside)


def _why_here(each: Advice, best: int, pool: Pool) -> str:
    assert isinstance(each.value, int)
    if pool.passes(each.value) and not pool.spread:
        return f"The server's pages are larger than {each.shown}: {spoken(best)} holds one."
    if pool.captured >= each.value:
        return f"Blocks up to {spoken(pool.captured)} would go to the special vdevs."
    if not pool.spread:
        return f"The sectors are of {spoken(pool.sector)}: smaller records do not compress."
    if not all(layout.share(best) >= ENOUGH * layout.best for layout in pool.spread):
        return f"Blocks of {each.shown} lose space on {pool.kind}; {spoken(best)} lose least of it."
    if not all(layout.share(each.value) >= ENOUGH * layout.best for layout in pool.spread):
        return f"Blocks of {each.shown} lose space on {pool.kind}; {spoken(best)} is the least that fits."
    return f"Each block costs the disks of a {pool.kind} an I/O: {spoken(best)} carry more in it."


def _page(each: Advice, engine: str, dataset: Subject, facts: Facts) -> int:
    """Of the server that was found there, else of the engine; not of what a guest keeps on a volume."""
    if each.property != "recordsize":
        return 0
    page = facts.get(dataset, "db_page_bytes")
    here = {engine, facts.get(dataset, "db_engine").or_none()} in ({engine}, {"mysql", "mariadb"})
    return (
        page.value if here and isinstance(page, Known) and isinstance(page.value, int) else ENGINES[engine].page_bytes
    )


def _beside(pool: Pool, each: Advice, best: int) -> Iterator[tuple[str, str]]:
    """What of the pool decides the size, and what blocks take there."""
    if pool.spread and best and best != each.value:
        yield "mirrors", each.reason
        yield "see", "zaudit explain raidz-small-blocks"
    for layout in pool.spread:
        yield "space", f"{layout}; large blocks are {layout.best:.0%} data"
        yield from (("", line) for line in _table(layout))
    if pool.spread:
        yield "", "A block that compresses takes what the smaller size does, into which it then fits."
    if pool.captured:
        yield "special", f"Blocks up to {spoken(pool.captured)} go to the special vdevs (special_small_blocks)."
    if not best and pool.captured >= BLOCK_SIZES[-1]:
        yield "first", "Lower special_small_blocks: it takes each block of these sizes."


def _table(layout: Layout) -> Iterator[str]:
    sizes = [kib << 10 for kib in SHOWN]
    for name, cells in (
        ("block", map(spoken, sizes)),
        ("takes", (spoken(layout.takes(each)) for each in sizes)),
        ("data", (f"{layout.share(each):.0%}" for each in sizes)),
    ):
        yield f"{name:6}" + "".join(f"{each:>6}" for each in cells)


def _below(dataset: Subject, other: Subject) -> bool:
    return other == dataset or other.name.startswith(f"{dataset.name}/")


def unguarded(found: Sequence[Comparison], dataset: Subject, facts: Facts) -> list[tuple[Subject, str]]:
    """(database, setting) of those with data where something is set, whose pages nothing keeps whole. (torn-page-guard-off)"""
    places = _places(found, dataset, facts)
    return [
        (database, guard)
        for database in _databases(places, "data_datasets", facts)
        if facts.get(database, "torn_page_guard").or_none() is False
        and (guard := ENGINES[str(facts.get(database, "engine").or_none())].guard)
    ]


def _databases(places: Sequence[Subject], link: str, facts: Facts) -> list[Subject]:
    """Those that lie on one of these datasets, or below."""
    return [
        each
        for each in facts.linked(HOST, "databases")
        if any(_below(top, one) for top in places for one in facts.linked(each, link))
    ]


def _places(found: Sequence[Comparison], dataset: Subject, facts: Facts) -> list[Subject]:
    """Where sync is to be set: on what is above and has it off, lest whatever is made there has it off, too; on the dataset,
    where it does not get it from there; on the others of its databases. (rules sync-ancestor-trap, sync-mixed-log-data)"""
    if not any(each.advice.property == "sync" and each.stand == "differs" for each in found):
        return [dataset]
    above = [
        each
        for each in facts.linked(dataset, "ancestors")
        if _off_here(each, facts) and facts.get(each, "role").or_none() != "rebuildable"
    ]
    places = above if _origin(dataset, facts) in above else [*above, dataset]
    for database in _databases([dataset], "datasets", facts):
        for other in facts.linked(database, "datasets"):
            if _off_here(other, facts) and other not in places:
                places = [*places, other]
    return places


def _off_here(dataset: Subject, facts: Facts) -> bool:
    return facts.get(dataset, "sync").or_none() == "disabled" and _origin(dataset, facts) == dataset


def _origin(dataset: Subject, facts: Facts) -> Subject:
    sync = facts.get(dataset, "sync")
    name = sync.evidence[0].origin if isinstance(sync, Known) and sync.evidence else ""
    return Subject("dataset", name) if name else dataset


# Which block sizes suit a pool: what a block of each size takes of a raidz or dRAID vdev, and which sizes no rule objects to.
#
# A raidz adds parity to each row of a block and rounds up to a multiple of parity + 1 sectors; dRAID fills up to whole stripes
# of a fixed width. A mirror writes a block as it is. Compression makes blocks smaller, so that they fall among the smaller
# sizes. (OpenZFS module/zfs/vdev_raidz.c vdev_raidz_psize_to_asize, in 2.1 and 2.2 vdev_raidz_asize; vdev_draid.c
# vdev_draid_psize_to_asize, before 2.4 vdev_draid_asize; zpoolconcepts.7)

BLOCK_SIZES = tuple(each << 10 for each in (16, 32, 64, 128))  # larger ones need the feature large_blocks
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
        """They are larger than a sector, no rule objects (see passes), and they waste little."""
        return self.passes(block) and all(each.share(block) >= ENOUGH * each.best for each in self.spread)

    @property
    def kind(self) -> str:
        return "dRAID" if all(each.draid for each in self.spread) else "raidz"

    def passes(self, block: int) -> bool:
        """No rule objects to it."""
        return block > max(self.sector, self.captured, SMALL if self.spread else 0)


@catch_missing
def pool_of(dataset: Subject, facts: Facts) -> Pool:
    """The pool of a dataset, or why it is not known what it is made of."""
    pool = Subject("pool", dataset.name.partition("/")[0])
    spread, sectors = dict[object, Layout](), list[int]()
    for vdev in facts.need_linked(pool, "data_vdevs"):
        sectors.append(1 << facts.need(vdev, "ashift").number())
        if layout := _layout(vdev, sectors[-1], facts):
            spread.setdefault(layout._replace(name=""), layout)
    return Pool(tuple(spread.values()), max(sectors, default=0), _captured(dataset, pool, facts))


def _layout(vdev: Subject, sector: int, facts: Facts) -> Layout | None:
    """None of a mirror or disk. Raises Missing."""
    kind = facts.need(vdev, "type").word()
    if kind == "draid":
        found = _DRAID.match(vdev.name)
        if not found or not int(found[2]):
            raise Missing(unknown(f"{vdev}: its name does not say how many data disks a stripe has"))
        parity, data = int(found[1]), int(found[2])
        return Layout(vdev.name, True, data + parity, data, parity, sector)
    if not kind.startswith("raidz"):
        return None
    parity, disks = int(kind[-1]), facts.need(vdev, "width").number()
    if disks <= parity:
        raise Missing(unknown(f"{vdev}: {disks} disks are too few for {kind}"))
    return Layout(vdev.name, False, disks, disks - parity, parity, sector)


def _captured(dataset: Subject, pool: Subject, facts: Facts) -> int:
    """Up to which size blocks go to special vdevs. Blocks of volumes do so from 2.4 on. Raises Missing."""
    special, version = facts.need(pool, "special_vdevs"), facts.get(HOST, "zfs_version")
    volume = facts.get(dataset, "type").or_none() == "volume"
    if not special.value or (volume and isinstance(version, Known) and () < numbers(version) < (2, 4)):
        return 0
    return facts.need(dataset, "special_small_blocks").number()


def chosen(wanted: int, also: Iterable[int], page: int, pool: Pool) -> tuple[int, tuple[int, ...]]:
    """The size to take here, 0 where none fits, and those that do as well: the wanted one, the next larger, or the least
    bad."""
    listed = [each for each in (wanted, *also) if each >= page and pool.suits(each)]
    if wanted in listed:
        return wanted, tuple(listed)
    larger = [each for each in BLOCK_SIZES if each >= max(wanted, page) and pool.passes(each)]
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
