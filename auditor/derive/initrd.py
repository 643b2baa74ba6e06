"""Whether the initrd that starts next, where the root file system is on ZFS, holds what was installed and set since.

There the zfs module is loaded from the initrd, with the copies in it of modprobe.d and of /etc/hostid. Which files it holds is
not looked at, only when it was written: what is newer cannot be in it. Judged of the newest kernels with a zfs module: one of
them starts next, unless somebody chooses another. (mkinitramfs(8), dracut(8); OpenZFS contrib/initramfs/hooks/zfs.in)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from auditor.data.initrds import HOSTID, OPTIONS, names
from auditor.data.platforms import ANY, filled
from auditor.derive.combine import values
from auditor.derive.next_boot import root_source
from auditor.derive.next_kernel import newer
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    flag,
    unknown,
    word_of,
    words,
    words_of,
)

SUBJECT = "host"
FACTS = {
    "root_on_zfs": flag("the root file system is on ZFS"),
    "initrd_outdated": words("files that were changed after the initrd that should hold them was written"),
}


class Times(NamedTuple):
    """When the content of a file was changed, and when anything of it was: seconds since 1970."""

    content: int
    changed: int


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Both."""
    yield Fact(HOST, "root_on_zfs", _root(facts))
    yield Fact(HOST, "initrd_outdated", _outdated(facts))


def options_in_doubt(facts: Facts) -> Unknown | None:
    """Why the options of modprobe.d may not be those with which the module is loaded at the next boot; None where they are.

    A file below /usr that gave an option once, and is gone since, is not seen."""
    root = _root(facts)
    if isinstance(root, Unknown):
        return root
    if not root.value or _built_together(facts):
        return None
    found = _initrds(facts)
    if isinstance(found, Unknown):
        return found
    times, initrds = found
    options = facts.get(HOST, "zfs_boot_options")
    files = [each.command.removeprefix("cat ") for each in options.evidence] if isinstance(options, Known) else []
    if elsewhere := [path for path in files if path.endswith(".conf") and path not in times]:
        return unknown(f"{elsewhere[0]}: whether it was changed after the initrd was written was not looked at")
    for initrd in initrds.values():
        for path in times:
            if path.startswith(OPTIONS) and max(times[path]) > times[initrd].content:
                text = f"{initrd} was written before {path} was changed: it may hold other options"
                return unknown(text, filled("{rebuild}", word_of(facts.get(HOST, "platform"), ANY)))
    return None


def _built_together(facts: Facts) -> bool:
    """NixOS builds an initrd with every configuration, and puts it where no other system has its own."""
    return "nixos" in words_of(facts.get(HOST, "os_ids"))


def _root(facts: Facts) -> Judged:
    table = facts.get(HOST, "mount_table")
    found = root_source(facts)
    return table if isinstance(table, Unknown) else Known(found is not None, table.evidence)


def _outdated(facts: Facts) -> Judged:
    """By the times of content; where only other times are later, as of a file that a package brought, it is not known."""
    found = _initrds(facts)
    if isinstance(found, Unknown):
        return found
    times, initrds = found
    options = facts.get(HOST, "zfs_boot_options")
    if isinstance(options, Unknown):
        return options
    files = {each.command.removeprefix("cat ") for each in options.evidence}  # those with options of the zfs module
    held = [(HOSTID, *_modules(facts, kernel), *sorted(files)) for kernel in initrds]
    pairs = [
        (path, initrd) for paths, initrd in zip(held, initrds.values(), strict=True) for path in paths if path in times
    ]
    late = [(path, initrd) for path, initrd in pairs if times[path].content > times[initrd].content]
    if late:
        return Known(tuple(path for path, _ in late), tuple(_seen(path, initrd, times) for path, initrd in late))
    if missing := [path for kernel in initrds for path in _modules(facts, kernel) if path not in times]:
        return unknown(f"{missing[0]}, which modules.dep names, is not there")
    for path, initrd in pairs:
        if times[path].changed > times[initrd].content:
            return unknown(f"{path} came or was changed after {initrd} was written: whether that holds it is not known")
    return Known((), tuple(_seen(path, initrd, times) for path, initrd in pairs))


def _initrds(facts: Facts) -> tuple[Mapping[str, Times], Mapping[str, str]] | Unknown:
    """The times, and for each of the newest kernels its initrd."""
    found = values(facts, HOST, "initrd_times", "zfs_modules")
    if isinstance(found, Unknown):
        return found
    rows = [line.split(" ", 2) for line in words_of(found[0])]
    times = {path: Times(int(content), int(changed)) for content, changed, path in rows}
    kernels = [each.partition(" ")[0] for each in words_of(found[1])]
    initrds: dict[str, str] = {}
    for kernel in kernels:
        if any(newer(each, kernel) for each in kernels):
            continue
        there = [name for name in names(kernel) if name in times]
        if len(there) != 1:
            return unknown(f"{len(there) or 'no'} initrd of {kernel} found at {', '.join(there or names(kernel))}")
        initrds[kernel] = there[0]
    return (times, initrds) if initrds else unknown("no kernel with a zfs module was found")


def _modules(facts: Facts, kernel: str) -> list[str]:
    pairs = [each.partition(" ")[::2] for each in words_of(facts.get(HOST, "zfs_modules"))]
    return [path for name, path in pairs if name == kernel]


def _seen(path: str, initrd: str, times: Mapping[str, Times]) -> Evidence:
    text = f"{path} is of {_date(times[path].content)}, {initrd} of {_date(times[initrd].content)}"
    return Evidence(text, f"stat -L -c '%y %z %n' {path} {initrd}")


def _date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
