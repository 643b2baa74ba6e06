"""Where file systems of ZFS are mounted, by the table of mounts of the host. (man 5 proc_pid_mountinfo)"""

from __future__ import annotations

from auditor.facts import HOST, Facts, words_of


def mounted_at(facts: Facts, point: str) -> list[str]:
    """The datasets that are mounted at a place, which has no blanks; none where the table is not known."""
    rows = (str(line).split(" ") for line in words_of(facts.get(HOST, "mount_table")))
    return [
        row[row.index("-") + 2]
        for row in rows
        if len(row) > 4 and row[4] == point and "-" in row and row[row.index("-") + 1 :][:1] == ["zfs"]
    ]
