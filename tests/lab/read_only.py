"""That zaudit and the real tools that it starts change nothing: each system call of a whole run as root in a guest, judged as
tests/security judges those of a host of fake tools.

    python -m tests.lab.read_only 2.3-healthy-mirrored-slog    the proof of a run that was kept, as a table

What the tools may do is a list as well: the requests of /dev/zfs that only read (OpenZFS include/sys/fs/zfs.h, the same
numbers in 2.1, 2.3 and 2.4), and the ones by which nvme, smartctl and hdparm ask a drive.
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
ZFS = {
    0x04: "POOL_CONFIGS", 0x05: "POOL_STATS", 0x0A: "POOL_GET_HISTORY", 0x12: "OBJSET_STATS", 0x13: "OBJSET_ZPLPROPS",
    0x14: "DATASET_LIST_NEXT", 0x15: "SNAPSHOT_LIST_NEXT", 0x20: "ERROR_LOG", 0x24: "DSOBJ_TO_DSNAME", 0x25: "OBJ_TO_PATH",
    0x27: "POOL_GET_PROPS", 0x33: "OBJSET_RECVD_PROPS", 0x55: "VDEV_GET_PROPS", 0x81: "EVENTS_NEXT", 0x83: "EVENTS_SEEK",
    0x88: "GET_BOOTENV",
}  # fmt: skip
REQUESTS = re.compile(
    "|".join(re.escape(f"_IOC(_IOC_NONE, 0x5a, {number:#x}, 0)") for number in ZFS)
    + "|NVME_IOCTL_ID|NVME_IOCTL_ADMIN_CMD|NVME_IOCTL_ADMIN64_CMD|SG_IO|SG_GET_VERSION_NUM|HDIO_DRIVE_CMD|HDIO_GET_IDENTITY"
    "|BLKGETSIZE64|BLKSSZGET|DM_VERSION|DM_LIST_DEVICES|DM_TABLE_STATUS|DM_LIST_VERSIONS"
)
DEVICES = Devices(re.compile(r"/dev/(zfs|nvme\d+(n\d+)?|sd[a-z]+|mapper/control)"), REQUESTS)


def seen(name: str, files: Mapping[str, bytes]) -> Seen:
    """What the run of a scenario did. Raises ValueError where nothing was traced."""
    traced = {path: data.decode(errors="replace") for path, data in files.items() if path.startswith(PREFIX)}
    return strace.read(traced, Permitted(ZAUDIT, permitted, PATH, f"/tmp/looks/{name}/traced", DEVICES))


def problems(name: str, facts: Mapping[str, Any], files: Mapping[str, bytes]) -> Iterator[str]:
    """What could change something, in a sentence each."""
    if facts.get("traced") not in range(10, 15):
        yield f"the run under strace ended with {facts.get('traced')}: {files.get('traced/stderr', b'')[-400:]!r}"
        return
    yield from dict.fromkeys(seen(name, files).problems)


def main(kept: str) -> None:
    """Print the proof of one run."""
    from .run import KEEP

    files = {f"traced/{path.name}": path.read_bytes() for path in (KEEP / kept / "traced").iterdir()}
    print("\n".join(prove.table(kept, seen(kept.partition("-")[2], files))))


if __name__ == "__main__":
    main(sys.argv[1])
