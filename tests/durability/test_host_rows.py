"""The model against durability.toml: what is broken in a perfect world changes exactly the cells that its row says.

The table was written from source, by another author, before the model. Where they differ on purpose, DIFFERS says why.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from auditor.data import durability
from auditor.data.durability import ANSWERS as RANKS
from auditor.data.durability import Cost
from auditor.durability.host import QUESTIONS, Dataset, Host, Leg, Pool, Program, Store, Use, Vdev
from auditor.durability.table import Judge
from tests.durability.hosts import NAME, mirror, raidz
from tests.folded import for_each

TABLE = durability.load()
DRIVES: Mapping[str, dict[str, Any]] = {"protected": {}, "volatile": {"cache": "volatile", "honours": None}}
DATA, LOG = ("d0", "d1"), ("s0", "s1")
Change = Callable[[Host], Host]


def perfect(world: str) -> Host:
    both = Use("tank/db")
    stores = {name: Store(name, **DRIVES[world]) for name in (*DATA, *LOG, "d2", "d3", "e0", "e1")}
    tank = Pool("tank", (mirror(*DATA),), log=(mirror(*LOG),))
    return Host({"tank": tank}, {"tank/db": Dataset("tank/db", "tank")}, {NAME: Program(NAME, both, (both,))}, stores)


def program(**fields: Any) -> Change:
    return lambda host: replace(host, programs={NAME: replace(host.programs[NAME], **fields)})


def use(log: Mapping[str, Any], pages: Mapping[str, Any]) -> Change:
    def change(host: Host) -> Host:
        found = host.programs[NAME]
        uses = {"log": replace(found.log, **log), "pages": tuple(replace(each, **pages) for each in found.pages)}
        return program(**uses)(host)

    return change


def both(**fields: Any) -> Change:
    return use(fields, fields)


def dataset(*names: str, **fields: Any) -> Change:
    """All of them where no name is given."""
    return lambda host: replace(
        host,
        datasets={
            name: replace(each, **fields) if name in (names or host.datasets) else each
            for name, each in host.datasets.items()
        },
    )


def pool(**fields: Any) -> Change:
    return lambda host: replace(host, pools={name: replace(each, **fields) for name, each in host.pools.items()})


def stores(*names: str, **fields: Any) -> Change:
    return lambda host: replace(
        host,
        stores={name: replace(each, **fields) if name in names else each for name, each in host.stores.items()},
    )


def legs(*names: str, **fields: Any) -> Change:
    def vdev(each: Vdev) -> Vdev:
        return replace(each, legs=tuple(replace(leg, **fields) if leg.name in names else leg for leg in each.legs))

    return lambda host: replace(host, pools={name: each.with_vdevs(vdev) for name, each in host.pools.items()})


def layer(of: Iterable[str], below: Mapping[str, Any] | None = None, **fields: Any) -> Change:
    """A layer of its own above each of these drives. below: what becomes of the drive."""

    def change(host: Host) -> Host:
        for name in of:
            above = Store(f"above {name}", **fields)
            host = replace(host, stores={**host.stores, above.name: above})
            host = stores(name, **(below or {}))(legs(name, layers=(above.name,))(host))
        return host

    return change


def together(*changes: Change) -> Change:
    def change(host: Host) -> Host:
        for each in changes:
            host = each(host)
        return host

    return change


def two(second: str = "tank") -> Change:
    """WAL and data on two datasets, of one pool or two."""

    def change(host: Host) -> Host:
        tank, (name, db) = host.pools["tank"], next(iter(host.datasets.items()))
        other = replace(tank, name=second, normal=(mirror("e0", "e1"),), log=(mirror("d2", "d3"),))
        pools = {"tank": tank} if second == "tank" else {"tank": tank, second: other}
        datasets = {"tank/wal": replace(db, name="tank/wal"), name: replace(db, pool=second)}
        found = host.programs[NAME]
        moved = replace(found, log=replace(found.log, dataset="tank/wal"))
        return replace(host, pools=pools, datasets=datasets, programs={NAME: moved})

    return change


def below(host: Host) -> Host:
    """Everything on files of a dataset with sync=disabled."""
    outer = replace(host.pools["tank"], name="outer")
    inner = legs(*DATA, *LOG, drives=(), on="outer/files")(host).pools["tank"]
    files = Dataset("outer/files", "outer", sync="disabled")
    return replace(host, pools={"tank": inner, "outer": outer}, datasets={**host.datasets, files.name: files})


def circle(host: Host) -> Host:
    return legs(*DATA, drives=(), on="tank/db")(host)


def special(**fields: Any) -> Change:
    drives = ("e0", "e1")
    return together(pool(special=(mirror(*drives),), log=()), stores(*drives, **fields))


FILE = {"party": "layer", "place": "host", "cache": "volatile"}
UNDER = {"party": "layer", "cache": "volatile", "honours": None, "redundant": None}
LYING = {"cache": "volatile", "honours": False}
BREAK: Mapping[str, Change] = {
    "leave.async": program(leaves=False),
    "leave.mongodb": program(leaves=False),
    "leave.everysec": program(leaves=False),
    "leave.redo-off": program(recovers=False),
    "ask.late": use({"asks": "later"}, {}),
    "ask.binlog": use({"asks": "later"}, {}),
    "ask.sqlite-normal": together(both(asks="later"), program(pages=(), closes=None)),
    "ask.never": both(asks="never"),
    "ask.data": use({}, {"asks": "never"}),
    "pass.libeatmydata": both(passes=False),
    "pass.nfs-async": both(passes=False, remote=True),
    "pass.guest-unsafe": both(passes=False, reaches=False),
    "pass.nobarrier": together(both(passes=False), dataset(volume=True)),
    "pass.zvol-queue": together(both(passes=False), dataset(volume=True)),
    "commit.disabled": dataset(sync="disabled"),
    "commit.always": dataset(sync="always"),
    "place.indirect": together(dataset(indirect=True), program(splits=False)),
    "place.indirect-innodb": dataset(indirect=True, sound=None),
    "place.direct": dataset("tank/db", indirect=True, direct=True),
    "place.log-fills": pool(log_room=False),
    "place.special": special(),
    "store.file": layer((*DATA, *LOG), UNDER, **FILE),
    "store.unsynced": below,
    "store.ram-log": together(legs(*LOG, opens=False), stores(*LOG, **FILE, passes=False, redundant=True)),
    "store.raid-battery": layer((*DATA, *LOG), {"cache": "none", "honours": True}, party="controller", honours=None),
    "store.raid-no-battery": layer((*DATA, *LOG), party="controller", cache="volatile", passes=False, honours=None),
    "store.undocumented": stores(*DATA, *LOG, cache="none", honours=None),
    "flush.log-off": pool(zil_flush=False),
    "flush.all-off": pool(zil_flush=False, txg_flush=False),
    "flush.layer": lambda host: layer(
        [each for each in (*DATA, *LOG) if f"above {each}" not in host.stores],
        party="layer",
        cache="none",
        passes=False,
    )(stores(*(f"above {each}" for each in (*DATA, *LOG)), passes=False)(host)),
    "flush.failed-log": stores(*LOG, completes=False),
    "flush.failed-data": stores(*DATA, completes=False),
    "flush.lying": stores(*DATA, *LOG, **LYING),
    "flush.lying-log": stores(*LOG, **LYING),
    "flush.lying-data": stores(*DATA, **LYING),
    "flush.lying-log-leg": stores("s1", **LYING),
    "flush.lying-data-leg": stores("d1", **LYING),
    "flush.lying-special": special(**LYING),
    "log.one": lambda host: replace(
        host, pools={**host.pools, "tank": replace(host.pools["tank"], log=(mirror("s0"),))}
    ),
    "log.striped": pool(log=(mirror("s0"), mirror("s1"))),
    "log.one-drive": legs(*LOG, drives=("s0",)),
    "log.leg-absent": legs("s1", state="REMOVED"),
    "log.leg-resilvering": legs("s1", in_sync=False),
    "log.leg-errors": legs("s1", clean=False),
    "log.offline": legs(*LOG, state="OFFLINE"),
    "log.forced": legs(*LOG, state="FORCED"),
    "log.removed": legs(*LOG, state="REMOVED"),
    "log.unavail": legs(*LOG, state="UNAVAIL"),
    "log.faulted-dead": legs(*LOG, state="FAULTED", answers=False),
    "log.faulted-alive": legs(*LOG, state="FAULTED", answers=True),
    "data.one": pool(normal=(mirror("d0"),)),
    "data.one-drive": legs(*DATA, drives=("d0",)),
    "data.leg-absent": legs("d1", state="REMOVED"),
    "data.leg-resilvering": legs("d1", in_sync=False),
    "data.leg-errors": legs("d1", clean=False),
    "data.raidz1-short": pool(normal=(raidz(1, "d0", "d1", Leg("d2", ("d2",), state="UNAVAIL")),)),
    "data.raidz2-short": pool(normal=(raidz(2, "d0", "d1", "d3", Leg("d2", ("d2",), state="UNAVAIL")),)),
    "data.special-one": pool(special=(mirror("e0"),)),
    "recover.no-replay": dataset(replays=False),
    "recover.no-replay-now": together(),
    "recover.key-inside": dataset(key="behind itself"),
    "recover.key-absent": dataset(key="absent"),
    "recover.circle": circle,
    "guard.off": program(guard=False, splits=True),
    "path.wal-disabled": together(two(), dataset("tank/wal", sync="disabled")),
    "path.data-disabled": together(two(), dataset("tank/db", sync="disabled")),
    "path.datasets": two(),
    "path.always-one": together(two(), dataset("tank/wal", sync="always")),
    "path.pools": two("other"),
}
FIRST = ("path.", "guard.", "store.")  # what gives the world its shape is broken first
DIFFERS: Mapping[str, str] = {  # rows of which the model says something else
    "store.virtual": "a hypervisor may hold back metadata of an image, and keeps its disks apart: both are relied on",
    "path.datasets and log.one": "without both logs one moment is left: better than with two of which one may end early",
}


def cells(host: Host) -> dict[tuple[str, str], str]:
    """Of the events that can happen here: a question that does not arise loses nothing."""
    found = Judge(host).table(host.programs[NAME])
    names = itertools.product({event: None for event, _ in found}, QUESTIONS)
    return {
        (question, event): RANKS[cell.rank] if (cell := found.get((event, question))) else "no loss"
        for event, question in names
    }


def name(row: Cost) -> str:
    return " and ".join(row.elements)


@for_each("row", [each for each in TABLE.rows if name(each) not in DIFFERS], ids=name)
def test_what_is_broken_changes_exactly_the_cells_of_its_row(row: Cost) -> None:
    for world in row.worlds:
        ordered = sorted(row.elements, key=lambda each: not each.startswith(FIRST))
        found = cells(together(*(BREAK[each] for each in ordered))(perfect(world)))
        wanted = TABLE.cells(row, world)
        assert {key: (answer, wanted[key]) for key, answer in found.items() if answer != wanted[key]} == {}, world


def test_each_element_is_broken_or_differs_for_a_reason() -> None:
    elements = {each for row in TABLE.rows for each in row.elements}
    assert elements - BREAK.keys() == {"store.virtual"}
    assert BREAK.keys() <= elements
    assert DIFFERS.keys() <= {name(row) for row in TABLE.rows}
