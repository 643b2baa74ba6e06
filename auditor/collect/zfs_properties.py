"""The dataset properties that decide whether fsync means anything, and how ``zfs get -Hp`` prints them.

One record a property: ``name TAB property TAB value TAB source NEWLINE``. A name holds neither TAB nor newline, a value
may hold both (mountpoint, keylocation), so name and property are taken from the left, the source from the right, and a
line that does not begin a record continues the value before it. (man 7 zfsprops, man 8 zfs-get)

Whoever may set a mount point can put lines into it that look like records, of any dataset (man 8 zfs-allow; OpenZFS
lib/libzfs/libzfs_dataset.c zfs_valid_proplist() looks at its first character and its length). zfs prints all records of a
dataset together, in the order of the question. That is the order of PROPERTIES, in which those that may hold such lines follow
one another, and no question ends with one of them: so a dataset with forged lines has records of its own behind them, and one
that they name has more than its own or not in that order. Neither is believed; all others are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from auditor.collect._pool_tree import before
from auditor.facts import HOST, Fact, Facts, Known, Spec, Subject, flag, known, link, links, number, word

PROPERTIES: dict[str, Spec] = {
    "type": word("file system or zvol", "filesystem", "volume"),
    "creation": number("when it was created, seconds since the epoch"),
    "sync": word("what fsync and O_SYNC do", "standard", "always", "disabled"),
    "logbias": word("what the ZIL optimises for", "latency", "throughput"),
    "recordsize": number("largest block of a file, bytes"),
    "volblocksize": number("block of a zvol, bytes"),
    "volsize": number("logical size of a zvol, bytes"),
    "primarycache": word("what the ARC keeps", "all", "none", "metadata"),
    "secondarycache": word("what the L2ARC keeps", "all", "none", "metadata"),
    "checksum": word("on, off or the algorithm"),
    "compression": word("on, off or the algorithm"),
    "dedup": word("off, on, verify or the algorithm"),
    "copies": number("copies of each block"),
    "atime": word("whether reads update the access time", "on", "off"),
    "relatime": word("whether they do so at most once a day", "on", "off"),
    "redundant_metadata": word("which metadata is stored twice", "all", "most", "some", "none"),
    "special_small_blocks": number("blocks up to this size go to the special class, bytes; 0 is none"),
    "quota": number("limit with descendants, bytes; 0 is none"),
    "refquota": number("limit without descendants, bytes; 0 is none"),
    "used": number("space taken with descendants, bytes"),
    "available": number("space that can still be written, bytes"),
    "referenced": number("space reachable through this dataset, bytes"),
    "reservation": number("space guaranteed with descendants, bytes; 0 is none"),
    "refreservation": number("space guaranteed without descendants, bytes; 0 is none"),
    "mounted": flag("it is mounted now"),
    "canmount": word("whether it is mounted automatically", "on", "off", "noauto"),
    "encryption": word("off, on or the cipher"),
    "keystatus": word("whether the key is loaded", "none", "unavailable", "available"),
    "keylocation": word("where the key comes from: none, prompt or a URL"),
    "mountpoint": word("the mount point, legacy or none"),
    "sharenfs": word("off, on or the options of the NFS export"),
    "sharesmb": word("off, on or the options of the SMB share"),
    "origin": word("the snapshot that it is a clone of; empty where it is no clone"),
    "snapdir": word("how .zfs shows", "hidden", "visible", "disabled"),
    "direct": word("what O_DIRECT does", "standard", "always", "disabled"),
    "readonly": word("whether it refuses writes", "on", "off"),
}
FACTS: dict[str, Spec] = {
    **PROPERTIES,
    "pool": link("pool", "the pool that it is in"),
    "ancestors": links(
        "dataset", "the datasets above it, nearest first; none for the root dataset of a pool", none_tells=True
    ),
}
OLD = dict.fromkeys(("special_small_blocks", "encryption", "keystatus", "keylocation"), (0, 8))
SINCE = {"direct": (2, 3)}  # all others but those of OLD are in every release from 0.6.5 on (module/zcommon/zfs_prop.c)
# a value may hold TABs and newlines; nothing stands between them in PROPERTIES, nor before what ends a question about them
FREE_TEXT, BEHIND = frozenset({"keylocation", "mountpoint", "sharenfs", "sharesmb"}), "origin"
ORDER = {name: number for number, name in enumerate(PROPERTIES)}
NONE_IS_ZERO = frozenset({"quota", "refquota", "reservation", "refreservation"})
CHUNK = 1 << 18  # characters
LONGEST_NAME = 255  # ZFS_MAX_DATASET_NAME_LEN of OpenZFS, less the NUL
IMPOSSIBLE = 1 << 63  # an unsigned counter that went below 0, or "no limit"


def known_to(facts: Facts, version: str) -> tuple[str, ...]:
    """The properties to ask for: one unknown name makes ``zfs get`` refuse them all ("bad property list").

    version: the fact of the host that says who must know the names: zfs_userland_version for the zfs command,
    zfs_version for the kernel module. When it is unknown, only what every release from 2.1 on has.
    """
    match facts.get(HOST, version):
        case Known(tuple() as release):
            there = tuple(int(part) for part in release[:2] if isinstance(part, int))
        case _:
            there = (0, 0)
    old = {name for name, since in OLD.items() if before(facts, *since)}
    return tuple(name for name in PROPERTIES if name not in old and there >= SINCE.get(name, there))


def above(dataset: str) -> tuple[str, ...]:
    """The names of all ancestors, nearest first."""
    parts = dataset.split("/")
    return tuple("/".join(parts[:depth]) for depth in range(len(parts) - 1, 0, -1))


def records(text: str, ours: Callable[[str], bool]) -> tuple[dict[str, list[tuple[str, str]]], set[str]]:
    """(dataset -> (property, record) of each of its records, the datasets that are not believed).

    ours: whether a name is one of the datasets that were asked for. What reads alike is shared, for thousands of datasets. A
    cut output ends in an incomplete record, which is left out; a value that may go on in the next line counts as complete
    only when another record follows. Raises ValueError where a line begins no record and is part of no value.
    """
    every: dict[str, list[tuple[str, str]]] = {}
    doubted: set[str] = set()
    shared: dict[str, tuple[str, str]] = {}  # record -> its property, empty where it is none
    mine: list[tuple[str, str]] = []
    held: list[str] = []  # a record whose value may go on
    dataset, free, last = "", "", -1
    for line in _lines(text):
        name, _, record = line.partition("\t")
        row = shared.get(record)
        if row is None:
            head, tab, _ = record.partition("\t")
            row = shared[record] = (head if tab and head in PROPERTIES else "", record)
        if not row[0] or (name != dataset and not ours(name)) or len(name) > LONGEST_NAME:
            if not free:  # no value can go on in this line
                raise ValueError("a line is not a property of a dataset that was asked for")
            if held:
                held.append(line)
            else:
                doubted.add(dataset)
            continue
        if held:
            mine.append((free, "\n".join(held)))
            held = []
        if name != dataset:
            if name in every:
                doubted.add(name)
            dataset, last = name, -1
            mine = every[name] = []
        if ORDER[row[0]] <= last:
            doubted.add(name)
        last = ORDER[row[0]]
        if row[0] in FREE_TEXT:
            free, held = row[0], [record]
        else:
            mine.append(row)
    if not every:
        raise ValueError("no dataset in it")
    return every, doubted


def parse(text: str, ours: Callable[[str], bool]) -> Iterator[Fact]:
    """The facts of all records that are believed, and that the other datasets are there; ours: whether a name is one of the
    datasets that were asked for. Raises ValueError where none are believed."""
    every, doubted = records(text, ours)
    seen: dict[str, tuple[str, Known | None]] = {}
    links_of: dict[str, tuple[Known, Known]] = {}
    wrong = f"records of {min(doubted)} contradict each other" if doubted else ""
    for name, rows in every.items():
        mine: list[tuple[str, Known | None]] = []
        if name not in doubted:
            try:
                mine = [seen.get(record) or seen.setdefault(record, _read(record)) for _, record in rows]
            except ValueError as error:
                doubted.add(name)
                wrong = f"{name}: {error}"
        subject = Subject("dataset", name)
        parent = name.rpartition("/")[0] or name + "/"
        if (pair := links_of.get(parent)) is None:
            pair = links_of[parent] = _links(name)
        yield Fact(subject, "pool", pair[0])
        yield Fact(subject, "ancestors", pair[1])
        for fact, value in mine:
            if value is not None:
                yield Fact(subject, fact, value)
    if doubted >= every.keys():
        raise ValueError(wrong)


def _lines(text: str) -> Iterator[str]:
    """All lines that are whole, some thousand at once: those of 10,000 datasets would take more memory than the text."""
    start = 0
    while end := text.rfind("\n", start, start + CHUNK) + 1 or text.find("\n", start) + 1:
        yield from text[start : end - 1].split("\n")
        start = end


def _read(record: str) -> tuple[str, Known | None]:
    """(property, what is known); None for a value that says nothing about this dataset ("-")."""
    name, _, rest = record.partition("\t")
    value, tab, source = rest.rpartition("\t")
    origin = ""
    match source.partition("inherited from "):
        case ("", "inherited from ", above_it) if above_it:
            origin, where = above_it, f", inherited from {above_it}"
        case _ if source in ("local", "default", "received", "temporary"):
            where = f" ({source})"
        case _ if source == "-":
            where = ""
        case _:
            raise ValueError(f"{name} has no source")
    if not tab:
        raise ValueError(f"{name} has no value")
    typed = _value(name, value)
    if typed is None:
        return name, None
    return name, known(typed, f"{name}={value}{where}", f"zfs get {name} {{subject}}", origin)


def _value(name: str, value: str) -> bool | int | str | None:
    """The value in its type; None when the property has no meaning here ("-") or is not one that we know."""
    spec = PROPERTIES[name]
    if value == "-":
        return "" if name == "origin" else None
    if spec.type is bool:
        return {"yes": True, "no": False}.get(value)
    if spec.type is int:
        if value == "none" and name in NONE_IS_ZERO:
            return 0
        return size if value.isascii() and value.isdigit() and (size := int(value)) < IMPOSSIBLE else None
    return value if not spec.values or value in spec.values else None


def _links(dataset: str) -> tuple[Known, Known]:
    """(pool, ancestors) by the name alone; shared by all children of one parent."""
    pool, higher = dataset.partition("/")[0], above(dataset)
    return (
        known(Subject("pool", pool), f"in pool {pool}"),
        known(tuple(Subject("dataset", each) for each in higher), f"below {higher[0]}" if higher else "a root dataset"),
    )
