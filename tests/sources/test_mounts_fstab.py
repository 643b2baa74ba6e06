"""Of fstab is kept where something is mounted and what it waits for, and no server, device or password."""

from __future__ import annotations

import pytest

from auditor.host.live import allowed_part
from auditor.sources import mounts


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("UUID=1-2 / ext4 errors=remount-ro 0 1\n", "- / - defaults\n"),
        ("/dev/sda2 none swap sw 0 0\n", ""),
        ("# /a /b none bind 0 0\n   # x\n\n", ""),
        ("/tank/a\t/srv/a  none  rw,bind,nofail 0 0\n", "/tank/a /srv/a - bind\n"),
        ("/a /b none bind,x-systemd.requires=zfs-mount.service", "/a /b - bind,x-systemd.requires=zfs-mount.service\n"),
        ("//nas/secret /mnt/nas cifs username=u,password=hunter2,_netdev 0 0\n", "- /mnt/nas - _netdev\n"),
        ("tank/db /db zfs defaults,x-systemd.after=a b\n", "- /db zfs x-systemd.after=a\n"),
        ("/dev/sdb1 /tank/my\\040disk ext4\n", "- /tank/my\\040disk - defaults\n"),
        ("x /a ext4 x-systemd.requires=$(id),comment=/bind\n", "- /a - defaults\n"),
        ("incomplete /a\n", ""),
    ],
)  # fmt: skip
def test_kept(text: str, kept: str) -> None:
    assert allowed_part(mounts.PATH, text) == kept
    assert allowed_part(mounts.PATH, kept) == kept
