"""``newc`` cpio archives: what an initramfs is made of. (Linux: Documentation/driver-api/early-userspace/buffer-format)"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

Item = tuple[str, int, bytes]
"""name, mode as in struct stat, content (the target of a symbolic link)"""


def pack(items: Iterable[Item]) -> bytes:
    """A complete archive of the items in their order; parents come first."""
    out = [_entry(name, mode, data, inode) for inode, (name, mode, data) in enumerate(items, 1)]
    archive = b"".join([*out, _entry("TRAILER!!!", 0, b"", 0)])
    return archive + b"\0" * (-len(archive) % 512)


def files(top: str, content: Mapping[str, bytes]) -> Iterator[Item]:
    """Executable files below the folder ``top``, with the folders that they need."""
    yield top, stat.S_IFDIR | 0o755, b""
    seen = set()
    for name, data in content.items():
        for parent in list(Path(name).parents)[-2::-1]:
            if parent not in seen:
                seen.add(parent)
                yield f"{top}/{parent}", stat.S_IFDIR | 0o755, b""
        yield f"{top}/{name}", stat.S_IFREG | 0o755, data


def tree(top: Path) -> Iterator[Item]:
    """Everything below a folder: folders, regular files, symbolic links."""
    for path in sorted(top.rglob("*")):
        mode, name = path.lstat().st_mode, str(path.relative_to(top))
        if stat.S_ISLNK(mode):
            yield name, mode, os.readlink(path).encode()
        elif stat.S_ISDIR(mode):
            yield name, mode, b""
        else:
            yield name, mode, path.read_bytes()


def _entry(name: str, mode: int, data: bytes, inode: int) -> bytes:
    raw = name.encode() + b"\0"
    fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + raw
    head += b"\0" * (-len(head) % 4) + data
    return head + b"\0" * (-len(head) % 4)


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(pack(tree(Path(sys.argv[1]))))
