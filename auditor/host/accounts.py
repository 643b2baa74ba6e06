"""On whose account it goes what a process costs those who read it: a user has a share of a question, with all that he may call
himself. Whoever has a range of uids (man 5 subuid), or is root in a container, can be thousands of users."""

from __future__ import annotations

import os
import re
from contextlib import suppress

SUBORDINATE = "/etc/subuid"
# uids of one user or container (man 5 login.defs, SUB_UID_COUNT; man 1 systemd-nspawn, --private-users)
BLOCK = 1 << 16
INSIDE = 1 << 32  # behind all uids: accounts of user namespaces that /etc/subuid does not tell of
ENDED = -1
_RANGE = re.compile(r"^[^:\n]*:([0-9]{1,10}):([0-9]{1,10})$", re.MULTILINE)
_MOST = 1 << 20  # bytes
_UID = re.compile(rb"^Uid:\t([0-9]+)", re.MULTILINE)


class Accounts:
    """Those of one question."""

    def __init__(self) -> None:
        text = ""
        with suppress(OSError), open(SUBORDINATE, encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST)
        self._ranges = [(int(first), int(count)) for first, count in _RANGE.findall(text)]
        self._here = _namespace("self")

    def of(self, number: str) -> int:
        """0 for root's; the higher, the more users may be one: who could choose among many uids comes behind those who
        could not. ENDED for a process that has."""
        if (uid := user(number)) is None:
            return ENDED
        for first, count in self._ranges:
            if uid and first <= uid < first + count:
                return uid - (uid - first) % BLOCK
        if not 0 < uid < BLOCK and _namespace(number) not in ("", self._here):
            return INSIDE + uid - uid % BLOCK
        return uid


def user(number: str) -> int | None:
    """Who runs a process: its real user, also where its folder is shown as root's. None where it has ended."""
    found = _UID.search(status(number))
    return int(found[1]) if found else None


def status(number: str) -> bytes:
    """/proc/NUMBER/status, for which nobody waits; empty where it has ended."""
    with suppress(OSError), open(f"/proc/{number}/status", "rb") as file:
        return file.read()
    return b""


def _namespace(number: str) -> str:
    """The user namespace of a process; empty where the kernel has none or does not tell."""
    with suppress(OSError):
        return os.readlink(f"/proc/{number}/ns/user")
    return ""
