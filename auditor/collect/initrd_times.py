"""``stat``: when the initrds of the kernels that start next were written, and what they hold copies of.

``%Y`` is when the content was changed last, ``%Z`` when anything of the file was: a package gives its files the times at which
they were made elsewhere, and only the second tells when they came. (man 1 stat, man 7 inode)
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from auditor.collect import module_lists, mounts
from auditor.data.initrds import HOSTID, OPTIONS, names
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, words, words_of
from auditor.host.request import Output, Run, Skip

PER = "host"
SUBJECT = "host"
FACTS = {
    "initrd_times": words(
        "CONTENT CHANGED PATH of each initrd that was found and of what it holds copies of: seconds since 1970"
    )
}
STAT = ("stat", "-L", "-c", "%Y %Z %n")
MOST = 200  # files that are asked for
_LINE = re.compile(r"(\d{1,12}) (\d{1,12}) (/[\w./+~-]{1,300})", re.ASCII)


def request(host: Subject, facts: Facts) -> Run | Skip:
    """Only where the root file system is on ZFS, so that the module is loaded from an initrd."""
    needed = [facts.get(HOST, name) for name in ("mount_table", "zfs_modules", "modprobe_files")]
    if not all(isinstance(each, Known) for each in needed):
        return Skip("which modules and options an initrd has to hold is not known")
    table, _, options = map(words_of, needed)
    mounted = mounts.mounts("".join(f"{line}\n" for line in table))
    if not any(each.mount_point == "/" and each.fstype == "zfs" for each in mounted):
        return Skip("the root file system is not on ZFS", applies=False)
    if [each.fstype for each in mounted.at.get("/boot", [])][-1:] == ["autofs"]:
        return Skip("/boot is not mounted, and a look would mount it")
    pairs = module_lists.paths(facts)
    if isinstance(pairs, Skip):
        return pairs
    initrds = [name for kernel, _ in pairs for name in names(kernel)]
    asked = dict.fromkeys((*initrds, *(path for _, path in pairs), OPTIONS, *options, HOSTID))
    if not pairs or len(asked) > MOST:
        return Skip(f"{len(pairs)} kernels with a zfs module and {len(options)} files of options were found")
    return Run((*STAT, *asked), accept=frozenset({0, 1}), package="coreutils")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """What is there; what is not has a line on stderr. Raises ValueError where a file could not be looked at, and where one
    is in neither."""
    if why := next((line for line in reply.stderr.splitlines() if not line.endswith("No such file or directory")), ""):
        raise ValueError(why[:200])
    lines = reply.text.splitlines()
    wrong = [line for line in lines if not _LINE.fullmatch(line)]
    if wrong or not reply.text.endswith("\n"):
        raise ValueError(f"not times and a path: {wrong[0][:80] if wrong else 'cut off'}")
    asked = len(shlex.split(reply.command)) - len(STAT)
    if len(lines) + len(reply.stderr.splitlines()) != asked:
        raise ValueError(f"{len(lines)} lines of {asked} files: cut off")
    yield Fact(HOST, "initrd_times", known(tuple(lines), f"{len(lines)} files", "stat -L -c '%y %z %n' PATHS"))
