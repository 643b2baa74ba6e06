"""platforms.toml: how things are done on the platforms that zaudit knows, as words in the texts of fixes and remedies. Its head
says how to read it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

from auditor import data

FILE = "platforms.toml"
ANY = "any"  # a host that does not say what it is, and every page about a rule
LISTS = ("ids", "kernel", "packages")
WORD = re.compile(r"\{([a-z_]+)(?::([^{}]*))?\}")
_DEBIAN = re.compile(r"apt install ([\w.+-]+)")


class Platform(NamedTuple):
    """ids: of os-release; kernel: in its release; packages: of Debian by their name there; words: all that there are."""

    name: str
    ids: tuple[str, ...]
    kernel: tuple[str, ...]
    packages: Mapping[str, str]
    words: Mapping[str, str]


NOTHING = Platform("", (), (), {}, {})


@cache
def load() -> Mapping[str, Platform]:
    """All, by name; the first is ANY, which has all words."""
    return parse(data.table(FILE))


def parse(document: data.Document) -> dict[str, Platform]:
    """The platforms of a table in this form."""
    found: dict[str, Platform] = {}
    for entry in document["platform"]:
        base = found.get(entry.get("like", ANY), NOTHING)
        ids, kernel, packages = (tuple(entry.get(key, ())) for key in LISTS)
        words = {key: value for key, value in entry.items() if key not in ("name", "like", *LISTS)}
        named = {**base.packages, **dict(each.split("=") for each in packages)}
        found[entry["name"]] = Platform(entry["name"], ids, kernel, named, {**base.words, **words})
    return found


def here(ids: Sequence[str], kernel: str) -> str:
    """The platform of a host; ANY: none of these. ids: of os-release, what it is and is like, the nearest first. kernel: its
    release, which tells those that call themselves Debian there (6.12.33-production+truenas, 6.17.2-1-pve)."""
    by_kernel = (each.name for each in load().values() if any(mark in kernel for mark in each.kernel))
    by_id = (each.name for id in ids for each in load().values() if id in each.ids)
    return next(chain(by_kernel, by_id), ANY)


def filled(text: str, platform: str) -> str:
    """The text with the words of a platform in the place of {word} and {word:argument}; other braces stay as they are."""
    every, of = load()[ANY], load()[platform]

    def word(found: re.Match[str]) -> str:
        if found[1] not in every.words or ("{}" in every.words[found[1]]) is (found[2] is None):
            return found[0]
        argument = found[2] or ""
        return filled(of.words[found[1]].replace("{}", of.packages.get(argument, argument)), platform)

    return WORD.sub(word, text)


def installed(remedy: str, platform: str) -> str:
    """A remedy in which ``apt install`` stands for all ways to install a package, as the platform says it."""
    return _DEBIAN.sub(lambda found: filled(f"{{package:{found[1]}}}", platform), remedy)


# -- initrds ----------------------------------------------------------------------------------------------------------
# What an initrd is called, and of what it holds copies.
#
# ``initrd.img-KERNEL`` (Debian's initramfs-tools), ``initramfs-KERNEL.img`` (dracut), ``initrd-KERNEL`` (openSUSE) or
# ``initramfs-linux.img`` (Arch's mkinitcpio, after the package of the kernel).

OPTIONS, HOSTID = "/etc/modprobe.d", "/etc/hostid"
ARCH = ("lts", "zen", "hardened")  # kernels of Arch whose packages have the name of the end of the release


def initrd_paths(kernel: str) -> tuple[str, ...]:
    kind = next((f"-{each}" for each in ARCH if kernel.endswith(f"-{each}")), "")
    return (
        f"/boot/initrd.img-{kernel}",
        f"/boot/initramfs-{kernel}.img",
        f"/boot/initrd-{kernel}",
        f"/boot/initramfs-linux{kind}.img",
    )
