"""``modules.dep``: of the modules that depmod has listed for a kernel, where zfs is, and that the kernel's own are there.

(kmod tools/depmod.c output_deps: ``PATH: PATHS OF WHAT IT NEEDS`` on a line each, below the folder of the kernel unless it
begins with a slash; modprobe looks at nothing else for what it loads)
"""

from __future__ import annotations

import re

LIST = "/modules.dep"
PATTERN = f"/usr/lib/modules/*{LIST}"
IMAGES = f"/ostree/deploy/*/deploy/*{PATTERN}"  # of the deployment that starts next, too (man 1 ostree-admin-deploy)
OWN = "kernel/"  # where modules of the kernel itself are (Linux scripts/Makefile.modinst)
_PATH = re.compile(r"(?:/ostree/deploy/[^/]+/deploy/[^/]+)?/usr/lib/modules/[^/]+/modules\.dep")
_ZFS = re.compile(r"[\w./+-]{0,200}\bzfs\.ko(?:\.(?:gz|xz|zst))?", re.ASCII)


def kept(name: str, text: str) -> str | None:
    """``kernel/:`` where there are any below it, and the path of each zfs with a colon; None for another file."""
    if not _PATH.fullmatch(name):
        return None
    paths = [line.partition(":")[0] for line in text.split("\n") if ":" in line]
    own = [OWN] if any(each.startswith(OWN) for each in paths) else []
    zfs = [each for each in paths if _ZFS.fullmatch(each) and each.rpartition("/")[2].startswith("zfs.ko")]
    return "".join(f"{each}:\n" for each in (*own, *zfs))
