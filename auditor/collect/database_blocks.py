"""The sizes of the blocks that a database's data files have. A file keeps the block size that it had when it outgrew its first
block, whatever recordsize its dataset has now. ZFS says it as the file's st_blksize.

Files of one block are left out: it holds all their pages, and grows with them up to the recordsize of the day.

(OpenZFS module/os/linux/zfs/zfs_vnops_os.c zfs_getattr_fast, module/zfs/zfs_znode.c zfs_grow_blocksize: the same in 2.1, 2.3
and 2.4; PostgreSQL manual, Database File Layout; MySQL and MariaDB manuals, InnoDB tablespaces)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from auditor.collect._database_files import ELSEWHERE, folders, plain, root_of
from auditor.facts import Evidence, Fact, Facts, Known, Subject, words, words_of
from auditor.host.request import Files, Read, Skip
from auditor.text import harmless, starred

PER = "database"
SUBJECT = "database"
FACTS = {"data_blocks": words("BYTES FILES: the sizes of the blocks of its data files that have more than one")}
_INNODB = ("ibdata*", "undo*", "*.ibd", "*/*.ibd")
ONE = 0  # stands for the files of no more than one block
NAMES = {"postgres": ("base/*/*", "global/*", "pg_tblspc/*/*/*/*"), "mysql": _INNODB, "mariadb": _INNODB}


def request(database: Subject, facts: Facts) -> Read | Skip:
    """The files of the engines that write pages in place and can be told not to guard them."""
    engine, _, place = database.name.partition(" ")
    if engine not in NAMES or place == ELSEWHERE:
        return Skip("its files are not those of this host, or it does not write pages in place", applies=False)
    found = facts.get(database, "directories")
    if not isinstance(found, Known):
        return Skip(f"where {database.name} keeps its files is not known", "run as root")
    data = [path for kind, path in folders(words_of(found)) if kind == "data"]
    if odd := [each for each in data if not plain(each)]:
        return Skip(f"{harmless(odd[0])} is no plain absolute path")
    return Read(
        tuple(f"{root_of(database)}{folder}/{name}" for folder in data for name in NAMES[engine]), place, blocks=True
    )


def parse(reply: Files, database: Subject) -> Iterator[Fact]:
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
