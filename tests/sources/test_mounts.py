"""Mounts that no path leads to, where somebody stacks mounts of his own on the way."""

from __future__ import annotations

from auditor.facts import HOST, Known
from auditor.host.request import Files
from auditor.sources import mounts
from auditor.sources.mounts import DEEP

ROOT = "25 1 254:0 / / rw - ext4 /dev/vda rw\n"
HOME = "40 25 0:30 / /home/bob rw - zfs tank/bob rw\n"
INNER = "41 40 0:31 / /home/bob/data rw - zfs tank/bob/data rw\n"


def told(*lines: str) -> dict[str, object]:
    reply = Files({mounts.TABLES[0]: "".join(lines)})
    found = {fact.name: fact.value for fact in mounts.zfs_mounts.parse(reply, HOST)}
    return {name: value.value for name, value in found.items() if isinstance(value, Known)}


def test_one_fuse_mount_hides_what_is_below() -> None:
    over = "50 40 0:99 / /home/bob/data rw - fuse.x \\033[31mbob rw\n"
    assert told(ROOT, HOME, INNER)["hidden_mounts"] == ()
    assert told(ROOT, HOME, INNER, over.replace("/bob/data", "/bob").replace("50 40", "50 25"))["hidden_mounts"] == (
        "tank/bob at /home/bob below fuse.x, mounted at /home/bob",
        "tank/bob/data at /home/bob/data below fuse.x, mounted at /home/bob",
    )


def test_what_is_not_followed_to_its_end_is_not_told() -> None:
    stacked = [f"{100 + i} {99 + i if i else 40} 0:9 / /home/bob rw - fuse.x bob rw\n" for i in range(DEEP + 1)]
    found = told(ROOT, HOME, INNER, *stacked)
    assert "mount_table" in found
    assert "hidden_mounts" not in found
