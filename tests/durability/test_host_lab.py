"""Everything that was ever cut, killed or pulled in the lab, with the true nature of its drives as facts.

No cell of the model may say *no loss* of what lost something in one trial. LOST means that there is a moment: where no trial
hit it, the setting is named here with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor.durability.answers import Rank
from auditor.durability.host import Dataset, EventName, Host, Leg, Pool, Program, Question, Store, Use, Vdev
from auditor.durability.table import Judge, Table
from tests.lab import rows
from tests.lab.power.matrix import Setting, everything

RECORDS = Path(__file__).parent.parent / "lab"
DRIVES: Mapping[str, dict[str, Any]] = {
    "plp": {},
    "honest": {"cache": "volatile"},
    "lying": {"cache": "volatile", "honours": False},
    "failing": {"cache": "volatile", "completes": False},
    "flaky": {"cache": "volatile", "completes": False},
}
ASKS: Mapping[str, tuple[Any, bool]] = {
    "buffered": ("never", True),
    "sqlite-normal": ("later", True),
    "postgres-async": ("later", False),
    "postgres-never": ("never", True),
    "innodb-late": ("later", True),
}
PAGES: Mapping[str, Any] = {  # of a checkpoint, where a program has some
    **dict.fromkeys(("pair", "postgres", "postgres-async", "innodb", "innodb-late"), "before"),
    **dict.fromkeys(("postgres-never", "innodb-no-fsync"), "never"),
}
# the disk of the pool is taken away while the program runs, or a setting is taken back in its midst: no event of the table
# built() does not translate their hooks, layers below the pool, and programs: durability.toml has what came of them
UNTRANSLATED = (
    *(
        "direct-",
        "file",
        "log-mirror-forced",
        "log-one-",
        "loop",
        "mirror-resilvering",
        "never-flushes",
        "raidz1-short",
    ),
    *("raidz2-short", "restart-", "zfs-nocacheflush-file", "zfs-nocacheflush-loop", "zil-nocacheflush-file"),
    *("zil-nocacheflush-loop", "zil-replay-disable-running"),
)
OUTSIDE = ("failmode-", "write-through-undone-later", *UNTRANSLATED)
NOT_HIT = {  # setting and event: why no trial lost anything
    ("slog-gone-comes-back", "power"): "the log device that was gone is there again at the import",
    ("flush-fails-at-times", "power"): "the flush that fails is followed by one that does not, before the cut",
    ("sync-disabled-on-log", "crash"): "commits are counted in the pages, and the one trial ended just after a txg",
}


def built(setting: Setting, line: str) -> Host:
    """The host of a setting, from what the setting does."""
    classes: dict[str, list[Vdev]] = {"normal": [], "special": [], "log": []}
    stores: dict[str, Store] = {}
    latched = "write through" in setting.before_import + setting.after_import and "undone" not in setting.name
    which, needed = "normal", 1
    for word in setting.vdevs.split():
        if word in ("special", "log"):
            which, needed = word, 1
        elif word.startswith(("mirror", "raidz")):
            needed = 0 if word == "mirror" else -int(word[5:])
            classes[which].append(Vdev(f"{which}-0", (), 1))
        else:
            name = f"drive {len(stores)}"
            gone = "device/delete" in setting.running and f"DISKS[{len(stores)}]" in setting.running
            leg = Leg(name, (name,), state="UNAVAIL" if gone else "ONLINE")
            stores[name] = Store(name, passes=not latched, **DRIVES[word])
            if needed == 1:
                classes[which].append(Vdev(name, (leg,)))
            else:
                legs = (*classes[which].pop().legs, leg)
                classes[which].append(Vdev(f"{which}-0", legs, max(1, len(legs) + needed) if needed else 1))
    flushes = {name: not setting.parameters.get(name, 0) for name in ("zil_nocacheflush", "zfs_nocacheflush")}
    tank = Pool(
        "tank",
        tuple(classes["normal"]),
        tuple(classes["special"]),
        log=tuple(classes["log"]),
        special_logs=line == "2.4",
        zil_flush=all(flushes.values()),
        txg_flush=flushes["zfs_nocacheflush"],
    )
    asks, leaves = ASKS.get(setting.workload, ("before", True))
    replays = not setting.parameters.get("zil_replay_disable", 0)

    def dataset(name: str, options: str, inherited: str) -> Dataset:
        found = re.search(r"sync=(\w+)", options) or re.search(r"sync=(\w+)", inherited)
        sync: Any = found[1] if found else "standard"
        return Dataset(name, "tank", sync, indirect="throughput" in options, replays=replays)

    data = dataset("tank/db", setting.data, setting.pool_options)
    log = data if setting.log is None else dataset("tank/log", setting.log, setting.pool_options)
    pages = tuple(Use("tank/db", PAGES[name]) for name in (setting.workload,) if name in PAGES)
    program = Program("db", Use(log.name, asks), pages, leaves=leaves)
    return Host({"tank": tank}, {each.name: each for each in (data, log)}, {"db": program}, stores)


def trials() -> Iterator[tuple[Setting, dict[str, Any], EventName]]:
    settings = {each.name: each for each in everything()}
    for file in ("powercut", "events"):
        for record in rows.read(RECORDS / f"{file}.json.gz"):
            setting = settings[record["setting"]]
            event: Any = record.get("event") or ("power" if setting.running else setting.lost_at)
            if not setting.name.startswith(OUTSIDE):
                yield setting, record, event


@pytest.fixture(scope="module")
def tables() -> Mapping[tuple[str, str], Table]:
    found = {}
    for setting, record, _ in trials():
        host = built(setting, record["line"])
        found[setting.name, record["line"]] = Judge(host).table(host.programs["db"])
    return found


def lost(record: Mapping[str, Any]) -> Mapping[Question, bool]:
    """What a trial lost. A pool that needed -m or -F is not importable as it is."""
    return {
        "commits": record["lost"] > 0,
        "consistency": bool(record["corruption"]),
        "pool": record["import"] not in ("plain", ""),
    }


def test_no_loss_is_none(tables: Mapping[tuple[str, str], Table]) -> None:
    wrong = set()
    for setting, record, event in trials():
        for question, gone in lost(record).items():
            cells = tables[setting.name, record["line"]]
            cell = cells.get((event, question), cells[event, "pool"])  # of a lost pool nobody asks for consistency
            if gone and cell.rank is not Rank.LOST:
                wrong.add((setting.name, record["line"], event, question, str(cell)))
    assert wrong == set()


def test_lost_was_lost_or_has_a_reason(tables: Mapping[tuple[str, str], Table]) -> None:
    never: dict[tuple[str, str], bool] = {}
    for setting, record, event in trials():
        if tables[setting.name, record["line"]][event, "commits"].rank is Rank.LOST:
            never[setting.name, event] = never.get((setting.name, event), True) and record["lost"] == 0
    missed = {name for name, kept in never.items() if kept}
    assert missed == NOT_HIT.keys()


def test_all_of_them_are_decided(tables: Mapping[tuple[str, str], Table]) -> None:
    """With the true nature of the drives nothing is left to rely on."""
    decided = [tables[setting.name, record["line"]][event, "commits"].rank for setting, record, event in trials()]
    assert len(decided) == 877
    assert set(decided) == {Rank.SAFE, Rank.LOST}
