"""That zaudit and the real tools that it starts change nothing: each system call of a whole run as root in a guest, judged as
tests/security judges those of a host of fake tools.

    python -m tests.lab.read_only 2.3-healthy-mirrored-slog    the proof of a run that was kept, as a table

What the tools may do is a list as well: the requests of /dev/zfs that only read (OpenZFS include/sys/fs/zfs.h), and the ones by
which nvme, smartctl and hdparm pass a command on to a drive: those commands are in fixtures/allowed.txt.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from auditor.host.live import PATH, permitted
from tests.security import prove, strace
from tests.security.strace import Devices, Permitted, Seen

ZAUDIT = ("/usr/bin/python3", "-I")
PREFIX = "traced/calls."
ZFS = (
    *("POOL_CONFIGS", "POOL_STATS", "POOL_GET_HISTORY", "POOL_GET_PROPS", "VDEV_GET_PROPS", "OBJSET_STATS"),
    *(
        "OBJSET_ZPLPROPS",
        "OBJSET_RECVD_PROPS",
        "DATASET_LIST_NEXT",
        "SNAPSHOT_LIST_NEXT",
        "ERROR_LOG",
        "DSOBJ_TO_DSNAME",
    ),
    *("OBJ_TO_PATH", "EVENTS_NEXT", "EVENTS_SEEK", "GET_BOOTENV", "GET_BOOKMARKS"),
)
DRIVES = (
    *(
        "NVME_IOCTL_ID",
        "NVME_IOCTL_ADMIN_CMD",
        "NVME_IOCTL_ADMIN64_CMD",
        "SG_IO",
        "SG_GET_VERSION_NUM",
        "HDIO_DRIVE_CMD",
    ),
    *("HDIO_GET_IDENTITY", "BLKGETSIZE64", "BLKSSZGET", "BLKPBSZGET"),
    *("DM_VERSION", "DM_LIST_DEVICES", "DM_TABLE_STATUS", "DM_LIST_VERSIONS"),
)
DEVICES = Devices(
    opened=re.compile(r"/dev/zfs|/dev/mapper/control|/proc/\d+/task/\d+/comm"),  # zdb gives its threads names
    asked=re.compile(r"/dev/(zfs|mapper/control|nvme\d+(n\d+(p\d+)?)?|sd[a-z]+\d*|vd[a-z]+\d*)"),
    requests=re.compile("|".join((*(f"ZFS_IOC_{name}" for name in ZFS), *DRIVES))),
    # zfs and zpool try at their end; without a change before it there is nothing to log (zfs_ioc_log_history())
    refused=re.compile("ZFS_IOC_LOG_HISTORY"),
)


def seen(name: str, files: Mapping[str, bytes]) -> Seen:
    """What the run of a scenario did. Raises ValueError where nothing was traced."""
    traced = {path: data.decode(errors="replace") for path, data in files.items() if path.startswith(PREFIX)}
    return strace.read(traced, Permitted(ZAUDIT, permitted, PATH, f"/tmp/looks/{name}/traced", DEVICES))


def problems(name: str, facts: Mapping[str, Any], files: Mapping[str, bytes]) -> Iterator[str]:
    """What could change something, in a sentence each."""
    if facts.get("traced") not in range(10, 15):
        yield f"the run under strace ended with {facts.get('traced')}: {files.get('traced/stderr', b'')[-400:]!r}"
        return
    try:
        yield from dict.fromkeys(seen(name, files).problems)
    except ValueError as error:
        yield str(error)


def main(kept: str) -> None:
    """Print the proof of one run."""
    from .run import KEEP

    files = {f"traced/{path.name}": path.read_bytes() for path in (KEEP / kept / "traced").iterdir()}
    print("\n".join(prove.table(kept, seen(kept.partition("-")[2], files))))


if __name__ == "__main__":
    main(sys.argv[1])
