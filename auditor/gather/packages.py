"""How a package is installed on this host: what is missing is named by Debian's package, and said in words of the platform.

The platform is what os-release says of itself and of what it is like (man 5 os-release: ID, ID_LIKE), and for TrueNAS the
kernel. Of a host that did not say it, Debian's words stay.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from auditor.facts import Reason, Unknown

_DEBIAN = re.compile(r"apt install ([\w.+-]+)")
WAYS = {  # ID or ID_LIKE -> how
    "debian": "apt install {}",
    "rhel": "dnf install {}",
    "fedora": "dnf install {}",
    "suse": "zypper install {}",
    "opensuse": "zypper install {}",
    "arch": "pacman -S {}",
    "alpine": "apk add {}",
    "nixos": "{} in environment.systemPackages",
    "truenas": "{} (TrueNAS takes no packages)",  # apt is switched off there, and an update replaces the system
}
NAMES = {  # as others call the packages of Debian, where they do not call them so
    "rhel": {"zfsutils-linux": "zfs", "udev": "systemd-udev", "dmsetup": "device-mapper"},
    "fedora": {"zfsutils-linux": "zfs", "udev": "systemd-udev", "dmsetup": "device-mapper"},
    "suse": {"zfsutils-linux": "zfs", "dmsetup": "device-mapper"},
    "opensuse": {"zfsutils-linux": "zfs", "dmsetup": "device-mapper"},
    "arch": {"zfsutils-linux": "zfs-utils", "udev": "systemd", "dmsetup": "device-mapper"},
    "alpine": {"zfsutils-linux": "zfs", "dmsetup": "device-mapper"},
    "nixos": {"zfsutils-linux": "zfs", "udev": "systemd", "dmsetup": "lvm2"},
}


def systems(ids: Sequence[str], kernel: str) -> tuple[str, ...]:
    """What the host is and is like, the nearest first. ids: of os-release; TrueNAS calls itself Debian there, and its kernel
    6.12.33-production+truenas."""
    return (*(["truenas"] if "truenas" in kernel else []), *ids)


def here(failure: Unknown, systems: Collection[str]) -> Unknown:
    """The same in words of the first of these systems that is known."""
    system = next((each for each in systems if each in WAYS), "debian")
    if system == "debian" or not any("apt install " in each.remedy for each in failure.reasons):
        return failure
    names, way = NAMES.get(system, {}), WAYS[system]

    def other(found: re.Match[str]) -> str:
        return way.format(names.get(found[1], found[1]))

    return Unknown(tuple(Reason(each.text, _DEBIAN.sub(other, each.remedy)) for each in failure.reasons))
