"""What an initrd is called, and of what it holds copies.

``initrd.img-KERNEL`` (Debian's initramfs-tools), ``initramfs-KERNEL.img`` (dracut), ``initrd-KERNEL`` (openSUSE) or
``initramfs-linux.img`` (Arch's mkinitcpio, after the package of the kernel).
"""

from __future__ import annotations

OPTIONS, HOSTID = "/etc/modprobe.d", "/etc/hostid"
ARCH = (
    "lts",
    "zen",
    "hardened",
)  # kernels of Arch whose packages are called after what stands at the end of the release


def names(kernel: str) -> tuple[str, ...]:
    """Where an initrd of this kernel may be."""
    kind = next((f"-{each}" for each in ARCH if kernel.endswith(f"-{each}")), "")
    return (
        f"/boot/initrd.img-{kernel}",
        f"/boot/initramfs-{kernel}.img",
        f"/boot/initrd-{kernel}",
        f"/boot/initramfs-linux{kind}.img",
    )
