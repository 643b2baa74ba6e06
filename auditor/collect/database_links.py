"""The folders to which the symbolic links of a database lead, and those above them: each may be a link again. Asked once it is
known where the first ones lead; what leads further still is not followed, and leaves it unknown where its files are. And what
is mounted inside of its directories, which any user may do in mounts of his own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from auditor.collect._database_files import Tree, folders, plain, root_of
from auditor.databases import ENGINES
from auditor.facts import Fact, Facts, FolderDevice, Known, Subject, SymbolicLink, known, rows, rows_of, words, words_of
from auditor.host.request import BARRED, Files, Read, Skip
from auditor.sources import mounts
from auditor.text import harmless

PER = "database"
SUBJECT = "database"
FACTS = {
    "more_symlinks": rows(SymbolicLink, "those on the way to where its symlinks lead"),
    "more_devices": rows(FolderDevice, "the folders there, and those on which something is mounted"),
    "more_barred": words("those of them in which the process may not write"),
}
MOST = 1000  # folders that are asked for; a process of anybody may have any number of links
FOLDERS = 100_000  # on all ways together
MOUNTS = 100  # below the directories of one database; a process of anybody may have thousands
MEMORY = ("tmpfs", "ramfs", "autofs")  # no database outlives a restart with its data there


def request(database: Subject, facts: Facts) -> Read | Skip:
    """Only the folders that were not looked at yet, and where something is mounted inside of its directories."""
    read = [facts.get(database, name) for name in ("directories", "symlinks", "mountinfo")]
    if not all(isinstance(each, Known) for each in read):
        return Skip("its first links are not known")
    directories, table = words_of(read[0]), words_of(read[2])
    symlinks = rows_of(read[1], SymbolicLink)
    try:
        wanted = unseen(directories, symlinks, table)
        tree = Tree(Files({}, dict(symlinks)), "")
        named = [(kind, tree.real(path)) for kind, path in folders(directories)]
        points, _ = mounted_below(database, named, mounts.mounts("".join(f"{line}\n" for line in table)))
    except ValueError as error:
        return Skip(str(error))
    wanted += (path for _, path in points if plain(path))
    if not wanted:
        return Skip("every folder on the way was looked at", applies=False)
    return Read(tuple(root_of(database) + each for each in dict.fromkeys(wanted)), database.name.partition(" ")[2])


def parse(reply: Files, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where a folder could not be looked at. What is not there (the folder of a tablespace that was removed)
    is no link."""
    root = root_of(database)
    if why := next((f"{path}: {error}" for path, error in reply.errors.items() if _failed(path, error, root)), ""):
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
    """Each link below the root directory of a process, by path."""
    return tuple(SymbolicLink(path.removeprefix(root), links[path]) for path in sorted(links))


def arrows(links: Iterable[SymbolicLink]) -> str:
    """For a reader."""
    return ", ".join(f"{path} -> {target}" for path, target in links)


def unseen(
    directories: Sequence[str],
    symlinks: Sequence[SymbolicLink],
    table: Sequence[str],
    more: Sequence[SymbolicLink] | None = None,
) -> list[str]:
    """The folders on the way to where its links lead that were not looked at, after the first look or, with more, the second.

    The way to a mount point has no link: the kernel names it as it is. Raises ValueError where they are too many or no plain
    paths.
    """
    starts = [path for _, path in folders(directories)]
    if len(symlinks) > MOST:
        raise ValueError(f"{len(symlinks):,} of its folders are links")
    first = dict(symlinks)
    real = _ways(each.mount_point for each in mounts.mounts("".join(f"{line}\n" for line in table)))
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
    """(log or data and the mount point of what is mounted inside of its directories and may hold what it needs after a crash,
    whether there are more than MOUNTS): not memory, not a snapshot, none of the folders for what is temporary, nothing that
    another mount hides. named: its directories with their real paths."""
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


def _failed(path: str, error: str, root: str) -> bool:
    """Of what is below the root directory of the process: could it not be looked at?"""
    return path.startswith(f"{root}/") and not error.startswith("no such")
