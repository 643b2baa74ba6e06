"""``modules.dep``: which kernels are installed with their modules, and which of them have a zfs module.

Whoever brings a module, a package, an image or dkms, runs depmod after it; modprobe finds what is listed there, whichever
folder it is in: kernel, extra, updates, weak-updates (man 5 modules.dep, man 8 depmod). A folder whose list names no module
of the kernel itself is what is left of a kernel that was removed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, flag, known, words, words_of
from auditor.host.module_list import IMAGES, LIST, OWN, PATTERN
from auditor.host.request import WITNESS, Files, Read, Skip

PER = "host"
SUBJECT = "host"
FACTS = {
    "kernels_listed": words("releases of the installed kernels whose modules depmod has listed"),
    "kernels_with_zfs": words("those of them with a zfs module among these"),
    "kernels_removed_with_zfs": words(
        "releases of which depmod's list has a zfs module, and none of the kernel itself"
    ),
    "zfs_is_module": flag("the OpenZFS that runs was loaded as a module, and is not built into the kernel"),
    "zfs_modules": words("KERNEL PATH of each zfs module that modprobe finds for an installed kernel"),
}
STATE = (
    "/sys/module/zfs/initstate"  # of a module that was loaded; one that is built in has none (kernel/module/sysfs.c)
)
BOOTED = "/run/ostree-booted"  # made by ostree where an image of it has started
_NAME = re.compile(r"[\w.+~-]{1,100}", re.ASCII)
_MODULE = re.compile(r"(?:/usr)?/lib/modules/[\w./+~-]{1,300}", re.ASCII)


def request(host: Subject, facts: Facts) -> Read:
    return Read((PATTERN, IMAGES, BOOTED, STATE, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Both, where every list was read. Raises ValueError for a name that is no kernel's."""
    reply.witness()
    if STATE in reply.text or reply.absent(STATE):
        seen = reply.text.get(STATE, "").strip() or "it is not there"
        yield Fact(HOST, "zfs_is_module", known(STATE in reply.text, seen[:20], f"cat {STATE}"))
    lists = {path: text.splitlines() for path, text in sorted(reply.text.items()) if path.endswith(LIST)}
    images = any(path.startswith(IMAGES.partition("*")[0]) for path in lists)
    if not reply.complete(PATTERN, IMAGES, BOOTED) or (BOOTED in reply.text and not images):
        return
    found: dict[str, bool] = {}
    modules: list[str] = []
    # any of the images may start; the folder in use comes last, and counts for its own kernels
    for path, lines in lists.items():
        if f"{OWN}:" in lines:
            kernel = path.removesuffix(LIST).rpartition("/")[2]
            found[kernel] = len(lines) > 1 and (found.get(kernel, True) or path.startswith("/usr/"))
            paths = [each.removesuffix(":") for each in lines if each != f"{OWN}:" and path.startswith("/usr/")]
            modules += (f"{kernel} {posixpath.join(posixpath.dirname(path), each)}" for each in paths)
    if wrong := [each for each in found if not _NAME.fullmatch(each)]:
        raise ValueError(f"{wrong[0][:40]!r} is no release of a kernel")
    with_zfs = tuple(each for each in found if found[each])
    yield Fact(HOST, "kernels_listed", known(tuple(found), ", ".join(found) or "none", f"ls {PATTERN}"))
    left = tuple(
        path.removesuffix(LIST).rpartition("/")[2]
        for path, lines in lists.items()
        if path.startswith("/usr/") and lines and f"{OWN}:" not in lines
    )
    text = f"zfs alone is left of {', '.join(left)}" if left else "no kernel of which zfs alone is left"
    yield Fact(HOST, "kernels_removed_with_zfs", known(left, text, f"grep -L '^kernel/' {PATTERN}"))
    text = f"zfs among the modules of {', '.join(with_zfs) or 'none'}"
    yield Fact(HOST, "kernels_with_zfs", known(with_zfs, text, f"grep -l '/zfs[.]ko' {PATTERN}"))
    yield Fact(HOST, "zfs_modules", known(tuple(modules), ", ".join(modules) or "none", f"grep '/zfs[.]ko' {PATTERN}"))


def paths(facts: Facts) -> list[tuple[str, str]] | Skip:
    """(kernel, path) of each zfs module, where all of them are below folders of modules."""
    pairs = [
        (kernel, path) for kernel, _, path in (each.partition(" ") for each in words_of(facts.get(HOST, "zfs_modules")))
    ]
    strange = [path for _, path in pairs if not _MODULE.fullmatch(path) or ".." in path]
    return Skip(f"{strange[0]}: no place for a module") if strange else pairs
