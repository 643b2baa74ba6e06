"""By which calls threads came to their commits, as far as that can be told. Pure.

One call of fsync is one commit (zfs_fsync() of OpenZFS module/zfs/zfs_vnops.c), but to a dataset with sync=disabled it is none;
before 2.4 mapped pages that it writes may be a second one (zpl_writepages() of module/os/linux/zfs/zpl_file.c). Calls are not
counted by ZIL, so of a thread that commits to several only what is certain is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from auditor.diagnose import histograms
from auditor.diagnose.commits import close
from auditor.diagnose.histograms import Thread
from auditor.diagnose.model import Calls
from auditor.diagnose.observation import Traced


class Called(NamedTuple):
    """rows: of each thread to each ZIL; whole: of all of them together, None where they were not counted. why_not: why."""

    rows: Mapping[Thread, Calls]
    whole: Calls | None
    why_not: str


def called(seen: Traced | None, threads: Sequence[Thread], *, disabled: bool) -> Called:
    """How each came to its commits. disabled: calls may have been to a dataset with sync=disabled."""
    if seen is None or seen.uncalled:
        return Called({}, None, seen.uncalled if seen else "")
    try:
        counted = histograms.calls(seen.calls)
    except ValueError as error:
        return Called({}, None, str(error))
    commits: dict[int, int] = {}
    for each in threads:
        commits[each.pid] = commits.get(each.pid, 0) + each.commits
    of_thread = {pid: _calls(many, *counted.get(pid, (0, 0)), disabled) for pid, many in commits.items()}
    rows = {each: _part(of_thread[each.pid], each.commits, commits[each.pid]) for each in threads}
    fsync, fdatasync, other, at_most = zip(*of_thread.values(), strict=True) if of_thread else ((), (), (), ())
    return Called(rows, Calls(sum(fsync), sum(fdatasync), sum(other), any(at_most)), "")


def _calls(commits: int, fsync: int, fdatasync: int, disabled: bool) -> Calls:
    """Of one thread."""
    together = fsync + fdatasync
    at_most = together > 0 and (disabled or (together > commits and not close(together, commits)))
    return Calls(min(fsync, commits), min(fdatasync, commits), max(commits - together, 0), at_most)


def _part(whole: Calls, commits: int, of_thread: int) -> Calls:
    """What is certain of commits to one ZIL, of so many of the thread."""
    if commits == of_thread:
        return whole
    fsync, fdatasync, other, at_most = whole
    mixed = sum(each > 0 for each in (fsync, fdatasync, other)) > 1
    least = max(commits - fsync - fdatasync, 0)
    return Calls(min(fsync, commits), min(fdatasync, commits), least, at_most or mixed)
