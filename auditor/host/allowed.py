"""What is kept of files that say more than zaudit asks: configuration, environment and command lines hold passwords.

Everything here happens before anything is parsed, stored or recorded.
"""

from __future__ import annotations

import re

from auditor.databases import SERVERS, configuration
from auditor.databases.engine import ARGUMENT, path
from auditor.sources import guests, kernel_module, mounts, targets, units, upkeep

PROCESS_ROOT = re.compile(r"/proc/(?:\d+|self)/root/")
CONFIGURATION = re.compile(r"[\w.@#-]+\.(?:conf|cnf|ya?ml)")
KTHREADD = "PPid:\t2"  # the parent of all threads of the kernel
NAMED = "Name:\t"
_STATUS = frozenset((KTHREADD, *(NAMED + each for each in SERVERS)))
IGNORES_FLUSHES = "libeatmydata"
_SIZE = re.compile(r"[0-9]{1,10} [0-9]{1,10}")
_UNITS = re.compile(r"/(?:etc|usr/lib)/systemd/system/.*|/etc/zfs/zfs-list\.cache/.*")  # that they are there
_PROCESS = re.compile(r"/proc/(?:\d+|self)/(environ|maps|cmdline|status|stat)")


def allowed_part(name: str, text: str, *, wide: bool = False) -> str | None:
    """The part of a file that is kept, or None: nothing of it. name: its path. wide: it is one of many that a pattern means.
    Lines of a configuration keep their number."""
    if PROCESS_ROOT.match(name):
        last = name.rpartition("/")[2]
        return _blocks(text) if "*" in last else configuration.settings(last, text)
    if name == units.PATH:
        return units.keep_pool_cache(text)
    if name == upkeep.PATH:
        return upkeep.keep_zed_rc(text)
    if name in targets.PATHS:
        return targets.keep_saved(text)
    if name == mounts.PATH:
        return mounts.keep_fstab(text)
    if (settings := guests.keep_settings(name, text)) is not None:
        return settings
    if (modules := kernel_module.keep_module_list(name, text)) is not None:
        return modules
    if (bound := units.keep_mount_unit(name, text)) is not None:
        return bound
    if _UNITS.fullmatch(name) or name.startswith(upkeep.FOLDER):
        return ""
    found = _PROCESS.fullmatch(name)
    match found and found[1]:
        case "stat":  # of database servers, and of the first process, which shows that they can be seen
            return text if name == "/proc/1/stat" or _command(text) in ("", *SERVERS) else None
        case "environ":
            return configuration.variables(text)
        case "cmdline":
            guest = guests.keep_command_line(text)
            return guest if wide or guest is not None else configuration.command_line(text)
        case "maps":
            return _libraries(text)
        case "status":  # who runs it, whether the kernel made it, and which database server it may be
            return "".join(f"{line}\n" for line in text.split("\n") if line.startswith("Uid:") or line in _STATUS)
        case _:
            return text


def _blocks(text: str) -> str:
    """What is asked of a pattern: sizes of blocks, and how many files have them; a question mark for any other line."""
    return "".join(f"{line if _SIZE.fullmatch(line) else '?'}\n" for line in text.splitlines())


def _command(stat: str) -> str:
    """The name of a process, which may hold any character. (man 5 proc_pid_stat)"""
    return stat.partition(" (")[2].rpartition(") ")[0]


def _libraries(maps: str) -> str:
    """Of the files that are mapped those that make fsync do nothing, and that there are others. What was kept is kept again."""
    rows = (line.split(maxsplit=5) for line in maps.splitlines())
    names = {" ".join(row) if len(row) < 5 else row[5] for row in rows if len(row) != 5}
    found = {each if path(each) else IGNORES_FLUSHES for each in names if IGNORES_FLUSHES in each}
    others = [ARGUMENT] if any(IGNORES_FLUSHES not in each for each in names) else []
    return "".join(f"{each}\n" for each in (*sorted(found), *others))
