"""Of modules.dep only where zfs is is kept."""

from __future__ import annotations

import pytest

from auditor.host.live import allowed_part

PATH = "/usr/lib/modules/6.11.3/modules.dep"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "kernel/fs/ext4/ext4.ko.xz: kernel/lib/crc16.ko.xz\nextra/zfs.ko.xz: extra/spl.ko.xz\n",
            "kernel/:\nextra/zfs.ko.xz:\n",
        ),
        ("kernel/zfs/zfs.ko:\n", "kernel/:\nkernel/zfs/zfs.ko:\n"),
        ("weak-updates/zfs/zfs.ko.zst:\n", "weak-updates/zfs/zfs.ko.zst:\n"),
        ("kernel/a.ko: extra/zfs.ko\nextra/notzfs.ko:\nextra/not-zfs.ko:\nextra/zfs.ko.old:\n", "kernel/:\n"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("image", ["", "/ostree/deploy/fedora-coreos/deploy/04ab.0"])
def test_what_is_kept(text: str, kept: str, image: str) -> None:
    assert allowed_part(image + PATH, text, wide=True) == kept
    assert allowed_part(image + PATH, kept, wide=True) == kept
