"""What the settings of a database mean for its commits and pages: what a restart changes, flushes that it leaves out, and
pages that a crash may tear."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import releases
from auditor.databases import ENGINES
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    Value,
    flag,
    join,
    known,
    number_of,
    unknown,
    value_of,
    words,
    words_of,
)
from auditor.model.derivation import about, catch_missing, derivation, every, evidence, gaps, need, numbers, values

UNSAID = "default"  # the server names the value that it took


@derivation(
    "database",
    changes_at_restart=words("NAME is VALUE now but VALUE in its files: settings in force that its files do not say"),
)
def changes_at_restart(database: Subject, facts: Facts) -> Judged:
    """What a restart or a reload would change: where the server itself was asked, and its files say otherwise."""
    now, then = values(facts, database, "in_force", "configured")
    said = _pairs(then)
    changes = [(name, value) for name, value in _pairs(now).items() if said.get(name, value) not in (value, UNSAID)]
    seen = (*now.evidence, *then.evidence)
    found = tuple(f"{_setting(name, seen)} is {value} now but {said[name]} in its files" for name, value in changes)
    names = tuple(name for name, _ in changes)
    if not found and (hidden := sorted(said.keys() - _pairs(now).keys())):
        return unknown(f"{database}: the server did not say what is in force of {', '.join(hidden)}")
    return Known(found, tuple(each for each in seen if not names or each.text.startswith(_spelt(names))))


_SPELT = {
    "torn_page_guard": ("full_page_writes", "innodb_doublewrite"),
    "flush_log_at_commit": ("innodb_flush_log_at_trx_commit",),
    "flush_method": ("innodb_flush_method",),
    "doublewrite": ("innodb_doublewrite",),
}


def _spelt(names: tuple[str, ...]) -> tuple[str, ...]:
    """As the servers spell them."""
    return tuple(spelling for name in names for spelling in _SPELT.get(name, (name,)))


def _setting(name: str, seen: tuple[Evidence, ...]) -> str:
    """As the engine spells it that was asked."""
    spellings = _spelt((name,))
    return next((each for each in spellings if any(one.text.startswith(each) for one in seen)), spellings[0])


def _pairs(found: Known) -> dict[str, str]:
    return {name: value for name, _, value in (each.partition(" = ") for each in words_of(found))}


OF_ALL: dict[str, tuple[Value, ...]] = {"eatmydata": (True,)}
BINARY_LOG = "sync_binlog"  # any value but 1


@derivation(
    "host", **{"dataset.flushes_omitted": words("DATABASE: SETTING of the databases on it that leave out flushes")}
)
def flushes_omitted(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Which databases on a dataset leave out flushes of what they have written: then sync=always is what keeps their
    commits.

    With sync=always each write is in the log before write(2) returns, and these servers write before they
    acknowledge. It does not help where a server acknowledges what it has not written (synchronous_commit off,
    innodb_flush_log_at_trx_commit 0).

    (OpenZFS module/zfs/zfs_vnops.c zfs_write: zil_commit with ZFS_SYNC_ALWAYS, 2.1.11, 2.3.9, 2.4.4)

    Unknown where a database, its place or its settings were not seen and none that was seen leaves them out.
    """
    databases = facts.linked(HOST, "databases")
    unseen = gaps((facts.get(HOST, "databases"), *(facts.get(each, "datasets") for each in databases)))
    omitted: dict[Subject, list[Evidence]] = {}
    unsure: dict[Subject, list[Unknown]] = {}
    for database in databases:
        found, holes = _omitted(database, facts)
        for dataset in facts.linked(database, "datasets"):
            omitted.setdefault(dataset, []).extend(found)
            unsure.setdefault(dataset, []).extend(holes)
    nothing = known((), "no database that leaves out flushes was seen on it")
    for dataset in facts.subjects("dataset"):
        here: Judged = nothing
        if seen := omitted.get(dataset):
            here = Known(tuple(each.text for each in seen), tuple(seen))
        elif doubts := (*unseen, *unsure.get(dataset, ())):
            here = join(doubts)
        yield Fact(dataset, "flushes_omitted", here)


def _omitted(database: Subject, facts: Facts) -> tuple[list[Evidence], list[Unknown]]:
    """The settings with which it leaves out flushes, and those that were not seen."""
    engine = facts.get(database, "engine")
    if isinstance(engine, Unknown):
        return [], [engine]
    settings = {**ENGINES[str(engine.value)].omitting, **(OF_ALL if database.name.split()[-1].isdigit() else {})}
    found, holes = list[Evidence](), list[Unknown]()
    for name in (*settings, *((BINARY_LOG,) if BINARY_LOG in ENGINES[str(engine.value)].compared else ())):
        value = facts.get(database, name)
        if isinstance(value, Unknown):
            holes.append(value)
        elif value.value != 1 if name == BINARY_LOG else value.value in settings[name]:
            found += [each._replace(text=f"{database.name}: {each.text}") for each in value.evidence[:1]]
    return found, holes


SPLITS_LESS, DIRECT_IO, HALF_A_BLOCK = (2, 2), (2, 3), (2, 4)  # since which line
HEADERS = 184 + 192  # bytes of a log block that hold no data: zil_chain_t, lr_write_t (include/sys/zil.h)
RECORD = 192  # lr_write_t; its data is filled up to a multiple of 8
BUFFERED = ("FSYNC", "O_DSYNC", "LITTLESYNC", "NOSYNC")  # innodb_flush_method without O_DIRECT
LARGEST = 128 << 10  # of a log block, unless the pool has large_blocks: so much is sure
COMMAND = "cat /sys/module/zfs/parameters/zil_maxblocksize"


@derivation(
    "database",
    page_within_block=flag("each page of the data files that it has lies within one block"),
    log_splits_page=flag("the intent log may write a page in two parts"),
)
def torn_pages(database: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether a crash may leave a page of a database half old, half new, where nothing but ZFS keeps it whole.

    A transaction group writes a block as a whole, so that it keeps a page which lies within one. The intent log is
    another matter: what is fsynced is copied into log blocks, a write that does not fit into the rest of one is
    split, and replay applies the first part alone where the second never reached the device. What is never split: a
    write whose record is no longer than the rest of a block that the log would rather waste (an eighth of its
    largest block in 2.1, a sixteenth from 2.2 on); and one of which the log holds no copy, but a pointer to its
    block.

    (OpenZFS module/zfs/zil.c zil_lwb_commit of 2.1, zil_lwb_assign since 2.2, zil_max_waste_space; zfs_log.c
    zfs_log_write, zil_write_state of 2.4; measured by power cuts, tests/lab/power/README.md)

    Of one whose pages have no known size both are unknown.
    """
    page, blocks = number_of(need(facts.get(database, "page_bytes"))), facts.get(database, "data_blocks")
    small = any(_bytes(each) < page for each in words_of(blocks))
    yield Fact(database, "page_within_block", blocks._replace(value=not small) if isinstance(blocks, Known) else blocks)
    yield Fact(database, "log_splits_page", _split(database, page, facts))


def _bytes(line: str) -> int:
    """The size of a block, of BYTES FILES."""
    return int(line.partition(" ")[0])


@catch_missing
def _split(database: Subject, page: int, facts: Facts) -> Judged:
    """One dataset on which it may happen decides."""
    places = need(facts.get(database, "data_datasets"))
    found = [_split_on(database, each, page, facts) for each in facts.linked(database, "data_datasets")]
    if splitting := [each for each in found if isinstance(each, Known) and each.value]:
        return splitting[0]
    if holes := gaps(found):
        return join(holes)
    return Known(False, evidence(*found) or places.evidence)


@catch_missing
def _split_on(database: Subject, dataset: Subject, page: int, facts: Facts) -> Judged:
    for name, value in (("logbias", "throughput"), ("sync", "disabled")):  # a pointer to the block; nothing at all
        found = facts.get(dataset, name)
        if isinstance(found, Known) and found.value == value:
            return Known(False, about(dataset, found))
    release, largest, _ = every(
        (facts.get(HOST, "zfs_version"), facts.get(HOST, "zil_maxblocksize"), facts.get(dataset, "logbias"))
    )
    version, line = release.value, numbers(release)[:2]
    assert isinstance(version, tuple)
    if why := releases.untold(version, SPLITS_LESS):
        return unknown(why, releases.REMEDY)
    waste = (min(number_of(largest), LARGEST) - HEADERS) // (8 if line < SPLITS_LESS else 16)
    whole = (waste + 7) // 8 * 8 - RECORD  # what is left of a block is a multiple of 8, and split where it is no waste
    zfs = f"OpenZFS {'.'.join(map(str, line))}"
    if page <= whole:
        return known(False, f"{zfs} splits no write of {whole:,} bytes and less over two log blocks", COMMAND)
    if pointed := _pointed(database, dataset, page, version, facts) or _direct(database, dataset, version, facts):
        return pointed
    return known(True, f"{zfs} may split a write of more than {whole:,} bytes over two log blocks", COMMAND)


@catch_missing
def _pointed(
    database: Subject, dataset: Subject, page: int, version: tuple[object, ...], facts: Facts
) -> Judged | None:
    """False where a large write goes to its place at once and the log holds a pointer: where the log lies on the data vdevs,
    from zfs_immediate_write_sz on; 2.4 wants half of a block of the file, too, of what is committed with its write."""
    classes = [facts.get(pool, "zil_class") for pool in facts.linked(dataset, "pool")]
    least, record, *chosen = every(
        (facts.get(HOST, "zfs_immediate_write_sz"), facts.get(dataset, "recordsize"), *classes)
    )
    if not chosen or chosen[0].value != "normal" or page < number_of(least):
        return None
    if why := releases.untold(version, HALF_A_BLOCK):
        return unknown(why, releases.REMEDY)
    if version[:2] < HALF_A_BLOCK:
        return Known(False, (*about(dataset, chosen[0]), *least.evidence))
    blocks = facts.get(database, "data_blocks")  # of files that are older than the recordsize
    if max((number_of(record), *map(_bytes, words_of(blocks)))) > 2 * page:
        return None
    return Known(False, (*about(dataset, chosen[0]), *least.evidence, *need(blocks).evidence))


@catch_missing
def _direct(database: Subject, dataset: Subject, version: tuple[object, ...], facts: Facts) -> Unknown | None:
    """Unknown where pages may be written with Direct I/O, for which the log holds a pointer too: whether each of them is,
    nobody sees, for ZFS falls back where a file is also mapped."""
    if version[:2] < DIRECT_IO and not releases.untold(version, DIRECT_IO):
        return None
    needed = every((facts.get(HOST, "zfs_dio_enabled"), facts.get(dataset, "direct"), facts.get(database, "engine")))
    enabled, direct, engine = (each.value for each in needed)
    buffered = engine == "postgres" or value_of(facts.get(database, "flush_method")) in BUFFERED
    if not enabled or direct == "disabled" or (direct == "standard" and buffered):
        return None
    return unknown(
        f"whether {database.name} writes all pages with Direct I/O, so that the log holds pointers to them, is not seen",
        "turn the guard against torn pages on",
    )
