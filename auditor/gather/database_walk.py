"""The databases of a host: those that run, and the one that the user named. Each question needs the answers before it.

:func:`compare` sets the mounts that a database's process sees against those that ``zfs get`` names and the devices of its
folders: a line that is lost from its table would put the files below it on another file system. In a container, whose root is
another one, only the devices are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from auditor.databases import paths, servers, settings
from auditor.databases.configuration import ELSEWHERE, Tree, folders
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    FolderDevice,
    Judged,
    Known,
    Subject,
    SymbolicLink,
    Unknown,
    flag,
    rows_of,
    unknown,
    value_of,
    word,
    words_of,
)
from auditor.gather import overlay
from auditor.gather.gatherer import Gatherer
from auditor.host.request import Files
from auditor.sources import mounts
from auditor.text import harmless

PROVIDES = {
    **servers.PROVIDES,
    "host.database": word("the database that the user named for all datasets, or empty"),
    "host.connected_engine": word("the database that the user named a connection to, or empty"),
    "host.database_directory": word("where the user said that the data of that database lies, or empty"),
    "host.database_connection": word("how the user said to connect to it, or empty"),
    "database.live": flag("its settings are those in force: it says them itself"),
}
PLACES: dict[str, tuple[str, ...]] = {
    "database_process": (),
    "redis_unit": (),
    "database_includes": (),
    "database_settings": ("directories",),
    "database_paths": ("mountinfo", "symlinks"),
    "database_links": ("more_symlinks",),
    "database_blocks": (),
}
"""What is asked one after the other, and what of it says where files are."""
STARTS = ("database_unit", "unit_start", "unit_conditions")  # once it is known where their file systems are mounted


def look_at(gatherer: Gatherer, facts: Facts, inventory: Facts) -> None:
    """The servers that run and the one that is named: each question needs the answers of the one before."""
    gatherer.settle(facts, ["database_processes", "database_sql"])
    crowds = servers.choose(facts, lambda request: gatherer.host.read(request))
    named, directory = text_of(facts, "database"), text_of(facts, "database_directory")
    if text_of(facts, "database_connection") and (why := gatherer.failure("database_sql", HOST)):
        facts.put(Fact(HOST, "connected_database", why))
        if not facts.linked(HOST, "connected_database"):
            _not_reached(facts, text_of(facts, "connected_engine"))
    if directory:
        subject = Subject("database", f"{named} {directory}")
        seen = (Evidence(f"--db {named}={directory}", "zaudit check --db"),)
        for name, value in (("engine", named), ("process", "self"), ("data_directory", directory)):
            facts.put(Fact(subject, name, Known(value, seen)))
        _add_database(facts, subject, seen)
    for subject in facts.linked(HOST, "connected_database"):
        _add_database(facts, subject, (Evidence("--db"),))
        facts.put(Fact(subject, "live", Known(True, (Evidence("the server itself was asked", "--db"),))))
    databases = [each for each in facts.subjects("database") if each not in crowds]
    for each, why in crowds.items():
        facts.put_all(Fact(each, name, why) for name in _facts(gatherer))
    held = settings.known_before(facts, databases)
    for name in PLACES:
        gatherer.ask(name, databases, facts)
        gatherer.settle(facts, [name])
        for each in databases:
            if why := gatherer.failure(name, each):  # else it would be "not looked at" to those that ask next
                facts.put_all(Fact(each, fact, why) for fact in PLACES[name] if fact not in facts.of(each))
    settings.withdraw(facts, databases, held, gatherer.sources["database_settings"].facts)
    for each in databases:
        facts.put(Fact(each, "live", _not_asked(facts, each)))
    layers = overlay.of_databases(paths.tables(facts), facts, gatherer.host)
    facts.put_all(list(paths.lies_on(facts, inventory, layers)))
    for name in STARTS:
        gatherer.ask(name, databases, facts)
        gatherer.settle(facts, [name])
        for each in databases:
            if name == STARTS[0] and (why := gatherer.failure(name, each)):
                facts.put(Fact(each, "unit", why))


def _facts(gatherer: Gatherer) -> Iterator[str]:
    """The names of all facts of a database that anything here could give."""
    yield "live"
    for source in gatherer.sources.values():
        for name in source.facts:
            kind, _, bare = name.rpartition(".")
            if (kind or source.subject) == "database":
                yield bare


def _not_asked(facts: Facts, database: Subject) -> Judged:
    """Of one that does not answer it is open whether it is the one that was meant."""
    connected = facts.get(HOST, "connected_database")
    engine = text_of(facts, "connected_engine")
    if engine and isinstance(connected, Unknown) and database.name.startswith(f"{engine} "):
        return connected
    return Known(False, (Evidence("its files were read, and it was not asked itself"),))


def _not_reached(facts: Facts, engine: str) -> None:
    """A server that did not answer is undecided, and not left out. Where one of its kind runs here, it may be this one."""
    here = [each for each in facts.subjects("database") if each.name.startswith(f"{engine} ")]
    if not here:
        subject = Subject("database", f"{engine} {ELSEWHERE}")
        facts.put(Fact(subject, "engine", Known(engine, (Evidence(f"--db {engine}"),))))
        _add_database(facts, subject, (Evidence("--db"),))


def _add_database(facts: Facts, subject: Subject, seen: tuple[Evidence, ...]) -> None:
    """To those that were found; where nobody could see them, it stays unknown which there are."""
    found = facts.get(HOST, "database_processes")
    if isinstance(found, Known) and subject not in facts.linked(HOST, "database_processes"):
        both = (*facts.linked(HOST, "database_processes"), subject)
        facts.replace(Fact(HOST, "database_processes", Known(both, (*found.evidence, *seen))))


def text_of(facts: Facts, name: str) -> str:
    found = facts.get(HOST, name)
    return str(found.value) if isinstance(found, Known) else ""


VOLUMES = (
    "btrfs",
)  # each of its subvolumes has a device of its own, which no table of mounts names (man 2 stat, st_dev)
LAYERS = ("overlay", "aufs", "fuse-overlayfs")


def compare(facts: Facts) -> None:
    """All databases."""
    points = {
        dataset.name: point
        for dataset in facts.subjects("dataset")
        if value_of(facts.get(dataset, "mounted")) is True
        and isinstance(point := value_of(facts.get(dataset, "mountpoint")), str)
        and point.startswith("/")
    }
    for database in list(facts.subjects("database")):
        table = paths.table_of(words_of(facts.get(database, "mountinfo")))
        if table and (why := _device_lost(database, table, facts) or _dataset_lost(database, table, points, facts)):
            for name in paths.PROVIDES:
                facts.replace(Fact(database, name.partition(".")[2], unknown(f"{database.name}: {why}")))


def _device_lost(database: Subject, table: Sequence[mounts.Mount], facts: Facts) -> str:
    """Which folder of its files is not on the mount that its table says, or an empty string."""
    links = dict(
        each for name in ("symlinks", "more_symlinks") for each in rows_of(facts.get(database, name), SymbolicLink)
    )
    tree = Tree(Files({}, links), "")
    seen = (facts.get(database, name) for name in ("devices", "more_devices"))
    for path, device in (each for devices in seen for each in rows_of(devices, FolderDevice)):
        try:
            mount = mounts.mount_of(table, tree.real(path))
        except ValueError:  # too many links, which is said where its files are followed
            continue
        if mount and mount.fstype not in VOLUMES and mount.major_minor != device:
            return (
                f"its table of mounts puts {harmless(path)} on {harmless(mount.source)} ({mount.major_minor}), "
                f"the folder itself is on device {harmless(device)}"
            )
    return ""


def _dataset_lost(database: Subject, table: Sequence[mounts.Mount], points: Mapping[str, str], facts: Facts) -> str:
    """Which dataset that is mounted over one of its folders the table lacks, or an empty string."""
    if _another_root(table, points):
        return ""
    there = {each.source for each in table if each.fstype == "zfs"}
    paths = [path for _, path in folders(words_of(facts.get(database, "directories")))]
    paths += [each.target for each in rows_of(facts.get(database, "symlinks"), SymbolicLink)]
    for name, point in points.items():
        if name not in there and any(_below(path, point) for path in paths):
            return f"zfs get says that {harmless(name)} is mounted, the process's table of mounts lacks it"
    return ""


def _another_root(table: Sequence[mounts.Mount], points: Mapping[str, str]) -> bool:
    """Whether its root is not that of the host: a layer, a dataset that the host has mounted elsewhere (a container of LXC),
    or any file system but the dataset that is at the root of the host."""
    root = mounts.mount_of(table, "/")
    if root is None:
        return False
    if any(each.mount_point == "/" and each.fstype in LAYERS for each in table):
        return True
    at_root = {name for name, point in points.items() if point == "/"}
    return points.get(root.source, "/") != "/" or (bool(at_root) and root.source not in at_root)


def _below(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")
