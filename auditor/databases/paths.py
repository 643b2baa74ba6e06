"""On which datasets the files of a database lie: its directories, symbolic links resolved, in its own table of mounts; for
another file system on a zvol, the zvol; and in which block sizes ZFS keeps its data files.

Any user may call a process a server, name the folders of others and have them mounted inside of his own, in mounts of his own.
What counts is a folder that was looked at, and in which the process may write. The folders to which links lead, and those
above them, are asked for in a second round (``LINKS``): each may be a link again. What leads further still is not followed,
and leaves it unknown where its files are.

A file keeps the block size that it had when it outgrew its first block, whatever recordsize its dataset has now; st_blksize
says it. Files of one block are left out: the block holds all their pages, and grows with them up to the recordsize of the day.

(PostgreSQL manual, Database File Layout: pg_wal may be a symbolic link, pg_tblspc/* are; MySQL and MariaDB manuals, InnoDB
tablespaces; man 5 proc_pid_mountinfo; OpenZFS module/os/linux/zfs/zfs_vnops_os.c zfs_getattr_fast, module/zfs/zfs_znode.c
zfs_grow_blocksize: the same in 2.1, 2.3 and 2.4)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from auditor.databases import ENGINES
from auditor.databases.configuration import ELSEWHERE, Tree, failed, folders, plain, root_of
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, known, unknown
from auditor.host.children.reader import BARRED
from auditor.host.request import Files, Read, Skip
from auditor.sources import mounts
from auditor.sources.block_tree import Holders, Place
from auditor.sources.source import source
from auditor.text import harmless, starred


class SymbolicLink(NamedTuple):
    """Of a process, below its root directory."""

    path: str
    target: str


class FolderDevice(NamedTuple):
    """path: of a folder, below the root directory of a process; device: MAJOR:MINOR, as the folder itself says."""

    path: str
    device: str


class MountedFrom(NamedTuple):
    """point: where the host's first process sees it mounted."""

    point: str
    dataset: str


LINKS_FACTS = {
    "more_symlinks": Spec.rows(SymbolicLink, "those on the way to where its symlinks lead"),
    "more_devices": Spec.rows(FolderDevice, "the folders there, and those on which something is mounted"),
    "more_barred": Spec.words("those of them in which the process may not write"),
}
MOST = 1000  # folders that are asked for; a process of anybody may have any number of links
FOLDERS = 100_000  # on all ways together
MOUNTS = 100  # below the directories of one database; a process of anybody may have thousands
MEMORY = ("tmpfs", "ramfs", "autofs")  # no database outlives a restart with its data there


def request_links(database: Subject, facts: Facts) -> Read | Skip:
    """Only the folders that were not looked at yet, and where something is mounted inside of its directories."""
    read = [facts.get(database, name) for name in ("directories", "symlinks", "mountinfo")]
    if not all(isinstance(each, Known) for each in read):
        return Skip("its first links are not known")
    directories, table = read[0].words(), read[2].words()
    symlinks = read[1].rows(SymbolicLink)
    try:
        wanted = unseen(directories, symlinks, table)
        tree = Tree(Files({}, dict(symlinks)), "")
        named = [(kind, tree.real(path)) for kind, path in folders(directories)]
        points, _ = mounted_below(database, named, table_of(table))
    except ValueError as error:
        return Skip(str(error))
    wanted += (path for _, path in points if plain(path))
    if not wanted:
        return Skip("every folder on the way was looked at", applies=False)
    return Read(tuple(root_of(database) + each for each in dict.fromkeys(wanted)), database.name.partition(" ")[2])


@source("database_links", "database", ask=request_links, facts=LINKS_FACTS)
def database_links(reply: Files, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where a folder could not be looked at. What is not there (the folder of a tablespace that was removed)
    is no link."""
    root = root_of(database)
    if why := next((f"{path}: {error}" for path, error in reply.errors.items() if failed(path, error, root)), ""):
        raise ValueError(why.removeprefix(root))
    if not (reply.links or reply.devices or reply.errors):
        raise ValueError("nothing was said of any folder")
    found = links_below(reply.links, root)
    yield Fact(database, "more_symlinks", known(found, arrows(found) or "no further link", f"ls -ld {root}/*"))
    yield from on_devices(reply.devices, database, "more_")


def on_devices(devices: Mapping[str, str], database: Subject, which: str = "") -> Iterator[Fact]:
    """The folders that were seen, and those of them in which the process may not write. which: what their names begin with."""
    root = root_of(database)
    numbers = {each.removeprefix(root): devices[each] for each in sorted(devices)}
    said = tuple(FolderDevice(each, number.removesuffix(BARRED)) for each, number in numbers.items())
    barred = tuple(each for each, number in numbers.items() if number.endswith(BARRED))
    if said:
        yield Fact(database, f"{which}devices", known(said, f"{len(said)} folders", "stat -L -c %Hd:%Ld {subject}"))
    if barred:
        yield Fact(database, f"{which}barred", known(barred, f"{len(barred)} folders", "test -w {subject}"))


def links_below(links: Mapping[str, str], root: str) -> tuple[SymbolicLink, ...]:
    return tuple(SymbolicLink(path.removeprefix(root), links[path]) for path in sorted(links))


def arrows(links: Iterable[SymbolicLink]) -> str:
    return ", ".join(f"{path} -> {target}" for path, target in links)


def unseen(
    directories: Sequence[str],
    symlinks: Sequence[SymbolicLink],
    table: Sequence[str],
    more: Sequence[SymbolicLink] | None = None,
) -> list[str]:
    """The folders on the way to the targets of its links that were not looked at: after the first look or, with more, after
    the second. Mount points have no links on their way. Raises ValueError where there are too many, or no plain paths."""
    starts = [path for _, path in folders(directories)]
    if len(symlinks) > MOST:
        raise ValueError(f"{len(symlinks):,} of its folders are links")
    first = dict(symlinks)
    real = _ways(each.mount_point for each in table_of(table))
    asked = _ways(starts) | first.keys()
    starts += first
    missing = _missing(starts, first, asked, real)
    if more is not None:
        missing = _missing(starts, first | dict(more), asked | missing, real)
    if len(missing) > MOST:
        raise ValueError(f"its links lead to {len(missing):,} folders")
    return sorted(missing)


def mounted_below(
    database: Subject, named: Iterable[tuple[str, str]], table: Sequence[mounts.Mount]
) -> tuple[list[tuple[str, str]], bool]:
    """(kind and mount point of each visible mount inside its directories, whether there are more than MOUNTS), without
    memory, snapshots and folders for temporary files. kind: log or data. named: its directories with their real paths."""
    found = list(islice(_below(database, list(named), table), MOUNTS + 1))
    seen = [
        (kind, point)
        for kind, point in found[:MOUNTS]
        if (top := mounts.mount_of(table, point)) is None or top.mount_point == point
    ]
    return seen, len(found) > MOUNTS


def _below(
    database: Subject, named: Sequence[tuple[str, str]], table: Sequence[mounts.Mount]
) -> Iterator[tuple[str, str]]:
    passing = ENGINES[database.name.partition(" ")[0]].passing
    homes = sorted({f"{real.rstrip('/')}/" for _, real in named}, key=len)
    data = {real for kind, real in named if kind == "data"}
    logs = tuple(f"{real.rstrip('/')}/" for kind, real in named if kind == "log" and real not in data)
    points = dict.fromkeys(each.mount_point for each in table if each.fstype not in MEMORY and "@" not in each.source)
    for point in points:
        home = next((each for each in homes if point.startswith(each)), "")
        if home and not any(part in passing for part in point.removeprefix(home).split("/")):
            yield ("log" if f"{point}/".startswith(logs) else "data"), point


def _missing(starts: Iterable[str], links: dict[str, str], asked: set[str], real: set[str]) -> set[str]:
    """What none of those that were asked for is, and none that is real anyhow."""
    tree = Tree(Files({}, links), "")
    for target in links.values():
        if ".." in target.lstrip("./").split("/"):
            raise ValueError(f"{harmless(target)} leads up again")
    ends = [tree.real(each) for each in starts]
    if odd := next((each for each in ends if not plain(each)), ""):
        raise ValueError(f"{harmless(odd)} is no plain absolute path")
    return _ways(ends) - real - {tree.real(each) for each in asked if each not in links}


def _ways(paths: Iterable[str]) -> set[str]:
    """Each of these and all folders above it, but the root."""
    found: set[str] = set()
    for path in paths:
        while path not in found and len(path) > 1:
            found.add(path)
            path = path.rpartition("/")[0]
        if len(found) > FOLDERS:
            raise ValueError("more folders than zaudit follows")
    return found


PATHS_FACTS = {
    "mountinfo": Spec.words("the lines of its table of mounts"),
    "symlinks": Spec.rows(SymbolicLink, "the symbolic links on the way to its files"),
    "barred": Spec.words("the folders on the way, or that a link leads to, in which the process may not write"),
    "devices": Spec.rows(FolderDevice, "the folders on the way, or that a link leads to"),
    "tablespaces_gone": Spec.words("the symbolic links of pg_tblspc that lead to nothing"),
}
PROVIDES = {
    "database.datasets": Spec.links("dataset", "all that it keeps files on"),
    "database.log_datasets": Spec.links("dataset", "where its log is written"),
    "database.data_datasets": Spec.links("dataset", "where its data is written"),
    "database.tablespace_datasets": Spec.links("dataset", "where it keeps nothing but tablespaces (pg_tblspc)"),
    "database.mounted_from": Spec.rows(MountedFrom, "the mounts of file systems of ZFS that its files are below"),
    "database.off_zfs": Spec.words("its directories that are not on ZFS, with the file system that they are on"),
    "database.forgotten": Spec.words(
        "those of them that a crash empties: in memory, or on an overlay that leaves out each fsync"
    ),
}


def request_paths(database: Subject, facts: Facts) -> Read | Skip:
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
    for kind, path in folders(places.words()):
        if not plain(path):
            return Skip(f"{harmless(path)} is no plain absolute path")
        parts = path.split("/")
        wanted |= dict.fromkeys(root + "/".join(parts[:end]) for end in range(2, len(parts) + 1))
        if kind == "data" and (spaces := ENGINES[database.name.partition(" ")[0]].tablespaces):
            wanted[f"{root}{path}{spaces}*"] = None
    return Read((f"{root.removesuffix('root')}mountinfo", *wanted), database.name.partition(" ")[2])


@source("database_paths", "database", ask=request_paths, facts=PATHS_FACTS)
def database_paths(reply: Files, database: Subject) -> Iterator[Fact]:
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
        if place.startswith(root) and not (_is_tablespace(place) and error.startswith("no such file")):
            raise ValueError(f"{place.removeprefix(root)}: {error}")
    found = links_below(reply.links, root)
    yield Fact(database, "mountinfo", known(lines, f"{len(lines)} mounts", f"cat {path}"))
    yield Fact(database, "symlinks", known(found, arrows(found) or "no symbolic link on the way", f"cat {path}"))
    yield from on_devices(reply.devices, database)
    gone = tuple(
        each.removeprefix(root) for each in sorted(reply.links) if _is_tablespace(each) and each in reply.errors
    )
    if gone:
        yield Fact(database, "tablespaces_gone", known(gone, ", ".join(gone), f"cat {path}"))


def _is_tablespace(path: str) -> bool:
    return any(each.tablespaces in path for each in ENGINES.values() if each.tablespaces)


def tables(facts: Facts) -> Iterator[list[mounts.Mount]]:
    for database in facts.subjects("database"):
        yield table_of(facts.get(database, "mountinfo").words())


def table_of(lines: Sequence[str]) -> list[mounts.Mount]:
    return mounts.mounts("".join(f"{line}\n" for line in lines))


class Folders(NamedTuple):
    """What was seen of the folders of a database. folders: those that were looked at; None in a recording without their
    devices. barred: the process may not write there. gone: broken links of tablespaces. failed: why the second look failed,
    or empty."""

    folders: Container[str] | None
    barred: Container[str]
    gone: Container[str]
    failed: str

    @classmethod
    def of(cls, database: Subject, facts: Facts) -> Folders:
        def said(name: str) -> frozenset[str]:
            return frozenset(facts.get(database, name).words())

        def seen(name: str) -> frozenset[str]:
            return frozenset(each.path for each in facts.get(database, name).rows(FolderDevice))

        more = facts.of(database).get("more_symlinks")
        # a link can be mounted, too: it leads elsewhere
        links = {each.path for each in facts.get(database, "more_symlinks").rows(SymbolicLink)}
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
            why: Judged = Unknown.join(missing)
            yield from (Fact(database, name.partition(".")[2], why) for name in PROVIDES)
            continue
        directories, table = read[0].words(), read[1].words()
        symlinks = read[2].rows(SymbolicLink)
        more = facts.get(database, "more_symlinks")
        looked = Folders.of(database, facts)
        try:
            if unseen(directories, symlinks, table):
                if isinstance(more, Known) and (
                    further := unseen(directories, symlinks, table, more.rows(SymbolicLink))
                ):
                    more = unknown(f"{database.name}: whether {harmless(further[0])} is a link was not looked at")
                symlinks += more.rows(SymbolicLink)
            else:
                more = known((), "no further link")
            placed = (
                []
                if isinstance(more, Unknown)
                else list(_places(database, directories, table, symlinks, holds, looked, holders.table))
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


def _places(
    database: Subject,
    directories: tuple[str, ...],
    table: tuple[str, ...],
    symlinks: tuple[SymbolicLink, ...],
    holds: Callable[[mounts.Mount | None], Place],
    looked: Folders,
    of_host: mounts.Table | Unknown,
) -> Iterator[Fact]:
    targets = dict(symlinks)
    tree = Tree(Files({}, targets), "")
    mounted = table_of(table)
    named = [(kind, path, tree.real(path)) for kind, path in folders(directories)]
    spaces = [("data", path, tree.real(path)) for path in targets if _is_tablespace(path) and path not in looked.gone]
    below, more = mounted_below(database, [(kind, real) for kind, _, real in named], mounted)
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
            in_memory = found.how.removeprefix("an overlay on ") in ("tmpfs", "ramfs")
            forgotten += off[-1:] if in_memory or found.how.startswith(f"{mounts.OVERLAY}: ") else []
        else:
            unsure.append(f"{shown}: {found.how}")
    if more:
        unsure.append(f"more than {MOUNTS} mounts below its directories")
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


BLOCKS_FACTS = {
    "data_blocks": Spec.words("BYTES FILES: the sizes of the blocks of its data files that have more than one")
}
ONE = 0  # stands for the files of no more than one block


def request_blocks(database: Subject, facts: Facts) -> Read | Skip:
    """The files of the engines that write pages in place and can be told not to guard them."""
    name, _, place = database.name.partition(" ")
    patterns = ENGINES[name].in_place
    if not patterns or place == ELSEWHERE:
        return Skip("its files are not those of this host, or it does not write pages in place", applies=False)
    found = facts.get(database, "directories")
    if not isinstance(found, Known):
        return Skip(f"where {database.name} keeps its files is not known", "run as root")
    data = [path for kind, path in folders(found.words()) if kind == "data"]
    if odd := [each for each in data if not plain(each)]:
        return Skip(f"{harmless(odd[0])} is no plain absolute path")
    return Read(
        tuple(f"{root_of(database)}{folder}/{name}" for folder in data for name in patterns), place, blocks=True
    )


@source("database_blocks", "database", ask=request_blocks, facts=BLOCKS_FACTS)
def database_blocks(reply: Files, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where something that may be a data file was not seen, or none was. Files of one block are a line, too
    ("0 FILES"), so that an answer without any line is none."""
    root = root_of(database)
    for pattern, error in reply.errors.items():
        if not reply.absent(pattern):
            raise ValueError(f"{pattern.removeprefix(root)}: {error}")
    if not reply.text:
        raise ValueError("no data file was found")
    files: Counter[int] = Counter()
    for pattern, said in reply.text.items():
        for line in said.splitlines():
            size, _, count = line.partition(" ")
            if not (len(line) < 32 and size.isdecimal() and count.isdecimal()):
                raise ValueError(f"{pattern.removeprefix(root)}: a line of its sizes is none")
            files[int(size)] += int(count)
    if not files:
        raise ValueError("no size of any data file was told")
    del files[ONE]
    command = f"stat -c '%o %s' {starred(next(iter(reply.text)))}"
    evidence = tuple(
        Evidence(f"{count:,} of its data files have blocks of {size} bytes", command)
        for size, count in sorted(files.items())
    )
    none = (Evidence("no data file of more than one block", command),)
    yield Fact(
        database, "data_blocks", Known(tuple(f"{size} {files[size]}" for size in sorted(files)), evidence or none)
    )
