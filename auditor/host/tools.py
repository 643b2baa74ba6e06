"""Where a tool lies: in a fixed list of folders, never in the PATH of the caller; and for root only where nobody but root could
have put it or could exchange it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from auditor.host import folder as folders
from auditor.host.folder import trusted

VENDORS = ("/opt/MegaRAID/storcli", "/opt/MegaRAID/perccli", "/opt/smartstorageadmin/ssacli/bin")
NIXOS = "/run/current-system/sw/bin"  # which has no tools elsewhere; what it links to is in root's /nix/store
PATH = ("/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin", NIXOS, *VENDORS)


def find(names: Iterable[str], path: tuple[str, ...] = PATH) -> tuple[str, str]:
    """(path of the first that is there, empty) or (empty, why there is none)."""
    places = (f"{folder}/{name}" for name in names for folder in path)
    tool = next((place for place in places if os.access(place, os.X_OK)), "")
    if not tool:
        return "", "not installed"
    if os.geteuid() == 0 and not (of_root(tool) and of_root(os.path.realpath(tool))):
        return "", f"not run: others than root could have changed {tool}"
    return tool, ""


def named(path: str) -> tuple[str, str]:
    """(the program that somebody named, empty) or (empty, why it is not run); both are empty where there is none."""
    if not os.path.lexists(path):
        return "", ""
    try:
        real = folders.steady(os.path.abspath(path)) if os.geteuid() == 0 else os.path.realpath(path)
    except OSError as error:
        return "", f"not run: {error.filename}: {error.strerror}"
    if not os.path.isfile(real) or not os.access(real, os.X_OK):
        return "", "not a program"
    if not (of_root(os.path.abspath(path)) and of_root(real)):
        return "", "not run: others than root could have changed it"
    return real, ""


def kept_by_root(folder: Path) -> bool:
    """For root: whether nobody else could have put something there, or another folder in its place. Where many may write, as
    in /tmp, they could; behind the bits of the group there may be a list of others (man 5 acl)."""
    if os.geteuid() != 0:
        return True
    try:
        found = os.stat(folders.steady(str(folder.absolute())))
    except OSError:
        return False
    return found.st_uid == 0 and not found.st_mode & 0o022


@cache
def of_root(path: str) -> bool:
    """Whether each part of an absolute path is root's, in a folder in which only root may put it."""
    if path == "/":
        return True
    folder = os.path.dirname(path)
    try:
        found = os.lstat(path)
        return trusted(os.stat(folder), found) and not _open(found) and of_root(folder)
    except OSError:
        return False


def _open(found: os.stat_result) -> bool:
    """A plain file that others may write. Behind the bits of the group there may be a list of others (man 5 acl)."""
    return stat.S_ISREG(found.st_mode) and bool(found.st_mode & 0o022)
