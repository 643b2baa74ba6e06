"""Where file systems of ZFS are mounted, by the table of mounts of the host. (man 5 proc_pid_mountinfo)"""

from __future__ import annotations

from functools import lru_cache

from auditor.facts import HOST, Facts, words_of


def mounted_at(facts: Facts, point: str) -> list[str]:
    """The datasets that are mounted at a place, which has no blanks; none where the table is not known."""
    return list(_mounted_at(words_of(facts.get(HOST, "mount_table")), point))


@lru_cache(maxsize=8)  # asked for each pool, of a table with all datasets
def _mounted_at(table: tuple[str, ...], point: str) -> tuple[str, ...]:
    rows = (line.split(" ") for line in table)
    return tuple(
        row[row.index("-") + 2].replace("\\040", " ")
        for row in rows
        if len(row) > 4 and row[4] == point and "-" in row and row[row.index("-") + 1 :][:1] == ["zfs"]
    )
