"""On which datasets the files of a database lie: its directories, symbolic links resolved, in its own table of mounts.

(PostgreSQL manual, Database File Layout: pg_wal may be a symbolic link, pg_tblspc/* are; man 5 proc_pid_mountinfo)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import mounts
from auditor.collect._database_files import Tree, plain, root_of
from auditor.collect.request import Files, Read, Skip
from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, join, known, links, unknown, words
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
    "database.off_zfs": words("its directories that are not on ZFS, with the file system that they are on"),
}
ARROW = " -> "


def request(database: Subject, facts: Facts) -> Read | Skip:
    """The table of mounts, and every folder on the way: those that are symbolic links are noted."""
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
    return Read((f"{root.removesuffix('root')}mountinfo", *wanted))


def parse(reply: Files, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where a folder could not be looked into: a link below it may lead anywhere."""
    root = root_of(database)
    path = f"{root.removesuffix('root')}mountinfo"
    if path not in reply.text:
        raise ValueError(f"{path}: {reply.errors.get(path, 'was not read')}")
    lines = tuple(reply.text[path].split("\n")[:-1])
    mounts.mounts(reply.text[path])  # raises for what is no such table
    for place, error in reply.errors.items():
        if not (place.endswith("/pg_tblspc/*") and error.startswith("no such file")):
            raise ValueError(f"{place.removeprefix(root)}: {error}")
    found = tuple(f"{link.removeprefix(root)}{ARROW}{reply.links[link]}" for link in sorted(reply.links))
    yield Fact(database, "mountinfo", known(lines, f"{len(lines)} mounts", f"cat {path}"))
    yield Fact(database, "symlinks", known(found, ", ".join(found) or "no symbolic link on the way", f"cat {path}"))


def lies_on(facts: Facts) -> Iterator[Fact]:
    """The datasets of each database, from what was read of it."""
    for database in list(facts.subjects("database")):
        read = [facts.get(database, name) for name in ("directories", "mountinfo", "symlinks")]
        if missing := [each for each in read if isinstance(each, Unknown)]:
            why: Judged = join(missing)
            yield from (Fact(database, name.partition(".")[2], why) for name in PROVIDES)
            continue
        yield from _placed(database, *(_words(each) for each in read))


def _placed(
    database: Subject, directories: tuple[str, ...], table: tuple[str, ...], symlinks: tuple[str, ...]
) -> Iterator[Fact]:
    targets = dict(each.split(ARROW, 1) for each in symlinks)
    tree = Tree(Files({}, targets), "")
    mounted = mounts.mounts("".join(f"{line}\n" for line in table))
    spaces = [f"data:{path}" for path in targets if "/pg_tblspc/" in path]
    on: dict[str, dict[Subject, None]] = {"log": {}, "data": {}}
    off, seen, unsure = [], [], []
    for place in (*directories, *spaces):
        kind, _, path = place.partition(":")
        real = tree.real(path)
        mount = mounts.mount_of(mounted, real)
        shown = harmless(path if path == real else f"{path} ({real})")
        if mount is not None and mount.fstype == "zfs":
            on[kind][Subject("dataset", mount.source)] = None
            seen.append(f"{kind} in {shown} is on {harmless(mount.source)}")
        elif mount is not None and mount.source.startswith(("/dev/zd", "/dev/zvol/")):
            unsure.append(f"{shown} is on {mount.fstype} on a zvol: which one is not followed")
        elif mount is not None:
            off.append(f"{shown} on {mount.fstype}")
        else:
            unsure.append(f"{shown}: no mount holds it")
    process = root_of(database).removesuffix("/root")
    evidence = tuple(Evidence(text, f"cat {process}/mountinfo") for text in dict.fromkeys(seen))
    none = (Evidence("on no dataset", f"cat {process}/mountinfo"),)
    for name, kinds in (("datasets", ("log", "data")), ("log_datasets", ("log",)), ("data_datasets", ("data",))):
        found = tuple(dict.fromkeys(each for kind in kinds for each in on[kind]))
        yield Fact(database, name, unknown("; ".join(unsure)) if unsure else Known(found, evidence or none))
    text = ", ".join(off) or "all its directories are on ZFS"
    yield Fact(
        database,
        "off_zfs",
        unknown("; ".join(unsure)) if unsure else known(tuple(off), text, f"cat {process}/mountinfo"),
    )


def _words(found: Judged) -> tuple[str, ...]:
    return tuple(map(str, found.value)) if isinstance(found, Known) and isinstance(found.value, tuple) else ()
