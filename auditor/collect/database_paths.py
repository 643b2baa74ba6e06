"""On which datasets the files of a database lie: its directories, symbolic links resolved, in its own table of mounts; for
another file system on a zvol, the zvol.

(PostgreSQL manual, Database File Layout: pg_wal may be a symbolic link, pg_tblspc/* are; man 5 proc_pid_mountinfo)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from auditor.collect import _blocks as blocks
from auditor.collect import mounts
from auditor.collect._database_files import ELSEWHERE, Tree, plain, root_of
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    join,
    known,
    links,
    unknown,
    words,
)
from auditor.host.request import Files, Read, Skip
from auditor.text import harmless

PER = "database"
SUBJECT = "database"
FACTS = {
    "mountinfo": words("the lines of its table of mounts"),
    "symlinks": words("PATH -> TARGET of the symbolic links on the way to its files, below its root directory"),
}
PROVIDES = {
    "database.datasets": links("dataset", "all that it keeps files on"),
    "database.log_datasets": links("dataset", "where its log is written"),
    "database.data_datasets": links("dataset", "where its data is written"),
    "database.tablespace_datasets": links("dataset", "where it keeps nothing but tablespaces (pg_tblspc)"),
    "database.off_zfs": words("its directories that are not on ZFS, with the file system that they are on"),
}
ARROW = " -> "


def request(database: Subject, facts: Facts) -> Read | Skip:
    """The table of mounts, and every folder on the way: those that are symbolic links are noted."""
    if database.name.endswith(f" {ELSEWHERE}"):
        unseen = facts.get(HOST, "connection_unseen")
        why = f"{unseen.value}; " if isinstance(unseen, Known) else ""
        return Skip(f"{why}its folders are not taken for those of this host", "run zaudit where it runs, as root")
    places = facts.get(database, "directories")
    if not isinstance(places, Known):
        return Skip(f"where {database.name} keeps its files is not known", places.reasons[0].remedy)
    root = root_of(database)
    wanted: dict[str, None] = {}
    for place in _words(places):
        path = place.partition(":")[2]
        if not plain(path):
            return Skip(f"{harmless(path)} is no plain absolute path")
        parts = path.split("/")
        wanted |= dict.fromkeys(root + "/".join(parts[:end]) for end in range(2, len(parts) + 1))
        if place.startswith("data:") and database.name.startswith("postgres "):
            wanted[f"{root}{path}/pg_tblspc/*"] = None
    return Read((f"{root.removesuffix('root')}mountinfo", *wanted), database.name.partition(" ")[2])


def parse(reply: Files, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where a folder could not be looked into: a link below it may lead anywhere."""
    root = root_of(database)
    path = f"{root.removesuffix('root')}mountinfo"
    if path not in reply.text:
        raise ValueError(f"{path}: {reply.errors.get(path, 'was not read')}")
    lines = tuple(reply.text[path].split("\n")[:-1])
    mounts.mounts(reply.text[path])  # raises for what is no such table
    if not lines:
        raise ValueError(f"{path}: no mount in it")
    for place, error in reply.errors.items():
        if place.startswith(root) and not (place.endswith("/pg_tblspc/*") and error.startswith("no such file")):
            raise ValueError(f"{place.removeprefix(root)}: {error}")
    found = tuple(f"{link.removeprefix(root)}{ARROW}{reply.links[link]}" for link in sorted(reply.links))
    yield Fact(database, "mountinfo", known(lines, f"{len(lines)} mounts", f"cat {path}"))
    yield Fact(database, "symlinks", known(found, ", ".join(found) or "no symbolic link on the way", f"cat {path}"))


def lies_on(facts: Facts, inventory: Facts) -> Iterator[Fact]:
    """The datasets of each database, from what was read of it. inventory: the block devices of this host."""
    for database in list(facts.subjects("database")):
        read = [facts.get(database, name) for name in ("directories", "mountinfo", "symlinks")]
        if missing := [each for each in read if isinstance(each, Unknown)]:
            why: Judged = join(missing)
            yield from (Fact(database, name.partition(".")[2], why) for name in PROVIDES)
            continue
        holds = partial(_holds, facts=facts, inventory=inventory)
        directories, table, symlinks = map(_words, read)
        yield from _placed(database, directories, table, symlinks, holds)


class Place(NamedTuple):
    """What a mount keeps its files on: a dataset, with a word on how; off: another file system; neither: not known."""

    dataset: str = ""
    how: str = ""
    off: bool = False


def _holds(mount: mounts.Mount | None, facts: Facts, inventory: Facts) -> Place:
    """A dataset; or the zvol below another file system."""
    if mount is None:
        return Place(how="no mount holds it")
    if mount.fstype == "zfs":
        return Place(mount.source)
    zvols = [disk for disk in inventory.subjects("disk") if _transport(disk.name, inventory) == "zvol"]
    named_so = mount.source.startswith(("/dev/zd", "/dev/zvol/"))
    if not mount.source.startswith("/dev/") or not (zvols or named_so):
        return Place(off=True, how=mount.fstype)
    disks = blocks.below(mount.source, facts, inventory)
    if isinstance(disks, Unknown):
        return Place(how=f"on {mount.fstype}; {disks.reasons[0].text}")
    kinds = {_transport(disk, inventory) for disk in disks}
    if "zvol" not in kinds and "loop" not in kinds:
        return Place(off=True, how=mount.fstype)
    names = [path for disk in disks for path in _words(inventory.get(Subject("disk", disk), "devlinks"))]
    volumes = {path.removeprefix("/dev/zvol/").replace("+", " ") for path in names if path.startswith("/dev/zvol/")}
    if kinds == {"zvol"} and len(disks) == 1 and len(volumes) == 1:
        return Place(volumes.pop(), f" ({mount.fstype} on {disks[0]})")
    return Place(how=f"on {mount.fstype} on {', '.join(disks)}: what holds it is not followed")


def _transport(disk: str, inventory: Facts) -> str:
    found = inventory.get(Subject("disk", disk), "transport")
    return str(found.value) if isinstance(found, Known) else ""


def _placed(
    database: Subject,
    directories: tuple[str, ...],
    table: tuple[str, ...],
    symlinks: tuple[str, ...],
    holds: Callable[[mounts.Mount | None], Place],
) -> Iterator[Fact]:
    targets = dict(each.split(ARROW, 1) for each in symlinks)
    tree = Tree(Files({}, targets), "")
    mounted = mounts.mounts("".join(f"{line}\n" for line in table))
    spaces = [f"data:{path}" for path in targets if "/pg_tblspc/" in path]
    on: dict[str, dict[Subject, None]] = {"log": {}, "data": {}}
    main: set[str] = set()
    off, seen, unsure = [], [], []
    for i, place in enumerate((*directories, *spaces)):
        kind, _, path = place.partition(":")
        real = tree.real(path)
        found = holds(mounts.mount_of(mounted, real))
        shown = harmless(path if path == real else f"{path} ({real})")
        if found.dataset:
            on[kind][Subject("dataset", found.dataset)] = None
            main |= {found.dataset} if i < len(directories) else set()
            seen.append(f"{kind} in {shown} is on {harmless(found.dataset)}{found.how}")
        elif found.off:
            off.append(f"{shown} on {found.how}")
        else:
            unsure.append(f"{shown}: {found.how}")
    command = f"cat {root_of(database).removesuffix('/root')}/mountinfo"
    evidence = tuple(Evidence(text, command) for text in dict.fromkeys(seen)) or (Evidence("on no dataset", command),)
    why = unknown("; ".join(unsure)) if unsure else None
    for name, kinds in (("datasets", ("log", "data")), ("log_datasets", ("log",)), ("data_datasets", ("data",))):
        datasets = tuple(dict.fromkeys(each for kind in kinds for each in on[kind]))
        yield Fact(database, name, why or Known(datasets, evidence))
    apart = tuple(each for each in on["data"] if each.name not in main)
    yield Fact(database, "tablespace_datasets", why or Known(apart, evidence))
    text = ", ".join(off) or "all its directories are on ZFS"
    yield Fact(database, "off_zfs", why or known(tuple(off), text, command))


def _words(found: Judged) -> tuple[str, ...]:
    return tuple(map(str, found.value)) if isinstance(found, Known) and isinstance(found.value, tuple) else ()
