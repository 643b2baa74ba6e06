"""What is kept of /etc/fstab: where something is mounted, what is bound there, and what it waits for. Servers, devices and all
other options, among which are passwords, are left out. (man 5 fstab, man 5 systemd.mount)"""

from __future__ import annotations

import re

PATH = "/etc/fstab"
LATER = ("noauto", "_netdev", "x-systemd.automount")  # not mounted, or after the file systems of this host
BOUND = ("bind", "rbind")
_PLACE = re.compile(r"/[!-~]*")
_WAITS = re.compile(r"x-systemd\.(?:requires|after)=[\w@.\\:-]{1,255}", re.ASCII)
_NONE = "defaults"


def kept(text: str) -> str:
    """``SOURCE POINT TYPE OPTIONS`` for each line with a mount point: a path that is bound or -, and zfs or -. What was kept is
    kept again."""
    rows = (line.split() for line in text.splitlines() if not line.lstrip().startswith("#"))
    return "".join(f"{_kept(row)}\n" for row in rows if len(row) > 2 and _PLACE.fullmatch(row[1]))


def _kept(row: list[str]) -> str:
    options = [
        each
        for each in (row[3] if len(row) > 3 else "").split(",")
        if each in (*LATER, *BOUND) or _WAITS.fullmatch(each)
    ]
    bound = any(each in BOUND for each in options) and _PLACE.fullmatch(row[0])
    return f"{row[0] if bound else '-'} {row[1]} {'zfs' if row[2] == 'zfs' else '-'} {','.join(options) or _NONE}"
