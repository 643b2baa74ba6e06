"""On which datasets the files of a database lie: its directories, symbolic links resolved, in its own table of mounts; for
another file system on a zvol, the zvol. Any user may call his process a server, name the folders of others and have them
mounted inside of his own: what counts is a folder that was looked at, and in which the process may write.

(PostgreSQL manual, Database File Layout: pg_wal may be a symbolic link, pg_tblspc/* are; man 5 proc_pid_mountinfo)
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from auditor.collect import database_links
from auditor.collect._database_files import ELSEWHERE, Tree, folders, plain, root_of
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    FolderDevice,
    Judged,
    Known,
    MountedFrom,
    Subject,
    SymbolicLink,
    Unknown,
    join,
    known,
    links,
    rows,
    rows_of,
    unknown,
    words,
    words_of,
)
from auditor.host.request import Files, Read, Skip
from auditor.sources import mounts
from auditor.sources.block_tree import Holders, Place
from auditor.text import harmless

PER = "database"
TABLESPACES = "/pg_tblspc/"
SUBJECT = "database"
FACTS = {
    "mountinfo": words("the lines of its table of mounts"),
    "symlinks": rows(SymbolicLink, "the symbolic links on the way to its files"),
    "barred": words("the folders on the way, or that a link leads to, in which the process may not write"),
    "devices": rows(FolderDevice, "the folders on the way, or that a link leads to"),
    "tablespaces_gone": words("the symbolic links of pg_tblspc that lead to nothing"),
}
PROVIDES = {
    "database.datasets": links("dataset", "all that it keeps files on"),
    "database.log_datasets": links("dataset", "where its log is written"),
    "database.data_datasets": links("dataset", "where its data is written"),
    "database.tablespace_datasets": links("dataset", "where it keeps nothing but tablespaces (pg_tblspc)"),
    "database.mounted_from": rows(MountedFrom, "the mounts of file systems of ZFS that its files are below"),
    "database.off_zfs": words("its directories that are not on ZFS, with the file system that they are on"),
    "database.forgotten": words(
        "those of them that a crash empties: in memory, or on an overlay that leaves out each fsync"
    ),
}


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
    for kind, path in folders(words_of(places)):
        if not plain(path):
            return Skip(f"{harmless(path)} is no plain absolute path")
        parts = path.split("/")
        wanted |= dict.fromkeys(root + "/".join(parts[:end]) for end in range(2, len(parts) + 1))
        if kind == "data" and database.name.startswith("postgres "):
            wanted[f"{root}{path}{TABLESPACES}*"] = None
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
        if place.startswith(root) and not (TABLESPACES in place and error.startswith("no such file")):
            raise ValueError(f"{place.removeprefix(root)}: {error}")
    found = database_links.links_below(reply.links, root)
    yield Fact(database, "mountinfo", known(lines, f"{len(lines)} mounts", f"cat {path}"))
    yield Fact(
        database, "symlinks", known(found, database_links.arrows(found) or "no symbolic link on the way", f"cat {path}")
    )
    yield from database_links.on_devices(reply.devices, database)
    gone = tuple(
        each.removeprefix(root) for each in sorted(reply.links) if TABLESPACES in each and each in reply.errors
    )
    if gone:
        yield Fact(database, "tablespaces_gone", known(gone, ", ".join(gone), f"cat {path}"))


def tables(facts: Facts) -> Iterator[list[mounts.Mount]]:
    """The mounts that each database sees, of those whose table was read."""
    for database in facts.subjects("database"):
        yield _mounts(words_of(facts.get(database, "mountinfo")))


def _mounts(lines: Sequence[str]) -> list[mounts.Mount]:
    return mounts.mounts("".join(f"{line}\n" for line in lines))


class Looked(NamedTuple):
    """What was seen of the folders of a database. folders: that were looked at; None in a recording from before their devices
    were told, since when that of the root is told with any. barred: in which the process may not write. gone: links of
    tablespaces that lead to nothing. failed: why the second look failed, or an empty string."""

    folders: Container[str] | None
    barred: Container[str]
    gone: Container[str]
    failed: str

    @classmethod
    def of(cls, database: Subject, facts: Facts) -> Looked:
        def said(name: str) -> frozenset[str]:
            return frozenset(words_of(facts.get(database, name)))

        def seen(name: str) -> frozenset[str]:
            return frozenset(each.path for each in rows_of(facts.get(database, name), FolderDevice))

        more = facts.of(database).get("more_symlinks")
        # a link can be mounted, too: it leads elsewhere
        links = {each.path for each in rows_of(facts.get(database, "more_symlinks"), SymbolicLink)}
        return cls(
            seen("devices") | seen("more_devices") - links if seen("devices") else None,
            said("barred") | said("more_barred"),
            said("tablespaces_gone"),
            f" ({more.reasons[0].text})" if isinstance(more, Unknown) else "",
        )

    def against(self, path: str, *, again: bool) -> str:
        """Why what holds a path is not taken for the database's own, or an empty string. again: it was asked for in the second
        look."""
        if path in self.barred:
            return "the process may not write there"
        if self.folders is None or path in self.folders:
            return ""
        return f"was not seen to be a folder in which the process may write{self.failed if again else ''}"


def lies_on(facts: Facts, inventory: Facts, layers: Mapping[str, mounts.Mount | str]) -> Iterator[Fact]:
    """The datasets of each database, from what was read of it. inventory: the block devices of this host. layers: device number
    of an overlay -> what is below it, or why that is not known."""
    holders = Holders(facts, inventory)
    holds = partial(_holds, holders=holders, layers=layers)
    for database in list(facts.subjects("database")):
        read = [facts.get(database, name) for name in ("directories", "mountinfo", "symlinks")]
        if missing := [each for each in read if isinstance(each, Unknown)]:
            why: Judged = join(missing)
            yield from (Fact(database, name.partition(".")[2], why) for name in PROVIDES)
            continue
        directories, table = words_of(read[0]), words_of(read[1])
        symlinks = rows_of(read[2], SymbolicLink)
        more = facts.get(database, "more_symlinks")
        looked = Looked.of(database, facts)
        try:
            if database_links.unseen(directories, symlinks, table):
                if isinstance(more, Known) and (
                    further := database_links.unseen(directories, symlinks, table, rows_of(more, SymbolicLink))
                ):
                    more = unknown(f"{database.name}: whether {harmless(further[0])} is a link was not looked at")
                symlinks += rows_of(more, SymbolicLink)
            else:
                more = known((), "no further link")
            placed = (
                []
                if isinstance(more, Unknown)
                else list(_placed(database, directories, table, symlinks, holds, looked, holders.table))
            )
        except ValueError as error:
            more = unknown(f"{database.name}: {error}")
        if isinstance(more, Unknown):
            placed = [Fact(database, name.partition(".")[2], more) for name in PROVIDES]
        yield from placed


def _holds(mount: mounts.Mount | None, holders: Holders, layers: Mapping[str, mounts.Mount | str]) -> Place:
    """What holds a mount; of an overlay what holds its upper layer."""
    if mount is None or mount.fstype != mounts.OVERLAY:
        return holders.mount(mount)
    below = layers.get(mount.major_minor, "its layers are not known")
    if isinstance(below, str):
        return Place(off=mounts.volatile(mount), how=f"overlay: {below}")
    found = holders.mount(below)
    return found._replace(how=f"{found.how} (below an overlay)" if found.datasets else f"an overlay on {found.how}")


def _placed(
    database: Subject,
    directories: tuple[str, ...],
    table: tuple[str, ...],
    symlinks: tuple[SymbolicLink, ...],
    holds: Callable[[mounts.Mount | None], Place],
    looked: Looked,
    of_host: mounts.Table | Unknown,
) -> Iterator[Fact]:
    targets = dict(symlinks)
    tree = Tree(Files({}, targets), "")
    mounted = _mounts(table)
    named = [(kind, path, tree.real(path)) for kind, path in folders(directories)]
    spaces = [("data", path, tree.real(path)) for path in targets if TABLESPACES in path and path not in looked.gone]
    below, more = database_links.mounted_below(database, [(kind, real) for kind, _, real in named], mounted)
    on: dict[str, dict[Subject, None]] = {"log": {}, "data": {}}
    main: set[str] = set()
    off, forgotten, seen, unsure = [], [], [], []
    own = [*named, *((kind, point, point) for kind, point in below)]
    for i, (kind, path, real) in enumerate((*own, *spaces)):
        found = holds(mounts.mount_of(mounted, real))
        shown = harmless(path if path == real else f"{path} ({real})")
        if against := looked.against(path, again=len(named) <= i < len(own)):
            unsure.append(f"{shown}: {against}")
        elif found.datasets:
            on[kind] |= {Subject("dataset", each): None for each in found.datasets}
            main |= set(found.datasets) if i < len(own) else set()
            seen.append(f"{kind} in {shown} is on {harmless(', '.join(found.datasets))}{found.how}")
        elif found.off:
            off.append(f"{shown} on {found.how}")
            forgotten += off[-1:] if _forgets(found.how) else []
        else:
            unsure.append(f"{shown}: {found.how}")
    if more:
        unsure.append(f"more than {database_links.MOUNTS} mounts below its directories")
    command = f"cat {root_of(database).removesuffix('/root')}/mountinfo"
    evidence = tuple(Evidence(text, command) for text in dict.fromkeys(seen)) or (Evidence("on no dataset", command),)
    why = unknown("; ".join(unsure)) if unsure else None
    for name, kinds in (("datasets", ("log", "data")), ("log_datasets", ("log",)), ("data_datasets", ("data",))):
        datasets = tuple(dict.fromkeys(each for kind in kinds for each in on[kind]))
        yield Fact(database, name, why or Known(datasets, evidence))
    apart = tuple(each for each in on["data"] if each.name not in main)
    yield Fact(database, "tablespace_datasets", why or Known(apart, evidence))
    reals = [real for _, _, real in (*own, *spaces)]
    yield Fact(database, "mounted_from", why or _mounted_from(reals, mounted, of_host))
    text = ", ".join(off) or "all its directories are on ZFS"
    yield Fact(database, "off_zfs", why or known(tuple(off), text, command))
    text = ", ".join(forgotten) or "none of its directories is in memory"
    yield Fact(database, "forgotten", why or known(tuple(forgotten), text, command))


def _mounted_from(paths: Sequence[str], table: Sequence[mounts.Mount], of_host: mounts.Table | Unknown) -> Judged:
    """Of those that lie on a file system of ZFS itself. A service may have a table of its own, in which systemd has mounted its
    folders once more (ProtectSystem=, ReadWritePaths=): what counts is where the host has mounted it."""
    found: dict[MountedFrom, None] = {}
    for path in dict.fromkeys(paths):
        mine = mounts.mount_of(table, path)
        if mine is None or mine.fstype != "zfs":
            continue
        if isinstance(of_host, Unknown):
            return of_host
        there = mounts.mount_of(of_host, path)
        if there is None or (there.fstype, there.source) != ("zfs", mine.source):
            return unknown(
                f"{harmless(path)} is on {harmless(mine.source)}, and not so where the host's first process looks"
            )
        found[MountedFrom(there.mount_point, there.source)] = None
    text = (
        ", ".join(harmless(f"{point} -> {dataset}") for point, dataset in found)
        or "none of its files is on a file system of ZFS itself"
    )
    return known(tuple(found), text, "cat /proc/1/mountinfo")


def _forgets(how: str) -> bool:
    """Does a crash empty what is on it, or take what was written and synced?"""
    return how.removeprefix("an overlay on ") in ("tmpfs", "ramfs") or how.startswith(f"{mounts.OVERLAY}: ")
