"""/dev/disk and /dev/mapper: which block device a path means now, as the kernel resolves it. (udev(7), SYMLINK)

udev's database may give one name to several devices; only the link itself says which of them has it. And a path that is
not there although its folder is, is the path of a device that is gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import DeviceName, Fact, Facts, Subject, known, rows
from auditor.host.request import Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {"dev_links": rows(DeviceName, "every symbolic link in these folders")}
FOLDERS = (
    *(f"/dev/disk/by-{name}/" for name in ("id", "partuuid", "path", "uuid", "partlabel", "label", "vdev")),
    "/dev/mapper/",
)


def request(host: Subject, facts: Facts) -> Read:
    """The links; the devices themselves are not opened."""
    return Read(tuple(f"{folder}*" for folder in FOLDERS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """One fact; raises ValueError when not one link could be read."""
    pairs = tuple(DeviceName(path, target.rpartition("/")[2]) for path, target in sorted(reply.links.items()))
    if not pairs:
        raise ValueError("no link in /dev/disk or /dev/mapper")
    yield Fact(host, "dev_links", known(pairs, f"{len(pairs)} links", "ls -l /dev/disk/by-id"))
