"""Where a tool lies: in a fixed list of folders, never in the PATH of the caller; and for root only where nobody but root could
have put it or could exchange it (:mod:`auditor.host.trust`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from auditor.host import trust

VENDORS = ("/opt/MegaRAID/storcli", "/opt/MegaRAID/perccli", "/opt/smartstorageadmin/ssacli/bin")
NIXOS = "/run/current-system/sw/bin"  # which has no tools elsewhere; what it links to is in root's /nix/store
MISSING = "not installed"
PATH = ("/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin", NIXOS, *VENDORS)


def find(names: Iterable[str], path: tuple[str, ...] = PATH) -> tuple[str, str]:
    """(path of the first that is there, empty) or (empty, why there is none)."""
    places = (f"{folder}/{name}" for name in names for folder in path)
    tool = next((place for place in places if os.access(place, os.X_OK)), "")
    if not tool:
        return "", MISSING
    # an ordinary user stakes no more than if he started it himself
    why = refusal(tool) if os.geteuid() == 0 else ""
    return ("", f"not run: {tool}: {why}") if why else (tool, "")


def refusal(program: str) -> str:
    """Why a program is not run; empty where it may be.

    It is started by its own name, links and all, since many programs look at what they are called.
    """
    try:
        node, _ = trust.locate(program)
    except OSError as error:
        return error.strerror or str(error)
    try:
        regular = stat.S_ISREG(os.fstat(node).st_mode)
    finally:
        os.close(node)
    return "" if regular and os.access(program, os.X_OK) else "not a program"
